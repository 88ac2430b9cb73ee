package gate

import (
	"encoding/json"
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
	for _, key := range [...]string{"arguments", "args"} {
		typed := pathArgument(r.input[key])
		if clean := r.place.Clean(typed); clean != "" {
			r.pathGates(r.places(typed, clean, direction(engine.SurfaceMCP)), engine.SurfaceMCP)
		}
	}
	t := r.mcpTargets()
	m := r.Rules.ResolveGroups(engine.SurfaceMCP, t.groups, r.Grants, &r.work)
	c := Check{Gate: engine.SurfaceMCP, Value: m.Value, Unit: -1, Intent: Intent{Surface: engine.SurfaceMCP, MatchValues: []string{m.Value}}}
	c.from(&m)
	if s := t.suggest(m.Value); s != "" {
		c.Suggestion = []engine.Grant{{Surface: engine.SurfaceMCP, Pattern: s}}
	}
	r.add(c)
}

// pathArgument is the path among the arguments that an MCP tool is handed: an
// object, or its JSON text as pi-mcp-adapter takes it.
func pathArgument(args any) string {
	if text, ok := args.(string); ok {
		return pathIn(text)
	}
	o, _ := args.(map[string]any)
	path, _ := o["path"].(string)
	return path
}

// pathIn is the last member "path" of an object's JSON text, if it is a string.
// Other readers take numbers and depths that Go's values cannot hold, so the rest
// is passed over as it is written, and what stands before an error counts.
func pathIn(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	path, key, depth := "", "", 1
	for isKey := true; depth > 0; {
		t, err := d.Token()
		if err != nil {
			break
		}
		open := t == json.Delim('{') || t == json.Delim('[')
		switch {
		case t == json.Delim('}') || t == json.Delim(']'):
			depth--
		case depth == 1 && isKey:
			key, _ = t.(string)
			isKey = false
			continue
		case depth == 1 && key == "path":
			path, _ = t.(string)
		}
		if open {
			depth++
		}
		isKey = depth == 1
	}
	return path
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
// beside it, or a tool whose name begins or ends with a configured server's,
// dashes written as underscores too.
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
		as := "" // how ref spells the server
		for _, s := range r.Servers {
			for _, form := range [...]string{s, munged(s)} {
				if form == "" || len(form) < len(as) || len(form) == len(as) && (form != s || as == server) {
					continue
				}
				if rest, ok := strings.CutPrefix(ref, form+"_"); ok && rest != "" {
					server, tool, as = s, rest, form
				} else if head, ok := strings.CutSuffix(ref, "_"+form); ok && head != "" {
					server, tool, as = s, ref, form
				}
			}
		}
		if server != "" {
			pairs = append(pairs, [2]string{server, tool}, [2]string{server, ref})
		}
	} else {
		pairs = append(pairs, [2]string{server, tool})
		for _, form := range [...]string{server, munged(server)} {
			if rest, ok := strings.CutPrefix(tool, form+"_"); ok && rest != "" {
				pairs = append(pairs, [2]string{server, rest})
				break
			}
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

// munged is a server's name as pi-mcp-adapter puts it into the names of tools.
func munged(server string) string { return strings.ReplaceAll(server, "-", "_") }
