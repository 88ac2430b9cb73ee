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

// Widths in tenths of a digit, rounded up from what was measured in the fonts
// that desktops use for notifications: a capital or m is half as wide again;
// what is not ASCII may fill a square, or a box with its number in it.
const (
	digit = 10
	broad = 16
	full  = 22
)

// budgets are what servers show, by the name they give themselves.
//
// Measured on 1280 × 800 pixels with bodies of digits, capitals, words and
// ideographs, of 1 to 15 lines and up to 4,000 characters (a test measures
// again that what fits here is on screen to its last character):
//
//   - xfce4-notifyd 0.7.3 shows 6 wrapped lines of each paragraph, of 42
//     digits, and ends with "…" then.
//   - notification-daemon 3.20.0 shows every line, of 33 digits, as long as the
//     note is lower than the screen; one of 4,000 characters it does not show
//     at all.
//   - dunst 1.9.0 shows 42 digits a line without a picture, and 300 pixels of
//     height; then the middle is cut. Later versions allow pictures of 128
//     pixels, which leaves some 24 digits. All of it can be configured.
//
// By its source GNOME Shell (up to 47) unfolds a critical note at once and
// shows 6 lines of some 45 digits, and one line of any other.
var budgets = map[string]Budget{
	xfce:               {Lines: 6, Columns: 40},
	notificationDaemon: {Lines: 10, Columns: 31},
	"dunst":            {Lines: 8, Columns: 22},
	gnome:              {Lines: 5, Columns: 36},
}

// unknown is the Budget of a server nobody has looked at.
var unknown = Budget{Lines: 4, Columns: 32}

// budget is how much of a note of that urgency the server shows.
func (c Capabilities) budget(u Urgency) Budget {
	b := c.Body
	if c.Server == gnome && u != Critical {
		b.Lines = min(b.Lines, 1)
	}
	return b
}

// Fits reports whether the whole of body would be on screen. However many
// spaces hang over the ends of its lines, a body of twice the characters that
// the lines hold does not.
func (b Budget) Fits(body string) bool {
	return b.Lines > 0 && b.Columns > 0 && utf8.RuneCountInString(body) <= 2*b.Lines*b.Columns && b.lines(b.fold(body)) <= b.Lines
}

// lines counts the lines that body takes when it is wrapped at spaces, and
// inside words that are longer than a line. A server that also breaks elsewhere
// needs no more lines than that.
func (b Budget) lines(body string) int {
	count := 1
	b.wrap(body, false, func(int, bool) { count++ })
	return count
}

// fold breaks what is longer than a line and has neither a space nor a slash to
// break at. Servers that break it on their own put a hyphen there, which would
// look like one of the command's.
func (b Budget) fold(body string) string {
	var out strings.Builder
	last := 0
	b.wrap(body, true, func(at int, inside bool) {
		if inside {
			out.WriteString(body[last:at])
			out.WriteByte('\n')
			last = at
		}
	})
	return out.String() + body[last:]
}

// wrap calls next for each new line of body: with where it begins, or somewhat
// later, and whether that is inside a word. With slashes, a word also ends after
// a slash, unless a digit follows, as Unicode's line breaking has it.
func (b Budget) wrap(body string, slashes bool, next func(at int, inside bool)) {
	line := b.Columns * digit
	here := 0 // where the next glyph goes
	word := 0 // width of the word that ends here
	for at, r := range body {
		switch r {
		case '\n':
			here, word = 0, 0
			next(at, false)
			continue
		case ' ':
			// A space at the end of a line hangs over and needs no room.
			here += digit
			word = 0
			continue
		}
		w := glyph(r)
		if here+w > line {
			inside := word > 0 && word+w > line
			if here = word; inside {
				here, word = 0, 0
			}
			next(at, inside)
		}
		here += w
		word += w
		if slashes && r == '/' && at+1 < len(body) && !(body[at+1] >= '0' && body[at+1] <= '9') {
			word = 0
		}
	}
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
	keep := max(0, min(total-1, b.Lines*b.Columns))
	// Where words break decides what fits, so less text may need more lines:
	// try every length.
	for keep > 0 && !b.Fits(without(body, total, keep)) {
		keep--
	}
	return without(body, total, keep)
}

// without keeps that many of the total of s's characters, rather more of the
// head than of the tail.
func without(s string, total, keep int) string {
	tail := keep / 3
	head, rest := 0, len(s)
	for range keep - tail {
		_, n := utf8.DecodeRuneInString(s[head:])
		head += n
	}
	for range tail {
		_, n := utf8.DecodeLastRuneInString(s[:rest])
		rest -= n
	}
	return strings.TrimSpace(s[:head] + fmt.Sprintf(" … %d more characters … ", total-keep) + s[rest:])
}
