// Package access derives the facts of a path access: every form of the path
// that a rule may name, the place it leads to, and whether that place is outside
// the project. It looks at the disk only through the FileSystem it is handed.
package access

import (
	"path"
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine/pattern"
)

// Kind is what is at a path.
type Kind uint8

// The kinds. Whatever cannot be looked at is Missing.
const (
	Missing Kind = iota
	Plain        // a file, a device, anything but the two below
	Directory
	Link
)

// FileSystem is the disk as access facts need it. Paths are absolute.
type FileSystem interface {
	// Look says what is at a path, without following a final link.
	Look(path string) Kind
	// Readlink returns the text of a link.
	Readlink(path string) (string, error)
	// List returns up to limit names in a directory, and whether there are
	// more. An unreadable directory has none.
	List(path string, limit int) (names []string, more bool)
}

// Place is the surroundings that paths are resolved in, for one tool call: it
// remembers what it has looked at. It is not safe for concurrent use.
type Place struct {
	files   FileSystem
	home    string
	cwd     string // the project, absolute and normalised, slashes only
	flavour pattern.Flavour

	first    [12]seen // what was looked at, as long as it is little
	firsts   int
	more     map[string]Kind // and what came after
	real     string          // cwd with links followed; empty: not yet looked up
	homeReal string          // home with links followed, likewise
	lists    map[string]listing
	steps    int // taken so far, of maxSteps
}

// What following paths may cost for one call, so that no number of words, links
// and files holds a decision up: see Place.spend. It is some tenths of a second.
const (
	maxSteps  = 1 << 21
	lookSteps = 16  // of one question to the disk
	listSteps = 64  // of reading a directory, beside its names
	longPath  = 256 // bytes of a path that cost one step more
)

// spend takes n steps and reports whether there were so many. Where there are
// not, nothing more is looked up: what is asked about is taken to exist and to be
// outside.
func (p *Place) spend(n int) bool {
	p.steps = min(p.steps+n, maxSteps+1)
	return p.steps <= maxSteps
}

// spent reports whether no more is looked up.
func (p *Place) spent() bool { return p.steps > maxSteps }

// seen is what is at one path.
type seen struct {
	path string
	kind Kind
}

// New returns the surroundings of a project at cwd. files may be nil: then
// nothing exists and no link is followed.
func New(files FileSystem, home, cwd string, flavour pattern.Flavour) *Place {
	p := &Place{}
	p.Reset(files, home, cwd, flavour)
	return p
}

// Reset makes p as New does, for another call: nothing that was looked at is
// remembered.
func (p *Place) Reset(files FileSystem, home, cwd string, flavour pattern.Flavour) {
	*p = Place{files: files, flavour: flavour}
	p.home = p.slashes(home)
	if cwd != "" {
		p.cwd = clean(p.slashes(cwd))
	}
}

// Cwd is the project, normalised.
func (p *Place) Cwd() string { return p.cwd }

// Path is the facts of one path.
type Path struct {
	Typed string // as handed in
	// Absolute is the normalised absolute form; empty if the directory that the
	// path is relative to is not known.
	Absolute string
	// Named are the forms by the name that was used: absolute, relative to the
	// project, as typed.
	Named []string
	// Real are the forms of the place it leads to, where that is another one:
	// with links followed, and that relative to the project. Nil if the same.
	Real []string
	// Strict are forms for deny and ask rules only.
	Strict []string
	// Boundary is the canonical form: links followed. Empty if not known.
	Boundary string
	// External says that the place is neither the project nor below it.
	External bool
	// Folder says that it is a directory, or was typed as one.
	Folder bool
	// Unplaced says that the place is not known, or was not looked up since there
	// is too much to look up, so that it may be outside.
	Unplaced bool
}

// Values are all forms, as an ask carries them.
func (f *Path) Values() []string {
	if len(f.Real) == 0 {
		return f.Named
	}
	all := make([]string, 0, len(f.Named)+len(f.Real))
	for _, list := range [][]string{f.Named, f.Real} {
		for _, v := range list {
			all = add(all, v)
		}
	}
	return all
}

// Granted are the forms that a session grant must match: a grant is for a
// place, so where a link leads elsewhere only the real forms count.
func (f *Path) Granted() []string {
	if len(f.Real) > 0 {
		return f.Real
	}
	return f.Named
}

