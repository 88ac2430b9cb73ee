package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/visible"
)

// gutter stands before every line that an agent wrote, so that no such line
// can pass for one of ours.
const gutter = "  │ "

// nameRunes is the longest name or pattern in a sentence of ours: short enough
// that no line of it is all an agent's.
const nameRunes = 48

// sheet is an ask as lines for a terminal, all of it, none wider than width.
func sheet(a *board.Ask, width int, now time.Time) []string {
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, words(fmt.Sprintf(format, args...), width)...)
	}
	quote := func(text string) {
		for _, l := range strings.Split(visible.Block(text), "\n") {
			lines = append(lines, wrap(l, width, gutter)...)
		}
	}
	for i, f := range desk.Facts(a) {
		switch label := visible.Line(f.Label, 0); {
		case f.Model:
			say("written by the model (%s):", visible.Line(f.Label, nameRunes))
		case label == "" || i == 0:
		case len(label) <= nameRunes && strings.Trim(label, "abcdefghijklmnopqrstuvwxyz ,") == "":
			say("%s:", label)
		default:
			say("and, as the agent names it:")
			quote(f.Label + ":")
		}
		quote(f.Text)
	}
	q := a.Question
	if q.Pattern != "" {
		say("asks because of the rule %s on %s", visible.Line(q.Pattern, nameRunes), orUnknown(q.Surface))
	} else if q.Intent == nil {
		say("asks because the agent sent too few facts for a rule to decide")
	} else {
		say("asks because no rule matches")
	}
	said := "session " + orUnknown(q.Principal.SessionID)
	if q.Tool != "" {
		said += ", tool " + visible.Line(q.Tool, nameRunes)
	}
	if q.Surface != "" && q.Surface != q.Tool {
		said += ", surface " + visible.Line(q.Surface, nameRunes)
	}
	if left := desk.Patience(q, now); left != "" {
		said += ", waits " + left + " more"
	}
	say("%s", said)
	for _, h := range q.Hops {
		say("came through %s", visible.Line(h, nameRunes))
	}
	for _, n := range desk.Notes(a) {
		say("%s", n)
	}
	if len(q.Suggestion) > 0 {
		say("for this session would allow:")
		for _, g := range q.Suggestion {
			quote(g.Surface + " " + g.Pattern)
		}
	}
	return lines
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return visible.Line(s, nameRunes)
}

// brief is lines cut to at most room, head and tail kept, and whether any went.
func brief(lines []string, room int) ([]string, bool) {
	room = max(room, 6)
	if len(lines) <= room {
		return lines, false
	}
	head := (room - 1) * 2 / 3
	tail := room - 1 - head
	out := append([]string(nil), lines[:head]...)
	out = append(out, fmt.Sprintf("  … %d more lines, v shows them …", len(lines)-head-tail))
	return append(out, lines[len(lines)-tail:]...), true
}

// wrap breaks s, which has no line break, into lines of at most width cells,
// each led by lead. Nothing is dropped.
func wrap(s string, width int, lead string) []string {
	room := max(width-cells(lead)-1, 8)
	var out []string
	var b strings.Builder
	used := 0
	for _, r := range s {
		w := cell(r)
		if used+w > room {
			out = append(out, lead+b.String())
			b.Reset()
			used = 0
		}
		b.WriteRune(r)
		used += w
	}
	return append(out, lead+b.String())
}

// words breaks a sentence of ours between words.
func words(s string, width int) []string {
	const lead = "  "
	room := max(width-len(lead)-1, 8)
	var out []string
	line := ""
	for _, w := range strings.Fields(s) {
		switch {
		case line == "":
			line = w
		case cells(line)+1+cells(w) <= room:
			line += " " + w
		default:
			out = append(out, wrap(line, width, lead)...)
			line = w
		}
	}
	return append(out, wrap(line, width, lead)...)
}

// cell is how many columns r takes at most. Too many only breaks a line early.
func cell(r rune) int {
	if r >= 0x1100 && !unicode.Is(unicode.Arabic, r) && (r < 0x2010 || r > 0x27ff) {
		return 2
	}
	return 1
}

func cells(s string) int {
	n := 0
	for _, r := range s {
		n += cell(r)
	}
	return n
}
