package policy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nod-agents/nod/engine"
	"github.com/tailscale/hujson"
)

// Limits of a policy file. Beyond them it is refused, so that reading ends in
// bounded time and stack.
const (
	MaxBytes = 32 << 20
	maxDepth = 32
)

// jsonc reads JSON with comments. Trailing commas are an error.
func jsonc(file string, data []byte) (value, *Error) {
	lines := newLines(file, data)
	if len(data) > MaxBytes {
		return value{}, &Error{Pos: lines.at(0), Problem: fmt.Sprintf("the file has %d bytes", len(data)), Remedy: fmt.Sprintf("keep it under %d", MaxBytes)}
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return value{}, &Error{Pos: lines.at(0), Problem: "the file starts with a byte-order mark", Remedy: "save it as UTF-8 without one"}
	}
	if at := invalidUTF8(data); at >= 0 {
		return value{}, &Error{Pos: lines.at(at), Problem: "the text is not UTF-8", Remedy: "save the file as UTF-8"}
	}
	if at := tooDeep(data); at >= 0 {
		return value{}, &Error{Pos: lines.at(at), Problem: fmt.Sprintf("nested more than %d deep", maxDepth), Remedy: "a policy needs four levels"}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return value{}, &Error{Pos: lines.at(0), Problem: "the file is empty", Remedy: `write {} if it is to say nothing`}
	}
	if last := data[bytes.LastIndexByte(data, '\n')+1:]; bytes.Contains(last, []byte("//")) {
		// The parser wants a line's end after a comment, also at the end of the file.
		data = append(data[:len(data):len(data)], '\n')
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return value{}, syntaxError(file, err)
	}
	var bad *Error
	out := fromJSON(&v, lines, &bad)
	if bad != nil {
		return value{}, bad
	}
	return out, nil
}

func fromJSON(v *hujson.Value, lines *lines, bad **Error) value {
	out := value{pos: lines.at(v.StartOffset)}
	switch t := v.Value.(type) {
	case hujson.Literal:
		switch t.Kind() {
		case 't', 'f':
			out.kind, out.yes = boolean, t.Kind() == 't'
		case '0':
			out.kind, out.text = number, string(t)
		case '"':
			out.kind, out.text = text, unquote(t)
		}
	case *hujson.Array:
		out.kind = list
		for i := range t.Elements {
			out.list = append(out.list, fromJSON(&t.Elements[i], lines, bad))
		}
		if n := len(t.Elements); n > 0 && t.Elements[n-1].AfterExtra != nil {
			trailing(&t.Elements[n-1], lines, bad)
		}
	case *hujson.Object:
		out.kind = object
		all := make([]member, 0, len(t.Members))
		for i := range t.Members {
			m := &t.Members[i]
			name, _ := m.Name.Value.(hujson.Literal)
			all = append(all, member{key: unquote(name), pos: lines.at(m.Name.StartOffset), val: fromJSON(&m.Value, lines, bad)})
		}
		if n := len(t.Members); n > 0 && t.Members[n-1].Value.AfterExtra != nil {
			trailing(&t.Members[n-1].Value, lines, bad)
		}
		out.keys = last(all)
	}
	return out
}

// unquote is the text of a string. Few have escapes, and those without are read
// at once.
func unquote(l hujson.Literal) string {
	if n := len(l); n >= 2 && l[0] == '"' && bytes.IndexByte(l, '\\') < 0 {
		return string(l[1 : n-1])
	}
	return l.String()
}

func trailing(v *hujson.Value, lines *lines, bad **Error) {
	if *bad == nil {
		*bad = &Error{Pos: lines.at(v.EndOffset + len(v.AfterExtra)), Problem: "a comma stands after the last entry", Remedy: "remove it"}
	}
}

// syntaxError takes the position out of the parser's message.
func syntaxError(file string, err error) *Error {
	pos := engine.Position{File: file, Line: 1, Column: 1}
	problem := err.Error()
	if n, _ := fmt.Sscanf(problem, "hujson: line %d, column %d:", &pos.Line, &pos.Column); n == 2 {
		if inner := errors.Unwrap(err); inner != nil {
			problem = inner.Error()
		}
	}
	return &Error{Pos: pos, Problem: "not valid JSON: " + strings.TrimPrefix(problem, "hujson: "), Remedy: "mend the syntax"}
}

// tooDeep returns the offset where the nesting exceeds maxDepth, or -1.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			if i+1 < len(data) && data[i+1] == '/' {
				n := bytes.IndexByte(data[i:], '\n')
				if n < 0 {
					return -1
				}
				i += n
			} else if i+1 < len(data) && data[i+1] == '*' {
				n := bytes.Index(data[i+2:], []byte("*/"))
				if n < 0 {
					return -1
				}
				i += n + 3
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// lines turns offsets, asked for mostly in rising order, into positions.
type lines struct {
	file   string
	data   []byte
	offset int // of the last answer
	line   int // it was on, from 1
	column int // it was at, from 1, in characters
}

func newLines(file string, data []byte) *lines {
	return &lines{file: file, data: data, line: 1, column: 1}
}

func (l *lines) at(offset int) engine.Position {
	offset = min(offset, len(l.data))
	if offset < l.offset {
		l.offset, l.line, l.column = 0, 1, 1
	}
	for {
		n := bytes.IndexByte(l.data[l.offset:offset], '\n')
		if n < 0 {
			break
		}
		l.offset += n + 1
		l.line++
		l.column = 1
	}
	// Only what is new is counted: a file may be one long line.
	l.column += utf8.RuneCount(l.data[l.offset:offset])
	l.offset = offset
	return engine.Position{File: l.file, Line: l.line, Column: l.column}
}
