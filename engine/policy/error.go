package policy

import (
	"strings"
	"unicode/utf8"

	"github.com/nod-agents/nod/engine"
)

// Error is one thing wrong in a policy file.
type Error struct {
	Pos     engine.Position
	Key     string // the key it is about, such as permission.bash; empty for the whole file
	Problem string
	Remedy  string
}

// Error says where, which key, what is wrong and what helps, in one line.
func (e *Error) Error() string {
	var b strings.Builder
	if at := e.Pos.String(); at != "" {
		b.WriteString(at)
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(clip(e.Key))
		b.WriteString(": ")
	}
	b.WriteString(clip(e.Problem))
	if e.Remedy != "" {
		b.WriteString("; ")
		b.WriteString(clip(e.Remedy))
	}
	return b.String()
}

// maxPart is how much of a part of an error is shown: a file may hold keys and
// values of any length.
const maxPart = 600 // bytes

// clip leaves out the middle of a long text.
func clip(s string) string {
	if len(s) <= maxPart {
		return s
	}
	head, tail := maxPart*3/4, len(s)-maxPart/4
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "…" + s[tail:]
}

// Errors is everything wrong in one file, in file order.
type Errors []*Error

// Error joins the errors by line breaks.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Nearest returns the word of choices that is fewest edits from word, and
// whether it is close enough to be what was meant.
func Nearest(word string, choices []string) (string, bool) {
	best, least := "", 1<<30
	for _, c := range choices {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best, best != "" && least <= 2+len(best)/4
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b. Long words are compared by their start.
func distance(a, b string) int {
	const most = 64
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	var rows [3][most + 1]int
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, before := &rows[(i+1)%3], &rows[i%3], &rows[(i+2)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
