package gate

import (
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/access"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/shell"
	"github.com/nod-agents/nod/engine/suggest"
)

// bash judges a shell command: its paths against the boundary and the path
// rules, then its units. tool is bash or a tool that is judged as bash.
func (r *run) bash(tool, command, workdir string) {
	base := r.place.Cwd()
	var dirs []token
	if clean := r.place.Clean(workdir); clean != "" {
		dirs = r.places(workdir, clean, shell.Unknown)
		base = dirs[0].facts.Absolute
		for i := range dirs {
			dirs[i].why = "" // it is a directory to be in, whatever is in it
		}
	}
	p := r.reader.Read(command, shell.Env{Home: r.Home, Cwd: base, Windows: r.Flavour == pattern.Windows})
	r.out.Program, r.out.Command, r.out.Workdir = p, command, workdir

	var few [8]token
	tokens := r.tokens(few[:0], p, base)
	boundary := tokens
	if len(dirs) > 0 {
		boundary = append(dirs, tokens...)
	}
	whole := strings.TrimSpace(command)
	gates := 0 // that come before the units
	if len(tokens) > 0 {
		gates++
	}
	if slices.ContainsFunc(boundary, func(t token) bool { return t.facts.External }) {
		gates++
	}
	r.out.Checks = make([]Check, 0, gates+max(len(p.Units), 1))
	r.boundaryGate(boundary, whole)
	r.pathGate(tokens, whole)
	j := judging{r.Rules, r.Grants, &r.work}
	r.out.Checks = j.program(r.out.Checks, p, tool)
	r.guardProgram(p, base)
}

// tokens puts the words of a program that are paths into list, which is empty.
func (r *run) tokens(list []token, p *shell.Program, base string) []token {
	if len(p.Operands) > cap(list) {
		list = make([]token, 0, len(p.Operands))
	}
	one := [1]string{base}
	for i := range p.Operands {
		o := &p.Operands[i]
		bases := o.Bases
		if bases == nil {
			bases = one[:]
		}
		for _, b := range bases {
			list = r.tokensIn(list, o, b)
		}
		if o.Lost {
			list = append(list, r.lost(o))
		}
	}
	return once(list)
}

