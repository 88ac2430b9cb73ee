package gate

import (
	"path"
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/access"
	"github.com/nod-agents/nod/engine/shell"
)

// A guard is a ruleset of the program's own that no policy, grant or yolo
// overrides: what it denies is denied, and nothing else that it says counts.
// Its rules are on path_write, on bash, and on SurfaceTree.

// SurfaceTree is the surface of a guard's rules for directories that must not
// be removed, renamed or replaced as a whole, since what is guarded is below.
const SurfaceTree = "path_tree"

// guarding holds one call against the guard. It adds one check at most: the first
// denial, else what might be denied for all that is known.
type guarding struct {
	*run
	doubt *Check // nil: all is known
}

// guardPath holds one path of a tool against the guard.
func (r *run) guardPath(t *token) {
	if r.Guard == nil || t.dir == shell.Read {
		return
	}
	g := guarding{run: r}
	if !g.refuse(directed(engine.SurfacePath, t.dir), t.typed, &t.facts) {
		g.unknown(t)
		g.ask()
	}
}

// refuse adds a denial if the guard denies f on surface.
func (g *guarding) refuse(surface, typed string, f *access.Path) bool {
	m := g.Guard.Resolve(&engine.Query{Surface: surface, Path: true, Values: f.Values(), Strict: f.Strict, Work: &g.work})
	if m.Action != engine.Deny && !m.Limited {
		return false
	}
	c := Check{Gate: engine.SurfacePath, Surface: surface, Value: typed, Unit: -1, Intent: Intent{Surface: surface, MatchValues: f.Values(), Boundary: f.Boundary}}
	c.from(&m)
	c.Paths = []PathCheck{{Typed: typed, Facts: *f, Surface: surface, Match: m}}
	return g.take(c)
}

// take adds c if it is a denial, and keeps it for ask if not.
func (g *guarding) take(c Check) (denied bool) {
	if c.Action == engine.Deny {
		g.add(c)
		return true
	}
	if g.doubt == nil {
		g.doubt = &c
	}
	return false
}

// unknown keeps t for ask if it may be more than its facts tell.
func (g *guarding) unknown(t *token) {
	if t.why == "" {
		return
	}
	surface := directed(engine.SurfacePath, t.dir)
	g.take(Check{Gate: engine.SurfacePath, Surface: surface, Action: engine.Ask, Origin: engine.OriginBuiltin, Value: t.typed, Pattern: engine.PatternLimit,
		Why: t.why, Limited: true, Unit: -1, Intent: Intent{Surface: surface, MatchValues: t.facts.Values(), Boundary: t.facts.Boundary}})
}

// ask adds what might be denied.
func (g *guarding) ask() {
	if g.doubt != nil {
		g.add(*g.doubt)
	}
}

// guardProgram holds the words and the commands of p against the guard.
func (r *run) guardProgram(p *shell.Program, base string) {
	if r.Guard == nil {
		return
	}
	g := guarding{run: r}
	words := siblings{p: p, at: -1}
	for i := range p.Operands {
		o := &p.Operands[i]
		d, tree := o.Dir, false
		if d == shell.Unknown && o.Unit >= 0 && o.Unit < len(p.Units) {
			k := words.kind(o.Unit)
			tree = k.removes && !(k.goesInto && words.ends(i))
			if k.reads {
				d = shell.Read
			}
		}
		if d == shell.Read {
			continue
		}
		at := o.Bases
		if at == nil {
			at = []string{base}
		}
		for _, b := range at {
			for _, t := range r.tokensIn(nil, o, b) {
				if g.refuse(directed(engine.SurfacePath, d), t.typed, &t.facts) || tree && g.refuse(SurfaceTree, t.typed, &t.facts) {
					return
				}
				g.unknown(&t)
			}
			if g.into(&words, o, b) {
				return
			}
		}
	}
	for i := range p.Units {
		u := &p.Units[i]
		m := r.Guard.Resolve(&engine.Query{Surface: engine.SurfaceBash, Values: u.Spellings, Strict: u.Strict, Work: &r.work})
		if (m.Action == engine.Deny || m.Limited) && !u.Guess {
			c := Check{Gate: engine.SurfaceBash, Value: u.Text, Context: u.Context, Executes: u.Executes, Unit: i,
				Intent: Intent{Surface: engine.SurfaceBash, MatchValues: u.Spellings[:1:1]}}
			c.from(&m)
			if g.take(c) {
				return
			}
		}
	}
	g.ask()
}

