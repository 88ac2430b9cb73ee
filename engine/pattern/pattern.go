// Package pattern matches policy patterns against values.
//
// A pattern is anchored at both ends, case-sensitive and never trimmed. `*`
// (and `**`, the same) is any run of characters, newlines and slashes
// included; `?` is one code point; all else is literal, backslash too. A final
// space-star is optional, so that `git *` matches `git` but not `gitk`.
// Matching takes time linear in pattern × value and allocates nothing.
//
// `glob:` before a pattern makes it segment-aware: see Compile.
package pattern

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// GlobPrefix marks a segment-aware pattern: `*` stays within a path segment,
// `**` crosses segments, `{a,b}` and `[a-z]` choose.
const GlobPrefix = "glob:"

// Flavour is the notation of paths that a pattern is for.
type Flavour uint8

// The flavours. Windows folds case and takes both separators as equal; it is
// meant for path surfaces only.
const (
	Posix Flavour = iota
	Windows
)

// Fold brings a value into the form that patterns of flavour f compare with.
// It returns s itself for Posix.
func (f Flavour) Fold(s string) string {
	if f != Windows {
		return s
	}
	return strings.ReplaceAll(strings.ToLower(s), `\`, "/")
}

type kind uint8

const (
	literal kind = iota // text only
	prefix              // text, then a star
	general             // stars and question marks anywhere
	glob                // by doublestar
)

// Pattern is a compiled pattern. The zero Pattern matches the empty value
// only. A Pattern is immutable and safe for concurrent use.
type Pattern struct {
	kind     kind
	optional bool   // a final space-star may be absent
	text     string // the literal head, up to the first wildcard
	tail     string // the literal end after the last star, if there is one
	body     string // the pattern with runs of stars made one
}

// Compile reads text as a pattern of flavour f. Values must be folded by the
// same flavour before they are matched. Any text is a pattern, except after
// GlobPrefix, where Check tells which are; a bad glob matches nothing.
func Compile(text string, f Flavour) Pattern {
	if g, ok := strings.CutPrefix(text, GlobPrefix); ok {
		g = f.Fold(g)
		return Pattern{kind: glob, body: g, text: globHead(g)}
	}
	body := oneStar(f.Fold(text))
	wild := strings.IndexAny(body, "*?")
	if wild < 0 {
		return Pattern{text: body, body: body}
	}
	p := Pattern{kind: general, body: body, text: body[:wild], optional: strings.HasSuffix(body, " *")}
	if wild == len(body)-1 && body[wild] == '*' {
		p.kind = prefix
	}
	if end := strings.LastIndexAny(body, "*?"); body[end] == '*' {
		p.tail = body[end+1:]
	}
	return p
}

// Check reports why text is no pattern: it is empty, or a malformed glob.
func Check(text string) error {
	if text == "" {
		return fmt.Errorf("a pattern may not be empty")
	}
	if g, ok := strings.CutPrefix(text, GlobPrefix); ok {
		if g == "" {
			return fmt.Errorf("nothing follows %q", GlobPrefix)
		}
		if !doublestar.ValidatePattern(g) {
			return fmt.Errorf("%q is not a valid glob", g)
		}
		if choices(g) > maxChoices {
			return fmt.Errorf("its braces stand for more than %d patterns", maxChoices)
		}
	}
	return nil
}

// maxChoices bounds what the braces of a glob may stand for, since each is tried
// in turn.
const maxChoices = 500

// choices is at least the number of patterns that the braces of g stand for, as
// far as maxChoices.
func choices(g string) int {
	all := 1
	var open []int // alternatives of each group that is open
	for i := 0; i < len(g) && all <= maxChoices; i++ {
		switch g[i] {
		case '\\':
			i++
		case '{':
			open = append(open, 1)
		case ',':
			if n := len(open); n > 0 {
				open[n-1]++
			}
		case '}':
			if n := len(open); n > 0 {
				all *= open[n-1]
				open = open[:n-1]
			}
		}
	}
	return all
}

// IsGlob reports whether text asks for segment-aware matching.
func IsGlob(text string) bool { return strings.HasPrefix(text, GlobPrefix) }

// IsBare reports whether text is nothing but stars, so that it matches
// everything.
func IsBare(text string) bool { return text != "" && strings.Trim(text, "*") == "" }

// IsLiteral reports whether text has no wildcard and is no glob.
func IsLiteral(text string) bool { return !strings.ContainsAny(text, "*?") && !IsGlob(text) }

// Head is the literal text every matching value starts with. If the final
// space-star of `git *` is optional, the space is not part of it.
func (p *Pattern) Head() string {
	if p.optional && len(p.text) == len(p.body)-1 {
		return p.text[:len(p.text)-1]
	}
	return p.text
}

// Tail is the literal text every matching value ends with.
func (p *Pattern) Tail() string {
	if p.kind == literal {
		return p.text
	}
	return p.tail
}

// Match reports whether the whole of s matches p.
func (p *Pattern) Match(s string) bool {
	switch p.kind {
	case literal:
		return s == p.text
	case prefix:
		if strings.HasPrefix(s, p.text) {
			return true
		}
		return p.optional && len(s) == len(p.text)-1 && strings.HasPrefix(p.text, s)
	case glob:
		if !strings.HasPrefix(s, p.text) {
			return false
		}
		ok, err := doublestar.Match(p.body, s)
		return ok && err == nil
	}
	if !strings.HasPrefix(s, p.text) || !strings.HasSuffix(s, p.tail) {
		return false
	}
	if wildcard(p.body, s) {
		return true
	}
	return p.optional && wildcard(p.body[:len(p.body)-2], s)
}

// wildcard matches by going back to the last star only: an earlier star never
// needs a longer run, because a later one can take whatever it would have
// taken. That bounds the steps by len(pat) × len(s).
func wildcard(pat, s string) bool {
	p, i := 0, 0
	star, mark := -1, 0
	for {
		switch {
		case p < len(pat) && pat[p] == '*':
			star, mark = p, i
			p++
			if p == len(pat) {
				return true
			}
			if lit := run(pat[p:]); lit > 0 { // leap to where the literal can start
				at := strings.Index(s[i:], pat[p:p+lit])
				if at < 0 {
					return false
				}
				mark = i + at
				i, p = mark+lit, p+lit
			}
			continue
		case p == len(pat) && i == len(s):
			return true
		case p < len(pat) && i < len(s) && pat[p] == '?':
			_, n := utf8.DecodeRuneInString(s[i:])
			p, i = p+1, i+n
			continue
		case p < len(pat) && i < len(s) && pat[p] == s[i]:
			p, i = p+1, i+1
			continue
		}
		if star < 0 || mark >= len(s) {
			return false
		}
		_, n := utf8.DecodeRuneInString(s[mark:])
		mark += n
		i, p = mark, star+1
		if lit := run(pat[p:]); lit > 0 {
			at := strings.Index(s[i:], pat[p:p+lit])
			if at < 0 {
				return false
			}
			mark = i + at
			i, p = mark+lit, p+lit
		}
	}
}

// run is the length of the literal text that pat starts with.
func run(pat string) int {
	for i := 0; i < len(pat); i++ {
		if pat[i] == '*' || pat[i] == '?' {
			return i
		}
	}
	return len(pat)
}

// oneStar makes every run of stars one star.
func oneStar(s string) string {
	for strings.Contains(s, "**") {
		s = strings.ReplaceAll(s, "**", "*")
	}
	return s
}

// globHead is the literal text before the first character that means something
// to a glob.
func globHead(g string) string {
	if i := strings.IndexAny(g, `*?[{\`); i >= 0 {
		return g[:i]
	}
	return g
}

// ExpandHome replaces `~`, `$HOME` or `${HOME}`, alone or before a slash, at
// the start of text by home. Anything else, `~user` and `${HOME:-x}` too, stays
// as it is, as does all text where home is empty.
func ExpandHome(text, home string) string {
	if home == "" {
		return text
	}
	for _, word := range [...]string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(text, word); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
			if rest != "" && strings.HasSuffix(home, "/") {
				rest = rest[1:]
			}
			return home + rest
		}
	}
	return text
}
