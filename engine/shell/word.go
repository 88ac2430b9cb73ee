package shell

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// mark says how a byte of a word came to be, which decides what bash still
// does with it.
type mark byte

const (
	bare    mark = iota // typed, unquoted: braces, tilde and wildcards are active
	quoted              // typed, quoted
	filled              // from an unquoted variable that is known: wildcards are active
	unknown             // stands for an expansion that is not known
	starred             // an extended pattern such as `@(a|b)`: taken for any text
	dotted              // the same, for any text with a dot in front
)

// spelled is a word after quote removal, with a mark for each byte.
type spelled struct {
	text  strings.Builder
	marks []mark
}

func (s *spelled) add(text string, m mark) {
	s.text.WriteString(text)
	for range len(text) {
		s.marks = append(s.marks, m)
	}
}

func (s *spelled) done() letters { return letters{s.text.String(), s.marks} }

// letters is one value of a word, with its marks.
type letters struct {
	text  string
	marks []mark
}

func (l letters) slice(i, j int) letters { return letters{l.text[i:j], l.marks[i:j]} }

func join(parts ...letters) letters {
	var out letters
	for _, p := range parts {
		out.text += p.text
		out.marks = append(out.marks, p.marks...)
	}
	return out
}

// plain reports whether w is one literal in which nothing is special, so that
// it is its own only value.
func plain(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\*?[{~") {
		return "", false
	}
	return lit.Value, true
}

// raw is w after quote removal, with expansions as typed.
func (r *reading) raw(w *syntax.Word) string {
	if s, ok := plain(w); ok {
		return s
	}
	var b strings.Builder
	for _, p := range w.Parts {
		r.rawPart(&b, p, false)
	}
	return b.String()
}

func (r *reading) rawPart(b *strings.Builder, p syntax.WordPart, inQuotes bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		unescape(p.Value, inQuotes, func(s string, _ bool) { b.WriteString(s) })
	case *syntax.SglQuoted:
		b.WriteString(single(p))
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			r.rawPart(b, q, true)
		}
	default:
		b.WriteString(r.slice(p))
	}
}

// unescape removes the backslashes that bash removes from a literal, and hands
// out what is left in pieces, quoted or not.
func unescape(s string, inQuotes bool, piece func(s string, quoted bool)) {
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			piece(s, inQuotes)
			return
		}
		if i > 0 {
			piece(s[:i], inQuotes)
		}
		_, n := utf8.DecodeRuneInString(s[i+1:])
		next := s[i+1 : i+1+n]
		switch {
		case next == "\n":
		case inQuotes && !strings.Contains("$`\"\\", next):
			piece(s[i:i+1+n], true)
		default:
			piece(next, true)
		}
		s = s[i+1+n:]
	}
}

