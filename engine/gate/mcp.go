package gate

import (
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/suggest"
)

// targets are the names that an MCP call goes by, in groups, the most specific
// first.
type targets struct {
	groups    [][]string
	server    string // of a call, if known
	operation string // the generic name of what is not a call; empty for a call
	exact     bool   // only this target may be granted
}

func (t *targets) add(names ...string) {
	var group []string
	for _, n := range names {
		if n == "" || slices.Contains(group, n) || slices.ContainsFunc(t.groups, func(g []string) bool { return slices.Contains(g, n) }) {
			continue
		}
		group = append(group, n)
	}
	if len(group) > 0 {
		t.groups = append(t.groups, group)
	}
}

// mcp judges a call of the MCP tool.
func (r *run) mcp() {
	if args, ok := r.input["arguments"].(map[string]any); ok {
		typed, _ := args["path"].(string)
		if clean := r.place.Clean(typed); clean != "" {
			f := r.place.Resolve(clean)
			r.pathGates(typed, &f, direction(engine.SurfaceMCP), false)
		}
	}
	t := r.mcpTargets()
	m := r.Rules.ResolveGroups(engine.SurfaceMCP, t.groups, r.Grants)
	c := Check{Gate: engine.SurfaceMCP, Value: m.Value, Unit: -1, Intent: Intent{Surface: engine.SurfaceMCP, MatchValues: []string{m.Value}}}
	c.from(&m)
	if s := t.suggest(m.Value); s != "" && !m.Limited {
		c.Suggestion = []engine.Grant{{Surface: engine.SurfaceMCP, Pattern: s}}
	}
	r.add(c)
}

// suggest proposes a grant for a call whose value was matched. A generic name
// is part of many calls, so it is never what is granted.
func (t *targets) suggest(value string) string {
	if t.operation != "" {
		if t.exact {
			return suggest.Exact(t.groups[0][0])
		}
		return suggest.Exact(t.operation)
	}
	if value == engine.SurfaceMCP || value == "mcp_call" {
		value = t.groups[0][0]
	}
	return suggest.MCP(value, t.server, false)
}

// mcpTargets derives the targets from the arguments.
func (r *run) mcpTargets() targets {
	var t targets
	arg := func(name string) string { return strings.TrimSpace(r.text(name)) }
	server := arg("server")
	switch {
	case arg("tool") != "":
		r.toolTargets(&t, arg("tool"), server)
		t.add("mcp_call")
	case arg("connect") != "":
		x := arg("connect")
		t.add("mcp_connect_" + x)
		t.add(x)
		t.add("mcp_connect")
		t.operation, t.exact = "mcp_connect", true
	case arg("describe") != "":
		r.toolTargets(&t, arg("describe"), server)
		t.add("mcp_describe")
		t.operation = "mcp_describe"
	case arg("search") != "":
		if server != "" {
			t.add("mcp_server_" + server)
			t.add(server)
		}
		t.add(arg("search"))
		t.add("mcp_search")
		t.operation = "mcp_search"
	case server != "":
		t.add("mcp_server_" + server)
		t.add(server)
		t.add("mcp_list")
		t.operation, t.exact = "mcp_list", true
	default:
		t.add("mcp_status")
		t.operation = "mcp_status"
	}
	t.add(engine.SurfaceMCP)
	return t
}

// toolTargets adds the names of a tool: `server:tool`, a tool with a server
// beside it, or a tool whose name begins or ends with a configured server's.
func (r *run) toolTargets(t *targets, ref, server string) {
	tool := ref
	var pairs [][2]string // server, tool
	if s, rest, ok := strings.Cut(ref, ":"); ok && s != "" && rest != "" {
		tool = rest
		if server == "" {
			server = s
		}
	}
	if server == "" {
		for _, s := range r.Servers {
			if len(s) <= len(server) || s == "" {
				continue
			}
			if rest, ok := strings.CutPrefix(ref, s+"_"); ok && rest != "" {
				server, tool = s, rest
			} else if head, ok := strings.CutSuffix(ref, "_"+s); ok && head != "" {
				server, tool = s, ref
			}
		}
		if server != "" {
			pairs = append(pairs, [2]string{server, tool}, [2]string{server, ref})
		}
	} else {
		pairs = append(pairs, [2]string{server, tool})
		if rest, ok := strings.CutPrefix(tool, server+"_"); ok && rest != "" {
			pairs = append(pairs, [2]string{server, rest})
		}
	}
	t.server = server
	if server == "" {
		t.add(ref)
		return
	}
	var names []string
	for _, p := range pairs {
		names = append(names, p[0]+"_"+p[1], p[0]+":"+p[1])
	}
	if ref != tool || strings.Contains(ref, ":") {
		names = append(names, ref)
	}
	t.add(names...)
	t.add(server)
	t.add(tool, ref)
}