// siblings are the operands of a program by the unit that they belong to, those
// of redirects left out. They are sorted when they are first asked for.
type siblings struct {
	p  *shell.Program
	of [][]int32 // by unit: places in p.Operands

	at   int // the unit that last was asked about
	last kinds
}

// kinds are what a command can do to its words.
type kinds struct {
	removes, goesInto, reads, places bool
	targets                          bool // an option may say where its words go
}

// kind is what unit u can do. Many words are of one unit, one after the other.
func (s *siblings) kind(u int) kinds {
	if s.at != u {
		c := &s.p.Units[u]
		s.at, s.last = u, kinds{removes(c), goesInto(c), onlyReads(c), places(c), slices.ContainsFunc(c.Words, namesTarget)}
	}
	return s.last
}

func (s *siblings) unit(u int) []int32 {
	if s.of == nil {
		s.of = make([][]int32, len(s.p.Units))
		for i := range s.p.Operands {
			if o := &s.p.Operands[i]; o.Unit >= 0 && o.Unit < len(s.of) && !o.Redirect {
				s.of[o.Unit] = append(s.of[o.Unit], int32(i))
			}
		}
	}
	return s.of[u]
}

// ends reports whether operand i is the last of its unit.
func (s *siblings) ends(i int) bool {
	list := s.unit(s.p.Operands[i].Unit)
	return len(list) == 0 || int(list[len(list)-1]) <= i
}

// maxPlaced bounds the words of a command that are held against each other. Of
// more, any might be what is guarded.
const maxPlaced = 64

// into judges what o, as a directory, would get from a command that puts
// its other words into it: `cp -r x/nod ~/.config` writes ~/.config/nod.
func (g *guarding) into(words *siblings, o *shell.Operand, base string) bool {
	p := words.p
	if o.Unit < 0 || o.Unit >= len(p.Units) || !words.kind(o.Unit).places {
		return false
	}
	others := words.unit(o.Unit)
	if len(others) > maxPlaced+1 {
		if &p.Operands[others[len(others)-1]] != o && !words.kind(o.Unit).targets {
			return false
		}
		return g.refuseAt(SurfaceTree, o, o.Text, base)
	}
	for _, i := range others {
		s := &p.Operands[i]
		if s == o {
			continue
		}
		name := path.Base(s.Text)
		surface, text := directed(engine.SurfacePath, shell.Write), o.Text+"/"+name
		if name == "." || command(&p.Units[o.Unit]) == "rsync" && strings.HasSuffix(s.Text, "/") || name == ".." || name == "/" || s.Glob != "" {
			surface, text = SurfaceTree, o.Text // all that is in there
		}
		if g.refuseAt(surface, o, text, base) {
			return true
		}
	}
	return false
}

// refuseAt adds a denial if the guard denies what o, a directory, would get at
// text.
func (g *guarding) refuseAt(surface string, o *shell.Operand, text, base string) bool {
	f := g.place.ResolveIn(text, base)
	if g.refuse(surface, o.Typed, &f) {
		return true
	}
	g.unknown(&token{typed: o.Typed, facts: f, dir: shell.Write, why: unplaced(&f)})
	return false
}

// namesTarget reports whether an option may say where all words of a command go,
// as cp's -t does.
func namesTarget(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "t") }

// command is the name of what a unit runs, without its directory.
func command(u *shell.Unit) string {
	if len(u.Words) == 0 {
		return ""
	}
	return path.Base(u.Words[0])
}

// removes reports whether a command can take away or replace a directory.
func removes(u *shell.Unit) bool {
	switch command(u) {
	case "rm", "rmdir", "unlink", "shred", "mv", "chmod", "chown", "chgrp":
		return true
	case "find":
		return !onlyReads(u)
	}
	return false
}

// goesInto reports whether the last word of a command is where the others go,
// which guarding.into looks at.
func goesInto(u *shell.Unit) bool { return command(u) == "mv" }

