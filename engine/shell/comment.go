package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// comments returns text so that the parser ends each comment where bash does,
// empty if it does so already. To the parser a backslash at the end of one joins
// the next line to the command before it; to bash it is a part of the comment,
// and the next line a command.
func comments(stmts []*syntax.Stmt, text string) string {
	if !strings.Contains(text, "\\\n") || strings.IndexByte(text, '#') < 0 {
		return ""
	}
	var at, slash []int // where a comment may start, and the backslash that ends it
	for from := 0; ; {
		n := strings.Index(text[from:], "\\\n")
		if n < 0 {
			break
		}
		end := from + n
		for i := strings.LastIndexByte(text[:end], '\n') + 1; i < end; i++ {
			if text[i] == '#' && (i == 0 || strings.IndexByte(" \t\r\n;&|()<>`", text[i-1]) >= 0) {
				at, slash = append(at, i), append(slash, end)
			}
		}
		from = end + 2
	}
	if len(at) == 0 {
		return ""
	}
	quoted := make([]bool, len(at)) // or of a word
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n.(type) {
			case *syntax.Lit, *syntax.SglQuoted:
				i, _ := slices.BinarySearch(at, int(n.Pos().Offset()))
				for end := int(n.End().Offset()); i < len(at) && at[i] < end; i++ {
					quoted[i] = true
				}
			}
			return true
		})
	}
	var fixed []byte
	for i := range at {
		if quoted[i] {
			continue
		}
		if fixed == nil {
			fixed = []byte(text)
		}
		fixed[slash[i]] = ' '
	}
	return string(fixed)
}
