package gate

import (
	"slices"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/shell"
)

// Explain lists the rules that match a value on a surface in the order they
// count, and marks the one that decides. The value stands for what a call would
// bring: a path for all forms of it, an MCP target for all its names.
func (g *Gate) Explain(surface, value string) []engine.Step {
	r := &run{Gate: g, out: &Outcome{}, work: *engine.NewWork()}
	r.place.Reset(g.Files, g.Home, g.Cwd, g.Flavour)
	q := engine.Query{Surface: surface, Values: []string{value}}
	var won engine.Match
	switch surface {
	case engine.SurfaceMCP:
		r.input = map[string]any{"tool": value}
		groups := r.mcpTargets().groups
		if isOperation(value) {
			groups = [][]string{{value}}
		}
		q.Values = slices.Concat(groups...)
		won = r.Rules.ResolveGroups(surface, groups, nil, &r.work)
	case engine.SurfaceBash:
		if home := pattern.ExpandHome(value, g.Home); home != value {
			q.Values = append(q.Values, home)
		}
		won = r.Rules.Resolve(&q)
	case engine.SurfaceSkill:
		won = r.Rules.Resolve(&q)
	default:
		clean := r.place.Clean(value)
		if clean == "" || clean == "*" {
			won = r.Rules.Resolve(&q)
			break
		}
		q.Path, q.Values = !engine.IsPathSurface(surface), nil
		for i, t := range r.places(value, clean, shell.Unknown) {
			f := &t.facts
			r.within(surface, f)
			q.Values, q.Strict = append(q.Values, f.Values()...), append(q.Strict, f.Strict...)
			m := r.resolvePath(surface, f, q.Path)
			if family(surface) == engine.SurfaceExternalDirectory {
				m = r.boundary(surface, f)
			}
			if i == 0 || m.Action.Stricter(won.Action) {
				won = m
			}
		}
	}
	return explicit(surface, r.Rules.TraceTo(&q, &won))
}

// Applying lists all rules that apply to a surface in the order they count.
func (g *Gate) Applying(surface string) []engine.Step {
	return explicit(surface, g.Rules.Rules(surface))
}

// explicit leaves out the universal default where it does not count: it never
// fires the path gate.
func explicit(surface string, steps []engine.Step) []engine.Step {
	if family(surface) != engine.SurfacePath {
		return steps
	}
	return slices.DeleteFunc(steps, func(s engine.Step) bool { return s.Universal })
}

// isOperation reports whether an MCP target is the generic name of many calls.
func isOperation(target string) bool {
	switch target {
	case engine.SurfaceMCP, "mcp_call", "mcp_connect", "mcp_describe", "mcp_search", "mcp_list", "mcp_status":
		return true
	}
	return false
}
