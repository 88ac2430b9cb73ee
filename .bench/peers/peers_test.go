package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/nod-agents/nod/app/disk"
	nod "github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/engine/shell"
)

// All engines say the same, and name the same rule. Without that their speed
// could not be compared.
func TestSameDecisions(t *testing.T) {
	for _, n := range sizes {
		t.Run(fmt.Sprintf("rules=%d", n), func(t *testing.T) {
			list := rules(n)
			questions := mix(list)
			want := make([]answer, len(questions))
			for i, q := range questions {
				want[i] = last(list, q)
			}
			for name, e := range map[string]engine{
				"nod": newNod(t, list), "cedar-go": newCedar(t, list), "casbin": newCasbin(t, list), "opa": newOPA(t, list),
			} {
				t.Run(name, func(t *testing.T) {
					for i, q := range questions {
						got, err := e.decide(q)
						if err != nil || got != want[i] {
							t.Errorf("%+v: %+v, %v, not %+v", q, got, err, want[i])
						}
					}
				})
			}
			t.Run("pi", func(t *testing.T) {
				for i, got := range installedPi(t).load(t, list, questions) {
					if got != want[i] {
						t.Errorf("%+v: %+v, not %+v", questions[i], got, want[i])
					}
				}
			})
		})
	}
}

// last is what an engine has to say: the last rule that matches counts.
func last(list []rule, q question) answer {
	for i := len(list) - 1; i >= 0; i-- {
		if r := list[i]; r.Surface == q.Surface && star(q.Value, r.Pattern) {
			return answer{r.Action, r.Pattern}
		}
	}
	return answer{"ask", ""}
}

// BenchmarkDecide is one decision on an intent that is ready to be matched, in
// the form that each engine takes it: once where an early rule decides and
// every later one must be ruled out, and once for a mix of questions.
func BenchmarkDecide(b *testing.B) {
	for _, n := range sizes {
		list := rules(n)
		for ask, questions := range map[string][]question{"early": {early}, "mix": mix(list)} {
			if ask == "mix" && n > 1000 {
				continue // it would take minutes
			}
			name := func(e string) string { return fmt.Sprintf("%s/%s/rules=%d", e, ask, n) }
			b.Run(name("nod"), func(b *testing.B) {
				e := newNod(b, list)
				queries := make([]*nod.Query, len(questions))
				for i, q := range questions {
					queries[i] = &nod.Query{Surface: q.Surface, Values: []string{q.Value}}
					e.rules.Resolve(queries[i]) // a surface is compiled when it is first asked for
				}
				measure(b, len(queries), func() {
					for _, q := range queries {
						e.rules.Resolve(q)
					}
				})
			})
			b.Run(name("cedar-go"), func(b *testing.B) {
				e := newCedar(b, list)
				requests := make([]cedar.Request, len(questions))
				for i, q := range questions {
					requests[i] = e.request(q)
				}
				measure(b, len(requests), func() {
					for _, r := range requests {
						if _, err := e.authorize(r); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
			b.Run(name("casbin"), func(b *testing.B) {
				e := newCasbin(b, list)
				measure(b, len(questions), func() {
					for _, q := range questions {
						if _, err := e.decide(q); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
			b.Run(name("opa"), func(b *testing.B) {
				e := newOPA(b, list)
				inputs := make([]ast.Value, len(questions))
				for i, q := range questions {
					inputs[i] = e.input(q)
				}
				measure(b, len(inputs), func() {
					for _, in := range inputs {
						if _, err := e.eval(b.Context(), in); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
			b.Run(name("pi"), func(b *testing.B) {
				p := installedPi(b)
				p.loaded(b, list)
				measurePi(b, len(questions), func(n int) float64 {
					var got struct{ CPU float64 }
					p.do(b, map[string]any{"run": n, "of": fmt.Sprint(len(list)), "ask": ask}, &got)
					return got.CPU
				})
			})
		}
	}
}

// commands are whole bash calls that the rules of bashPolicy allow.
var commands = []struct{ name, text string }{
	{"status", "git status"},
	{"pipeline", "cd src && grep -rn foo . | head -20 > out.txt"},
}

// bashPolicy has 1,000 rules, half of them on paths.
func bashPolicy() []rule {
	list := []rule{{"bash", "*", "ask"}, {"bash", "cd *", "allow"}, {"bash", "grep *", "allow"}, {"bash", "head *", "allow"}, {"bash", "git status *", "allow"}}
	for i := len(list); i < 500; i++ {
		list = append(list, rule{"bash", fmt.Sprintf("tool%d run *", i), "deny"})
	}
	list = append(list, rule{"path", "*", "allow"})
	for i := len(list); i < 1000; i++ {
		list = append(list, rule{"path", fmt.Sprintf("secret%d/*", i), "deny"})
	}
	return list
}

// BenchmarkBash is one whole bash call with 1,000 rules: reading the command,
// its units and paths, and every gate. Of the peers only pi's engine reads
// commands.
func BenchmarkBash(b *testing.B) {
	root, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "proj", "src"), 0o755); err != nil {
		b.Fatal(err)
	}
	config := permission(b, bashPolicy())
	for _, c := range commands {
		b.Run("nod/"+c.name, func(b *testing.B) {
			layer, _, _, err := policy.Parse("policy.jsonc", config, policy.Nod, root)
			if err != nil {
				b.Fatal(err)
			}
			opt := nod.Options{Home: root, Cwd: filepath.Join(root, "proj"), Now: time.Unix(1e9, 0)}
			g := &gate.Gate{Rules: nod.Compile([]nod.Layer{layer}, opt), Files: disk.Files{}, Shell: &shell.Reader{}, Home: opt.Home, Cwd: opt.Cwd, AgentDir: filepath.Join(root, "agent")}
			call := gate.Call{Tool: "bash", Input: map[string]any{"command": c.text}}
			if o := g.Decide(call); o.Action != nod.Allow {
				b.Fatalf("%+v", o.Decisive)
			}
			measure(b, 1, func() { g.Decide(call) })
		})
		b.Run("pi/"+c.name, func(b *testing.B) {
			p := installedPi(b)
			p.do(b, map[string]any{"gate": root, "config": json.RawMessage(config)}, &struct{}{})
			p.call(b, c.text, 20) // it loads its parser at the first
			measurePi(b, 1, func(n int) float64 {
				return p.call(b, c.text, n)
			})
		})
	}
}