// single is the text of a single-quoted string, with ANSI-C escapes decoded.
func single(q *syntax.SglQuoted) string {
	if !q.Dollar || !strings.Contains(q.Value, `\`) {
		return q.Value
	}
	return ansi(q.Value)
}

// ansi decodes the escapes of `$'…'`, as "ANSI-C Quoting" of the bash manual
// has them. Text after a NUL is dropped, as bash drops it.
func ansi(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		number := func(from, most, base int) (uint64, bool) {
			end := from
			for end < len(s) && end < from+most && digit(s[end], base) {
				end++
			}
			n, err := strconv.ParseUint(s[from:end], base, 32)
			if err != nil {
				return 0, false
			}
			i = end - 1
			return n, true
		}
		c := s[i]
		if at := strings.IndexByte("abeEfnrtv", c); at >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[at])
			continue
		}
		switch {
		case c >= '0' && c <= '7':
			n, _ := number(i, 3, 8)
			if byte(n) == 0 {
				return b.String()
			}
			b.WriteByte(byte(n))
		case c == 'x' || c == 'u' || c == 'U':
			most := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			at := i
			n, ok := number(i+1, most, 16)
			switch {
			case !ok:
				b.WriteByte('\\')
				b.WriteByte(c)
				i = at
			case n == 0:
				return b.String()
			case c == 'x':
				b.WriteByte(byte(n))
			default:
				b.WriteRune(rune(n))
			}
		case c == 'c' && i+1 < len(s):
			i++
			b.WriteByte(s[i] & 0x1f)
		case strings.IndexByte(`\'"?`, c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func digit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// values are the texts that w can stand for, as far as the program tells:
// known variables put in, expansions that are not known as typed. There is
// always at least one. Beyond maxChoices it is what was typed.
func (r *reading) values(w *syntax.Word, st *state) []letters {
	if s, ok := plain(w); ok {
		return []letters{{s, r.bareMarks(len(s))}}
	}
	if r.limits.choices > maxChoices {
		s := r.raw(w)
		return []letters{{s, r.bareMarks(len(s))}}
	}
	c := choices{list: []*spelled{{}}}
	for _, p := range w.Parts {
		r.append(&c, p, st, false)
	}
	if len(c.list) > 1 {
		if r.limits.choices += len(c.list); r.limits.choices > maxChoices {
			r.broken("too many of its words stand for several values")
		}
	}
	out := make([]letters, len(c.list))
	for i, s := range c.list {
		out[i] = s.done()
	}
	return out
}

// choices are the values of a word so far.
type choices struct{ list []*spelled }

func (c *choices) add(text string, m mark) {
	for _, s := range c.list {
		s.add(text, m)
	}
}

// split puts each of texts behind each value, as far as there is room.
func (c *choices) split(texts []string, marks []mark) {
	if len(texts) == 1 {
		c.add(texts[0], marks[0])
		return
	}
	out := make([]*spelled, 0, len(c.list)*len(texts))
	for _, s := range c.list {
		have := s.done()
		for i, t := range texts {
			if len(out) == maxValues {
				break
			}
			n := &spelled{marks: slices.Clone(have.marks)}
			n.text.WriteString(have.text)
			n.add(t, marks[i])
			out = append(out, n)
		}
	}
	c.list = out
}

var allBare [256]mark

// bareMarks is n marks, all bare. They are shared and must not be changed.
func (r *reading) bareMarks(n int) []mark {
	if n <= len(allBare) {
		return allBare[:n:n]
	}
	if n > len(r.barest) {
		r.barest = make([]mark, n)
	}
	return r.barest[:n:n]
}

// maxValues bounds the values of one word.
const maxValues = 16

// quotes takes off what may stand before a dot and is no letter of a pattern.
var quotes = strings.NewReplacer("\\\n", "", "\\", "", "'", "", `"`, "")

// dotFirst reports whether the extended pattern text may stand for a name with a
// dot in front, for which one of its choices must have it there.
func dotFirst(text string) bool {
	text = quotes.Replace(text)
	return strings.Contains(text, "(.") || strings.Contains(text, "|.") || strings.Contains(text, ").") || strings.IndexByte(text, '$') >= 0
}

// append puts the values of p behind those of c.
func (r *reading) append(c *choices, p syntax.WordPart, st *state, inQuotes bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		unescape(p.Value, inQuotes, func(t string, q bool) {
			if q {
				c.add(t, quoted)
			} else {
				c.add(t, bare)
			}
		})
	case *syntax.SglQuoted:
		c.add(single(p), quoted)
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			r.append(c, q, st, true)
		}
	case *syntax.ParamExp:
		m := filled
		if inQuotes {
			m = quoted
		}
		texts, whole := r.variable(p, st)
		marks := make([]mark, len(texts), len(texts)+1)
		for i := range marks {
			marks[i] = m
		}
		if !whole || len(texts) == 0 {
			texts, marks = append(texts, r.slice(p)), append(marks, unknown)
		}
		c.split(texts, marks)
	case *syntax.CmdSubst, *syntax.ProcSubst:
		// What is inside is read as commands; here only its place counts.
		c.add("$(...)", unknown)
	case *syntax.ExtGlob:
		text := r.slice(p)
		if list := alternatives(p); list != nil && len(list)*len(c.list) <= maxValues {
			marks := make([]mark, len(list)) // all bare
			c.split(list, marks)
			return
		}
		texts, marks := []string{text}, []mark{starred}
		if dotFirst(text) {
			texts, marks = append(texts, text), append(marks, dotted)
		}
		if p.Op == syntax.GlobZeroOrMore || p.Op == syntax.GlobZeroOrOne {
			texts, marks = append(texts, ""), append(marks, bare) // a dot behind it may be the first
		}
		c.split(texts, marks)
	default:
		c.add(r.slice(p), unknown)
	}
}

