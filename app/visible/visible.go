// Package visible turns untrusted text into text that shows what is really
// there: control, format, bidi, private-use and other characters that a screen
// would hide or obey become escapes such as \u202E, and so do characters that
// pass for others (lookalike.go). Every view runs every string of an agent
// through it exactly once.
//
// An escape cannot be told from the same characters typed by the agent. A view
// that has colours uses Spans to mark the difference.
package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Span is a part of a visible text, in bytes from Start up to End.
type Span struct{ Start, End int }

// Block makes s visible and keeps its line breaks; a tab becomes spaces to the
// next multiple of 8 of its line. For a scrollable field.
func Block(s string) string {
	out, _ := escape(s, true, 0)
	return out
}

// Spans is Block that also tells which parts of its result are escapes, in
// order. A tab's spaces and line breaks are no escapes. If most > 0, no more
// than that many different characters stay as they are, ASCII and Square ones
// not counted: a view that has to find a font for each must not be kept busy
// with all that Unicode has.
func Spans(s string, most int) (block string, escapes []Span) { return escape(s, true, most) }

// Line makes s visible on one line: a line break becomes \n. If limit > 0 and
// the result has more than limit runes, its middle is cut and replaced by
// " … N more … ", so that head and tail stay in sight; N counts the runes that
// are missing. Where limit is too small for that, "…" stands for them. No escape
// is cut in two, nor a letter from its marks; where limit cannot hold the first
// and the last one, it is only the bound.
func Line(s string, limit int) string {
	out, escapes := escape(s, false, 0)
	if limit <= 0 || len(out) <= limit {
		return out
	}
	total := utf8.RuneCountInString(out)
	if total <= limit {
		return out
	}
	// A unit is what must not be cut: an escape, or a letter and its marks.
	// Escapes are ASCII, and none stands between a letter and its marks.
	unit := func(at int) (end, runes int) {
		if i, ok := slices.BinarySearchFunc(escapes, at, func(e Span, at int) int { return e.Start - at }); ok {
			return escapes[i].End, escapes[i].End - at
		}
		_, n := utf8.DecodeRuneInString(out[at:])
		for end, runes = at+n, 1; end < len(out); runes++ {
			r, n := utf8.DecodeRuneInString(out[end:])
			if !unicode.IsMark(r) {
				break
			}
			end += n
		}
		return end, runes
	}
	before := func(end int) (at, runes int) {
		if i, ok := slices.BinarySearchFunc(escapes, end, func(e Span, end int) int { return e.End - end }); ok {
			return escapes[i].Start, end - escapes[i].Start
		}
		for at = end; ; {
			r, n := utf8.DecodeLastRuneInString(out[:at])
			at, runes = at-n, runes+1
			if !unicode.IsMark(r) {
				return at, runes
			}
		}
	}
	_, first := unit(0)
	_, last := before(len(out))

	numbered := func(cut int) string { return fmt.Sprintf(" … %d more … ", cut) }
	bare := func(int) string { return "…" }
	mark := numbered
	keep := limit - utf8.RuneCountInString(mark(total)) // at its widest
	if keep < first+last {
		mark, keep = bare, limit-1
	}
	tail := keep / 2
	if first+last <= keep {
		tail = min(max(tail, last), keep-first)
	}
	head := keep - tail
	cut, headEnd, tailStart := total, 0, len(out)
	for {
		end, n := unit(headEnd)
		if n > head {
			break
		}
		headEnd, head, cut = end, head-n, cut-n
	}
	for {
		at, n := before(tailStart)
		if n > tail {
			break
		}
		tailStart, tail, cut = at, tail-n, cut-n
	}
	return out[:headEnd] + mark(cut) + out[tailStart:]
}

// stacked is how many marks may stand on one letter before the rest is
// escaped: more pile up over the neighbouring lines.
const stacked = 4

