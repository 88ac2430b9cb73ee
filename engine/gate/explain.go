package gate

import (
	"slices"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
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
		f := r.place.Resolve(clean)
		r.within(surface, &f)
		q.Path, q.Values, q.Strict = !engine.IsPathSurface(surface), f.Values(), f.Strict
		if family(surface) == engine.SurfaceExternalDirectory {
			won = r.boundary(surface, &f)
		} else {
			won = r.resolvePath(surface, &f, q.Path)
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
