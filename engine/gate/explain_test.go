package gate_test

import "testing"

func TestExplain(t *testing.T) {
	const rules = `{"*":"ask","read":{"*":"allow","src/*":"deny"},"my_tool":{"*":"allow","src/*":"deny"},
		"path":{"*":"allow","@CWD/sub/*":"deny","~/.ssh/*":"deny"},"path_write":{"*.lock":"ask"},
		"external_directory":{"*":"ask","~/dev/*":"allow"},"skill":"deny",
		"mcp":{"exa:*":"allow","exa_rm":"deny","*":"ask"},"bash":{"~/bin/x *":"allow"}}`
	w := newWorld(t, rules, "sub/x", "l -> @HOME/.ssh", "ok -> sub/x")
	tests := []struct{ surface, value, want string }{
		{"path_read", "a", "*"},
		{"path_read", "sub/x", "@CWD/sub/*"},
		{"path", "./sub/../sub/x", "@CWD/sub/*"},
		{"path_write", "../home/.ssh/id", "~/.ssh/*"},
		{"path_read", "l/id", "~/.ssh/*"},
		{"path_read", "ok", "@CWD/sub/*"},
		{"path_read", "a.lock", "*"},
		{"path_write", "a.lock", "*.lock"},
		{"external_directory_read", "../home/dev/x", "~/dev/*"},
		{"external_directory", "/srv/x", "*"},
		{"read", "./src/x", "src/*"},
		{"my_tool", "./src/x", "src/*"},
		{"my_tool", "*", "*"},
		{"mcp", "exa:search", "exa:*"},
		{"mcp", "exa:rm", "exa_rm"},
		{"mcp", "foo:x", "*"},
		{"mcp", "mcp_status", "*"},
		{"bash", "~/bin/x a", "~/bin/x *"},
		{"skill", "x", "*"},
	}
	for _, tt := range tests {
		got, n := "", 0
		for _, s := range w.gate.Explain(tt.surface, w.in(tt.value)) {
			if s.Wins {
				got = s.Rule.Pattern
				n++
			}
		}
		if got != w.in(tt.want) || n != 1 {
			t.Errorf("%s %s: decided by %q (%d), want %q", tt.surface, tt.value, got, n, tt.want)
		}
	}
}

// TestExplainUniversal: the universal key never fires the path gate.
func TestExplainUniversal(t *testing.T) {
	w := newWorld(t, `{"*":"deny"}`)
	for surface, want := range map[string]int{"path": 0, "path_read": 0, "path_write": 0, "read": 1, "external_directory_read": 1, "bash": 1} {
		if got := w.gate.Explain(surface, "x"); len(got) != want {
			t.Errorf("%s of a value: %d rules", surface, len(got))
		}
		if got := w.gate.Applying(surface); len(got) != want {
			t.Errorf("%s: %d rules", surface, len(got))
		}
	}
}
