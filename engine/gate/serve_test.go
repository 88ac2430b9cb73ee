package gate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
)

// wireAsk is a request file as children write it, as far as judging needs it.
type wireAsk struct {
	ID           string `json:"id"`
	Message      string `json:"message"`
	Source       string `json:"source"`
	Surface      string `json:"surface"`
	Value        string `json:"value"`
	AccessIntent *struct {
		Surface       string   `json:"surface"`
		MatchValues   []string `json:"matchValues"`
		BoundaryValue *string  `json:"boundaryValue"`
		Principal     engine.Principal
	} `json:"accessIntent"`
	Payload *struct {
		Kind    string `json:"kind"`
		Request struct {
			ToolName string `json:"toolName"`
			Value    string `json:"value"`
		} `json:"request"`
		Evidence []engine.Evidence `json:"evidence"`
	} `json:"payload"`
	SessionApproval *struct {
		Surface  string         `json:"surface"`
		Patterns []string       `json:"patterns"`
		Grants   []engine.Grant `json:"grants"`
	} `json:"sessionApproval"`
}

// readAsk reads a recorded request, and changes it if asked to.
func readAsk(t *testing.T, name string, change func(*engine.Question)) *engine.Question {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/asks", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var w wireAsk
	if err := json.Unmarshal(data, &w); err != nil {
		t.Fatal(err)
	}
	q := &engine.Question{ID: w.ID, Tool: w.Surface, Surface: w.Surface, Value: w.Value, Source: w.Source, Message: w.Message, Generation: 1}
	if s := w.SessionApproval; s != nil {
		q.Suggestion = s.Grants
		for _, p := range s.Patterns {
			q.Suggestion = append(q.Suggestion, engine.Grant{Surface: s.Surface, Pattern: p})
		}
	}
	if p := w.Payload; p != nil {
		q.Kind, q.Tool, q.Value, q.Evidence = p.Kind, p.Request.ToolName, p.Request.Value, p.Evidence
		q.Generation = 3
	}
	if in := w.AccessIntent; in != nil {
		q.Surface = in.Surface
		q.Principal = in.Principal
		q.Intent = &engine.Intent{Surface: in.Surface, MatchValues: in.MatchValues, Boundary: in.BoundaryValue, Principal: in.Principal}
	}
	if change != nil {
		change(q)
	}
	return q
}

func servedRules(t *testing.T, permission string, yolo bool) *engine.Ruleset {
	t.Helper()
	layer, _, _, err := policy.Parse("policy.jsonc", []byte(`{"permission":`+permission+`}`), policy.Nod, "/home/dev")
	if err != nil {
		t.Fatal(err)
	}
	return engine.Compile([]engine.Layer{layer}, engine.Options{Home: "/home/dev", Cwd: "/home/node", Now: time.Unix(1e9, 0), Yolo: yolo})
}

func text(s string) *string { return &s }

