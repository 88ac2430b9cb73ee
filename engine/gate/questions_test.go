package gate_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
)

// TestQuestions checks which asks a call brings, and what a refusal says.
func TestQuestions(t *testing.T) {
	text := `{"*": "ask", "read": "allow", "bash": {"*": "ask", "ls *": "allow", "rm *": "deny", "mv *": {"action": "deny", "reason": "Copy it."}}, "fetch": "deny"}`
	now := time.Unix(1_800_000_000, 0)
	_, rules := policy.NewLoader(nil, false).Rules(policy.Places{Inline: []byte(text)}, engine.Options{Cwd: "/p", Home: "/h", Now: now})
	g := gate.Gate{Rules: rules, Cwd: "/p", Home: "/h"}
	who := engine.Principal{SessionID: "c", AgentName: "scout"}

	for _, c := range []struct {
		tool    string
		input   map[string]any
		values  []string // of the questions
		grants  int      // of the last
		refusal string
	}{
		{"bash", map[string]any{"command": "ls /p"}, nil, 0, ""},
		{"bash", map[string]any{"command": "make a && ls /p && go vet b && make c"}, []string{"make a"}, 3, ""},
		{"bash", map[string]any{"command": "cat /etc/hosts && make a"}, []string{"cat /etc/hosts && make a", "cat /etc/hosts"}, 2, ""},
		{"bash", map[string]any{"command": "make a && rm b"}, nil, 0, `Denied by the rule "rm *" on bash (global policy).`},
		{"bash", map[string]any{"command": "mv a b"}, nil, 0, "Copy it."},
		{"fetch", map[string]any{}, nil, 0, "Denied by the rule on fetch (global policy)."},
	} {
		o := g.Decide(gate.Call{Tool: c.tool, Input: c.input})
		if got := o.Refusal(c.tool); got != c.refusal {
			t.Errorf("%v: refused with %q, want %q", c.input, got, c.refusal)
		}
		var values []string
		list := o.Questions(gate.Asker{Principal: who, Tool: c.tool, Cwd: "/p", Now: now})
		for _, q := range list {
			values = append(values, q.Value)
			if q.Principal != who || q.Intent == nil || q.Intent.Principal != who || q.RequesterCwd != "/p" || !q.CreatedAt.Equal(now) || q.Tool != c.tool || q.Generation != 3 {
				t.Errorf("%v: %+v", c.input, q)
			}
		}
		if !reflect.DeepEqual(values, c.values) {
			t.Errorf("%v: asks about %q, want %q", c.input, values, c.values)
		}
		if n := len(list); n > 0 && (len(list[n-1].Suggestion) != c.grants || !list[n-1].Line) {
			t.Errorf("%v: the last question is %+v", c.input, list[n-1])
		}
	}
}
