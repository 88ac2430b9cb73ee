//go:build !headless

package view

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nod-agents/nod/app/visible"
)

// How much emptiness is shown as itself. More is folded into a mark that says
// how much there was, so that no tail is pushed out of sight.
const (
	blankLines  = 3
	blankSpaces = 48
)

// shortLine is how long a line may be, in characters, without its length
// being told.
const shortLine = 120

type kind uint8

const (
	plain   kind = iota
	escaped      // stands for a character that would not show itself
	folded       // stands for emptiness
)

// alphabets is how many different characters of a text are shown as themselves,
// ASCII and ideographs not counted. The toolkit looks each up in every font, and
// the longer the more there are that no font has: with all of Unicode in one
// text it would not come back for minutes.
const alphabets = 300

// A stretch is a part of a text's body that is not plain.
type stretch struct {
	start, end int
	kind       kind
}

// A line is one line of a text, or a mark for several blank ones.
type line struct {
	start, end int // in the body, without its line break
	number     int // counts from 1
}

// A text is an agent's string made ready to be read: visible, its emptiness
// folded, cut into lines.
type text struct {
	body      string
	stretches []stretch // in order, none within another
	lines     []line
	count     int // lines of the original; a last line break ends a line and starts none
	chars     int // of the original
	escapes   int
}

func newText(raw string) *text {
	body, escapes := visible.Spans(raw, alphabets)
	t := &text{chars: utf8.RuneCountInString(raw), escapes: len(escapes)}
	var b strings.Builder
	b.Grow(len(body))
	body = strings.TrimSuffix(body, "\n")

	// take copies body[from:to] with the escapes in it.
	next := 0
	take := func(from, to int) {
		shift := b.Len() - from
		for ; next < len(escapes) && escapes[next].Start < to; next++ {
			t.stretches = append(t.stretches, stretch{escapes[next].Start + shift, escapes[next].End + shift, escaped})
		}
		b.WriteString(body[from:to])
	}
	mark := func(format string, n int) {
		start := b.Len()
		fmt.Fprintf(&b, format, n)
		t.stretches = append(t.stretches, stretch{start, b.Len(), folded})
	}

	type span struct{ start, end int }
	blank := func(s span) bool { return strings.Trim(body[s.start:s.end], " ") == "" }
	lineAt := func(from int) (s span, after int) {
		if i := strings.IndexByte(body[from:], '\n'); i >= 0 {
			return span{from, from + i}, from + i + 1
		}
		return span{from, len(body)}, len(body) + 1
	}
	for at := 0; at <= len(body); {
		s, after := lineAt(at)
		if blank(s) {
			n, end := 1, after
			for end <= len(body) {
				more, next := lineAt(end)
				if !blank(more) {
					break
				}
				n, end = n+1, next
			}
			if n >= blankLines {
				start := b.Len()
				mark("… %d blank lines …", n)
				t.lines = append(t.lines, line{start, b.Len(), t.count + 1})
				t.count += n
				b.WriteByte('\n')
				at = end
				continue
			}
		}
		start := b.Len()
		for from := s.start; from < s.end; {
			i := strings.Index(body[from:s.end], strings.Repeat(" ", blankSpaces))
			if i < 0 {
				take(from, s.end)
				break
			}
			gap := from + i
			end := gap + len(body[gap:s.end]) - len(strings.TrimLeft(body[gap:s.end], " "))
			take(from, gap)
			mark("… %d spaces …", end-gap)
			from = end
		}
		t.count++
		t.lines = append(t.lines, line{start, b.Len(), t.count})
		b.WriteByte('\n')
		at = after
	}
	t.body = b.String()
	return t
}

// size says how long the text is: "41 lines", or for one long line "4,000
// characters". A short line shows that by itself.
func (t *text) size() string {
	switch {
	case t.count > 1:
		return thousands(t.count) + " lines"
	case t.chars > shortLine:
		return thousands(t.chars) + " characters"
	}
	return ""
}

// hint says that something in the text had to be made visible, or "".
func (t *text) hint() string {
	switch t.escapes {
	case 0:
		return ""
	case 1:
		return "1 hidden or misleading character shown as an escape"
	default:
		return thousands(t.escapes) + " hidden or misleading characters shown as escapes"
	}
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