// once keeps one of each path in each direction.
func once(list []token) []token {
	kept := list[:0]
	var seen map[sameness]bool // of long lists
	if len(list) > 32 {
		seen = make(map[sameness]bool, len(list))
	}
	for i := range list {
		t := list[i]
		key := t.key()
		if seen != nil {
			if seen[key] {
				continue
			}
			seen[key] = true
		} else if slices.ContainsFunc(kept, func(k token) bool { return k.key() == key }) {
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// sameness is what makes a path another one.
type sameness struct {
	typed, absolute, why string
	dir                  shell.Direction
	external, strict     bool
}

func (t *token) key() sameness {
	return sameness{t.typed, t.facts.Absolute, t.why, t.dir, t.facts.External, len(t.facts.Strict) > 0}
}

// tokensIn adds the paths that o stands for where the shell is in base.
func (r *run) tokensIn(list []token, o *shell.Operand, base string) []token {
	add := func(text, typed string) {
		var f access.Path
		why := ""
		if o.Unplaced {
			f = r.place.Literal(text, true)
		} else {
			f = r.place.ResolveIn(text, base)
			why = unplaced(&f)
		}
		if o.Recursive && f.Absolute != "" && r.place.IsDirectory(f.Boundary) {
			f.Within()
		}
		if o.GateOnly {
			f.External = false
		}
		list = append(list, token{typed: typed, facts: f, dir: o.Dir, why: why})
	}
	switch {
	case o.Shape != 0 || o.Certain || o.Unplaced:
		add(o.Text, o.Typed)
	case o.Dynamic:
		list = append(list, token{typed: o.Typed, facts: r.place.Literal(o.Text, false), dir: o.Dir, loose: true})
	case o.Glob == "" && r.place.Exists(o.Text, base):
		add(o.Text, o.Typed)
	}
	if o.Glob != "" {
		matches, more := r.place.Glob(o.Glob, base)
		for _, m := range matches {
			if m != o.Text {
				add(m, m)
			}
		}
		if more {
			t := token{typed: o.Typed, facts: r.place.ResolveIn(o.Text, base), dir: o.Dir, why: "the wildcard stands for more files than are looked at"}
			t.facts.External = !o.GateOnly // one may be a link that leads there
			list = append(list, t)
		}
	}
	return list
}

// lost is o where the shell is in a directory that is not known: it counts as
// typed, and is outside if it climbs or if it is a place to be written to.
func (r *run) lost(o *shell.Operand) token {
	outside := o.Unplaced || o.Redirect && o.Dir != shell.Read || o.Shape&shell.ShapeBoundary != 0
	return token{
		typed: o.Typed, dir: o.Dir, facts: r.place.Literal(o.Text, outside && !o.GateOnly),
		loose: o.Shape == 0 && !o.Certain,
	}
}

// exactGrants are grants of which those without wildcards can be found.
type exactGrants interface {
	FindExact(surface string, values []string) *engine.SessionGrant
}

func exactGrant(grants engine.Grants, surface string, values []string) *engine.SessionGrant {
	if grants == nil {
		return nil
	}
	if x, ok := grants.(exactGrants); ok {
		return x.FindExact(surface, values)
	}
	if g := grants.Find(surface, values); g != nil && g.Exact() {
		return g
	}
	return nil
}

// judging is what the units of a program are judged by.
type judging struct {
	rules  *engine.Ruleset
	grants engine.Grants
	work   *engine.Work
}

// program judges the units of p on the bash surface and, for a tool that is
// judged as bash, on its own name. It adds the checks in the order of the units.
func (j *judging) program(checks []Check, p *shell.Program, tool string) []Check {
	rules, grants := j.rules, j.grants
	text := strings.TrimSpace(p.Text)
	if p.Broken != "" {
		checks = append(checks, j.broken(p, text))
	}
	if p.Blank {
		m := rules.Resolve(&engine.Query{Surface: engine.SurfaceBash, Values: []string{p.Text}, Grants: grants, Work: j.work})
		c := Check{Gate: engine.SurfaceBash, Value: p.Text, Unit: -1, Intent: Intent{Surface: engine.SurfaceBash, MatchValues: []string{p.Text}}}
		c.from(&m)
		if s := suggest.Exact(p.Text); s != "" && !c.Limited {
			c.Suggestion = []engine.Grant{{Surface: engine.SurfaceBash, Pattern: s}}
		}
		checks = append(checks, c)
	}
	exact := make([]bool, len(p.Units))   // granted as they stand
	floored := make([]bool, len(p.Units)) // or run by a wrapper that is
	for i := range p.Units {
		u := &p.Units[i]
		c := Check{
			Gate: engine.SurfaceBash, Value: u.Text, Context: u.Context, Executes: u.Executes, Unit: i,
			Intent: Intent{Surface: engine.SurfaceBash, MatchValues: u.Spellings[:1:1]},
		}
		if w := u.Wrapper; w >= 0 {
			exact[i], floored[i] = exact[w], floored[w]
			if c.Executes == "" {
				c.Executes = p.Units[w].Executes
			}
		}
		m := rules.Resolve(&engine.Query{Surface: engine.SurfaceBash, Values: u.Spellings, Strict: u.Strict, Whole: u.Whole, Grants: grants, Work: j.work})
		c.from(&m)
		c.settled = floored[i] && !c.Limited
		if m.Via == engine.ViaWhole && m.Action != engine.Allow {
			c.Value = m.Value
		}
		if len(u.Floors) > 0 {
			floored[i] = true
			if grants != nil && exactGrant(grants, engine.SurfaceBash, u.Spellings) != nil {
				exact[i] = true
			}
			if m.Action == engine.Allow && !exact[i] {
				f := u.Floors[0]
				c.Action, c.Pattern, c.Rule, c.Grant, c.Why, c.Reason = engine.Ask, f.Pattern, nil, nil, f.Why, ""
				c.Origin = engine.OriginBuiltin
			}
		}
		if u.Guess && c.Action != engine.Deny && !c.Limited {
			continue
		}
		if c.Action == engine.Ask && exact[i] && u.Wrapper >= 0 && !c.Limited {
			c.Action, c.Origin = engine.Allow, engine.OriginSession
		}
		if c.Action != engine.Allow && !c.Limited {
			if s := suggestUnit(p, i, &m); s != "" {
				c.Suggestion = []engine.Grant{{Surface: engine.SurfaceBash, Pattern: s}}
			}
		}
		checks = append(checks, c)
		if tool != engine.SurfaceBash {
			if own, ok := j.ownName(u, i, tool); ok {
				checks = append(checks, own)
			}
		}
	}
	if tool != engine.SurfaceBash && len(p.Units) == 0 {
		u := shell.Unit{Text: text, Spellings: []string{text}}
		if own, ok := j.ownName(&u, -1, tool); ok {
			checks = append(checks, own)
		}
	}
	return checks
}

// ownName judges a unit on the name of the tool that runs it. Its deny and
// ask rules count too; an allow there opens nothing.
func (j *judging) ownName(u *shell.Unit, i int, tool string) (Check, bool) {
	m := j.rules.Resolve(&engine.Query{Surface: tool, Values: u.Spellings, Strict: u.Strict, Whole: u.Whole, Grants: j.grants, Work: j.work})
	if !m.Explicit || m.Action == engine.Allow {
		return Check{}, false
	}
	c := Check{Gate: tool, Value: u.Text, Context: u.Context, Executes: u.Executes, Unit: i, Intent: Intent{Surface: tool, MatchValues: []string{u.Text}}}
	c.from(&m)
	if s := suggest.Exact(u.Text); s != "" && !c.Limited {
		c.Suggestion = []engine.Grant{{Surface: tool, Pattern: s}}
	}
	return c, true
}

// broken judges a text that could not be read: at least an ask, which only
// a grant for that very text answers.
func (j *judging) broken(p *shell.Program, text string) Check {
	m := j.rules.Resolve(&engine.Query{Surface: engine.SurfaceBash, Values: []string{text}, Work: j.work})
	c := Check{Gate: engine.SurfaceBash, Value: text, Unit: -1, Intent: Intent{Surface: engine.SurfaceBash, MatchValues: []string{text}}}
	c.from(&m)
	if c.Action == engine.Deny || c.Limited {
		return c
	}
	if g := exactGrant(j.grants, engine.SurfaceBash, []string{text}); g != nil {
		c.Action, c.Origin, c.Grant, c.Pattern = engine.Allow, engine.OriginSession, g, g.Pattern
		return c
	}
	if c.Action == engine.Allow {
		c.Action, c.Pattern, c.Rule, c.Origin, c.Reason = engine.Ask, shell.FloorUnparseable, nil, engine.OriginBuiltin, ""
	}
	c.Why = "it cannot be read: " + p.Broken
	if s := suggest.Exact(text); s != "" {
		c.Suggestion = []engine.Grant{{Surface: engine.SurfaceBash, Pattern: s}}
	}
	return c
}

// suggestUnit proposes a pattern for unit i that covers no other unit.
func suggestUnit(p *shell.Program, i int, m *engine.Match) string {
	u := &p.Units[i]
	if m.Via == engine.ViaWhole {
		return suggest.Exact(m.Value)
	}
	s := suggest.Bash(u.Words, u.Text, len(u.Floors) > 0)
	if s == "" || s == u.Text {
		return s
	}
	pat := pattern.Compile(s, pattern.Posix)
	matches := false
	for _, v := range u.Spellings {
		matches = matches || pat.Match(v)
	}
	for j := range p.Units {
		if !matches {
			break
		}
		o := &p.Units[j]
		if j == i || o.Text == u.Text {
			continue
		}
		for _, v := range o.Spellings {
			if pat.Match(v) {
				matches = false
				break
			}
		}
	}
	if !matches {
		return suggest.Exact(u.Text)
	}
	return s
}
