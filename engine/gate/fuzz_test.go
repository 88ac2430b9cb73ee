package gate_test

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
)

// FuzzDecide judges any command, path, skill and MCP reference: it never
// panics, a text that does not parse is never allowed, and every ask explains
// itself.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{"git status", "rm x", "echo \"$(rm x)\"", "cat ../x > y", "cd a && cat *.env", "sudo ls", "bash -c 'ls'", "exa:search", "~/x", "@'a'", "a\x00b", "\xff", "cat <<E\nx", "link/../x", "((rm x); ls)", "sed -i.e 'e rm x' a", "awk '{print|\"rm x\"}'", "tar cbf 1 a.env x", "f() { cd link; f; }; f; cat a.env", "curl -F a=@a.env,b FILE:///x", "shopt -s globstar dotglob; cat **", "git clone -c a.b=c", "$X/..", "/skill:x", "file:///x"} {
		f.Add(s)
	}
	w := newWorld(f, `{"bash":{"*":"allow","rm *":"deny"},"external_directory":"allow","path":{"*":"allow","*.env":"deny"},"read":"allow","skill":"allow","mcp":"allow","x":"allow"}`, "a.env", "link -> /etc")
	f.Fuzz(func(t *testing.T, s string) {
		o := w.gate.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": s}})
		if _, err := syntax.NewParser().Parse(strings.NewReader(s), ""); err != nil && o.Action == engine.Allow && !strings.Contains(err.Error(), "unclosed here-document") {
			t.Errorf("%q does not parse (%v), but is allowed", s, err)
		}
		for _, c := range o.Checks {
			if c.Action == engine.Ask && c.Pattern == "" && c.Why == "" && c.Origin == "" {
				t.Errorf("%q: an ask without a reason: %+v", s, c)
			}
		}
		w.gate.Decide(gate.Call{Tool: "read", Input: map[string]any{"path": s}})
		w.gate.Decide(gate.Call{Tool: "skill", Input: map[string]any{"text": s}})
		w.gate.Decide(gate.Call{Tool: "mcp", Input: map[string]any{"tool": s, "server": s, "arguments": map[string]any{"path": s}}})
		w.gate.Decide(gate.Call{Tool: s, Input: s})
		w.gate.Decide(gate.Call{Tool: "bash", Input: nil})
	})
}
