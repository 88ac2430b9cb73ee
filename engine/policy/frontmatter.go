package policy

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/nod-agents/nod/engine"
	yaml "go.yaml.in/yaml/v3"
)

// maxFrontMatter bounds the front matter of an agent file, in bytes.
const maxFrontMatter = 1 << 20

// frontMatter reads the permission key of an agent file's front matter. It
// returns false if there is none. An error with a value means that the text is
// no YAML but its meaning is plain: its denials are not to be lost.
func frontMatter(file string, data []byte) (value, bool, *Error) {
	yamlText, found, err := frontMatterText(file, data)
	if err != nil || !found {
		return value{}, false, err
	}
	doc, bad := parseYAML(file, yamlText)
	if bad != nil {
		// Another key of the front matter may be what is wrong, and those are
		// none of ours: `description: reads only: never writes` is common.
		block, at, n := permissionBlock(yamlText)
		switch {
		case n == 0:
			for _, key := range [...]string{"permission:", `permission":`, "permission':", "permission :"} {
				if bytes.Contains(yamlText, []byte(key)) {
					return value{}, false, bad
				}
			}
			return value{}, false, nil
		case n > 1:
			return value{}, false, bad
		}
		padded := append(bytes.Repeat([]byte("\n"), at), block...)
		var again *Error
		if doc, again = parseYAML(file, padded); again != nil {
			spaced := indentBySpaces(padded)
			if doc, again = parseYAML(file, spaced); again != nil {
				return value{}, false, bad
			}
			v, ok, _ := permissionOf(file, doc)
			return v, ok, bad
		}
	}
	return permissionOf(file, doc)
}

// frontMatterText is the text between the first line, `---`, and the next line
// that starts with `---`.
func frontMatterText(file string, data []byte) ([]byte, bool, *Error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	start := engine.Position{File: file, Line: 1, Column: 1}
	for _, wide := range [...]string{"\xff\xfe", "\xfe\xff", "-\x00-\x00", "\x00-\x00-"} {
		if bytes.HasPrefix(data, []byte(wide)) {
			return nil, false, &Error{Pos: start, Problem: "the text is UTF-16", Remedy: "save the file as UTF-8"}
		}
	}
	if bytes.IndexByte(data, '\n') < 0 {
		data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n")) // a carriage return ends a line in YAML too
	}
	first, rest, more := bytes.Cut(data, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != "---" {
		return nil, false, nil
	}
	unclosed := &Error{Pos: start, Problem: "the front matter is opened but never closed", Remedy: "end it with a line of ---"}
	if !more {
		return nil, false, unclosed
	}
	for at := 0; at <= len(rest); {
		if bytes.HasPrefix(rest[at:], []byte("---")) {
			if at > maxFrontMatter {
				return nil, false, &Error{Pos: start, Problem: fmt.Sprintf("the front matter has %d bytes", at), Remedy: fmt.Sprintf("keep it under %d", maxFrontMatter)}
			}
			return rest[:at], true, nil
		}
		n := bytes.IndexByte(rest[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	return nil, false, unclosed
}

// parseYAML parses front matter, which starts on the second line of its file.
func parseYAML(file string, data []byte) (node *yaml.Node, bad *Error) {
	defer func() {
		if r := recover(); r != nil {
			node, bad = nil, &Error{Pos: engine.Position{File: file, Line: 2, Column: 1}, Problem: fmt.Sprintf("not valid YAML: %v", r), Remedy: "mend the front matter"}
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		pos := engine.Position{File: file, Line: 2, Column: 1}
		problem := strings.TrimPrefix(err.Error(), "yaml: ")
		var line int
		if n, _ := fmt.Sscanf(problem, "line %d:", &line); n == 1 {
			pos.Line = line + 1
			problem = strings.TrimSpace(problem[strings.Index(problem, ":")+1:])
		}
		return nil, &Error{Pos: pos, Problem: "not valid YAML: " + problem, Remedy: "mend the front matter"}
	}
	return &doc, nil
}

func permissionOf(file string, doc *yaml.Node) (value, bool, *Error) {
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return value{}, false, nil
	}
	root := doc.Content[0]
	var found *yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "permission" {
			found = root.Content[i+1]
		}
	}
	if found == nil {
		return value{}, false, nil
	}
	r := yamlReader{file: file, left: 1 << 20}
	v := r.read(found, 0)
	if r.bad != nil {
		return value{}, false, r.bad
	}
	return v, true, nil
}

// yamlReader turns nodes into values. left bounds how many, aliases counted as
// often as they are used.
type yamlReader struct {
	file string
	left int
	bad  *Error
}

func (r *yamlReader) read(n *yaml.Node, depth int) value {
	pos := r.pos(n)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if r.left--; r.left < 0 || depth > maxDepth || n == nil {
		r.fail(pos, "the front matter is nested too deep or refers to itself", "write it out")
		return value{}
	}
	v := value{pos: pos}
	switch n.Kind {
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
		case "!!bool":
			v.kind, v.yes = boolean, n.Value == "true"
		case "!!int", "!!float":
			v.kind, v.text = number, n.Value
		default:
			v.kind, v.text = text, n.Value
		}
	case yaml.SequenceNode:
		v.kind = list
		for _, c := range n.Content {
			v.list = append(v.list, r.read(c, depth+1))
		}
	case yaml.MappingNode:
		v.kind = object
		all := make([]member, 0, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			at := r.pos(k)
			if k.Kind == yaml.AliasNode && k.Alias != nil {
				k = k.Alias
			}
			if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
				r.fail(at, "a key must be plain text", "write the entries out")
				return value{}
			}
			all = append(all, member{key: k.Value, pos: at, val: r.read(n.Content[i+1], depth+1)})
		}
		v.keys = last(all)
	}
	return v
}

func (r *yamlReader) pos(n *yaml.Node) engine.Position {
	return engine.Position{File: r.file, Line: n.Line + 1, Column: n.Column}
}

func (r *yamlReader) fail(pos engine.Position, problem, remedy string) {
	if r.bad == nil {
		r.bad = &Error{Pos: pos, Key: "permission", Problem: problem, Remedy: remedy}
	}
}

// permissionBlock finds the top-level permission key by its line: the block's
// text, the number of lines before it, and how many such keys there are.
func permissionBlock(data []byte) (block []byte, before, count int) {
	inside := false
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		top := len(line) > 0 && !bytes.ContainsRune([]byte(" \t\r\n#"), rune(line[0]))
		if top {
			inside = false
			for _, key := range [...]string{"permission:", `"permission":`, "'permission':"} {
				if bytes.HasPrefix(line, []byte(key)) {
					inside = true
					count++
					if count == 1 {
						before = i
					}
				}
			}
		}
		if inside && count == 1 {
			block = append(block, line...)
		}
	}
	return block, before, count
}

// indentBySpaces replaces the tabs of every line's indentation by two spaces.
func indentBySpaces(data []byte) []byte {
	var out []byte
	for _, line := range bytes.SplitAfter(data, []byte("\n")) {
		body := bytes.TrimLeft(line, " \t")
		out = append(out, bytes.ReplaceAll(line[:len(line)-len(body)], []byte("\t"), []byte("  "))...)
		out = append(out, body...)
	}
	return out
}