// alternatives are the patterns that `@(a|b)` or `?(a|b)` stands for; nil if they
// are not simple.
func alternatives(g *syntax.ExtGlob) []string {
	if g.Op != syntax.GlobOne && g.Op != syntax.GlobZeroOrOne || strings.ContainsAny(g.Pattern.Value, "()[\\'\"") {
		return nil
	}
	list := strings.Split(g.Pattern.Value, "|")
	if g.Op == syntax.GlobZeroOrOne {
		list = append(list, "")
	}
	return list
}

func marked(s string, m mark) letters {
	l := letters{text: s, marks: make([]mark, len(s))}
	for i := range l.marks {
		l.marks[i] = m
	}
	return l
}

// split is the words that bash splits l into, which blanks of a variable do that
// is not quoted.
func (l letters) split() []string {
	if !strings.ContainsAny(l.text, " \t\n") || !slices.Contains(l.marks, filled) {
		return []string{l.text}
	}
	var words []string
	from := 0
	for i := 0; i <= len(l.text); i++ {
		if i < len(l.text) && (l.marks[i] != filled || strings.IndexByte(" \t\n", l.text[i]) < 0) {
			continue
		}
		if i > from {
			words = append(words, l.text[from:i])
		}
		from = i + 1
	}
	return words
}

// has reports whether l has a bare byte out of set.
func (l letters) has(set string) bool {
	for i := 0; i < len(l.text); i++ {
		if (l.marks[i] == bare || l.marks[i] == filled) && strings.IndexByte(set, l.text[i]) >= 0 {
			return true
		}
	}
	return false
}

// bracketed reports whether l has an active bracket expression.
func (l letters) bracketed() bool {
	last := strings.LastIndexByte(l.text, ']')
	for i := 0; i+2 <= last; i++ {
		if l.text[i] == '[' && (l.marks[i] == bare || l.marks[i] == filled) {
			return true // a quoted end is no end, but to take it for one is harmless
		}
	}
	return false
}

// count is how many bare bytes c there are.
func (l letters) count(c byte) int {
	n := 0
	for i := strings.IndexByte(l.text, c); i >= 0 && i < len(l.text); i++ {
		if l.text[i] == c && l.marks[i] == bare {
			n++
		}
	}
	return n
}

