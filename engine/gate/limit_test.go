package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
)

// costly is a policy that allows all bash commands, but by rules that a command
// of tangled cannot be held against in time; every tool is answered by yolo.
func costly(yolo bool) *engine.Ruleset {
	rules := []engine.Rule{{Surface: "bash", Pattern: "*", Action: engine.Allow, Origin: engine.OriginGlobal}}
	for i := range 2000 {
		rules = append(rules, engine.Rule{Surface: "bash", Pattern: "*a" + strings.Repeat("?", i+1) + "b*", Action: engine.Deny, Origin: engine.OriginGlobal})
	}
	rules = append(rules, engine.Rule{Surface: "bash", Pattern: "rm *", Action: engine.Deny, Origin: engine.OriginGlobal})
	return engine.Compile([]engine.Layer{{Origin: engine.OriginGlobal, Sections: []engine.Section{{Surface: "bash", Rules: rules}}}},
		engine.Options{Now: time.Unix(1e9, 0), Yolo: yolo})
}

var tangled = strings.Repeat("b", 1<<18) + strings.Repeat("a", 1<<18)

// A command that cannot be held against all rules in time asks. Neither yolo nor
// a grant allows it, nothing is proposed that would, and a deny still counts.
func TestTooMuchToMatchAsks(t *testing.T) {
	for _, yolo := range []bool{false, true} {
		rules := costly(yolo)
		text := "echo " + tangled
		grants := engine.FixedGrants([]engine.Grant{{Surface: "bash", Pattern: "echo *"}, {Surface: "bash", Pattern: text}, {Surface: "bash", Pattern: "sudo " + text}}, engine.Options{})
		g := &gate.Gate{Rules: rules, Grants: grants}
		for command, want := range map[string]engine.Action{
			text: engine.Ask, "sudo " + text: engine.Ask, text + "; rm x": engine.Deny, "rm x; " + text: engine.Deny, "echo x": engine.Allow,
		} {
			name := fmt.Sprintf("yolo %v, %.8s…", yolo, command)
			o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": command}})
			if o.Action != want {
				t.Errorf("%s: %v by %q", name, o.Action, o.Decisive.Pattern)
			}
			if want == engine.Ask && (o.Decisive.Pattern != engine.PatternLimit || o.Decisive.Why == "" || o.Decisive.Suggestion != nil) {
				t.Errorf("%s: %q, %q, %v", name, o.Decisive.Pattern, o.Decisive.Why, o.Decisive.Suggestion)
			}
			q := &engine.Question{Surface: "bash", Value: command, Kind: "bash", Intent: &engine.Intent{Surface: "bash", MatchValues: []string{command}}}
			j := gate.Serve(q, gate.Served{Rules: rules, Grants: grants})
			if j.Action != want || j.Limited != (want == engine.Ask) && want != engine.Deny {
				t.Errorf("%s, served: %v, limited: %v", name, j.Action, j.Limited)
			}
		}
	}
}

// What a guard could not be held against asks, too.
func TestTooMuchToGuardAsks(t *testing.T) {
	allow := engine.Compile([]engine.Layer{{Origin: engine.OriginGlobal, Sections: []engine.Section{
		{Surface: "*", Text: true, Rules: []engine.Rule{{Surface: "*", Pattern: "*", Action: engine.Allow, Origin: engine.OriginGlobal}}}}}}, engine.Options{})
	for command, want := range map[string]engine.Action{"echo " + tangled: engine.Ask, "echo x": engine.Allow} {
		g := &gate.Gate{Rules: allow, Guard: costly(false)}
		if o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": command}}); o.Action != want {
			t.Errorf("%.8s…: %v", command, o.Action)
		}
		q := &engine.Question{Surface: "bash", Value: command, Kind: "bash", Intent: &engine.Intent{Surface: "bash", MatchValues: []string{command}}}
		if j := gate.Serve(q, gate.Served{Rules: allow, Guard: costly(false)}); j.Action != want {
			t.Errorf("%.8s…, served: %v", command, j.Action)
		}
	}
}

// A command with more words than are held against each other may put any of
// them into a directory that is guarded.
func TestGuardOfManyWords(t *testing.T) {
	guard := engine.Compile([]engine.Layer{{Origin: engine.OriginBuiltin, Sections: []engine.Section{
		{Surface: gate.SurfaceTree, Rules: []engine.Rule{{Surface: gate.SurfaceTree, Pattern: "/c", Action: engine.Deny}}},
		{Surface: "path_write", Rules: []engine.Rule{{Surface: "path_write", Pattern: "/c/nod", Action: engine.Deny}}}}}}, engine.Options{})
	allow := engine.Compile([]engine.Layer{{Origin: engine.OriginGlobal, Sections: []engine.Section{
		{Surface: "*", Text: true, Rules: []engine.Rule{{Surface: "*", Pattern: "*", Action: engine.Allow, Origin: engine.OriginGlobal}}}}}}, engine.Options{})
	many := strings.Repeat("/x ", 100)
	for i := range 100 {
		many += fmt.Sprintf("/x%d ", i)
	}
	for command, want := range map[string]engine.Action{
		"cp /x/nod /c": engine.Deny, "cp /x/other /c": engine.Allow,
		"cp " + many + "/c": engine.Deny, "cp -t /c " + many: engine.Deny,
		"cp " + many + "/d": engine.Allow, "cp /c " + many + "/d": engine.Allow,
	} {
		g := &gate.Gate{Rules: allow, Guard: guard, Cwd: "/p"}
		if o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": command}}); o.Action != want {
			t.Errorf("%.20s…: %v", command, o.Action)
		}
	}
}

// What would be granted for very many paths holds no pattern twice, and none
// that another covers.
func TestGrantsOfManyPaths(t *testing.T) {
	ask := engine.Compile(nil, engine.Options{})
	for _, n := range []int{3, 2000} {
		var command strings.Builder
		for i := range n {
			fmt.Fprintf(&command, "cat </d%d/x; rm /d%d/y /d%d/z; ", i, i, i)
		}
		g := &gate.Gate{Rules: ask, Cwd: "/p"}
		o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": command.String()}})
		c := o.Asks()[0]
		if c.Gate != engine.SurfaceExternalDirectory || len(c.Suggestion) != n {
			t.Errorf("%s: %d grants for %d directories", c.Gate, len(c.Suggestion), n)
		}
		for i, s := range c.Suggestion {
			if s.Surface != engine.SurfaceExternalDirectory || s.Pattern != fmt.Sprintf("/d%d/*", i) {
				t.Errorf("%d: %+v", i, s)
				break
			}
		}
	}
}