func add(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

// Clean is the path that a tool's path argument means: blanks around it, one
// wrapping quote off each end and one leading `@` are not part of it, and the
// home directory is put in. Empty means no path.
func (p *Place) Clean(value string) string {
	s := strings.TrimSpace(value)
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		s = s[1:]
	}
	if s != "" && (s[len(s)-1] == '"' || s[len(s)-1] == '\'') {
		s = s[:len(s)-1]
	}
	s = strings.TrimPrefix(s, "@")
	return pattern.ExpandHome(s, p.home)
}

// Resolve derives the facts of a path that is relative to the project.
func (p *Place) Resolve(text string) Path { return p.ResolveIn(text, p.cwd) }

// ResolveIn derives the facts of a path relative to base, which is absolute but
// need not be normalised: a `..` in base, as in text, goes up from where a link
// before it leads.
func (p *Place) ResolveIn(text, base string) Path {
	f := Path{Typed: text}
	p.spend(lookSteps)
	t := p.driven(p.slashes(text), base)
	raw := t
	if !p.absolute(t) {
		raw = strings.TrimSuffix(base, "/") + "/" + t
	}
	raw = p.mount(raw)
	f.Absolute = clean(raw)
	f.Folder = strings.HasSuffix(t, "/") && f.Absolute != "/"
	real := f.Absolute
	if !p.device(f.Absolute) {
		real = p.canonical(raw)
	}
	f.Boundary = real
	root := p.cwdReal()

	f.Named = append(make([]string, 0, 4), f.Absolute)
	rel, in := p.below(f.Absolute, p.cwd)
	if !in && root != p.cwd {
		if rel, in = p.below(f.Absolute, root); in {
			// The project reached by its real name.
			f.Named = add(f.Named, p.named(rel))
		}
	}
	if in {
		f.Named = add(f.Named, rel)
	}
	typed := strings.TrimSuffix(t, "/")
	if typed != "" && clean(typed) == typed {
		if base == p.cwd {
			f.Named = add(f.Named, typed)
		} else if p.absolute(t) {
			f.Named = add(f.Named, typed)
		} else {
			f.Strict = add(f.Strict, typed)
		}
	}
	realRel, inside := p.below(real, root)
	if real != f.Absolute {
		f.Real = []string{real}
		if inside {
			f.Real = add(f.Real, realRel)
			if root != p.cwd {
				f.Real = add(f.Real, p.named(realRel))
			}
		}
		if p.same(real, f.Absolute, root) {
			// Only the project itself is reached through a link.
			for _, v := range f.Real {
				f.Named = add(f.Named, v)
			}
			f.Real = nil
		}
	}
	if home := p.byHome(f.Absolute); home != "" {
		f.Named = add(f.Named, home)
	}
	if len(f.Real) > 0 {
		if home := p.byHome(real); home != "" {
			f.Real = add(f.Real, home)
		}
	}
	if f.Folder {
		f.Named = slashed(f.Named)
		f.Real = slashed(f.Real)
	}
	f.External = !inside && real != root && !p.device(f.Absolute)
	if p.spent() {
		f.External, f.Unplaced = true, true
	}
	return f
}

// named is a path relative to the project, by the name that the project goes by.
func (p *Place) named(rel string) string {
	if rel == "." {
		return p.cwd
	}
	return strings.TrimSuffix(p.cwd, "/") + "/" + rel
}

// byHome is a place below the home directory by the name that this goes by, if
// abs calls it by another: where /home is a link, shells and kernels tell the
// directory that it leads to.
func (p *Place) byHome(abs string) string {
	if _, in := p.below(abs, p.home); in || p.home == "" {
		return ""
	}
	if p.homeReal == "" {
		p.homeReal = p.canonical(p.home)
	}
	rel, in := p.below(abs, p.homeReal)
	switch {
	case !in || p.homeReal == "/":
		return ""
	case rel == ".":
		return p.home
	}
	return strings.TrimSuffix(p.home, "/") + "/" + rel
}

// IsHome reports whether a place is the home directory, by any name.
func (p *Place) IsHome(place string) bool {
	return p.home != "" && (place == strings.TrimSuffix(p.home, "/") || p.byHome(place) == p.home)
}

// IsProject reports whether a place is the project, by any name.
func (p *Place) IsProject(place string) bool {
	return p.cwd != "" && (place == p.cwd || place == p.cwdReal())
}

