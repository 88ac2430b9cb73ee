package gate_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/access"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
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

// A grant for what a wrapper runs is no answer where that could not be held
// against all rules, and the ask that it brings is one that can be answered.
func TestTooMuchToMatchInAWrapper(t *testing.T) {
	rules := []engine.Rule{{Surface: "bash", Pattern: "*", Action: engine.Allow}}
	for i := range 2000 {
		rules = append(rules, engine.Rule{Surface: "bash", Pattern: "echo *a" + strings.Repeat("?", i+1) + "b*", Action: engine.Deny})
	}
	command := "sudo echo " + tangled
	g := &gate.Gate{
		Rules:  engine.Compile([]engine.Layer{{Origin: engine.OriginGlobal, Sections: []engine.Section{{Surface: "bash", Rules: rules}}}}, engine.Options{}),
		Grants: engine.FixedGrants([]engine.Grant{{Surface: "bash", Pattern: command}}, engine.Options{}),
	}
	o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": command}})
	if asks := o.Asks(); o.Action != engine.Ask || len(asks) != 1 || !asks[0].Limited || len(o.Questions(gate.Asker{})) != 1 {
		t.Errorf("%v, %d asks", o.Action, len(asks))
	}
}

// What a guard denies is denied, also behind what it could not be held against.
func TestAGuardDeniesBehindALimit(t *testing.T) {
	section := func(surface, text string) engine.Section {
		return engine.Section{Surface: surface, Rules: []engine.Rule{{Surface: surface, Pattern: text, Action: engine.Deny}, {Surface: surface, Pattern: "*a?b*", Action: engine.Deny}}}
	}
	guard := engine.Compile([]engine.Layer{{Sections: []engine.Section{section("path_write", "/nod/x"), section("bash", "nod serve")}}}, engine.Options{})
	allow := engine.Compile([]engine.Layer{{Sections: []engine.Section{
		{Surface: "*", Text: true, Rules: []engine.Rule{{Surface: "*", Pattern: "*", Action: engine.Allow}}},
		{Surface: "bash", Rules: []engine.Rule{{Surface: "bash", Pattern: "*", Action: engine.Allow}, {Surface: "bash", Pattern: "*c" + strings.Repeat("?", 1000) + "d*", Action: engine.Deny}}}}}}, engine.Options{})
	spends := "echo " + strings.Repeat("c", 1<<19) + "\n"
	long := strings.Repeat("/xyz", 1020)
	for command, want := range map[string]engine.Action{
		"rm " + long:                          engine.Allow,
		spends + "rm " + long:                 engine.Ask,
		spends + "rm " + long + " /nod/x":     engine.Deny,
		spends + "rm " + long + "\nnod serve": engine.Deny,
	} {
		g := &gate.Gate{Rules: allow, Guard: guard, Cwd: "/p"}
		if o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": command}}); o.Action != want {
			t.Errorf("…%s: %v by %q", command[max(0, len(command)-20):], o.Action, o.Decisive.Pattern)
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

// An ask with more command lines than any ask has is for a person, since not
// all of them are read.
func TestManyLinesOfOneAsk(t *testing.T) {
	allow := engine.Compile([]engine.Layer{{Origin: engine.OriginGlobal, Sections: []engine.Section{
		{Surface: "bash", Rules: []engine.Rule{{Surface: "bash", Pattern: "ls *", Action: engine.Allow}, {Surface: "bash", Pattern: "rm *", Action: engine.Deny}}}}}},
		engine.Options{Yolo: true})
	for n, want := range map[int]engine.Action{2: engine.Allow, 64: engine.Allow, 65: engine.Ask, 100_000: engine.Ask} {
		q := &engine.Question{Surface: "bash", Kind: "bash", Value: "ls 0", Intent: &engine.Intent{Surface: "bash"}}
		for i := range n {
			q.Intent.MatchValues = append(q.Intent.MatchValues, fmt.Sprintf("ls %d", i))
		}
		if j := gate.Serve(q, gate.Served{Rules: allow, Guard: engine.Compile(nil, engine.Options{})}); j.Action != want {
			t.Errorf("%d lines: %v", n, j.Action)
		}
		q.Intent.MatchValues[n-1] = "rm x"
		if n <= 64 {
			want = engine.Deny
		}
		if j := gate.Serve(q, gate.Served{Rules: allow}); j.Action != want {
			t.Errorf("%d lines, the last denied: %v", n, j.Action)
		}
	}
}

// Arguments that are nested more deeply than a reader of ours may go have their
// path all the same.
func TestThePathOfDeepArguments(t *testing.T) {
	rules := engine.Compile([]engine.Layer{{Sections: []engine.Section{
		{Surface: "mcp", Rules: []engine.Rule{{Surface: "mcp", Pattern: "*", Action: engine.Allow}}},
		{Surface: "path", Rules: []engine.Rule{{Surface: "path", Pattern: "/etc/*", Action: engine.Deny}}}}}}, engine.Options{})
	g := &gate.Gate{Rules: rules, Cwd: "/p"}
	for _, n := range []int{1, 20_000, 1 << 20} {
		args := `{"path":"/etc/x","y":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
		if o := g.Decide(gate.Call{Tool: "mcp", Input: map[string]any{"tool": "s:t", "args": args}}); o.Action != engine.Deny {
			t.Errorf("%d levels: %v", n, o.Action)
		}
	}
}

// crowd is a file system in which the project has more files than are looked at.
type crowd struct{}

func (crowd) Look(p string) access.Kind {
	switch {
	case p == "/" || p == "/p" || p == "/q":
		return access.Directory
	case strings.HasPrefix(p, "/p/"), strings.HasPrefix(p, "/q/"):
		return access.Plain
	}
	return access.Missing
}

func (crowd) Readlink(string) (string, error) { return "", nil }

func (crowd) List(_ string, limit int) (names []string, more bool) {
	for i := range limit {
		names = append(names, fmt.Sprintf("f%d", i))
	}
	return names, true
}

// Where a wildcard stands for more files than are looked at, one of the others
// may be denied, or a link that leads out. Neither yolo nor a grant is an answer
// where a rule tells them apart.
func TestMoreFilesThanAreLookedAt(t *testing.T) {
	guard := engine.Compile([]engine.Layer{{Origin: engine.OriginBuiltin, Sections: []engine.Section{
		{Surface: "path_write", Rules: []engine.Rule{{Surface: "path_write", Pattern: "/p/x", Action: engine.Deny}}}}}}, engine.Options{})
	for _, tt := range []struct {
		name, policy, command string
		guard                 *engine.Ruleset
		want, yolo            engine.Action
		surface               string
	}{
		{"a rule denies some", `{"*":"ask","bash":"allow","external_directory":"allow","path":{"*":"allow","*.env":"deny"}}`, "cat *", nil, engine.Ask, engine.Ask, "path"},
		{"only others are denied", `{"*":"ask","bash":"allow","external_directory":"allow","path":{"*":"allow"},"read":{"*.env":"deny"}}`, "cat *", nil, engine.Allow, engine.Allow, "bash"},
		{"all are allowed", `{"*":"allow"}`, "cat *", nil, engine.Allow, engine.Allow, "bash"},
		{"a rule denies some outside", `{"*":"allow","external_directory":{"/p/../*":"allow"},"path":{"*":"allow","*.env":"deny"}}`, "cat ../q/*", nil, engine.Ask, engine.Ask, "path"},
		{"one may lead out", `{"*":"ask","bash":"allow"}`, "cat *", nil, engine.Ask, engine.Allow, "external_directory"},
		{"one may lead where it is denied", `{"*":"ask","bash":"allow","external_directory":{"*":"allow","/etc/*":"deny"}}`, "cat *", nil, engine.Ask, engine.Ask, "external_directory"},
		{"one may be guarded", `{"*":"allow"}`, "rm *", guard, engine.Ask, engine.Ask, "path"},
		{"reading does no harm", `{"*":"allow"}`, "cat *", guard, engine.Allow, engine.Allow, "bash"},
	} {
		for _, yolo := range []bool{false, true} {
			layer, _, _, err := policy.Parse("policy.json", []byte(`{"permission":`+tt.policy+`}`), policy.Nod, "/home")
			if err != nil {
				t.Fatal(err)
			}
			grants := engine.FixedGrants([]engine.Grant{{Surface: "path", Pattern: "*"}}, engine.Options{})
			g := &gate.Gate{Rules: engine.Compile([]engine.Layer{layer}, engine.Options{Cwd: "/p", Yolo: yolo}), Guard: tt.guard, Grants: grants, Files: crowd{}, Cwd: "/p"}
			want := tt.want
			if yolo {
				want = tt.yolo
			}
			o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": tt.command}})
			if o.Action != want || o.Decisive.Gate != tt.surface {
				t.Errorf("%s, yolo %v: %v by %s %q", tt.name, yolo, o.Action, o.Decisive.Gate, o.Decisive.Pattern)
			}
			if want == engine.Ask && o.Decisive.Why == "" {
				t.Errorf("%s: it does not say why", tt.name)
			}
		}
	}
}

// Each call looks at the disk anew: what one has found tells the next nothing.
func TestACallRemembersNoOther(t *testing.T) {
	g := benchGate(t)
	call := gate.Call{Tool: "bash", Input: map[string]any{"command": "head src/x"}}
	link := g.Cwd + "/src/x"
	for i := range 6 {
		outside := i%2 == 1
		if outside {
			if err := os.Symlink("/etc/hostname", link); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(link); i > 0 && err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				o := g.Decide(call)
				if asks := o.Action == engine.Ask && o.Decisive.Gate == engine.SurfaceExternalDirectory; asks != outside {
					t.Errorf("a link leads outside: %v, and it is %v by %s", outside, o.Action, o.Decisive.Gate)
				}
			})
		}
		wg.Wait()
	}
}
