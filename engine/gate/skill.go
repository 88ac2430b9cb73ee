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
	q := engine.Query{Surface: engine.SurfaceSkill, Values: []string{name}, Work: r.work}
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
// by the skill's state. The skill whose directory is nearest counts.
func (r *run) skillRead(typed string, f *access.Path) {
	best, length := -1, -1
	for i := range r.Skills {
		s := &r.Skills[i]
		if s.Location == "" {
			continue
		}
		for _, place := range [...]string{r.place.Resolve(s.Location).Absolute, r.place.Canonical(s.Location)} {
			dir := path.Dir(place)
			for _, p := range [...]string{f.Absolute, f.Boundary} {
				if (p == place || r.place.In(p, dir)) && len(dir) > length {
					best, length = i, len(dir)
				}
			}
		}
	}
	if best < 0 {
		return
	}
	name := r.Skills[best].Name
	m := r.Rules.Resolve(&engine.Query{Surface: engine.SurfaceSkill, Values: []string{name}, Grants: r.Grants, Work: r.work})
	c := Check{Gate: engine.SurfaceSkill, Value: name, Unit: -1, Intent: Intent{Surface: engine.SurfaceSkill, MatchValues: []string{name}}}
	c.from(&m)
	if s := suggest.Exact(name); s != "" {
		c.Suggestion = []engine.Grant{{Surface: engine.SurfaceSkill, Pattern: s}}
	}
	r.add(c)
}
