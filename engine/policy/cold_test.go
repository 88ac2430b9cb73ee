package policy_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/disk"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
)

// BenchmarkCold is what a process does that decides one call and ends: read a
// small policy, compile it, judge.
func BenchmarkCold(b *testing.B) {
	home := b.TempDir()
	config, proj := filepath.Join(home, ".config", "nod"), filepath.Join(home, "proj")
	for _, dir := range []string{config, proj} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	text := `{"permission": {"*": "ask", "bash": {"*": "ask", "git *": "allow", "git push *": "ask", "rm *": "deny"}}}`
	if err := os.WriteFile(filepath.Join(config, "policy.jsonc"), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		places := policy.Places{AgentDir: filepath.Join(home, ".pi", "agent"), ConfigDir: config, Project: proj, Home: home}
		_, rules := policy.NewLoader(policyfile.Disk{}, false).Rules(places, engine.Options{Home: home, Cwd: proj, Now: time.Unix(1e9, 0)})
		g := gate.Gate{Rules: rules, Files: disk.Files{}, Home: home, Cwd: proj, AgentDir: places.AgentDir}
		if o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": "git status"}}); o.Action != engine.Allow {
			b.Fatalf("%+v", o.Decisive)
		}
	}
}
