package gate_test

import (
	"testing"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
)

// TestSkillOfBothPlaces: a path that may mean two places is judged by the skills
// of both, and by one skill once.
func TestSkillOfBothPlaces(t *testing.T) {
	w := newWorld(t, `{"read":"allow","external_directory":"allow","skill":{"*":"ask","bad":"deny"}}`, "lib/a/x", "lib/f", "bad/a/x", "bad/f", "lib/in -> a", "lib/to -> @CWD/bad/a")
	w.gate.Skills = []gate.Skill{{Name: "lib", Location: w.cwd + "/lib/SKILL.md"}, {Name: "bad", Location: w.cwd + "/bad/SKILL.md"}}
	for path, want := range map[string]struct {
		action engine.Action
		asks   int
	}{
		"lib/in/../f": {engine.Ask, 1},
		"lib/to/../f": {engine.Deny, 0}, // the kernel looks in bad
	} {
		got := w.gate.Decide(gate.Call{Tool: "read", Input: map[string]any{"path": path}})
		if got.Action != want.action || len(got.Asks()) != want.asks {
			t.Errorf("%s: %s, %d asks", path, got.Action, len(got.Asks()))
		}
	}
}

// TestWorkdirOfBothPlaces: so may the directory that a shell tool is run in.
func TestWorkdirOfBothPlaces(t *testing.T) {
	w := newWorld(t, `{"bash":"allow"}`, "s/t/f", "in -> s/t", "out -> @ROOT/x", "d -> @ROOT/o/d", "@ROOT/x/f", "@ROOT/o/d/k")
	w.gate.ShellTools = map[string]gate.ShellTool{"run": {Command: "c", Workdir: "d"}}
	for dir, want := range map[string]engine.Action{
		"in/../out": engine.Ask, "d/..": engine.Ask, "in/..": engine.Allow, "s/../in": engine.Allow, "out": engine.Ask, "": engine.Allow,
	} {
		if got := w.gate.Decide(gate.Call{Tool: "run", Input: map[string]any{"c": "ls", "d": dir}}); got.Action != want {
			t.Errorf("in %q: %s, want %s", dir, got.Action, want)
		}
	}
}