// places reports whether a command can put its words into a directory.
func places(u *shell.Unit) bool {
	switch command(u) {
	case "cp", "mv", "ln", "install", "rsync":
		return true
	}
	return false
}

// onlyReads reports whether a command changes nothing that it names, whatever
// its options. One that is not known may.
func onlyReads(u *shell.Unit) bool {
	switch command(u) {
	case "cat", "ls", "dir", "head", "tail", "stat", "wc", "grep", "egrep", "fgrep", "du", "df", "diff", "cmp", "comm", "test", "[",
		"realpath", "readlink", "basename", "dirname", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "jq", "nl", "od", "hexdump",
		"strings", "cd", "chdir", "pushd", "popd", "pwd", "echo", "printf", "cut", "tac", "rev":
		return true
	case "find":
		return !slices.ContainsFunc(u.Words, func(w string) bool {
			return w == "-delete" || strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || strings.HasPrefix(w, "-fprint") || strings.HasPrefix(w, "-fls")
		})
	case "git":
		if len(u.Words) < 2 || slices.ContainsFunc(u.Words, func(w string) bool { return strings.HasPrefix(w, "--output") }) {
			return false
		}
		switch u.Words[1] {
		case "add", "stage", "diff", "log", "show", "blame", "status", "ls-files", "check-ignore", "grep":
			return true
		}
	}
	return false
}

// guardServed holds the facts of a forwarded ask against the guard: the paths
// that it names, and the commands of its line.
func (v *served) guardServed(q *engine.Question) {
	if v.Guard == nil {
		return
	}
	in := q.Intent
	var lines []string
	if in == nil {
		in = &engine.Intent{}
		if q.Surface == engine.SurfaceBash {
			lines = append(lines, q.Value)
		}
	}
	if in.Surface == engine.SurfaceBash {
		lines = append(lines, in.MatchValues...)
	}
	var outside []*engine.Evidence
	for i := range q.Evidence {
		switch e := &q.Evidence[i]; evidenceLabel(e) {
		case "full command":
			lines = append(lines, e.Text)
		case "external path":
			outside = append(outside, e)
		}
	}
	if in.Surface != "" && in.Surface != engine.SurfaceBash && (q.Kind == "bash_external_directory" || q.Tool == engine.SurfaceBash) {
		lines = append(lines, q.Value)
	}
	if len(lines) > maxServed {
		lines, v.limited = lines[:maxServed], true
		v.ask()
	}
	reading := len(lines) > 0 && !v.limited // every command only reads
	for _, line := range lines {
		p := v.Shell.Read(line, shell.Env{Home: v.Rules.Options().Home})
		for i := range p.Units {
			u := &p.Units[i]
			reading = reading && onlyReads(u)
			v.deny(&engine.Query{Surface: engine.SurfaceBash, Values: u.Spellings, Strict: u.Strict})
		}
	}
	surface := engine.SurfacePath
	switch {
	case in.Surface == "":
		return
	case strings.HasSuffix(in.Surface, "_read"), readOnly(in.Surface), family(in.Surface) != "" && (readOnly(q.Tool) || reading):
		return
	case strings.HasSuffix(in.Surface, "_write"), direction(in.Surface) == shell.Write:
		surface += "_write"
	}
	if engine.IsPathSurface(in.Surface) || in.Boundary != nil {
		values := in.MatchValues
		if in.Boundary != nil && *in.Boundary != "" {
			values = append(values[:len(values):len(values)], *in.Boundary)
		}
		v.deny(&engine.Query{Surface: surface, Path: true, Values: values})
	}
	for _, e := range outside {
		values := []string{e.Text}
		if e.Detail != nil {
			values = append(values, *e.Detail)
		}
		v.deny(&engine.Query{Surface: surface, Path: true, Values: values})
	}
}

// deny takes over what the guard denies.
func (v *served) deny(q *engine.Query) {
	q.Work = v.work
	if m := v.Guard.Resolve(q); m.Action == engine.Deny || m.Limited {
		v.match(&m)
	}
}

func evidenceLabel(e *engine.Evidence) string {
	return strings.ToLower(strings.Join(strings.Fields(e.Label), " "))
}
