package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
)

// place is a home with a policy, and a project in it.
type testPlace struct {
	home, project string
	rules         *Rules
}

func newPlace(t testing.TB, text string) testPlace {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := testPlace{home: home, project: filepath.Join(home, "proj")}
	for name, data := range map[string]string{
		".config/nod/policy.jsonc": text, "proj/f.txt": "", "proj/sub/g.txt": "", "elsewhere/h.txt": "",
		"proj/.nod/policy.jsonc":            `{"permission": {"bash": {"make *": "allow"}}}`,
		".pi/agent/agents/reviewer.md":      "---\npermission:\n  bash: deny\n---\n",
		".pi/agent/agents/claude-code.md":   "---\npermission:\n  bash:\n    'only claude': deny\n---\n",
		"proj/link-target-is-elsewhere.txt": "",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, "elsewhere"), filepath.Join(p.project, "out")); err != nil {
		t.Fatal(err)
	}
	p.rules = &Rules{
		Loader: policy.NewLoader(policyfile.Disk{}, false), AgentDir: filepath.Join(home, ".pi", "agent"), ConfigDir: filepath.Join(home, ".config", "nod"),
		Home: home, Now: time.Now, Trusted: func(string) bool { return false },
	}
	return p
}

// judge has a call of Claude Code's judged. HOME in it is the home.
func (p testPlace) judge(t testing.TB, a Adapter, tool, input string, change func(*Call)) Ruling {
	t.Helper()
	data := claude(tool, strings.ReplaceAll(input, "HOME", p.home))
	c, err := a.Parse("PreToolUse", data, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	c.Cwd = p.project
	if change != nil {
		change(c)
	}
	return p.rules.Judge(c)
}

const testPolicy = `{"permission": {
	"*": "ask",
	"bash": {"ls *": "allow", "git *": "allow", "rm *": {"action": "deny", "reason": "never remove, move aside"}, "sudo *": "deny"},
	"read": "allow", "grep": "allow", "webfetch": "deny",
	"mcp": {"exa:*": "allow", "exa:delete": "deny"},
	"skill": {"pdf": "allow"},
	"path": {"*.env": "deny"},
	"ExitPlanMode": "allow"
}}`

func TestRulesJudgeCalls(t *testing.T) {
	p := newPlace(t, testPolicy)
	for _, c := range []struct {
		tool, input string
		change      func(*Call)
		action      engine.Action
		reason      string   // part of it
		asks        []string // surface=value
	}{
		{"Bash", `{"command":"ls -l"}`, nil, engine.Allow, "", nil},
		{"Bash", `{"command":"rm -r x"}`, nil, engine.Deny, "never remove, move aside", nil},
		{"Bash", `{"command":"sudo ls"}`, nil, engine.Deny, `Denied by the rule "sudo *" on bash (global policy).`, nil},
		{"Bash", `{"command":"touch a"}`, nil, engine.Ask, "", []string{"bash=touch a"}},
		{"Bash", `{"command":"ls HOME/elsewhere"}`, nil, engine.Ask, "", []string{"external_directory=ls HOME/elsewhere"}},
		{"Bash", `{"command":"make x && ls && cp a HOME/elsewhere/b"}`, nil, engine.Ask, "", []string{"external_directory=make x && ls && cp a HOME/elsewhere/b", "bash=make x"}},
		{"Read", `{"file_path":"HOME/proj/f.txt"}`, nil, engine.Allow, "", nil},
		{"Read", `{"file_path":"HOME/proj/out/h.txt"}`, nil, engine.Ask, "", []string{"external_directory_read=HOME/proj/out/h.txt"}},
		{"Read", `{"file_path":"HOME/proj/.env"}`, nil, engine.Deny, `Denied by the rule "*.env" on path_read (global policy)`, nil},
		{"Write", `{"file_path":"HOME/elsewhere/x"}`, nil, engine.Ask, "", []string{"external_directory_write=HOME/elsewhere/x", "write=HOME/elsewhere/x"}},
		{"WebFetch", `{"url":"https://x.example"}`, nil, engine.Deny, `Denied by the rule on webfetch (global policy).`, nil},
		{"mcp__exa__search", `{}`, nil, engine.Allow, "", nil},
		{"mcp__exa__delete", `{}`, nil, engine.Deny, `"exa:delete" on mcp`, nil},
		{"mcp__other__search", `{}`, nil, engine.Ask, "", []string{"mcp=other_search"}},
		{"Skill", `{"skill":"pdf"}`, nil, engine.Allow, "", nil},
		{"Skill", `{"skill":"docx"}`, nil, engine.Ask, "", []string{"skill=docx"}},
		{"Teleport", `{}`, nil, engine.Ask, "", []string{"Teleport=*"}},
		{"Task", `{"prompt":"x"}`, nil, engine.Ask, "", []string{"task=*"}},
		// The agent's own notes do not ask by the default.
		{"TodoWrite", `{"todos":[]}`, nil, engine.Allow, "", nil},
		// A subagent's own policy counts, and the agent's.
		{"Bash", `{"command":"ls"}`, func(c *Call) { c.Principal.AgentName = "reviewer" }, engine.Deny, "on bash (agent policy)", nil},
		{"Bash", `{"command":"only claude"}`, nil, engine.Deny, `"only claude"`, nil},
		// Below the project's directory paths mean the place where the agent is.
		{"Bash", `{"command":"ls ../f.txt g.txt"}`, func(c *Call) { c.Root, c.Cwd = c.Cwd, c.Cwd+"/sub" }, engine.Allow, "", nil},
		{"Bash", `{"command":"ls ../../elsewhere"}`, func(c *Call) { c.Root, c.Cwd = c.Cwd, c.Cwd+"/sub" }, engine.Ask, "", []string{"external_directory=ls ../../elsewhere"}},
		{"Read", `{"file_path":"../f.txt"}`, func(c *Call) { c.Root, c.Cwd = c.Cwd, c.Cwd+"/sub" }, engine.Allow, "", nil},
		{"Read", `{"file_path":"../../elsewhere/h.txt"}`, func(c *Call) { c.Root, c.Cwd = c.Cwd, c.Cwd+"/sub" }, engine.Ask, "", []string{"external_directory_read=HOME/proj/sub/../../elsewhere/h.txt"}},
		// A command may name its own directory.
		{"Bash", `{"command":"ls"}`, func(c *Call) { c.Uses[0].Dir = "~/elsewhere" }, engine.Ask, "", []string{"external_directory=ls"}},
		{"Bash", `{"command":"ls g.txt"}`, func(c *Call) { c.Uses[0].Dir = "sub" }, engine.Allow, "", nil},
	} {
		r := p.judge(t, Claude{}, c.tool, c.input, c.change)
		var asks []string
		for _, q := range r.Questions {
			asks = append(asks, strings.ReplaceAll(q.Surface+"="+q.Value, p.home, "HOME"))
		}
		if r.Action != c.action || !strings.Contains(r.Reason, c.reason) || c.action != engine.Deny && r.Reason != "" || !reflect.DeepEqual(asks, c.asks) {
			t.Errorf("%s %s: %s %q %q; want %s %q %q", c.tool, c.input, r.Action, r.Reason, asks, c.action, c.reason, c.asks)
		}
	}
}

// TestPatchAsksForEachFile holds that every file of a patch is judged, and asked
// about by itself.
func TestPatchAsksForEachFile(t *testing.T) {
	p := newPlace(t, testPolicy)
	patch := func(files ...string) string {
		text := "*** Begin Patch\n"
		for _, f := range files {
			text += "*** Update File: " + f + "\n@@\n-a\n+b\n"
		}
		data, err := json.Marshal(map[string]string{"command": text + "*** End Patch\n"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	r := p.judge(t, Codex{}, "apply_patch", patch("f.txt", "sub/g.txt"), nil)
	if r.Action != engine.Ask || len(r.Questions) != 2 || r.Questions[0].Value != "f.txt" || r.Questions[1].Value != "sub/g.txt" {
		t.Errorf("%+v", r)
	}
	if r = p.judge(t, Codex{}, "apply_patch", patch("f.txt", "config.env"), nil); r.Action != engine.Deny {
		t.Errorf("%+v", r)
	}
}

// TestLineIsOneQuestion holds what a shell line's question carries: all of the
// line, and a grant for each part that asks.
func TestLineIsOneQuestion(t *testing.T) {
	p := newPlace(t, testPolicy)
	r := p.judge(t, Claude{}, "Bash", `{"command":"npm test && git status && make build"}`, nil)
	if len(r.Questions) != 1 {
		t.Fatalf("%+v", r)
	}
	q := r.Questions[0]
	if q.Value != "npm test" || !q.Line || q.Tool != "bash" || q.Intent == nil || q.Intent.MatchValues[0] != "npm test" || q.Intent.Principal != q.Principal || q.RequesterCwd != p.project {
		t.Errorf("%+v, intent %+v", q, q.Intent)
	}
	labels := map[string]string{}
	for _, e := range q.Evidence {
		labels[e.Label] = e.Text
	}
	if labels["full command"] != "npm test && git status && make build" || labels["also runs"] != "make build" || labels["asked by"] != "Claude Code, session s" {
		t.Errorf("%+v", q.Evidence)
	}
	if want := []engine.Grant{{Surface: "bash", Pattern: "npm test*"}, {Surface: "bash", Pattern: "make *"}}; !reflect.DeepEqual(q.Suggestion, want) {
		t.Errorf("suggestion %+v", q.Suggestion)
	}
	// One part is no line.
	if q = p.judge(t, Claude{}, "Bash", `{"command":"git status && make build"}`, nil).Questions[0]; q.Line || q.Value != "make build" {
		t.Errorf("%+v", q)
	}
}

func TestProjectsRulesNeedTrust(t *testing.T) {
	p := newPlace(t, testPolicy)
	run := func() engine.Action { return p.judge(t, Claude{}, "Bash", `{"command":"make all"}`, nil).Action }
	if got := run(); got != engine.Ask {
		t.Errorf("untrusted: %s", got)
	}
	p.rules.Trusted = func(dir string) bool { return dir == p.project }
	if got := run(); got != engine.Allow {
		t.Errorf("trusted: %s", got)
	}
}

func TestBrokenPolicyAsks(t *testing.T) {
	p := newPlace(t, `{"permission": {"bash": "allow"`)
	told := 0
	p.rules.Told = func(_ string, loaded *policy.Policy) {
		if loaded.Err() != nil {
			told++
		}
	}
	if r := p.judge(t, Claude{}, "Bash", `{"command":"ls"}`, nil); r.Action != engine.Ask || told != 1 {
		t.Errorf("%+v, told %d", r, told)
	}
}

func BenchmarkJudge(b *testing.B) {
	p := newPlace(b, testPolicy)
	for b.Loop() {
		// As a hook does: the policy is read for every call.
		p.rules.Loader = policy.NewLoader(policyfile.Disk{}, false)
		if r := p.judge(b, Claude{}, "Bash", `{"command":"ls -l && git status"}`, nil); r.Action != engine.Allow {
			b.Fatal(r)
		}
	}
}
