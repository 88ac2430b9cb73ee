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
	ends                // one star, and text before and behind it
	stars               // stars anywhere
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
	least    int    // bytes that a matching value has at least
	most     int    // and at most; 0: no limit
	weight   int    // quarters of a step for each byte of a value, at most
}

// Compile reads text as a pattern of flavour f. Values must be folded by the
// same flavour before they are matched. Any text is a pattern, except after
// GlobPrefix, where Check tells which are; a bad glob matches nothing.
func Compile(text string, f Flavour) Pattern {
	if g, ok := strings.CutPrefix(text, GlobPrefix); ok {
		g = f.Fold(g)
		head := globHead(g)
		return Pattern{kind: glob, body: g, text: head, least: len(head), weight: 4 * max(1, len(g)) * choices(g)}
	}
	body := oneStar(f.Fold(text))
	wild := strings.IndexAny(body, "*?")
	if wild < 0 {
		return Pattern{text: body, body: body, least: len(body)}
	}
	p := Pattern{kind: stars, body: body, text: body[:wild], optional: strings.HasSuffix(body, " *"), weight: 1}
	p.least = len(body) - strings.Count(body, "*")
	if p.optional {
		p.least--
	}
	switch {
	case strings.IndexByte(body, '?') >= 0:
		p.kind = general
		p.weight = 4 * max(longest(body), 8)
		if strings.IndexByte(body, '*') < 0 {
			p.most = utf8.UTFMax * len(body)
		}
	case strings.Count(body, "*") == 1:
		p.kind = ends
	case longest(body) > 63:
		p.weight = 4 // strings.Index is several times slower for those
	}
	if end := strings.LastIndexAny(body, "*?"); body[end] == '*' {
		p.tail = body[end+1:]
	}
	return p
}

// longest is the length of the longest part of body between stars.
func longest(body string) int {
	most := 0
	for part := range strings.SplitSeq(body, "*") {
		most = max(most, len(part))
	}
	return most
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

// Literals calls yield with the literal texts that every matching value has in
// it, in their order: what stands between wildcards. A pattern without wildcards
// has itself only.
func (p *Pattern) Literals(yield func(string)) {
	if p.kind == glob {
		globLiterals(p.body, yield)
		return
	}
	body := p.body
	if p.optional {
		body = body[:len(body)-2]
	}
	for body != "" {
		n := run(body)
		if n > 0 {
			yield(body[:n])
		}
		body = body[min(n+1, len(body)):]
	}
}

// Contains reports whether p matches exactly the values that have text in them.
func (p *Pattern) Contains() (text string, ok bool) {
	n := len(p.body)
	if p.kind != stars || p.optional || n < 3 || p.body[0] != '*' || p.body[n-1] != '*' || strings.IndexByte(p.body[1:n-1], '*') >= 0 {
		return "", false
	}
	return p.body[1 : n-1], true
}

// Match reports whether the whole of s matches p.
func (p *Pattern) Match(s string) bool {
	return p.fits(s) && (p.kind <= ends || p.search(s))
}

// MatchWithin is Match that takes what it costs from left, in steps: a byte of
// s that is looked at is one, as often as it may be, and one that a text is
// searched in a quarter. If there is not so much left it makes left negative and
// reports false.
func (p *Pattern) MatchWithin(s string, left *int) bool {
	if !p.fits(s) {
		return false
	}
	if p.kind <= ends {
		return true
	}
	cost := int64(len(s)+len(p.body)) * int64(p.weight) / 4
	if cost > int64(*left) {
		*left = -1
		return false
	}
	*left -= int(cost)
	return p.search(s)
}

// Searches reports whether matching takes more than a look at the ends of a
// value.
func (p *Pattern) Searches() bool { return p.kind > ends }

// fits reports what the ends and the length of s tell: all there is to know of
// patterns that search nothing.
func (p *Pattern) fits(s string) bool {
	if len(s) < p.least || p.most > 0 && len(s) > p.most {
		return false
	}
	switch p.kind {
	case literal:
		return s == p.text
	case ends:
		if len(s) < len(p.text) { // it ends where the optional space would be
			return strings.HasPrefix(p.text, s)
		}
		return strings.HasPrefix(s, p.text) && strings.HasSuffix(s, p.tail)
	case stars, general:
		return strings.HasPrefix(s, p.text) && strings.HasSuffix(s, p.tail)
	}
	return strings.HasPrefix(s, p.text)
}

// search looks at a value that fits.
func (p *Pattern) search(s string) bool {
	switch p.kind {
	case stars:
		return inOrder(p.body, s) || p.optional && inOrder(p.body[:len(p.body)-2], s)
	case glob:
		ok, err := doublestar.Match(p.body, s)
		return ok && err == nil
	}
	return wildcard(p.body, s) || p.optional && wildcard(p.body[:len(p.body)-2], s)
}

// inOrder matches a pattern whose only wildcards are stars: the text before the
// first and after the last is held against the ends of s, and each text between
// is taken where it is found first, which leaves most for those behind it.
func inOrder(pat, s string) bool {
	first, last := strings.IndexByte(pat, '*'), strings.LastIndexByte(pat, '*')
	if first < 0 {
		return pat == s
	}
	head, tail := pat[:first], pat[last+1:]
	if len(s) < len(head)+len(tail) || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) {
		return false
	}
	if first == last {
		return true
	}
	s = s[len(head) : len(s)-len(tail)]
	for pat = pat[first+1 : last]; ; {
		part, rest, more := strings.Cut(pat, "*")
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		if !more {
			return true
		}
		s, pat = s[at+len(part):], rest
	}
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

// globLiterals yields what every value that g matches has in it. What stands in
// braces is one of several, a slash beside `**` may be absent, and what is not
// UTF-8 matches whatever else is not.
func globLiterals(g string, yield func(string)) {
	depth, from := 0, 0
	cut := func(to, next int) {
		if text := strings.Trim(g[from:to], "/"); depth == 0 && text != "" && !strings.ContainsRune(text, utf8.RuneError) {
			yield(text)
		}
		from = next
	}
	for i := 0; i < len(g); i++ {
		switch g[i] {
		case '*', '?':
			cut(i, i+1)
		case '\\':
			cut(i, min(i+2, len(g)))
			i++
		case '[':
			cut(i, len(g))
			return // where a class ends is doublestar's to say
		case '{':
			cut(i, i+1)
			depth++
		case '}':
			cut(i, i+1)
			depth = max(depth-1, 0)
		}
	}
	if from < len(g) {
		cut(len(g), len(g))
	}
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
