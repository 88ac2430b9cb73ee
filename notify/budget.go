package notify

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Budget is how much of a body a server surely shows at once, without a click
// that unfolds it. The zero Budget shows nothing.
type Budget struct {
	Lines   int // lines on screen, wrapped ones counted
	Columns int // digits that fit in one line
}

// Widths in tenths of a digit, rounded up from the fonts that desktops use for
// notifications: a capital or m is half as wide again, what is not ASCII may
// fill a square.
const (
	digit = 10
	broad = 16
	full  = 20
)

// budgets are what servers were seen to show, by the name they give
// themselves. A server that is not here gets unknown.
var budgets = map[string]Budget{}

// unknown is the Budget of a server nobody has looked at.
var unknown = Budget{Lines: 4, Columns: 36}

// Fits reports whether the whole of body would be on screen.
func (b Budget) Fits(body string) bool {
	return b.Lines > 0 && b.Columns > 0 && b.lines(body) <= b.Lines
}

// lines counts the lines that body takes when it is wrapped at spaces, and
// inside words that are longer than a line. A server that also breaks elsewhere
// needs no more lines than that.
func (b Budget) lines(body string) int {
	line := b.Columns * digit
	count := 1
	at := 0   // where the next glyph goes
	word := 0 // width of the word that ends at at
	for _, r := range body {
		switch r {
		case '\n':
			count++
			at, word = 0, 0
			continue
		case ' ':
			// A space at the end of a line hangs over and needs no room.
			at += digit
			word = 0
			continue
		}
		w := glyph(r)
		if at+w > line {
			count++
			if at = word; word+w > line || word == 0 {
				at, word = 0, 0
			}
		}
		at += w
		word += w
	}
	return count
}

func glyph(r rune) int {
	switch {
	case r >= 0x80:
		return full
	case r >= 'A' && r <= 'Z', strings.ContainsRune("mw@%&#", r):
		return broad
	}
	return digit
}

// Cut returns body, or, if it would not fit, its head and tail around a mark
// that says how many characters are not shown. Only a Budget too small for the
// mark alone gets more than fits.
func (b Budget) Cut(body string) string {
	if b.Fits(body) {
		return body
	}
	total := utf8.RuneCountInString(body)
	runes := []rune(body)
	low, high := 0, total-1 // keep low fits or is 0, keep high+1 does not
	for low < high {
		keep := (low + high + 1) / 2
		if b.Fits(without(runes, keep)) {
			low = keep
		} else {
			high = keep - 1
		}
	}
	return without(runes, low)
}

// without keeps that many runes, rather more of the head than of the tail.
func without(runes []rune, keep int) string {
	tail := keep / 3
	head := keep - tail
	mark := fmt.Sprintf(" … %d more characters … ", len(runes)-keep)
	return strings.TrimSpace(string(runes[:head]) + mark + string(runes[len(runes)-tail:]))
}
