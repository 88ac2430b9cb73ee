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
	"strings"
	"unicode"
	"unicode/utf8"
)

// Span is a part of a visible text, in bytes from Start up to End.
type Span struct{ Start, End int }

// Block makes s visible and keeps its line breaks; a tab becomes spaces to the
// next multiple of 8 of its line. For a scrollable field.
func Block(s string) string {
	out, _ := escape(s, true)
	return out
}

// Spans is Block that also tells which parts of its result are escapes, in
// order. A tab's spaces and line breaks are no escapes.
func Spans(s string) (block string, escapes []Span) { return escape(s, true) }

// Line makes s visible on one line: a line break becomes \n. If limit > 0 and
// the result has more than limit runes, its middle is cut and replaced by
// " … N more … ", so that head and tail stay in sight; N counts the runes that
// are missing. Where limit is too small for that, "…" stands for them. No escape
// is cut in two, nor a letter from its marks; where limit cannot hold the first
// and the last one, it is only the bound.
func Line(s string, limit int) string {
	out, escapes := escape(s, false)
	if limit <= 0 || utf8.RuneCountInString(out) <= limit {
		return out
	}
	runes := []rune(out)
	total := len(runes)

	// units are the ends of what must not be cut, in runes.
	units := make([]int, 0, total)
	at := 0 // in bytes
	for i := 0; i < total; {
		n := 1
		if len(escapes) > 0 && escapes[0].Start == at {
			n = escapes[0].End - escapes[0].Start // an escape is ASCII
			escapes = escapes[1:]
		} else {
			for i+n < total && unicode.IsMark(runes[i+n]) {
				n++
			}
		}
		for _, r := range runes[i : i+n] {
			at += utf8.RuneLen(r)
		}
		i += n
		units = append(units, i)
	}
	first, last := units[0], total
	if len(units) > 1 {
		last = total - units[len(units)-2]
	}

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
	// Back to where a unit ends.
	headEnd, tailStart := 0, total
	for _, end := range units {
		if end <= head {
			headEnd = end
		}
		if end >= total-tail {
			tailStart = end
			break
		}
	}
	return string(runes[:headEnd]) + mark(tailStart-headEnd) + string(runes[tailStart:])
}

// stacked is how many marks may stand on one letter before the rest is
// escaped: more pile up over the neighbouring lines.
const stacked = 4

func escape(s string, block bool) (string, []Span) {
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
		marks   int  // on the letter before
		onto    bool // the rune before can carry a mark
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
	)
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		if c := s[i]; c >= 0x20 && c < 0x7f { // most of most texts
			b.WriteByte(c)
			column++
			onto, marks = unicode.IsLetter(rune(c)), 0
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
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
		case Shown(r) && unicode.IsMark(r) && onto && marks < stacked:
			b.WriteRune(r)
			marks++
		case Shown(r) && !unicode.IsMark(r) && !word.imitates(s, i, r):
			b.WriteRune(r)
			column++
			onto, marks = unicode.IsLetter(r), 0
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
