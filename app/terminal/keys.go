package terminal

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// key is what one press of a key sends.
type key struct {
	r    rune // the character, or 0
	name name
}

type name int

const (
	none name = iota
	enter
	escape
	backspace
	eraseLine
	other // an arrow, a function key: of no meaning here
)

// input is what was read at once. Exactly one of its fields is set.
type input struct {
	key  key
	text string // several keys at once, or a paste: never an answer
}

// keys turns what a terminal sends into input. A person presses one key at a
// time: whatever arrives as more than one is text that was pasted, or typed
// ahead, and cannot be meant for the question on the screen.
type keys struct {
	pasting bool
	paste   []byte // of a bracketed paste not yet ended
	tail    []byte // that may be the beginning of a paste's end mark
}

// maxText is how much pasted text is kept, in bytes.
const maxText = 4 << 10

var (
	pasteBegins = []byte("\x1b[200~")
	pasteEnds   = []byte("\x1b[201~")
)

// feed takes one burst of bytes, all that came without a pause.
func (k *keys) feed(b []byte) (in input, ok bool) {
	b = append(k.tail, b...)
	k.tail = nil
	if k.pasting {
		return k.pasted(b)
	}
	if i := bytes.Index(b, pasteBegins); i >= 0 {
		k.pasting, k.paste = true, append([]byte(nil), b[:i]...)
		return k.pasted(b[i+len(pasteBegins):])
	}
	if one, ok := single(b); ok {
		return input{key: one}, true
	}
	if text := clean(b); text != "" {
		return input{text: text}, true
	}
	return input{}, false
}

func (k *keys) pasted(b []byte) (input, bool) {
	i := bytes.Index(b, pasteEnds)
	if i < 0 {
		// The mark may come in two reads.
		for n := min(len(b), len(pasteEnds)-1); n > 0; n-- {
			if bytes.HasPrefix(pasteEnds, b[len(b)-n:]) {
				k.tail = append([]byte(nil), b[len(b)-n:]...)
				b = b[:len(b)-n]
				break
			}
		}
		if room := maxText - len(k.paste); room > 0 {
			k.paste = append(k.paste, b[:min(room, len(b))]...)
		}
		return input{}, false
	}
	// What follows the mark in the same burst is no key press of its own.
	text := clean(append(append(k.paste, b[:i]...), bytes.ReplaceAll(b[i+len(pasteEnds):], pasteBegins, nil)...))
	k.pasting, k.paste = false, nil
	if text == "" {
		return input{}, false
	}
	return input{text: text}, true
}

// single reads b as the bytes of one key.
func single(b []byte) (key, bool) {
	switch {
	case len(b) == 0:
		return key{}, false
	case len(b) == 1:
		switch c := b[0]; {
		case c == '\r' || c == '\n':
			return key{name: enter}, true
		case c == 0x1b:
			return key{name: escape}, true
		case c == 0x7f || c == 0x08:
			return key{name: backspace}, true
		case c == 0x15: // ^U
			return key{name: eraseLine}, true
		case c < 0x20 || c >= 0x80:
			return key{name: other}, true
		default:
			return key{r: rune(c)}, true
		}
	case b[0] == 0x1b:
		if control(b) {
			return key{name: other}, true
		}
		return key{}, false
	default:
		r, n := utf8.DecodeRune(b)
		return key{r: r}, n == len(b) && r != utf8.RuneError
	}
}

// control reports whether b is one escape sequence: CSI, SS3 or Alt and a key.
func control(b []byte) bool {
	switch {
	case b[1] == '[':
		for i, c := range b[2:] {
			if c >= 0x40 && c <= 0x7e {
				return i+3 == len(b)
			}
			if c < 0x20 || c > 0x3f {
				return false
			}
		}
		return false
	case b[1] == 'O':
		return len(b) == 3
	default:
		_, n := utf8.DecodeRune(b[1:])
		return n == len(b)-1
	}
}

// clean is b as one line of text: breaks become spaces, controls go.
func clean(b []byte) string {
	if len(b) > maxText {
		b = b[:maxText]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r):
			return -1
		}
		return r
	}, string(b)))
}
