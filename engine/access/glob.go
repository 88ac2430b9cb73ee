package access

import (
	"path"
	"strings"
)

// Bounds of one wildcard's matches.
const (
	maxNames   = 8192 // looked at in one directory
	maxMatches = 2048
	maxSegment = 1024 // bytes of a pattern between slashes
	maxLists   = 16   // directories that are kept
)

// listing is the names in a directory.
type listing struct {
	names []string
	more  bool
}

// list is FileSystem.List, which remembers a few directories.
func (p *Place) list(dir string) listing {
	l, ok := p.lists[dir]
	if ok {
		return l
	}
	l.names, l.more = p.files.List(dir, maxNames)
	p.spend(listSteps + len(l.names))
	if p.lists == nil {
		p.lists = map[string]listing{}
	}
	if len(p.lists) < maxLists {
		p.lists[dir] = l
	}
	return l
}

// Glob returns the existing paths that a shell pattern stands for, relative to
// base as the pattern is, and whether there may be more than were looked at.
// Characters behind a backslash are literal. As in bash, a leading dot is
// matched by a dot only.
func (p *Place) Glob(glob, base string) (matches []string, more bool) {
	if p.files == nil {
		return nil, false
	}
	if len(glob) > maxPath {
		return nil, true
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
		if len(seg) > maxSegment {
			return nil, true
		}
		var next []string
		literal := literalSegment(seg)
		pat := classes(seg)
		for _, dir := range at {
			if literal && p.spend(2+len(dir)/longPath) {
				next = append(next, dir+strings.ReplaceAll(seg, `\`, ""))
				continue
			}
			if looked >= maxNames || p.spent() {
				more = true
				break
			}
			l := p.list(p.at(dir, base))
			more = more || l.more
			for _, name := range l.names {
				if looked++; looked > maxNames || !p.spend(1+len(seg)*len(name)/64) {
					more = true
					break
				}
				if segmentMatches(seg, pat, name) {
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
	return matches, more || p.spent()
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

// classes is a segment with its bracket expressions in the form of path.Match.
func classes(seg string) string {
	pat := strings.ReplaceAll(seg, "[!", "[^")
	if strings.Contains(pat, "[:") {
		pat = anyClass(pat)
	}
	return pat
}

// segmentMatches holds one segment of a pattern, and that as classes makes it,
// against a name. A class that it cannot read matches any one character, so that
// nothing is missed.
func segmentMatches(seg, pat, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(seg, ".") && !strings.HasPrefix(seg, `\.`) {
		return false
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
