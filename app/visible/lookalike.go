package visible

import (
	"unicode"
	"unicode/utf8"
)

// poses reports whether r has no use in a command or a name but to pass for an
// ASCII character. Letters of living alphabets are judged by their word
// instead, since a reader of that alphabet needs them.
func poses(r rune) bool {
	switch r {
	case 0x0251, 0x0261, 0x0269, 0x01C0, 0x01C3, // ɑ ɡ ɩ ǀ ǃ
		0x037E, 0x1FEF, 0x02CB, 0x02DC, // the Greek ; and `, and marks like ` and ~
		0x2010, 0x2011, 0x2043, 0x2212, 0xFE63, 0xFF0D, // like -
		0x2024, 0xFF0E, 0x2044, 0x2215, 0x29F8, 0xFF0F, // like . and /
		0x29F5, 0xFE68, 0xFF3C, 0xA789, 0x2236, // like \ and :
		0x223C, 0xFF5E, 0x2217, 0x204E, 0x2223, 0xFF5C: // like ~ * |
		return true
	}
	switch {
	case r >= 0x1D400 && r <= 0x1D7FF, // mathematical letters and figures
		r >= 0x2160 && r <= 0x217F,                                                         // Roman numerals
		r >= 0xFF10 && r <= 0xFF19, r >= 0xFF21 && r <= 0xFF3A, r >= 0xFF41 && r <= 0xFF5A: // wide ASCII
		return true
	case r >= 0x2100 && r <= 0x214F:
		return unicode.IsLetter(r)
	}
	return false
}

// alphabet reports whether r belongs to an alphabet that has letters like
// Latin ones, by Unicode block.
func alphabet(r rune) bool {
	switch {
	case r < 0x0370:
		return false
	case r <= 0x058F, // Greek, Cyrillic, Armenian
		r >= 0x10A0 && r <= 0x10FF,                             // Georgian
		r >= 0x13A0 && r <= 0x13FF, r >= 0xAB70 && r <= 0xABBF, // Cherokee
		r >= 0x1C80 && r <= 0x1C8F, r >= 0x2DE0 && r <= 0x2DFF, r >= 0xA640 && r <= 0xA69F, // Cyrillic
		r >= 0x1F00 && r <= 0x1FFF,                             // Greek
		r >= 0x2C80 && r <= 0x2CFF, r >= 0xA4D0 && r <= 0xA4FF: // Coptic, Lisu
		return unicode.IsLetter(r)
	}
	return false
}

// alike reports whether a letter of such an alphabet looks like a Latin one.
func alike(r rune) bool {
	switch r {
	case 'а', 'с', 'е', 'һ', 'і', 'ј', 'о', 'р', 'ѕ', 'у', 'х', 'ԁ', 'ԛ', 'ԝ', 'ѵ', 'ү',
		'А', 'В', 'Е', 'К', 'М', 'Н', 'О', 'Р', 'С', 'Т', 'Х', 'Ѕ', 'І', 'Ј', 'У', 'Ү', // Cyrillic
		'ο', 'ν', 'υ', 'α', 'ρ', 'ι', 'κ', 'χ', 'γ', 'τ',
		'Α', 'Β', 'Ε', 'Ζ', 'Η', 'Ι', 'Κ', 'Μ', 'Ν', 'Ο', 'Ρ', 'Τ', 'Υ', 'Χ', // Greek
		'ս', 'ո', 'հ', 'ք', 'օ', 'ց', 'Լ', 'Տ', 'Ս', 'Օ': // Armenian
		return true
	}
	return false
}

// words remembers what was found of the word that is being read.
type words struct {
	end  int  // of the word, as an offset; 0 before the first
	lies bool // its letters of other alphabets are escaped
}

// imitates reports whether the letter at offset i of s, which is of such an
// alphabet, stands in a word that passes for a Latin one: letters of alphabets
// such as Cyrillic or Greek beside Latin ones, or a word of two letters or more
// that all look Latin. A word is a run of letters, marks and digits.
func (w *words) imitates(s string, i int) bool {
	if i >= w.end {
		w.read(s, i)
	}
	return w.lies
}

func (w *words) read(s string, i int) {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) }
	// i is the word's first letter of such an alphabet: others come before it.
	start := i
	for start > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:start])
		if !inWord(r) {
			break
		}
		start -= n
	}
	var latin, other, posing int
	end := start
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if !inWord(r) {
			break
		}
		switch {
		case r < 0x80 && unicode.IsLetter(r):
			latin++
		case alphabet(r):
			other++
			if alike(r) {
				posing++
			}
		case unicode.Is(unicode.Latin, r):
			latin++
		}
		end += n
	}
	w.end, w.lies = end, latin > 0 || other > 1 && other == posing
}
