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

// tool judges a tool that is not known by name, or one of the path tools.
func (r *run) tool(tool string) {
	typed := r.text("path")
	clean := r.place.Clean(typed)
	if clean == "" {
		m := r.Rules.Resolve(&engine.Query{Surface: tool, Values: []string{"*"}, Grants: r.Grants, Work: &r.work})
		c := Check{Gate: tool, Surface: tool, Value: "*", Unit: -1, Intent: Intent{Surface: tool, MatchValues: []string{"*"}}}
		c.from(&m)
		c.Suggestion = []engine.Grant{{Surface: tool, Pattern: "*"}}
		r.add(c)
		return
	}
	places := r.places(typed, clean, direction(tool))
	for i := range places {
		f := &places[i].facts
		r.within(tool, f)
		if tool == "read" {
			r.skillRead(f)
		}
	}
	r.pathGates(places, tool)

	c := Check{Gate: tool, Surface: tool, Value: typed, Unit: -1, Paths: make([]PathCheck, 0, len(places))}
	for i := range places {
		t := &places[i]
		m := r.resolvePath(tool, &t.facts, !engine.IsPathSurface(tool))
		r.doubt(t, tool, &m)
		c.Paths = append(c.Paths, PathCheck{Typed: typed, Facts: t.facts, Surface: tool, Match: m})
		c.Limited = c.Limited || m.Limited
		if i == 0 || m.Action.Stricter(c.Action) {
			c.from(&m)
			c.Why = t.because(&m)
			c.Intent = Intent{Surface: tool, MatchValues: t.facts.Values(), Boundary: t.facts.Boundary}
		}
	}
	if engine.IsPathSurface(tool) {
		c.Suggestion = r.pathGrants(c.Paths)
	} else {
		c.Suggestion = []engine.Grant{{Surface: tool, Pattern: "*"}}
	}
	r.add(c)
}

// places are what the path of a tool may mean. Some tools take each `..` out of
// the text before they open it, others leave that to the kernel, which goes up
// from where a link before it leads; where the two differ, both count.
func (r *run) places(typed, clean string, dir shell.Direction) []token {
	f := r.place.Resolve(clean)
	list := []token{{typed: typed, facts: f, dir: dir, why: unplaced(&f)}}
	if strings.Contains(clean, "..") {
		text := f.Absolute
		if f.Folder {
			text += "/"
		}
		if plain := r.place.Resolve(text); plain.Boundary != f.Boundary {
			list = append(list, token{typed: typed, facts: plain, dir: dir, why: unplaced(&plain)})
		}
	}
	return list
}

// within adds what is in the directory that a tool searches.
func (r *run) within(tool string, f *access.Path) {
	if (tool == "grep" || tool == "find") && r.place.IsDirectory(f.Boundary) {
		f.Within()
	}
}

func direction(tool string) shell.Direction {
	switch tool {
	case "read", "find", "grep", "ls":
		return shell.Read
	case "write", "edit":
		return shell.Write
	}
	return shell.Unknown
}

func readOnly(tool string) bool { return direction(tool) == shell.Read }

// directed is the surface of a family that a direction is judged on.
func directed(family string, d shell.Direction) string {
	switch d {
	case shell.Read:
		return family + "_read"
	case shell.Write:
		return family + "_write"
	}
	return family
}

// pathGates are the path and the external_directory gate of what the path of a
// tool may mean.
func (r *run) pathGates(list []token, tool string) {
	typed := list[0].typed
	r.pathGate(list, typed)
	outside := list
	if readOnly(tool) {
		outside = slices.DeleteFunc(slices.Clone(list), func(t token) bool {
			return t.facts.External && !t.facts.Unplaced && r.infrastructure(&t.facts)
		})
	}
	r.boundaryGate(outside, typed)
	for i := range list {
		r.guardPath(&list[i])
	}
}

// token is one path of a call with its direction.
type token struct {
	typed string
	facts access.Path
	dir   shell.Direction
	// loose is a word that may be no path: only rules that name more than
	// everything count.
	loose bool
	why   string // it may be more than its facts tell
}

// unplaced is why f may be more than it tells: its place was not looked up.
func unplaced(f *access.Path) string {
	if f.Unplaced {
		return "there is more to look up for its paths than can be"
	}
	return ""
}

