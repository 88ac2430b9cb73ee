package access

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/nod-agents/nod/engine/pattern"
)

// tree is a file system of links (by their text), directories ("/") and files.
type tree map[string]string

func (t tree) Look(p string) Kind {
	text, ok := t[p]
	switch {
	case p == "/" || text == "/":
		return Directory
	case !ok:
		return Missing
	case text == "":
		return Plain
	}
	return Link
}

func (t tree) Readlink(p string) (string, error) { return t[p], nil }

func (t tree) List(dir string, limit int) (names []string, more bool) {
	for p := range t {
		if path.Dir(p) == path.Clean(dir) {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	if len(names) > limit {
		return names[:limit], true
	}
	return names, false
}

var disk = tree{
	"/p": "/", "/p/src": "/", "/p/src/a": "", "/p/.env": "", "/p/x.env": "", "/o": "/", "/o/s": "", "/o/sub": "/", "/home": "/", "/home/u": "/",
	"/p/l": "/o/s", "/p/dl": "../o", "/p/sl": "/o/sub", "/p/dang": "../o/new", "/p/d1": "d2", "/p/d2": "../o/new", "/p/loop": "loop", "/p/a1": "b1", "/p/b1": "a1", "/p/in": "src/a", "/p/me": ".", "/w": "p", "/p/abs": "/p/src",
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		text, base, abs, boundary string
		external                  bool
	}{
		{"src/a", "/p", "/p/src/a", "/p/src/a", false},
		{"./src//../src/a", "/p", "/p/src/a", "/p/src/a", false},
		{"..", "/p", "/", "/", true},
		{"../o/s", "/p", "/o/s", "/o/s", true},
		{"../p2", "/p", "/p2", "/p2", true},
		{"l", "/p", "/p/l", "/o/s", true},
		{"dl/new/x", "/p", "/p/dl/new/x", "/o/new/x", true},
		{"dang", "/p", "/p/dang", "/o/new", true},
		{"d1", "/p", "/p/d1", "/o/new", true},
		{"sl/../s", "/p", "/p/s", "/o/s", true},
		{"../s", "/p/sl", "/p/s", "/o/s", true},
		{"in", "/p", "/p/in", "/p/src/a", false},
		{"me/me/in", "/p", "/p/me/me/in", "/p/src/a", false},
		{"abs/a", "/p", "/p/abs/a", "/p/src/a", false},
		{"loop/x", "/p", "/p/loop/x", "/p/loop/x", false},
		{"a1", "/p", "/p/a1", "/p/a1", false},
		{"none/../src/a", "/p", "/p/src/a", "/p/src/a", false},
		{"/dev/stdin", "/p", "/dev/stdin", "/dev/stdin", false},
		{"/dev/null/x", "/p", "/dev/null/x", "/dev/null/x", true},
		{"/w/src/a", "/p", "/w/src/a", "/p/src/a", false},
	} {
		p := New(disk, "/home/u", "/p", pattern.Posix)
		f := p.ResolveIn(tt.text, tt.base)
		if f.Absolute != tt.abs || f.Boundary != tt.boundary || f.External != tt.external {
			t.Errorf("%s in %s: %s, %s, external %v", tt.text, tt.base, f.Absolute, f.Boundary, f.External)
		}
	}
}

// TestLongPaths resolves paths that no kernel takes: it ends soon, and one that
// is short once it is normalised is followed, as a tool may normalise it first.
func TestLongPaths(t *testing.T) {
	p := New(disk, "/home/u", "/p", pattern.Posix)
	long := strings.Repeat("a/", 500_000)
	if f := p.Resolve(long); f.External || !strings.HasPrefix(f.Boundary, "/p/a/a/") || len(f.Boundary) != len("/p/")+len(long)-1 {
		t.Errorf("%.20s with %d bytes, external %v", f.Boundary, len(f.Boundary), f.External)
	}
	if f := p.Resolve(long + strings.Repeat("../", 500_000) + "l"); f.Boundary != "/o/s" || !f.External {
		t.Errorf("%.40s, external %v", f.Boundary, f.External)
	}
	if f := p.Resolve(strings.Repeat("../", 500_000) + "o/s"); f.Boundary != "/o/s" || !f.External {
		t.Errorf("%.40s, external %v", f.Boundary, f.External)
	}
}

func TestForms(t *testing.T) {
	for _, tt := range []struct {
		cwd, base, text     string
		named, real, strict []string
	}{
		{"/p", "/p", "src/a", []string{"/p/src/a", "src/a"}, nil, nil},
		{"/p", "/p", "./src/a", []string{"/p/src/a", "src/a"}, nil, nil},
		{"/p", "/p", "../x", []string{"/x", "../x"}, nil, nil},
		{"/p", "/p", "src/../../x", []string{"/x"}, nil, nil},
		{"/p", "/p", "src/", []string{"/p/src", "src", "/p/src/", "src/"}, nil, nil},
		{"/p", "/p/src", "a", []string{"/p/src/a", "src/a"}, nil, []string{"a"}},
		{"/p", "/p", "in", []string{"/p/in", "in"}, []string{"/p/src/a", "src/a"}, nil},
		{"/p", "/p", "l", []string{"/p/l", "l"}, []string{"/o/s"}, nil},
		{"/w", "/w", "src/a", []string{"/w/src/a", "src/a", "/p/src/a"}, nil, nil},
		{"/w", "/w", "/p/src/a", []string{"/p/src/a", "/w/src/a", "src/a"}, nil, nil},
		{"/w", "/w", "/p/in", []string{"/p/in", "/w/in", "in"}, []string{"/p/src/a", "src/a", "/w/src/a"}, nil},
		{"/w", "/w", "in", []string{"/w/in", "in"}, []string{"/p/src/a", "src/a", "/w/src/a"}, nil},
		{"/w", "/w", "/p", []string{"/p", "/w", "."}, nil, nil},
		{"/w", "/w", "../o/s", []string{"/o/s", "../o/s"}, nil, nil},
		{"/p", "/p", ".", []string{"/p", "."}, nil, nil},
	} {
		p := New(disk, "/home/u", tt.cwd, pattern.Posix)
		f := p.ResolveIn(tt.text, tt.base)
		if !slices.Equal(f.Named, tt.named) || !slices.Equal(f.Real, tt.real) || !slices.Equal(f.Strict, tt.strict) {
			t.Errorf("%s in %s: named %q, real %q, strict %q", tt.text, tt.base, f.Named, f.Real, f.Strict)
		}
	}
}

// TestHomeByAnotherName: where a link leads to the home directory, a path by its
// real name is held against rules that say ~ too.
func TestHomeByAnotherName(t *testing.T) {
	files := tree{"/var": "/", "/var/home": "/", "/var/home/u": "/", "/var/home/u/p": "/", "/home": "var/home", "/var/home/u/p/key": "/var/home/u/.ssh/id"}
	for _, tt := range []struct {
		cwd, text   string
		named, real []string
	}{
		{"/var/home/u/p", "../.ssh/id", []string{"/var/home/u/.ssh/id", "../.ssh/id", "/home/u/.ssh/id"}, nil},
		{"/var/home/u/p", "/home/u/.ssh/id", []string{"/home/u/.ssh/id"}, []string{"/var/home/u/.ssh/id", "/home/u/.ssh/id"}},
		{"/var/home/u/p", "key", []string{"/var/home/u/p/key", "key", "/home/u/p/key"}, []string{"/var/home/u/.ssh/id", "/home/u/.ssh/id"}},
		{"/home/u/p", "x", []string{"/home/u/p/x", "x", "/var/home/u/p/x"}, nil},
		{"/var/home/u/p", "..", []string{"/var/home/u", "..", "/home/u"}, nil},
		{"/var/home/u/p", "/var/home/u2/x", []string{"/var/home/u2/x"}, nil},
	} {
		p := New(files, "/home/u", tt.cwd, pattern.Posix)
		f := p.Resolve(tt.text)
		if !slices.Equal(f.Named, tt.named) || !slices.Equal(f.Real, tt.real) {
			t.Errorf("%s in %s: named %q, real %q", tt.text, tt.cwd, f.Named, f.Real)
		}
		for place, want := range map[string]bool{"/home/u": true, "/var/home/u": true, "/var/home": false, "/home/u/p": false} {
			if p.IsHome(place) != want {
				t.Errorf("%s is the home directory: %v", place, !want)
			}
		}
		for place, want := range map[string]bool{tt.cwd: true, "/var/home/u/p": true, "/var/home/u": false} {
			if p.IsProject(place) != want {
				t.Errorf("%s is the project %s: %v", place, tt.cwd, !want)
			}
		}
	}
}

func TestClean(t *testing.T) {
	p := New(nil, "/home/u", "/p", pattern.Posix)
	for in, want := range map[string]string{
		"": "", "  a ": "a", "'a'": "a", `"a"`: "a", "'a": "a", `a"`: "a", "@a": "a", "@@a": "@a", "'@a'": "a", "~": "/home/u", "~/a": "/home/u/a", "$HOME/a": "/home/u/a", "${HOME}": "/home/u", "~b/a": "~b/a", "@~/a": "/home/u/a", "''": "", " ' a ' ": " a ",
	} {
		if got := p.Clean(in); got != want {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
	}
}

func TestGlob(t *testing.T) {
	p := New(disk, "", "/p", pattern.Posix)
	for glob, want := range map[string]string{
		"*.env": "x.env", ".e*": ".env", "[x].env": "x.env", "[!a].env": "x.env", "[[:alpha:]].env": "x.env", "[a[:alpha:]].env": "x.env", "src/*": "src/a", "s*/a": "src/a", "/p/s*/a": "/p/src/a", `\*.env`: "", "none*": "", "../o/*": "../o/s ../o/sub", "s?c": "src", "[x-z].env": "x.env", "da*": "dang",
	} {
		got, _ := p.Glob(glob, "/p")
		if strings.Join(got, " ") != want {
			t.Errorf("%s: want %q, got %q", glob, want, got)
		}
	}
}

// FuzzResolve resolves any text: it ends, and the facts are consistent.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"src/../x", "sl/../s", "loop/loop", "/..//..", "dl/*", "[a", "~/x", "C:\\x", "a\x00b", "@'x'"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, windows bool) {
		flavour, cwd := pattern.Posix, "/p"
		if windows {
			flavour, cwd = pattern.Windows, `C:\p`
		}
		p := New(disk, "/home/u", cwd, flavour)
		if s = p.Clean(s); s == "" {
			return
		}
		r := p.Resolve(s)
		if len(r.Named) == 0 || r.Named[0] != r.Absolute || r.Boundary == "" {
			t.Errorf("%q: %+v", s, r)
		}
		if !windows && !r.External && r.Boundary != "/p" && !strings.HasPrefix(r.Boundary, "/p/") && !strings.HasPrefix(r.Boundary, "/dev/") {
			t.Errorf("%q leads to %s, which is outside", s, r.Boundary)
		}
		p.Glob(s, "/p")
		p.Exists(s, "/p")
	})
}

