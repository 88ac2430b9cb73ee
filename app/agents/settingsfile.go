package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// settingsFile is the text of a JSON file, with comments or without, that is
// changed by cutting and splicing: whatever is not touched stays as it is, byte
// for byte.
type settingsFile struct {
	name string // for errors
	text []byte
}

// emptyText reports whether there is nothing in a file.
func emptyText(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 }

// root parses the text. An error names the file, the line and the column.
func (f *settingsFile) root() (*hujson.Value, error) {
	v, err := hujson.Parse(f.text)
	if err != nil {
		// hujson: line 3, column 5: …
		msg := strings.TrimPrefix(err.Error(), "hujson: ")
		var line, column int
		if n, _ := fmt.Sscanf(msg, "line %d, column %d:", &line, &column); n == 2 {
			_, rest, _ := strings.Cut(msg, ": ")
			return nil, fmt.Errorf("%s:%d:%d: %s: nothing was changed; mend it and try again", f.name, line, column, rest)
		}
		return nil, fmt.Errorf("%s: %s: nothing was changed", f.name, msg)
	}
	return &v, nil
}

// wrong says that v is not what is needed.
func (f *settingsFile) wrong(v *hujson.Value, path []string, want string) error {
	line := 1 + bytes.Count(f.text[:v.StartOffset], []byte("\n"))
	column := v.StartOffset - bytes.LastIndexByte(f.text[:v.StartOffset], '\n')
	what := "the file"
	if len(path) > 0 {
		what = strings.Join(path, ".")
	}
	return fmt.Errorf("%s:%d:%d: %s is no %s: nothing was changed", f.name, line, column, what, want)
}

// member is the last member of that name, the one that counts.
func member(o *hujson.Object, name string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if lit, ok := o.Members[i].Name.Value.(hujson.Literal); ok && lit.String() == name {
			return i
		}
	}
	return -1
}

// add appends element, as indented JSON, to the array at path; what is missing
// of the path is made.
func (f *settingsFile) add(path []string, element string) error {
	if emptyText(f.text) {
		f.text = []byte("{}\n")
	}
	v, err := f.root()
	if err != nil {
		return err
	}
	for i, name := range path {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return f.wrong(v, path[:i], "object")
		}
		n := member(o, name)
		if n < 0 {
			value := "[\n" + indent(element, unitOf(f.text)) + "\n]"
			for j := len(path) - 1; j > i; j-- {
				value = "{\n" + indent(text(path[j])+": "+value, unitOf(f.text)) + "\n}"
			}
			f.splice(v, len(o.Members), text(name)+": "+value)
			return nil
		}
		v = &o.Members[n].Value
	}
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return f.wrong(v, path, "list")
	}
	f.splice(v, len(a.Elements), element)
	return nil
}

func text(s string) string {
	data, _ := json.Marshal(s) // a string always can be
	return string(data)
}