func TestServe(t *testing.T) {
	full := func(texts ...string) func(*engine.Question) {
		return func(q *engine.Question) {
			q.Evidence = nil
			for _, s := range texts {
				q.Evidence = append(q.Evidence, engine.Evidence{Label: "full command", Text: s})
			}
		}
	}
	const git = `{"bash":{"*":"ask","git *":"allow","ls *":"allow"}}`
	const gitRm = `{"bash":{"*":"ask","git *":"allow","rm *":"deny"}}`
	for _, tt := range []struct {
		name, ask, policy string
		change            func(*engine.Question)
		grants            []engine.Grant
		legacy, yolo      bool
		want              string
	}{
		{name: "the value is allowed, the line has more", ask: "gen3-bash-chain", policy: git, want: "ask"},
		{name: "the same of an older child", ask: "gen2-bash-chain", policy: git, want: "ask"},
		{name: "the rest of the line is denied", ask: "gen3-bash-chain", policy: gitRm, want: "deny"},
		{name: "all of the line is allowed", ask: "gen3-bash-chain", policy: `{"bash":{"*":"ask","git *":"allow","rm *":"allow"}}`, want: "allow"},
		{name: "the value alone", ask: "gen3-bash-chain", policy: git, change: full("git status"), want: "allow"},
		{name: "no full command: the value is all", ask: "gen3-bash-chain", policy: git, change: full(), want: "allow"},
		{name: "no payload and no message: what else runs is not told", ask: "gen3-bash-chain", policy: git, change: func(q *engine.Question) { q.Evidence, q.Kind = nil, "" }, want: "ask"},
		{name: "and then a deny still denies", ask: "gen3-bash-chain", policy: `{"bash":"deny"}`, change: func(q *engine.Question) { q.Evidence, q.Kind = nil, "" }, want: "deny"},
		{name: "the value shown is not the value matched", ask: "gen3-bash-chain", policy: git, change: func(q *engine.Question) { q.Evidence, q.Value = nil, "make all" }, want: "ask"},
		{name: "the value matched is not the value shown", ask: "gen3-bash-chain", policy: gitRm, change: func(q *engine.Question) { q.Evidence, q.Intent.MatchValues = nil, []string{"rm -rf /"} }, want: "deny"},
		{name: "the match value is a line", ask: "gen3-bash-chain", policy: gitRm, change: func(q *engine.Question) {
			q.Evidence, q.Intent.MatchValues, q.Value = nil, []string{"git status; rm x"}, "git status; rm x"
		}, want: "deny"},
		{name: "several match values, one denied", ask: "gen3-bash-chain", policy: gitRm, change: func(q *engine.Question) { q.Evidence, q.Intent.MatchValues = nil, []string{"git status", "rm x"} }, want: "deny"},
		{name: "two full commands, the second denied", ask: "gen3-bash-chain", policy: gitRm, change: full("git status", "rm x"), want: "deny"},
		{name: "two full commands, both allowed", ask: "gen3-bash-chain", policy: git, change: full("git status", "ls"), want: "allow"},
		{name: "an odd label", ask: "gen3-bash-chain", policy: gitRm, change: func(q *engine.Question) { q.Evidence[0].Label = " Full  COMMAND " }, want: "deny"},
		{name: "an empty full command", ask: "gen3-bash-chain", policy: git, change: full(""), want: "ask"},
		{name: "a full command that cannot be read", ask: "gen3-bash-chain", policy: git, change: full("git status 'x"), want: "ask"},
		{name: "a full command with a floor", ask: "gen3-bash-chain", policy: `{"bash":"allow"}`, change: full("git status && sudo ls"), want: "ask"},
		{name: "other evidence does not matter", ask: "gen3-bash-chain", policy: git, change: func(q *engine.Question) {
			q.Evidence = []engine.Evidence{{Label: "working directory", Text: "/x"}, {Label: "note", Text: "rm -rf /"}}
		}, want: "allow"},
		{name: "a grant for the value only", ask: "gen3-bash-chain", policy: `{}`, grants: []engine.Grant{{Surface: "bash", Pattern: "git status*"}}, want: "ask"},
		{name: "grants for all units", ask: "gen3-bash-chain", policy: `{}`, grants: []engine.Grant{{Surface: "bash", Pattern: "git status*"}, {Surface: "bash", Pattern: "rm *"}}, want: "allow"},
		{name: "a grant never beats a deny", ask: "gen3-bash-chain", policy: gitRm, grants: []engine.Grant{{Surface: "bash", Pattern: "*"}}, want: "deny"},
		{name: "a wrapper floors", ask: "gen3-bash-sudo", policy: `{"bash":"allow"}`, want: "ask"},
		{name: "a wide grant does not answer a floor", ask: "gen3-bash-sudo", policy: `{"bash":"allow"}`, grants: []engine.Grant{{Surface: "bash", Pattern: "sudo *"}}, want: "ask"},
		{name: "an exact grant does", ask: "gen3-bash-sudo", policy: `{"bash":"ask"}`, grants: []engine.Grant{{Surface: "bash", Pattern: "sudo ls"}}, want: "allow"},
		{name: "what the wrapper runs is denied", ask: "gen3-bash-sudo", policy: `{"bash":{"*":"allow","ls *":"deny"}}`, want: "deny"},
		{name: "a wrapper under yolo", ask: "gen3-bash-sudo", policy: `{"bash":"allow"}`, yolo: true, want: "allow"},
		{name: "a denied unit under yolo", ask: "gen3-bash-chain", policy: gitRm, yolo: true, want: "deny"},
		{name: "missing facts under yolo", ask: "gen3-bash-chain", policy: git, yolo: true, change: func(q *engine.Question) { q.Intent = nil }, want: "ask"},

		{name: "both outside paths are allowed in both forms", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":"allow"}`, want: "allow"},
		{name: "one is not", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":{"*":"ask","/etc/*":"allow","/home/dev/proj/*":"allow"}}`, want: "ask"},
		{name: "only the name of one is", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":{"*":"ask","/home/dev/proj/*":"allow","/tmp/*":"allow"}}`, want: "ask"},
		{name: "only the place of one is", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":{"*":"ask","/etc/*":"allow","/tmp/*":"allow"}}`, want: "ask"},
		{name: "all forms by patterns", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":{"*":"ask","/home/dev/proj/*":"allow","/etc/*":"allow","/tmp/*":"allow"}}`, want: "allow"},
		{name: "the second path is denied", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":{"*":"allow","/tmp/*":"deny"}}`, want: "deny"},
		{name: "the place of the first is denied", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":{"*":"allow","/etc/*":"deny"}}`, want: "deny"},
		{name: "no outside path is told", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":"allow"}`, change: func(q *engine.Question) { q.Evidence = nil }, want: "ask"},
		{name: "an outside path without a name", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":"allow"}`, change: func(q *engine.Question) { q.Evidence[1].Text = " " }, want: "ask"},
		{name: "an empty detail", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":"allow"}`, change: func(q *engine.Question) { q.Evidence[1].Detail = text("") }, want: "allow"},
		{name: "a full command beside it is denied", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":"allow","bash":{"rm *":"deny","*":"allow"}}`, change: func(q *engine.Question) {
			q.Evidence = append(q.Evidence, engine.Evidence{Label: "full command", Text: "rm x"})
		}, want: "allow"},
		{name: "a full command beside it is denied, in that order", ask: "gen3-bash-external-two-paths", policy: `{"external_directory":"allow","bash":{"*":"allow","rm *":"deny"}}`, change: func(q *engine.Question) {
			q.Evidence = append(q.Evidence, engine.Evidence{Label: "full command", Text: "rm x"})
		}, want: "deny"},
		{name: "the older shape", ask: "gen2-bash-external-two-paths", policy: `{"external_directory":"allow"}`, want: "allow"},

		{name: "a tool's outside path", ask: "gen3-read-external", policy: `{"external_directory_read":{"/etc/*":"allow"}}`, want: "allow"},
		{name: "a write rule says nothing about it", ask: "gen3-read-external", policy: `{"external_directory_write":"allow"}`, want: "ask"},
		{name: "a tool's own ask", ask: "gen3-read-tool", policy: `{"read":{"/etc/*":"allow"}}`, want: "allow"},
		{name: "another tool's rule", ask: "gen3-read-tool", policy: `{"write":"allow"}`, want: "ask"},
		{name: "a relative form matches as it is", ask: "gen3-write", policy: `{"write":{"*":"ask","src/*":"allow"}}`, want: "allow"},
		{name: "the place that a link leads to is denied", ask: "gen3-write", policy: `{"write":{"secret/*":"deny","src/*":"allow"}}`, change: func(q *engine.Question) {
			q.Intent.Boundary = text("/home/dev/proj/secret/new.txt")
			q.Intent.MatchValues = append(q.Intent.MatchValues, "/home/dev/proj/secret/new.txt", "secret/new.txt")
		}, want: "deny"},
		{name: "the place that a link leads to is not allowed", ask: "gen3-write", policy: `{"write":{"*":"ask","src/*":"allow"}}`, change: func(q *engine.Question) {
			q.Intent.Boundary = text("/home/dev/proj/other")
			q.Intent.MatchValues = append(q.Intent.MatchValues, "/home/dev/proj/other", "other")
		}, want: "ask"},
		{name: "a grant is for a place", ask: "gen3-write", policy: `{}`, grants: []engine.Grant{{Surface: "write", Pattern: "/home/dev/proj/src/*"}}, change: func(q *engine.Question) {
			q.Intent.Boundary = text("/home/dev/proj/other")
			q.Intent.MatchValues = append(q.Intent.MatchValues, "/home/dev/proj/other", "other")
		}, want: "ask"},
		{name: "a grant for the directory", ask: "gen3-write", policy: `{}`, grants: []engine.Grant{{Surface: "write", Pattern: "/home/dev/proj/src/*"}}, want: "allow"},
		{name: "a path of a shell line with more of them", ask: "gen3-write", policy: `{"path":"allow"}`, change: func(q *engine.Question) {
			q.Kind, q.Tool, q.Intent.Surface = "path", "bash", "path"
			q.Suggestion = []engine.Grant{{Surface: "path", Pattern: "/a/*"}, {Surface: "path", Pattern: "/b/*"}}
		}, want: "ask"},

		{name: "the oldest shape goes to the human", ask: "gen1-chain", policy: git, want: "ask"},
		{name: "also when it may be resolved: its line is in its message only", ask: "gen1-chain", policy: git, legacy: true, want: "ask"},
		{name: "without a longer line it is resolved", ask: "gen1-chain", policy: git, legacy: true, change: func(q *engine.Question) {
			q.Message = "Current agent requested bash command 'git status'. Allow this command?"
		}, want: "allow"},
		{name: "and denied", ask: "gen1-chain", policy: `{"bash":"deny"}`, legacy: true, change: func(q *engine.Question) { q.Message = "Current agent requested bash command 'git status'." }, want: "deny"},
		{name: "without a message it is not", ask: "gen1-chain", policy: git, legacy: true, change: func(q *engine.Question) { q.Message = "" }, want: "ask"},
		{name: "nor where another gate asks", ask: "gen1-chain", policy: git, legacy: true, change: func(q *engine.Question) {
			q.Message = "x"
			q.Suggestion = []engine.Grant{{Surface: "external_directory", Pattern: "/x/*"}}
		}, want: "ask"},
		{name: "paths of the oldest shape ask", ask: "gen1-files", policy: `{"*":"allow"}`, legacy: true, want: "ask"},
		{name: "outside paths too", ask: "gen1-files-1", policy: `{"*":"allow"}`, legacy: true, want: "ask"},
		{name: "a newer ask without facts is not legacy", ask: "gen3-bash-chain", policy: `{"*":"allow"}`, legacy: true, change: func(q *engine.Question) { q.Intent = nil }, want: "ask"},
		{name: "no match values", ask: "gen3-bash-chain", policy: `{"*":"allow"}`, change: func(q *engine.Question) { q.Intent.MatchValues = nil }, want: "ask"},
		{name: "a skill", ask: "gen3-bash-chain", policy: `{"skill":{"*":"ask","lib":"allow"}}`, change: func(q *engine.Question) {
			q.Evidence, q.Kind, q.Intent.Surface, q.Intent.MatchValues, q.Value, q.Tool = nil, "skill", "skill", []string{"lib"}, "lib", "skill"
		}, want: "allow"},
		{name: "an MCP target", ask: "gen3-bash-chain", policy: `{"mcp":{"exa:*":"deny"}}`, change: func(q *engine.Question) {
			q.Evidence, q.Kind, q.Intent.Surface, q.Intent.MatchValues, q.Value, q.Tool = nil, "mcp", "mcp", []string{"exa:search"}, "exa:search", "mcp"
		}, want: "deny"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := gate.Served{Rules: servedRules(t, tt.policy, tt.yolo), ResolveLegacy: tt.legacy}
			if len(tt.grants) > 0 {
				session := engine.NewSessionRules(func() time.Time { return time.Unix(1e9, 0) }, s.Rules.Options())
				for _, g := range tt.grants {
					if _, err := session.Record(engine.NewGrant{Grant: g, Scope: engine.Scope{SessionID: "s"}, Asked: engine.Asked{Surface: g.Surface, Values: []string{g.Pattern}}}); err != nil {
						t.Fatal(err)
					}
				}
				s.Grants = session.View(engine.Scope{SessionID: "s"})
			}
			j := gate.Serve(readAsk(t, tt.ask, tt.change), s)
			if j.Action.String() != tt.want {
				t.Errorf("want %s, got %v by %+v", tt.want, j.Action, j.By)
			}
			if j.Action == engine.Allow && j.By.Kind == "" {
				t.Error("an allow says nothing about what allowed it")
			}
			if (len(j.Used) > 0) != (len(tt.grants) > 0 && j.Action == engine.Allow) {
				t.Errorf("used grants: %v", j.Used)
			}
		})
	}
}

// TestServeAdversarial takes every recorded ask and hides a denied command or
// path in its evidence: no policy that allows the rest lets it through.
func TestServeAdversarial(t *testing.T) {
	names, err := filepath.Glob("testdata/asks/gen[23]-*.json")
	if err != nil || len(names) == 0 {
		t.Fatal("no recorded asks")
	}
	rules := servedRules(t, `{"*":"allow","bash":{"*":"allow","rm *":"deny"},"external_directory":{"*":"allow","/secret/*":"deny"}}`, false)
	for _, name := range names {
		name = filepath.Base(name[:len(name)-len(".json")])
		for what, e := range map[string]engine.Evidence{
			"command":   {Label: "full command", Text: "true && rm -rf /"},
			"path":      {Label: "external path", Text: "/secret/x"},
			"real path": {Label: "external path", Text: "/ok/x", Detail: text("/secret/x")},
		} {
			q := readAsk(t, name, func(q *engine.Question) { q.Evidence = append(q.Evidence, e) })
			if j := gate.Serve(q, gate.Served{Rules: rules}); j.Action != engine.Deny {
				t.Errorf("%s with a hidden %s: %v", name, what, j.Action)
			}
		}
	}
}

// Facts of another surface do not allow what a shell would run.
func TestFactsOfAnotherToolAllowNoCommand(t *testing.T) {
	rules := servedRules(t, `{"*":"allow","bash":{"*":"allow"},"skill":{"*":"allow"},"read":{"*":"allow"}}`, false)
	for surface, value := range map[string]string{"read": "/proj/a", "skill": "librarian", "mcp": "exa:search", "web_fetch": "*"} {
		for what, change := range map[string]func(*engine.Question){
			"its tool": func(q *engine.Question) { q.Tool = "bash" },
			"its kind": func(q *engine.Question) { q.Kind = "bash" },
			"neither":  func(*engine.Question) {},
		} {
			q := &engine.Question{Tool: surface, Surface: surface, Kind: "tool", Value: "rm -rf /", Generation: 3, Intent: &engine.Intent{Surface: surface, MatchValues: []string{value}}}
			change(q)
			want := engine.Ask
			if what == "neither" {
				want = engine.Allow
			}
			if j := gate.Serve(q, gate.Served{Rules: rules}); j.Action != want {
				t.Errorf("%s with %s a shell's: %v", surface, what, j.Action)
			}
		}
	}
}