// counted is a tree that counts the questions to it.
type counted struct {
	tree
	looks, lists, links int
}

func (c *counted) Look(p string) Kind { c.looks++; return c.tree.Look(p) }

func (c *counted) Readlink(p string) (string, error) { c.links++; return c.tree.Readlink(p) }

func (c *counted) List(dir string, limit int) ([]string, bool) {
	c.lists++
	return c.tree.List(dir, limit)
}

// However many words a call has, whatever links and files they lead to, what is
// looked up for it is bounded. Beyond that a path may be anywhere.
func TestLookingUpIsBounded(t *testing.T) {
	c := &counted{tree: tree{"/p": "/", "/p/d": "/"}}
	for i := range maxLinks {
		c.tree[fmt.Sprintf("/p/l%d", i)] = strings.Repeat("d/../", 4090/5) + fmt.Sprintf("l%d", i+1)
	}
	for i := range 3000 {
		c.tree[fmt.Sprintf("/p/d/f%d", i)] = ""
	}
	p := New(c, "/home/u", "/p", pattern.Posix)
	if f := p.Resolve("l0"); f.Unplaced || f.External || p.spent() {
		t.Fatalf("one path, whatever its links, is looked up: %+v", f)
	}
	for i := range 20_000 {
		p.Resolve(fmt.Sprintf("l0/%d/x", i))
		if p.spent() {
			break
		}
	}
	if !p.spent() || c.looks+c.links > maxSteps/lookSteps {
		t.Errorf("spent: %v, after %d looks and %d links", p.spent(), c.looks, c.links)
	}
	if f := p.Resolve("src"); !f.External || !f.Unplaced {
		t.Errorf("what is not looked up is outside: %+v", f)
	}
	if !p.Exists("src", "/p") || !p.IsDirectory("/p/src") {
		t.Error("what is not looked up exists")
	}
	if _, more := p.Glob("*", "/p"); !more {
		t.Error("a wildcard stands for files that are not looked at")
	}

	p = New(c, "/home/u", "/p", pattern.Posix)
	c.lists = 0
	for i := range 20_000 {
		p.Glob(fmt.Sprintf("d/*a*b*c*d*e*%d", i), "/p")
	}
	if !p.spent() || c.lists != 1 {
		t.Errorf("spent: %v, one directory was read %d times", p.spent(), c.lists)
	}
}

// A pattern longer than any path stands for what is not known.
func TestGlobOfAnyLength(t *testing.T) {
	p := New(disk, "/home/u", "/p", pattern.Posix)
	for _, glob := range []string{strings.Repeat("a/", 1<<19) + "*", strings.Repeat("[:a:]", 1<<18), strings.Repeat("[[:a:]]", 300) + "*"} {
		if matches, more := p.Glob(glob, "/p"); len(matches) != 0 || !more {
			t.Errorf("%.10s…: %d matches, more: %v", glob, len(matches), more)
		}
	}
	if matches, more := p.Glob("*.env", "/p"); len(matches) != 1 || more {
		t.Errorf("%q, more: %v", matches, more)
	}
}