// glob is l as a pattern whose quoted special characters are escaped; empty if
// it has no active wildcard.
func (l letters) glob() string {
	extended := slices.ContainsFunc(l.marks, func(m mark) bool { return m >= starred })
	if !extended && (!strings.ContainsAny(l.text, "*?[") || !l.has("*?") && !l.bracketed()) {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(l.text); i++ {
		if m := l.marks[i]; m >= starred {
			if i == 0 || l.marks[i-1] != m {
				if m == dotted {
					b.WriteByte('.')
				}
				b.WriteByte('*')
			}
			continue
		}
		active := l.marks[i] == bare || l.marks[i] == filled
		if !active && strings.IndexByte(`*?[]\`, l.text[i]) >= 0 || active && l.text[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(l.text[i])
	}
	return b.String()
}

// braces are the words that brace expansion makes of l; ok is false if there
// are too many to look at. `{a,b}`, `{1..9}` and `{a..e..2}` expand; anything
// else in braces stays as it is.
func (l letters) braces() (list []letters, ok bool) {
	switch n := l.count('{'); {
	case n == 0:
		return []letters{l}, true
	case n > maxResults:
		return []letters{l}, false
	}
	ok = true
	var expand func(l letters, depth int)
	expand = func(l letters, depth int) {
		if len(list) > maxResults || depth > maxResults {
			ok = false
			return
		}
		open, end, parts := l.firstBrace()
		if open < 0 {
			list = append(list, l)
			return
		}
		for _, part := range parts {
			expand(join(l.slice(0, open), part, l.slice(end, len(l.text))), depth+1)
			if !ok {
				return
			}
		}
	}
	expand(l, 0)
	return list, ok
}

// firstBrace finds the first pair of braces that expands.
func (l letters) firstBrace() (open, end int, parts []letters) {
	for i := 0; i < len(l.text); i++ {
		if l.text[i] != '{' || l.marks[i] != bare {
			continue
		}
		depth, from := 0, i+1
		parts = nil
		for j := i + 1; j < len(l.text); j++ {
			if l.marks[j] != bare {
				continue
			}
			switch l.text[j] {
			case '{':
				depth++
			case ',':
				if depth == 0 {
					parts = append(parts, l.slice(from, j))
					from = j + 1
				}
			case '}':
				if depth > 0 {
					depth--
					continue
				}
				if parts != nil {
					return i, j + 1, append(parts, l.slice(from, j))
				}
				if parts = sequence(l.slice(i+1, j)); parts != nil {
					return i, j + 1, parts
				}
				depth = -1
			}
			if depth < 0 {
				break
			}
		}
	}
	return -1, 0, nil
}

// sequence is `x..y` or `x..y..step`, of numbers or single letters.
func sequence(l letters) []letters {
	ends := strings.Split(l.text, "..")
	if len(ends) < 2 || len(ends) > 3 || slices.ContainsFunc(l.marks, func(m mark) bool { return m != bare }) {
		return nil
	}
	from, err1 := strconv.Atoi(ends[0])
	to, err2 := strconv.Atoi(ends[1])
	letter := false
	if err1 != nil || err2 != nil {
		if len(ends[0]) != 1 || len(ends[1]) != 1 {
			return nil
		}
		from, to, letter = int(ends[0][0]), int(ends[1][0]), true
	}
	step := 1
	if len(ends) == 3 {
		n, err := strconv.Atoi(ends[2])
		if err != nil {
			return nil
		}
		if step = max(n, -n); step == 0 {
			step = 1
		}
	}
	if from > to {
		step = -step
	}
	width := 0
	if !letter && (strings.HasPrefix(ends[0], "0") || strings.HasPrefix(ends[1], "0")) {
		width = max(len(ends[0]), len(ends[1]))
	}
	var out []letters
	for n := from; (step > 0 && n <= to) || (step < 0 && n >= to); n += step {
		s := strconv.Itoa(n)
		if letter {
			s = string(rune(n))
		}
		for len(s) < width {
			s = "0" + s
		}
		out = append(out, marked(s, bare))
		if len(out) > maxResults {
			break // more than will be looked at: braces reports it
		}
	}
	return out
}

// tilde expands a leading tilde. placed is false if it names a directory that
// is not known.
func (r *reading) tilde(l letters, st *state) (out letters, home, placed bool) {
	if l.text == "" || l.text[0] != '~' || l.marks[0] != bare {
		return l, false, true
	}
	end := strings.IndexByte(l.text, '/')
	if end < 0 {
		end = len(l.text)
	}
	for i := 1; i < end; i++ {
		if l.marks[i] != bare {
			return l, false, true // a quoted or expanded name is no tilde-prefix
		}
	}
	switch l.text[:end] {
	case "~":
		dir := r.env.Home
		if b := st.get("HOME"); b != nil {
			if !b.whole || len(b.values) != 1 {
				return l, false, false
			}
			dir = b.values[0]
		}
		if dir == "" {
			return l, false, false
		}
		return join(marked(dir, quoted), l.slice(end, len(l.text))), true, true
	case "~+":
		if st.get("PWD") != nil {
			return l, false, false
		}
		if dir, ok := st.only(r.env.Cwd); ok {
			return join(marked(dir, quoted), l.slice(end, len(l.text))), false, true
		}
		return l, false, false
	default:
		return l, false, false
	}
}