func escape(s string, block bool, most int) (string, []Span) {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 0x20 && !(c == '\n' && block)) || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s, nil
	}
	var (
		b       strings.Builder
		spans   []Span
		column  int
		word    words
		what    kinds
		seen    map[rune]bool // of the most different characters
		marks   int           // on the letter before
		onto    bool          // the rune before can carry a mark
		escaped = func(as string, r rune, digits int) {
			start := b.Len()
			b.WriteString(as)
			for digits--; digits >= 0; digits-- {
				b.WriteByte("0123456789ABCDEF"[r>>(4*digits)&15])
			}
			spans = append(spans, Span{start, b.Len()})
			column += b.Len() - start
			onto = false
		}
		room = func(r rune) bool {
			if most <= 0 || seen[r] || Square(r) {
				return true
			}
			if len(seen) == most {
				return false
			}
			if seen == nil {
				seen = map[rune]bool{}
			}
			seen[r] = true
			return true
		}
	)
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		if c := s[i]; c >= 0x20 && c < 0x7f { // most of most texts
			b.WriteByte(c)
			column++
			onto, marks = c|0x20 >= 'a' && c|0x20 <= 'z', 0
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		k := what.of(r)
		switch {
		case r == utf8.RuneError && n == 1:
			escaped(`\x`, rune(s[i]), 2)
		case r == '\n' && block:
			b.WriteByte('\n')
			column, onto = 0, false
		case r == '\t' && block:
			pad := 8 - column%8
			b.WriteString("        "[:pad])
			column += pad
			onto = false
		case r == '\n':
			escaped(`\n`, 0, 0)
		case r == '\t':
			escaped(`\t`, 0, 0)
		case r == '\r':
			escaped(`\r`, 0, 0)
		case k&(shown|combining) == shown|combining && onto && marks < stacked && room(r):
			b.WriteString(s[i : i+n])
			marks++
		case k&(shown|combining) == shown && !(k&foreign != 0 && word.imitates(s, i)) && room(r):
			b.WriteString(s[i : i+n])
			column++
			onto, marks = k&letter != 0, 0
		case r < 0x100:
			escaped(`\x`, r, 2)
		case r < 0x10000:
			escaped(`\u`, r, 4)
		default:
			escaped(`\U`, r, 8)
		}
		i += n
	}
	return b.String(), spans
}

// A kind is what there is to know of a character.
type kind uint8

const (
	known     kind = 1 << iota
	shown          // Shown
	combining      // stands on the letter before
	letter         // can carry marks
	foreign        // of an alphabet that has letters like Latin ones
)

// kinds remembers the kinds of the characters that came last: a text uses the
// same few again and again, and the tables of Unicode are slow to search.
type kinds [256]struct {
	r rune
	k kind
}

func (all *kinds) of(r rune) kind {
	e := &all[uint8(r)]
	if e.r == r && e.k != 0 {
		return e.k
	}
	e.r, e.k = r, known
	for _, c := range []struct {
		k  kind
		is bool
	}{{shown, Shown(r)}, {combining, unicode.IsMark(r)}, {letter, unicode.IsLetter(r)}, {foreign, alphabet(r)}} {
		if c.is {
			e.k |= c.k
		}
	}
	return e.k
}

// Square reports whether r is a Han, kana or Hangul character in general use.
// Fonts make all of these as wide as one another.
func Square(r rune) bool {
	return r >= 0x3041 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0xF900 && r <= 0xFAFF
}

// Shown reports whether r may stand on a screen as itself: a graphic character
// that neither hides, nor reorders, nor strikes out its neighbours, nor
// imitates a blank or an ASCII character.
func Shown(r rune) bool {
	switch {
	case r == ' ':
		return true
	case r < 0x7f:
		return r > ' '
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x2800, r == 0x034F, r == 0x17B4, r == 0x17B5,
		r == 0x13441, r == 0x13442, r == 0x16FE4, r == 0x1D159, r == 0xFFFC:
		return false // blanks and joiners that count as letters, marks or symbols
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF, r >= 0x180B && r <= 0x180F:
		return false // variation selectors
	case r >= 0x0334 && r <= 0x0338, r >= 0x20D0 && r <= 0x20FF, unicode.Is(unicode.Me, r):
		return false // marks over, across or around what they stand on
	}
	return unicode.IsPrint(r) && !unicode.Is(unicode.Co, r) && !poses(r)
}
