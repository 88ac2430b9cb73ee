package engine

import (
	"strings"

	"github.com/nod-agents/nod/engine/pattern"
)

// normal is a path pattern in the form that access paths have.
type normal struct {
	text   string
	climbs string // the relative text of a pattern that leaves the project
}

// normalPattern brings a pattern of a path surface into the form of the values
// it is matched with: home expanded, `.`, `..` and doubled slashes resolved as
// far as wildcards allow, a relative pattern left relative to the project. One
// that climbs out of the project becomes absolute.
func normalPattern(written string, opt Options) normal {
	if pattern.IsBare(written) {
		return normal{text: written}
	}
	text, glob := strings.CutPrefix(written, pattern.GlobPrefix)
	text = pattern.ExpandHome(text, opt.Home)
	cwd := opt.Cwd
	if opt.Flavour == pattern.Windows {
		text = strings.ReplaceAll(text, `\`, "/")
		cwd = strings.ReplaceAll(cwd, `\`, "/")
	}
	cwd = strings.TrimSuffix(cwd, "/")
	n := normal{text: cleanPattern(text)}
	switch {
	case cwd == "" || isAbsolute(n.text, opt.Flavour):
	case n.text == ".":
		n.text = cwd
	case n.text == ".." || strings.HasPrefix(n.text, "../"):
		up := n.text
		if n.text = cleanPattern(cwd + "/" + up); !within(opt.Flavour.Fold(n.text), opt.Flavour.Fold(cwd)) {
			n.climbs = up // and does not come back
		}
	case text != n.text && strings.HasPrefix(text, "./") && strings.HasPrefix(n.text, "*"):
		n.text = cwd + "/" + n.text
	}
	if glob {
		n.text = pattern.GlobPrefix + n.text
		if n.climbs != "" {
			n.climbs = pattern.GlobPrefix + n.climbs
		}
	}
	return n
}

// place is a pattern for one place without its final slash: `dir/` is the
// directory however a call writes it. Behind a wildcard the slash says more.
func place(text string) string {
	if !pattern.IsLiteral(text) || strings.HasSuffix(text, ":/") {
		return text
	}
	if short, ok := strings.CutSuffix(text, "/"); ok && short != "" {
		return short
	}
	return text
}

func isAbsolute(p string, f pattern.Flavour) bool {
	return strings.HasPrefix(p, "/") || f == pattern.Windows && len(p) >= 3 && p[1] == ':' && p[2] == '/'
}

// cleanPattern resolves `.`, `..` and empty segments. A `..` after a segment
// with a wildcard stays: the wildcard may stand for more than one segment. A
// final slash stays too, for `dir/` is matched by `dir/*`.
func cleanPattern(p string) string {
	if !strings.Contains(p, "//") && !strings.Contains(p, "./") && !strings.HasSuffix(p, ".") {
		return p
	}
	rooted := strings.HasPrefix(p, "/")
	var out []string
	parts := strings.Split(p, "/")
	for i, part := range parts {
		switch part {
		case "":
			if i == len(parts)-1 && len(out) > 0 {
				out = append(out, "")
			}
		case ".":
		case "..":
			last := len(out) - 1
			switch {
			case last >= 0 && out[last] != ".." && !strings.ContainsAny(out[last], "*?[{"):
				out = out[:last]
			case last < 0 && rooted:
			default:
				out = append(out, part)
			}
		default:
			out = append(out, part)
		}
	}
	s := strings.Join(out, "/")
	if rooted {
		return "/" + s
	}
	if s == "" {
		return "."
	}
	return s
}