// same reports whether real is what abs becomes by following the links that
// lead to the project, and no other.
func (p *Place) same(real, abs, root string) bool {
	if root == p.cwd {
		return false
	}
	rel, in := p.below(abs, p.cwd)
	if !in {
		return abs == p.cwd && real == root
	}
	return real == strings.TrimSuffix(root, "/")+"/"+rel
}

// slashed adds to each form the one with a final slash: what `dir/*` matches.
func slashed(list []string) []string {
	out := list
	for _, v := range list {
		if !strings.HasSuffix(v, "/") && v != "." {
			out = add(out[:len(out):len(out)], v+"/")
		}
	}
	return out
}

// Within adds the forms with a final slash for deny and ask rules: the command
// goes into the directory, so a rule for what is in it counts.
func (f *Path) Within() {
	f.Strict = slices.Grow(f.Strict, len(f.Named)+len(f.Real))
	for _, list := range [...][]string{f.Named, f.Real} {
		for _, v := range list {
			if !strings.HasSuffix(v, "/") && v != "." {
				f.Strict = add(f.Strict, v+"/")
			}
		}
	}
}

// Literal is the facts of a path whose directory is not known: it counts as
// typed. If it climbs, or unplaced is set, it may be outside.
func (p *Place) Literal(text string, unplaced bool) Path {
	return Path{Typed: text, Named: []string{text}, External: unplaced, Unplaced: true}
}

// IsDirectory reports whether a directory is at an absolute path, links
// followed.
func (p *Place) IsDirectory(path string) bool {
	return p.look(p.canonical(path)) == Directory || p.spent()
}

// Exists reports whether something is at text, relative to base; a dangling
// link is something.
func (p *Place) Exists(text, base string) bool {
	if p.files == nil || len(text) > maxPath {
		return false
	}
	t := p.slashes(text)
	raw := t
	if !p.absolute(t) {
		raw = strings.TrimSuffix(base, "/") + "/" + t
	}
	if !strings.Contains(raw, "..") {
		raw = clean(raw) // the kernel follows what leads to it
	} else {
		raw = p.canonical(raw)
	}
	return p.look(raw) != Missing || p.spent()
}

