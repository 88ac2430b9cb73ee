package gate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/engine/shell"
)

// rulesOf compiles a policy with n further rules on bash and path.
func rulesOf(tb testing.TB, home, cwd string, n int) *engine.Ruleset {
	tb.Helper()
	text := `{"permission":{"*":"ask","bash":{"*":"ask","cd *":"allow","grep *":"allow","head *":"allow","git status *":"allow"`
	for i := range n / 2 {
		text += fmt.Sprintf(`,"tool%d run *":"deny"`, i)
	}
	text += `},"path":{"*":"allow"`
	for i := range n / 2 {
		text += fmt.Sprintf(`,"secret%d/*":"deny"`, i)
	}
	text += `}}}`
	layer, _, _, err := policy.Parse("policy.json", []byte(text), policy.Nod, home)
	if err != nil {
		tb.Fatal(err)
	}
	return engine.Compile([]engine.Layer{layer}, engine.Options{Home: home, Cwd: cwd, Now: time.Unix(1e9, 0)})
}

func benchGate(tb testing.TB) *gate.Gate {
	tb.Helper()
	root, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	cwd := root + "/proj"
	if err := os.MkdirAll(cwd+"/src", 0o755); err != nil {
		tb.Fatal(err)
	}
	return &gate.Gate{Rules: rulesOf(tb, root+"/home", cwd, 1000), Files: disk{}, Shell: &shell.Reader{}, Home: root + "/home", Cwd: cwd, AgentDir: root + "/home/.pi/agent"}
}

// BenchmarkBash is one whole bash call with all its gates and 1,000 rules.
func BenchmarkBash(b *testing.B) {
	g := benchGate(b)
	for _, command := range []string{"git status", "cd src && grep -rn foo . | head -20 > out.txt"} {
		b.Run(command, func(b *testing.B) {
			call := gate.Call{Tool: "bash", Input: map[string]any{"command": command}}
			if o := g.Decide(call); o.Action != engine.Allow {
				b.Fatalf("%+v", o.Decisive)
			}
			b.ReportAllocs()
			for b.Loop() {
				g.Decide(call)
			}
		})
	}
}

// BenchmarkRead is one whole call of a path tool.
func BenchmarkRead(b *testing.B) {
	g := benchGate(b)
	call := gate.Call{Tool: "read", Input: map[string]any{"path": "src/main.go"}}
	b.ReportAllocs()
	for b.Loop() {
		g.Decide(call)
	}
}
