//go:build !headless

package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// floors are the engine's built-in reasons to ask, in a human's words.
var floors = map[string]string{
	"<indirection-bash-wrapper>": "it starts another program through a wrapper, such as sudo, env or xargs",
	"<opaque-bash-wrapper>":      "it hides what it runs: eval, a shell with -c, or a program that is read from elsewhere",
	"<computed-bash-command>":    "the name of the program is only computed when it runs",
	"<unparseable-bash-command>": "it cannot be read as a shell command",
}

// why says in one sentence why an ask asks, in visible text.
func why(q *engine.Question) string {
	on := ""
	if q.Surface != "" {
		on = " on " + visible.Line(q.Surface, 40)
	}
	switch {
	case q.Pattern == "" && q.Intent == nil:
		return "Asks because the agent sent too few facts for a rule to decide."
	case q.Pattern == "":
		return "Asks because no rule matches" + on + "."
	case floors[q.Pattern] != "":
		return "Asks" + on + " whatever the rules allow, because " + floors[q.Pattern] + "."
	case strings.HasPrefix(q.Pattern, "<") && strings.HasSuffix(q.Pattern, ">"):
		return "Asks" + on + " whatever the rules allow: " + visible.Line(strings.ReplaceAll(strings.Trim(q.Pattern, "<>"), "-", " "), 80) + "."
	default:
		return "Asks because of the rule “" + visible.Line(q.Pattern, 160) + "”" + on + "."
	}
}

// cwdRunes is the longest directory that the line under the title shows whole.
const cwdRunes = 90

// where says for whom and where an ask would act, in visible text.
func where(a *pipe.Ask) string {
	q := a.Question
	var parts []string
	if q.RequesterCwd != "" {
		parts = append(parts, "in "+visible.Line(q.RequesterCwd, cwdRunes))
	}
	if q.SessionID != "" {
		parts = append(parts, "session "+visible.Line(q.SessionID, 40))
	}
	if id := q.Principal.SessionID; id != "" && id != q.SessionID {
		parts = append(parts, "child "+visible.Line(id, 24))
	}
	if n := len(q.Hops); n > 0 {
		hops := make([]string, n)
		for i, h := range q.Hops {
			hops[i] = visible.Line(h, 24)
		}
		parts = append(parts, "relayed through "+strings.Join(hops, ", then "))
	}
	return strings.Join(parts, "  ·  ")
}

// notes are what is said beside an ask.
func notes(a *pipe.Ask) []string {
	return desk.Notes(&board.Ask{Question: a.Question, Adopted: a.Adopted, Notes: a.Notes})
}

// value names what the first fact of an ask is.
func value(q *engine.Question) string {
	tool := visible.Line(q.Tool, 40)
	switch {
	case q.Surface == "bash" || q.Kind == "bash":
		return "command"
	case strings.Contains(q.Kind, "path") || strings.Contains(q.Kind, "external_directory") || strings.HasPrefix(q.Surface, "external_directory") || strings.HasPrefix(q.Surface, "path"):
		return "path"
	case tool != "":
		return tool
	}
	return "value"
}

// sections are the facts of an ask as they stand on its sheet.
func sections(a *pipe.Ask) []section {
	var all []section
	facts := desk.Facts(&board.Ask{Question: a.Question, Key: a.Key, Hash: a.Hash, AgentDir: a.AgentDir, Adopted: a.Adopted, Since: a.Since})
	for i, f := range facts {
		if f.Label == "in" {
			if cwd := a.Question.RequesterCwd; f.Text == cwd && visible.Line(cwd, cwdRunes) == cwd {
				continue // the line under the title says it whole
			}
			f.Label = "directory"
		}
		s := section{label: f.Label, text: f.Text, model: f.Model}
		if i == 0 && s.label == "" {
			s.label = value(a.Question)
			if a.Question.Tool != "" && s.label != a.Question.Tool {
				s.label = a.Question.Tool + " " + s.label
			}
		}
		all = append(all, s)
	}
	return all
}

// windowTitle is what the window's frame says: who, and with which tool.
func windowTitle(q *engine.Question) string {
	t := desk.Who(q.Principal)
	if q.Tool != "" {
		t += ": " + visible.Line(q.Tool, 40)
	}
	return t + " - Nod"
}

// patience says how long the child still waits.
func patience(q *engine.Question, now time.Time) string {
	if q.Deadline.IsZero() {
		return ""
	}
	left := q.Deadline.Sub(now)
	if left <= 0 {
		return "has stopped waiting"
	}
	s := int((left + time.Second - 1) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("waits %d:%02d:%02d more", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("waits %d:%02d more", s/60, s%60)
}

// clockTime is a moment for a list, in the place of now: the time, and the day
// if it is not today.
func clockTime(t, now time.Time) string {
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("Jan 2 15:04")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// sentence makes a message visible and never empty.
func sentence(s string) string {
	if s == "" {
		return "It did not get through."
	}
	return visible.Line(s, 300)
}
