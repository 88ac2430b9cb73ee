package access

import (
	"path"
	"strings"
)

// Bounds of one wildcard's matches.
const (
	maxNames   = 8192 // looked at in one directory
	maxMatches = 2048
)

// Glob returns the existing paths that a shell pattern stands for, relative to
// base as the pattern is, and whether there may be more than were looked at.
// Characters behind a backslash are literal. As in bash, a leading dot is
// matched by a dot only.
func (p *Place) Glob(glob, base string) (matches []string, more bool) {
	if p.files == nil {
		return nil, false
	}
	at := []string{""}
	rest := glob
	if strings.HasPrefix(glob, "/") {
		at = []string{"/"}
		rest = strings.TrimLeft(glob, "/")
	}
	looked := 0
	for rest != "" {
		var seg string
		seg, rest, _ = strings.Cut(rest, "/")
		if seg == "" {
			continue
		}
		var next []string
		for _, dir := range at {
			if !strings.ContainsAny(seg, "*?[") || literalSegment(seg) {
				next = append(next, dir+strings.ReplaceAll(seg, `\`, ""))
				continue
			}
			names, cut := p.files.List(p.at(dir, base), maxNames-looked)
			looked += len(names)
			more = more || cut || looked >= maxNames
			for _, name := range names {
				if segmentMatches(seg, name) {
					if len(next) >= maxMatches {
						more = true
						break
					}
					next = append(next, dir+name)
				}
			}
		}
		at = next
		if rest != "" {
			for i := range at {
				at[i] += "/"
			}
		}
	}
	for _, m := range at {
		if m != "" && p.look(clean(p.at(m, base))) != Missing {
			matches = append(matches, m)
		}
	}
	return matches, more
}

func (p *Place) at(name, base string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(base, "/") + "/" + name
}

func literalSegment(seg string) bool {
	for i := 0; i < len(seg); i++ {
		switch seg[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return false
		}
	}
	return true
}

// segmentMatches holds one segment of a pattern against a name. A class that it
// cannot read matches any one character, so that nothing is missed.
func segmentMatches(seg, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(seg, ".") && !strings.HasPrefix(seg, `\.`) {
		return false
	}
	pat := strings.ReplaceAll(seg, "[!", "[^")
	if strings.Contains(pat, "[:") {
		pat = anyClass(pat)
	}
	ok, err := path.Match(pat, name)
	if err != nil {
		ok, err = path.Match(strings.ReplaceAll(strings.ReplaceAll(pat, "[", "?"), "]", "*"), name)
		return err != nil || ok
	}
	return ok
}

// anyClass makes every bracket with a named class one `?`.
func anyClass(pat string) string {
	for {
		named := strings.Index(pat, "[:")
		if named < 0 {
			return pat
		}
		open := strings.LastIndexByte(pat[:named], '[')
		closed := strings.Index(pat[named:], ":]")
		if open < 0 || closed < 0 {
			return pat
		}
		rest := pat[named+closed+2:]
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			return pat
		}
		pat = pat[:open] + "?" + rest[end+1:]
	}
}
