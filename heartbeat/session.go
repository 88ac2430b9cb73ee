package heartbeat

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nod-agents/nod/engine/percent"
)

// maxEncoded leaves room for ".json" in a file name of 255 bytes.
const maxEncoded = 250

// CheckSession returns id as ECMAScript's trim leaves it, or an error that
// says why it can name no session: it is empty, "unknown" in any case, "."
// or "..", no valid UTF-8, or too long to name a file once encoded.
func CheckSession(id string) (string, error) {
	if !utf8.ValidString(id) {
		return "", fmt.Errorf("session id %q is not valid UTF-8", id)
	}
	s := strings.TrimFunc(id, trimmed)
	switch {
	case s == "":
		return "", errors.New("a session id must not be empty")
	case s == "." || s == "..", strings.EqualFold(s, "unknown"):
		return "", fmt.Errorf("session id %q names no session; choose another", s)
	case len(Encode(s)) > maxEncoded:
		return "", fmt.Errorf("session id %.40q… is too long: %d bytes once encoded, at most %d", s, len(Encode(s)), maxEncoded)
	}
	return s, nil
}

// trimmed reports whether ECMAScript counts r as white space or a line end.
func trimmed(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', '\u2028', '\u2029', '\ufeff':
		return true
	}
	return unicode.Is(unicode.Zs, r)
}

// Encode is ECMAScript's encodeURIComponent: what a session id is called on
// disk. No result holds a path separator.
func Encode(id string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.IndexByte("-_.!~*'()", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// Decode is the inverse of Encode, for listing what is on disk. A name that
// Encode cannot have made is an error.
func Decode(name string) (string, error) {
	id, ok := percent.Decode(name)
	if !ok || Encode(id) != name || !utf8.ValidString(id) {
		return "", fmt.Errorf("%q is no encoded session id", name)
	}
	return id, nil
}