// doubt makes of what the rules say of t an ask, where it may be more than its
// facts tell and the rules say different things of different paths: one of those
// that were not looked at might be denied.
func (r *run) doubt(t *token, surface string, m *engine.Match) {
	if t.why != "" && m.Action != engine.Deny && r.Rules.Restricts(surface) {
		*m = engine.Match{Action: engine.Ask, Origin: engine.OriginBuiltin, Pattern: engine.PatternLimit, Value: m.Value, Explicit: true, Surface: m.Surface, Limited: true}
	}
}

// because is why m asks where no rule does.
func (t *token) because(m *engine.Match) string {
	switch {
	case m.Action == engine.Ask && t.why != "":
		return t.why
	case m.Limited:
		return whyLimited
	}
	return ""
}

// pathGate judges paths on the path surface. Only a rule written for it fires
// it, never the universal default.
func (r *run) pathGate(tokens []token, whole string) {
	c := Check{Gate: engine.SurfacePath, Unit: -1}
	found := false
	for i := range tokens {
		t := &tokens[i]
		surface := directed(engine.SurfacePath, t.dir)
		m := r.resolvePath(surface, &t.facts, false)
		r.doubt(t, surface, &m)
		if !m.Explicit || t.loose && pattern.IsBare(m.Pattern) {
			continue
		}
		c.Limited = c.Limited || m.Limited
		if c.Paths == nil {
			c.Paths = make([]PathCheck, 0, len(tokens)-i)
		}
		c.Paths = append(c.Paths, PathCheck{Typed: t.typed, Facts: t.facts, Surface: surface, Match: m})
		if !found || m.Action.Stricter(c.Action) {
			found = true
			c.Surface = surface
			c.from(&m)
			c.Value = t.typed
			c.Why = t.because(&m)
			c.Intent = Intent{Surface: surface, MatchValues: t.facts.Values(), Boundary: t.facts.Boundary}
		}
	}
	if !found {
		return
	}
	c.Suggestion = r.pathGrants(c.Paths)
	r.add(c)
}

// boundaryGate judges the paths that are outside on the external_directory
// surface. value is what it reports: the path of a tool, the whole command of a
// shell.
func (r *run) boundaryGate(tokens []token, value string) {
	c := Check{Gate: engine.SurfaceExternalDirectory, Value: value, Unit: -1}
	found := false
	for i := range tokens {
		t := &tokens[i]
		if !t.facts.External {
			continue
		}
		surface := directed(engine.SurfaceExternalDirectory, t.dir)
		m := r.boundary(surface, &t.facts)
		r.doubt(t, surface, &m)
		c.Paths = append(c.Paths, PathCheck{Typed: t.typed, Facts: t.facts, Surface: surface, Match: m})
		c.Limited = c.Limited || m.Limited
		if !found || m.Action.Stricter(c.Action) {
			found = true
			c.Surface = surface
			c.from(&m)
			c.Why = t.because(&m)
			c.Intent = Intent{Surface: surface, MatchValues: t.facts.Values(), Boundary: t.facts.Boundary}
		}
	}
	if !found {
		return
	}
	c.Suggestion = r.pathGrants(c.Paths)
	r.add(c)
}

// boundary judges a path that is outside: any form of it counts.
func (r *run) boundary(surface string, f *access.Path) engine.Match {
	return r.Rules.Resolve(&engine.Query{Surface: surface, Values: f.Values(), Strict: f.Strict, Grants: r.Grants, Granted: f.Granted(), Work: &r.work})
}

// resolvePath judges a path on the path surface or a tool's own. Where a link
// leads elsewhere, the name and the place are judged each on its own and the
// stricter counts: a link inside the project is the agent's to make.
func (r *run) resolvePath(surface string, f *access.Path, path bool) engine.Match {
	q := engine.Query{Surface: surface, Path: path, Values: f.Named, Strict: f.Strict, Grants: r.Grants, Granted: f.Granted(), Work: &r.work}
	m := r.Rules.Resolve(&q)
	if len(f.Real) == 0 {
		return m
	}
	q.Values, q.Strict = f.Real, nil
	real := r.Rules.Resolve(&q)
	boundary := engine.IsBoundarySurface(surface)
	switch {
	case real.Limited && m.Action != engine.Deny:
		return real
	case boundary && !real.Explicit:
		return m
	case boundary && !m.Explicit:
		return real
	case real.Action.Stricter(m.Action):
		return real
	}
	return m
}

