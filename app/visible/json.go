package visible

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns JSON text that means the same as data and is nothing but ASCII,
// so that what an agent wrote does nothing to a terminal it is printed on.
// Bytes that are no UTF-8 become what a reader of JSON takes them for.
func JSON(data []byte) []byte {
	for i, b := range data {
		if b >= 0x7f {
			return ascii(data, i)
		}
	}
	return data
}

func ascii(data []byte, from int) []byte {
	out := append(make([]byte, 0, len(data)+64), data[:from]...)
	for i := from; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		i += n
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r > 0xffff:
			a, b := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, a, b)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// JSONWriter passes JSON on to w as JSON does. Each Write must end where a
// character does.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(data []byte) (int, error) {
	if _, err := j.w.Write(JSON(data)); err != nil {
		return 0, err
	}
	return len(data), nil
}
