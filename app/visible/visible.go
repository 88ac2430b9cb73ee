// Package visible turns untrusted text into text that shows what is really
// there: control, format, bidi, private-use and other characters that a screen
// would hide or obey become escapes such as \u202E. Every view runs every
// string of an agent through it exactly once.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Block makes s visible and keeps its line breaks; a tab becomes spaces to the
// next multiple of 8 of its line. For a scrollable field.
func Block(s string) string { return escape(s, true) }

// Line makes s visible on one line: a line break becomes \n. If max > 0 and
// the result has more than max runes, its middle is cut and replaced by
// " … N more … ", so that head and tail stay in sight.
func Line(s string, max int) string {
	out := escape(s, false)
	if max <= 0 || utf8.RuneCountInString(out) <= max {
		return out
	}
	runes := []rune(out)
	mark := fmt.Sprintf(" … %d more … ", len(runes)-max)
	keep := max - utf8.RuneCountInString(mark)
	if keep < 2 {
		return string(runes[:max])
	}
	head := keep - keep/2
	return string(runes[:head]) + mark + string(runes[len(runes)-keep/2:])
}

func escape(s string, block bool) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	column := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02X`, s[i])
			column += 4
		case r == '\n' && block:
			b.WriteByte('\n')
			column = 0
		case r == '\t' && block:
			pad := 8 - column%8
			b.WriteString("        "[:pad])
			column += pad
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
			column += 2
		case Shown(r):
			b.WriteRune(r)
			column++
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02X`, r)
			column += 4
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04X`, r)
			column += 6
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
			column += 10
		}
		i += n
	}
	return b.String()
}

// Shown reports whether r may stand on a screen as itself: a graphic character
// that neither hides, nor reorders, nor imitates a blank.
func Shown(r rune) bool {
	switch {
	case r == ' ':
		return true
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x2800, r == 0x034F, r == 0x17B4, r == 0x17B5:
		return false // blanks and joiners that count as letters, marks or symbols
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF, r >= 0x180B && r <= 0x180F:
		return false // variation selectors
	}
	return unicode.IsPrint(r) && !unicode.Is(unicode.Co, r)
}