func (p *Place) slashes(s string) string {
	if p.flavour == pattern.Windows {
		return strings.ReplaceAll(s, `\`, "/")
	}
	return s
}

func (p *Place) absolute(s string) bool {
	return strings.HasPrefix(s, "/") || p.flavour == pattern.Windows && len(s) >= 3 && s[1] == ':' && s[2] == '/'
}

// driven makes a path that is relative to a drive, `D:x`, relative to base or
// to the top of another drive.
func (p *Place) driven(s, base string) string {
	if p.flavour != pattern.Windows || len(s) < 2 || s[1] != ':' || !letter(s[0]) || len(s) > 2 && s[2] == '/' {
		return s
	}
	if len(base) > 1 && base[1] == ':' && base[0]|0x20 == s[0]|0x20 {
		return s[2:]
	}
	return s[:2] + "/" + s[2:]
}

// mount makes `/c/x` the drive path `C:/x`, as the shells on Windows have it.
func (p *Place) mount(s string) string {
	if p.flavour == pattern.Windows && len(s) >= 2 && s[0] == '/' && letter(s[1]) && (len(s) == 2 || s[2] == '/') {
		rest := s[2:]
		if rest == "" {
			rest = "/"
		}
		return strings.ToUpper(s[1:2]) + ":" + rest
	}
	return s
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// device reports whether abs is one of the devices that are never outside, by
// name: whatever they are connected to.
func (p *Place) device(abs string) bool {
	switch abs {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return p.flavour == pattern.Windows && strings.EqualFold(path.Base(abs), "nul") && !strings.Contains(abs, "/nul/")
}

// below returns abs relative to dir, if it is below it.
func (p *Place) below(abs, dir string) (rel string, ok bool) {
	if dir == "" {
		return "", false
	}
	a, d := p.flavour.Fold(abs), strings.TrimSuffix(p.flavour.Fold(dir), "/")
	switch {
	case !strings.HasPrefix(a, d):
		return "", false
	case len(a) == len(d) || len(a) == len(d)+1 && a[len(d)] == '/':
		return ".", true
	case a[len(d)] != '/':
		return "", false
	}
	return abs[len(d)+1:], true
}

// In reports whether path is dir or below it, both absolute and normalised.
func (p *Place) In(path, dir string) bool {
	_, ok := p.below(path, dir)
	return ok
}

// clean is path.Clean that keeps a drive.
func clean(s string) string {
	if len(s) >= 3 && s[1] == ':' && s[2] == '/' {
		return s[:2] + path.Clean(s[2:])
	}
	return path.Clean(s)
}

func (p *Place) cwdReal() string {
	if p.real == "" {
		p.real = p.canonical(p.cwd)
	}
	return p.real
}

// Canonical is an absolute path with all links followed.
func (p *Place) Canonical(abs string) string { return p.canonical(p.slashes(abs)) }

// maxPath is the longest path that a kernel takes, in bytes.
const maxPath = 4096

// maxLinks is how many links one path may go through, as in the kernel.
const maxLinks = 40

// canonical walks an absolute path as the kernel does: links are followed
// before the `..` behind them. What does not exist stays as it is written; a
// dangling link counts by its text. A loop of links leaves the path as typed.
func (p *Place) canonical(raw string) string {
	if p.files == nil || raw == "" || raw[0] != '/' {
		return clean(raw)
	}
	if len(raw) > maxPath {
		// No kernel takes it as it is, but a tool may normalise it first.
		if raw = clean(raw); len(raw) > maxPath {
			return raw
		}
	}
	if p.real != "" && p.real == p.cwd && !strings.Contains(raw, "..") {
		// No link leads to the project: start there.
		if rel, ok := p.below(raw, p.cwd); ok && rel != "." {
			return p.walk(p.cwd, rel, raw)
		}
	}
	return p.walk("/", raw, raw)
}

func (p *Place) walk(cur, rest, raw string) string {
	links := 0
	for rest != "" {
		if cur == raw[:min(len(cur), len(raw))] {
			// So far it is as it is written: no text need be made.
			if cur, rest = p.along(cur, rest, raw); rest == "" {
				break
			}
		}
		if !p.spend(1 + len(cur)/longPath) {
			return clean(raw)
		}
		var seg string
		seg, rest, _ = strings.Cut(rest, "/")
		switch seg {
		case "", ".":
			continue
		case "..":
			cur = path.Dir(cur)
			continue
		}
		next := cur + "/" + seg
		if cur == "/" {
			next = cur + seg
		}
		if len(next) > maxPath {
			return clean(next + "/" + rest) // nothing is there
		}
		if p.look(next) != Link {
			cur = next
			continue
		}
		target, err := p.files.Readlink(next)
		p.spend(lookSteps + len(rest)/longPath)
		links++
		if err != nil || links > maxLinks {
			return clean(raw)
		}
		if rest != "" {
			target += "/" + rest
		}
		if len(target) > 1<<16 {
			return clean(raw)
		}
		rest = target
		if strings.HasPrefix(target, "/") {
			cur = "/"
		}
	}
	return cur
}

// along walks on as long as what is walked is a piece of raw and no link, and
// returns how far it came and what is left.
func (p *Place) along(cur, rest, raw string) (string, string) {
	for rest != "" {
		at := len(raw) - len(rest)
		if at < 1 || raw[at-1] != '/' || raw[at:] != rest || at-1 != len(cur) && (cur != "/" || at != 1) {
			break
		}
		n := strings.IndexByte(rest, '/')
		if n < 0 {
			n = len(rest)
		}
		if n == 0 || rest[:n] == "." || rest[:n] == ".." || at+n > maxPath || !p.spend(1+at/longPath) || p.look(raw[:at+n]) == Link {
			break
		}
		cur, rest = raw[:at+n], rest[min(n+1, len(rest)):]
	}
	return cur, rest
}

func (p *Place) look(abs string) Kind {
	if p.files == nil {
		return Missing
	}
	for i := range p.first[:p.firsts] {
		if p.first[i].path == abs {
			return p.first[i].kind
		}
	}
	if k, ok := p.more[abs]; ok {
		return k
	}
	if !p.spend(lookSteps) {
		return Missing
	}
	k := p.files.Look(abs)
	switch {
	case p.firsts < len(p.first):
		p.first[p.firsts] = seen{abs, k}
		p.firsts++
	case p.more == nil:
		p.more = map[string]Kind{abs: k}
	default:
		p.more[abs] = k
	}
	return k
}