// suggestPath proposes a pattern for a place: no more than itself where it is
// the home directory or the project, by whatever name.
func (r *run) suggestPath(place string) string {
	if r.place.IsHome(place) || r.place.IsProject(place) {
		return suggest.Exact(place)
	}
	return suggest.Path(place, r.Home, r.place.Cwd())
}

// pathGrants are the grants that would answer the paths that are not allowed;
// nil if one of them has none.
func (r *run) pathGrants(paths []PathCheck) []engine.Grant {
	var list grantSet
	for i := range paths {
		p := &paths[i]
		if p.Match.Action == engine.Allow {
			continue
		}
		f := &p.Facts
		text := ""
		switch {
		case f.Absolute == "":
			text = suggest.Literal(f.Typed)
		case len(f.Real) > 0:
			text = r.suggestPath(f.Boundary)
		default:
			text = r.suggestPath(f.Absolute)
		}
		if text == "" {
			return nil
		}
		list.add(engine.Grant{Surface: p.Surface, Pattern: text})
	}
	return list.grants()
}

// grantSet is grants none of which covers another.
type grantSet struct {
	list  []engine.Grant
	gone  int              // of list, those that are covered: they have no surface
	known map[string][]int // by pattern: the places in list; nil while it is short
}

// add adds a grant that those in the set do not cover, and drops those that it
// covers. A bare surface covers its directions.
func (s *grantSet) add(g engine.Grant) {
	const short = 16
	if s.known == nil && len(s.list) == short {
		s.known = make(map[string][]int, 2*short)
		for i := range s.list {
			s.known[s.list[i].Pattern] = append(s.known[s.list[i].Pattern], i)
		}
	}
	covered := func(i int) bool {
		have := &s.list[i]
		switch {
		case have.Surface == "" || have.Pattern != g.Pattern:
		case have.Surface == g.Surface || strings.HasPrefix(g.Surface, have.Surface+"_"):
			return true
		case strings.HasPrefix(have.Surface, g.Surface+"_"):
			have.Surface = ""
			s.gone++
		}
		return false
	}
	if s.known == nil {
		for i := range s.list {
			if covered(i) {
				return
			}
		}
	} else if slices.ContainsFunc(s.known[g.Pattern], covered) {
		return
	}
	if s.known != nil {
		s.known[g.Pattern] = append(s.known[g.Pattern], len(s.list))
	}
	s.list = append(s.list, g)
}

func (s *grantSet) grants() []engine.Grant {
	if s.gone > 0 {
		s.list = slices.DeleteFunc(s.list, func(g engine.Grant) bool { return g.Surface == "" })
	}
	return s.list
}

// infrastructure reports whether a path is of the agent's own installation,
// which read-only tools may read though it is outside.
func (r *run) infrastructure(f *access.Path) bool {
	p := &r.place
	in := func(dir string) bool {
		return dir != "" && (p.In(f.Boundary, p.Canonical(dir)) || len(f.Real) == 0 && p.In(f.Absolute, dir))
	}
	if in(r.AgentDir) {
		return true
	}
	cwd := strings.TrimSuffix(p.Cwd(), "/")
	for _, dir := range [...]string{"/.pi/npm", "/.pi/git"} {
		if in(cwd + dir) {
			return true
		}
	}
	for _, text := range r.InfrastructureReads {
		text = pattern.ExpandHome(text, r.Home)
		if !strings.ContainsAny(text, "*?") {
			text = strings.TrimSuffix(text, "/")
			if !strings.HasPrefix(text, "/") && !strings.Contains(text, ":") {
				text = cwd + "/" + text
			}
			if in(text) {
				return true
			}
			continue
		}
		for _, t := range [...]string{text, strings.TrimSuffix(text, "/") + "/*"} {
			pat := pattern.Compile(t, r.Flavour)
			if pat.Match(r.Flavour.Fold(f.Boundary)) {
				return true
			}
		}
	}
	return false
}