// indent puts unit before every line but empty ones.
func indent(s, unit string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		if lines[i] != "" {
			lines[i] = unit + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// unitOf is what a file is indented by: that of its first indented line, else
// two spaces.
func unitOf(src []byte) string {
	for line := range strings.Lines(string(src)) {
		if trimmed := strings.TrimLeft(line, " \t"); len(trimmed) < len(line) && strings.HasPrefix(trimmed, `"`) {
			return line[:len(line)-len(trimmed)]
		}
	}
	return "  "
}

// indentOf is the space before the line that has offset in it.
func indentOf(src []byte, offset int) string {
	line := src[bytes.LastIndexByte(src[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// last is the last value in a composite, and the space and comments before its
// closing bracket.
func last(v *hujson.Value) *hujson.Value {
	switch c := v.Value.(type) {
	case *hujson.Object:
		if n := len(c.Members); n > 0 {
			return &c.Members[n-1].Value
		}
	case *hujson.Array:
		if n := len(c.Elements); n > 0 {
			return &c.Elements[n-1]
		}
	}
	return nil
}

// splice puts item behind the last of the count values in v, on lines of its
// own.
func (f *settingsFile) splice(v *hujson.Value, count int, item string) {
	src := f.text
	closing := v.EndOffset - 1
	inner := indentOf(src, v.StartOffset) + unitOf(src)
	comma, after := -1, "" // where a comma goes, and what follows the item
	if prev := last(v); prev != nil {
		if count > 0 {
			// The line on which a sibling starts is the measure.
			start := prev.StartOffset
			if o, ok := v.Value.(*hujson.Object); ok {
				start = o.Members[count-1].Name.StartOffset
			}
			if before := src[bytes.LastIndexByte(src[:start], '\n')+1 : start]; len(bytes.TrimSpace(before)) == 0 {
				inner = string(before)
			}
		}
		if prev.AfterExtra != nil {
			after = "," // as the file does
		} else {
			comma = prev.EndOffset
		}
	}
	at := len(bytes.TrimRight(src[:closing], " \t\r\n")) // behind what is there, comments included
	tail := string(src[at:closing])
	if !strings.Contains(tail, "\n") {
		tail = "\n" + indentOf(src, v.StartOffset)
	}
	insert := "\n" + indent(item, inner) + after
	if bytes.Contains(src, []byte("\r\n")) {
		insert = strings.ReplaceAll(insert, "\n", "\r\n")
		if !strings.Contains(tail, "\r\n") {
			tail = strings.ReplaceAll(tail, "\n", "\r\n")
		}
	}
	var b bytes.Buffer
	if comma >= 0 {
		b.Write(src[:comma])
		b.WriteByte(',')
		b.Write(src[comma:at])
	} else {
		b.Write(src[:at])
	}
	b.WriteString(insert)
	b.WriteString(tail)
	b.Write(src[closing:])
	f.text = b.Bytes()
}

// cut takes the n-th value out of v.
func (f *settingsFile) cut(v *hujson.Value, n int) {
	src := f.text
	type span struct {
		start, end int
		comma      int // offset of the comma behind it, or -1
	}
	var spans []span
	add := func(start int, value *hujson.Value, isLast bool) {
		s := span{start, value.EndOffset, value.EndOffset + len(value.AfterExtra)}
		if isLast && value.AfterExtra == nil {
			s.comma = -1
		}
		spans = append(spans, s)
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			add(c.Members[i].Name.StartOffset, &c.Members[i].Value, i == len(c.Members)-1)
		}
	case *hujson.Array:
		for i := range c.Elements {
			add(c.Elements[i].StartOffset, &c.Elements[i], i == len(c.Elements)-1)
		}
	}
	s := spans[n]
	from := len(bytes.TrimRight(src[:s.start], " \t\r\n"))
	var b bytes.Buffer
	switch {
	case len(spans) == 1:
		b.Write(src[:from])
		rest := s.end
		if s.comma >= 0 {
			rest = s.comma + 1
		}
		if tail := bytes.TrimLeft(src[rest:v.EndOffset], " \t\r\n"); len(tail) == 1 && from == v.StartOffset+1 {
			rest = v.EndOffset - 1 // nothing is left between the brackets
		}
		b.Write(src[rest:])
	case s.comma >= 0:
		b.Write(src[:from])
		b.Write(src[s.end:s.comma])
		b.Write(src[s.comma+1:])
	default:
		prev := spans[n-1]
		b.Write(src[:prev.comma])
		b.Write(src[prev.comma+1 : from])
		rest := s.end
		if !bytes.Contains(src[v.StartOffset:prev.end], []byte("\n")) && emptyText(src[prev.comma+1:from]) && emptyText(src[s.end:v.EndOffset-1]) {
			rest = v.EndOffset - 1 // what stands on one line is closed there
		}
		b.Write(src[rest:])
	}
	f.text = b.Bytes()
}

// strip takes out everything for which ours holds: the object in a list that
// has such a string among its members, and then the lists, groups and members
// that are left empty by that. It reports whether it found anything.
func (f *settingsFile) strip(path []string, ours func(string) bool) (bool, error) {
	found := false
	for {
		if emptyText(f.text) {
			return found, nil
		}
		v, err := f.root()
		if err != nil {
			return found, err
		}
		hit, ok := locate(v, path, ours)
		if !ok {
			return found, nil
		}
		found = true
		// From the inside out: what is empty now is taken out as well.
		for level := len(hit) - 1; level >= 0; level-- {
			f.cut(hit[level].in, hit[level].n)
			if level == 0 || !hit[level].alone() || !hit[level-1].sheds {
				break
			}
			// The offsets moved: find the same places again.
			if v, err = f.root(); err != nil {
				return found, err
			}
			if hit, ok = again(v, hit[:level]); !ok {
				return found, errors.New("the settings changed under the hand")
			}
		}
	}
}

// step is one value on the way to a hit: the n-th in a composite.
type step struct {
	in    *hujson.Value
	n     int
	sheds bool // the value is taken out as well when what is in it is gone
}

// alone reports whether nothing stands beside the value: no other value, and no
// comment.
func (s step) alone() bool {
	blank := func(all ...hujson.Extra) bool {
		for _, e := range all {
			if len(bytes.TrimSpace(e)) > 0 {
				return false
			}
		}
		return true
	}
	switch c := s.in.Value.(type) {
	case *hujson.Object:
		return len(c.Members) == 1 && blank(c.Members[0].Name.BeforeExtra, c.Members[0].Value.AfterExtra, c.AfterExtra)
	case *hujson.Array:
		return len(c.Elements) == 1 && blank(c.Elements[0].BeforeExtra, c.Elements[0].AfterExtra, c.AfterExtra)
	}
	return false
}

// locate finds the way to the innermost object in a list, below path, one of
// whose strings is ours.
func locate(v *hujson.Value, path []string, ours func(string) bool) ([]step, bool) {
	var way []step
	for _, name := range path {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil, false
		}
		n := member(o, name)
		if n < 0 {
			return nil, false
		}
		way = append(way, step{v, n, true})
		v = &o.Members[n].Value
	}
	return within(v, way, ours)
}

func within(v *hujson.Value, way []step, ours func(string) bool) ([]step, bool) {
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, false
	}
	for i := range a.Elements {
		o, ok := a.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		here := append(append([]step(nil), way...), step{v, i, true})
		for m := range o.Members {
			switch c := o.Members[m].Value.Value.(type) {
			case hujson.Literal:
				if c.Kind() == '"' && ours(c.String()) {
					return here, true
				}
			case *hujson.Array:
				// A group: it goes when the list in it is left empty, whatever
				// matcher stands beside.
				if deeper, ok := within(&o.Members[m].Value, append(here, step{&a.Elements[i], m, false}), ours); ok {
					if len(c.Elements) == 1 {
						return here, true
					}
					return deeper, true
				}
			}
		}
	}
	return nil, false
}

// again finds the values of way in a text that was parsed anew.
func again(v *hujson.Value, way []step) ([]step, bool) {
	list := append([]step(nil), way...)
	for i := range list {
		list[i].in = v
		switch c := v.Value.(type) {
		case *hujson.Object:
			if list[i].n >= len(c.Members) {
				return nil, false
			}
			v = &c.Members[list[i].n].Value
		case *hujson.Array:
			if list[i].n >= len(c.Elements) {
				return nil, false
			}
			v = &c.Elements[list[i].n]
		default:
			return nil, false
		}
	}
	return list, true
}

// stringOf is the text of v, if it is a string.
func stringOf(v *hujson.Value) (string, bool) {
	lit, ok := v.Value.(hujson.Literal)
	if !ok || lit.Kind() != '"' {
		return "", false
	}
	return lit.String(), true
}
