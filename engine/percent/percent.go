// Package percent reads percent-encoding (RFC 3986, section 2.1). Package net/url
// does too, and would bring the network's addresses into every hook.
package percent

import (
	"strconv"
	"strings"
)

// Decode is text with each %XX replaced by the byte it stands for; all else stays
// as it is. It reports false if a percent sign begins no such escape.
func Decode(text string) (string, bool) {
	var b strings.Builder
	for {
		head, rest, escaped := strings.Cut(text, "%")
		b.WriteString(head)
		if !escaped {
			return b.String(), true
		}
		if len(rest) < 2 {
			return "", false
		}
		c, err := strconv.ParseUint(rest[:2], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		text = rest[2:]
	}
}
