package gate

import (
	"path"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/access"
	"github.com/nod-agents/nod/engine/suggest"
)

// skill judges a skill by its name: one that the agent calls, or one that the
// user typed as `/skill:NAME`, which no session grant answers.
func (r *run) skill() {
	if text, ok := r.input["text"].(string); ok {
		name, ok := typedSkill(text)
		if !ok {
			return // nothing to judge
		}
		r.skillCheck(name, false)
		return
	}
	name, ok := r.input["name"].(string)
	if !ok {
		name = "*"
	}
	r.skillCheck(name, true)
}

// typedSkill is the name in `/skill:NAME words`.
func typedSkill(text string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "/skill:")
	if !ok {
		return "", false
	}
	name := rest
	if i := strings.IndexAny(rest, " \t\r\n"); i >= 0 {
		name = rest[:i]
	}
	return name, name != ""
}

func (r *run) skillCheck(name string, grants bool) {
	q := engine.Query{Surface: engine.SurfaceSkill, Values: []string{name}, Work: &r.work}
	if grants {
		q.Grants = r.Grants
	}
	m := r.Rules.Resolve(&q)
	c := Check{Gate: engine.SurfaceSkill, Value: name, Unit: -1, typed: !grants, Intent: Intent{Surface: engine.SurfaceSkill, MatchValues: q.Values}}
	c.from(&m)
	if s := suggest.Exact(name); s != "" && grants {
		c.Suggestion = []engine.Grant{{Surface: engine.SurfaceSkill, Pattern: s}}
	}
	r.add(c)
}

// skillRead judges a read of a skill's file, or of what is below its directory,
// by the skill's state. The skill whose directory is nearest counts; where a
// link leads from the files of one skill to those of another, the stricter of
// the two.
func (r *run) skillRead(f *access.Path) {
	forms := [...]string{f.Absolute, f.Boundary}
	best, length := [...]int{-1, -1}, [...]int{-1, -1}
	for i := range r.Skills {
		s := &r.Skills[i]
		if s.Location == "" {
			continue
		}
		file := r.place.Resolve(r.place.Clean(s.Location))
		for _, place := range [...]string{file.Absolute, file.Boundary} {
			dir := path.Dir(place)
			for j, p := range forms {
				if (p == place || r.place.In(p, dir)) && len(dir) > length[j] {
					best[j], length[j] = i, len(dir)
				}
			}
		}
	}
	named, real := best[0], best[1]
	if named < 0 {
		named = real
	}
	if named < 0 {
		return
	}
	name, m := r.skillState(named)
	if real >= 0 && real != named {
		if other, n := r.skillState(real); n.Action.Stricter(m.Action) {
			name, m = other, n
		}
	}
	for i := range r.out.Checks {
		if r.out.Checks[i].Value == name {
			return // said for the other place that the path may mean
		}
	}
	c := Check{Gate: engine.SurfaceSkill, Value: name, Unit: -1, Intent: Intent{Surface: engine.SurfaceSkill, MatchValues: []string{name}}}
	c.from(&m)
	if s := suggest.Exact(name); s != "" {
		c.Suggestion = []engine.Grant{{Surface: engine.SurfaceSkill, Pattern: s}}
	}
	r.add(c)
}

// skillState is the name of a known skill and what the rules say of it.
func (r *run) skillState(i int) (string, engine.Match) {
	name := r.Skills[i].Name
	return name, r.Rules.Resolve(&engine.Query{Surface: engine.SurfaceSkill, Values: []string{name}, Grants: r.Grants, Work: &r.work})
}
