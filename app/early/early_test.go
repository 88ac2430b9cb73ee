package early

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nod-agents/nod/app"
	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/ground"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
)

const (
	policyFile   = ".config/nod/policy.jsonc"
	settingsFile = ".config/nod/settings.jsonc"
	peerFile     = ".pi/agent/extensions/pi-permission-system/config.json"
)

// testdata are the payloads of app/agents, wherever a test works.
var testdata = func() string {
	dir, err := filepath.Abs("../agents/testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

// worlds are homes, by the files in them.
var worlds = map[string]map[string]string{
	"empty": {},
	"rules": {policyFile: `{"permission": {"*": "ask", "read": "allow", "bash": {"*": "ask", "git *": "allow", "git push *": "ask", "rm *": {"action": "deny", "reason": "no"}},
		"path": {"*": "allow", "*.env": "deny"}, "external_directory": "ask"}}`},
	"allows all":      {policyFile: `{"permission": {"*": "allow", "external_directory": "allow"}}`},
	"denies all":      {policyFile: `{"permission": {"*": "deny"}}`},
	"yolo":            {policyFile: `{"yoloMode": true, "permission": {"*": "ask"}}`},
	"broken policy":   {policyFile: `{"permission": {"*": "allow", "bash": {"git *": "allwo"}}}`},
	"no policy":       {policyFile: `{"permission": `},
	"broken peer":     {peerFile: `{"permission": {"bash": "alow"}}`, policyFile: `{"permission": {"*": "allow"}}`},
	"a directory":     {policyFile + "/x": ""},
	"untrusted":       {policyFile: `{"permission": {"*": "ask"}}`, "work/.nod/policy.jsonc": `{"permission": {"*": "allow"}}`},
	"trusted":         {policyFile: `{"permission": {"*": "ask"}}`, "work/.nod/policy.jsonc": `{"permission": {"*": "allow"}}`, ".local/state/nod/trusted.json": `{"projects": [{"path": "HOME/work"}]}`},
	"broken trust":    {policyFile: `{"permission": {"*": "ask"}}`, ".local/state/nod/trusted.json": `{`},
	"broken settings": {settingsFile: `{"frontend": `, policyFile: `{"permission": {"*": "allow"}}`},
	"unknown setting": {settingsFile: `{"selfProtection": false, "x": 1}`, policyFile: `{"permission": {"*": "allow"}}`},
	"unknown hook":    {settingsFile: `{"hooks": {"claude": {"mode": "gate"}}}`},
	"unprotected":     {settingsFile: `{"selfProtection": false}`, policyFile: `{"permission": {"*": "allow"}}`},
	"advising":        {settingsFile: `{"hooks": {"*": {"mode": "advise"}}}`, policyFile: `{"permission": {"*": "allow", "bash": {"rm *": "deny", "curl *": "ask"}}}`},
	"deferring":       {settingsFile: `{"hooks": {"claude-code": {"unserved": "defer"}}, "session": "desktop"}`},
	"an agent file": {policyFile: `{"permission": {"*": "ask"}}`,
		".pi/agent/agents/claude-code.md": "---\npermission:\n  bash:\n    '*': allow\n---\n", ".pi/agent/agents/codex.md": "---\npermission: [\n---\n"},
	"hooked": {policyFile: `{"permission": {"*": "allow", "external_directory": "allow"}}`,
		".claude/settings.json": `{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "/usr/bin/nod hook claude-code"}]}]}}`},
}

// home makes a world and returns where it is, links followed.
func home(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "HOME", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// outcome is what is left of a process.
type outcome struct {
	stdout, stderr string
	code           int
}

// process runs f as a process would be.
func process(t *testing.T, args []string, stdin string, environ []string, f func(ground.Process) int) outcome {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) *os.File {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	p := ground.Process{Args: args, Stdin: file("in", stdin), Stdout: file("out", ""), Stderr: file("err", ""), Environ: environ}
	code := f(p)
	text := func(f *os.File) string {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return outcome{text(p.Stdout), text(p.Stderr), code}
}

// same runs a command line both ways and compares. It reports whether this
// package took it.
func same(t *testing.T, name string, args []string, stdin string, environ []string) (took bool) {
	t.Helper()
	whole := process(t, args, stdin, environ, app.Main)
	soon := process(t, args, stdin, environ, func(p ground.Process) int {
		var rest *Rest
		code, done := answer(p, &rest)
		took = done || rest != nil
		if rest != nil {
			if done || code != 0 {
				t.Errorf("%s: done %v, code %d, and there is still something to do", name, done, code)
			}
			return app.End(p, rest.AgentDir, rest.Requester)
		}
		return code
	})
	if took && soon != whole {
		t.Errorf("%s: %q:\nearly:    %d %q %q\ncommands: %d %q %q", name, args, soon.code, soon.stdout, soon.stderr, whole.code, whole.stdout, whole.stderr)
	}
	if !took && (soon.stdout != "" || soon.stderr != "") {
		t.Errorf("%s: %q was not taken, but something was said: %q %q", name, args, soon.stdout, soon.stderr)
	}
	return took
}

var calls = [][]string{
	{"bash", "git status"}, {"bash", "git push"}, {"bash", "rm -rf /"}, {"bash", "ls; rm x | cat > ~/.config/nod/policy.jsonc"}, {"bash", `echo "`}, {"bash", "nod serve"},
	{"bash", "cd /tmp && cat a.env"}, {"read", "README.md"}, {"read", "/etc/passwd"}, {"write", "~/.config/nod/policy.jsonc"}, {"write", "HOME/.claude/settings.json"}, {"edit", "a.env"},
	{"mcp", "exa:search"}, {"skill", "pdf"}, {"deploy", "x"}, {"find", "."}, {"bash", "\x1b[31m"}, {"bash", "–"},
}

// answers is a human who likes git.
type answers struct{}

func (answers) Decide(_ context.Context, in *forwarding.Inbound) engine.Decision {
	by := engine.DecisionSource{Kind: engine.ByUser}
	if strings.HasPrefix(in.Question.Value, "git") {
		return engine.Decision{Verdict: engine.Approved, By: by}
	}
	return engine.Decision{Verdict: engine.DeniedWithReason, Reason: "not " + in.Question.Tool, By: by}
}

// serve answers the asks in an inbox.
func serve(t *testing.T, agentDir string) {
	t.Helper()
	ready := make(chan struct{})
	s := forwarding.NewServer(forwarding.ServerConfig{AgentDir: agentDir, SessionID: "desktop", Decider: answers{}, Ready: func() { close(ready) }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("the inbox is not served: %v", err)
	}
}

// The two ways judge alike.
func TestCheckIsTheSame(t *testing.T) {
	for world, files := range worlds {
		t.Run(world, func(t *testing.T) {
			dir := home(t, files)
			t.Chdir(filepath.Join(dir, "work"))
			for _, c := range calls {
				value := strings.ReplaceAll(c[1], "HOME", dir)
				for _, args := range [][]string{{"check", c[0], value}, {"check", "--json", c[0], value}} {
					if !same(t, world, args, "", []string{"HOME=" + dir}) {
						t.Errorf("%q was not taken", args)
					}
				}
			}
		})
	}
}

// The two ways answer every agent alike.
func TestHookIsTheSame(t *testing.T) {
	type payload struct {
		Event string            `json:"event"`
		Env   map[string]string `json:"env"`
		Stdin json.RawMessage   `json:"stdin"`
	}
	for world, files := range worlds {
		t.Run(world, func(t *testing.T) {
			dir := home(t, files)
			work := filepath.Join(dir, "work")
			t.Chdir(work)
			serve(t, filepath.Join(dir, ".pi", "agent"))
			for _, a := range agents.Names() {
				list, err := filepath.Glob(filepath.Join(testdata, "payloads", a, "*.json"))
				if err != nil || len(list) == 0 {
					t.Fatalf("%s has no payloads: %v", a, err)
				}
				if world != "rules" && len(list) > 3 {
					list = list[:3] // all of them in one world
				}
				for _, name := range list {
					data, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					var p payload
					if err := json.Unmarshal(data, &p); err != nil {
						t.Fatal(err)
					}
					environ := []string{"HOME=" + dir}
					for k, v := range p.Env {
						environ = append(environ, k+"="+v)
					}
					args := []string{"hook", a}
					if p.Event != "" {
						args = append(args, p.Event)
					}
					if !same(t, name, args, string(p.Stdin), environ) {
						t.Errorf("%q was not taken", args)
					}
				}
				for _, stdin := range []string{"", "{", "[]", "null", `{"tool": 1}`, "\xff"} {
					if !same(t, fmt.Sprintf("%s %q", a, stdin), []string{"hook", a}, stdin, []string{"HOME=" + dir}) {
						t.Errorf("%s was not taken", a)
					}
				}
			}
			here := fmt.Sprintf(`{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": %q, "tool_name": "Bash", "tool_input": {"command": "git status"}}`, work)
			for _, args := range [][]string{
				{"hook", "claude-code", "--mode", "advise"}, {"hook", "claude-code", "PreToolUse", "--mode", "gate", "--unserved", "defer", "--host-timeout", "600s"},
				{"hook", "claude-code", "--unserved", "deny"}, {"hook", "claude-code", "--host-timeout", "60s"},
			} {
				if !same(t, world, args, here, []string{"HOME=" + dir}) {
					t.Errorf("%q was not taken", args)
				}
			}
		})
	}
}

// What tells of an end is done by the commands, with what was read of it.
func TestEndsAreLeft(t *testing.T) {
	dir := home(t, nil)
	t.Chdir(dir)
	var rest *Rest
	got := process(t, []string{"hook", "claude-code"}, `{"hook_event_name": "SessionEnd", "session_id": "s1"}`, []string{"HOME=" + dir}, func(p ground.Process) int {
		code, done := answer(p, &rest)
		if done {
			t.Error("it was taken to be done")
		}
		return code
	})
	if want := (Rest{filepath.Join(dir, ".pi", "agent"), "s1"}); rest == nil || *rest != want || got != (outcome{}) {
		t.Errorf("left %+v, want %+v; %+v", rest, want, got)
	}
}

// What is no plain form is left alone: nothing is read, nothing is said.
func TestOtherFormsAreLeftAlone(t *testing.T) {
	dir := home(t, nil)
	t.Chdir(dir)
	for _, line := range []string{
		"check bash", "check --help", "check bash --help", "check -- bash", "check bash ls extra", "check --json bash", "check --json --help x", "check --agent scout bash ls",
		"check bash ls --json", "check --json=true bash ls", "check bash -", "check bash -l", "check - ls", "check --batch x", "check --inptu x",
		"hook install claude-code", "hook status", "hook uninstall codex", "hook --help", "hook claude-code --help", "hook claude-code -h", "hook nobody", "hook claude-code a b",
		"hook claude-code --mode", "hook claude-code --mode=advise", "hook claude-code --mode maybe", "hook claude-code --unserved x", "hook claude-code --host-timeout soon",
		"hook claude-code --host-timeout -1s", "hook --mode gate claude-code", "hook claude-code -- x", "hook claude-code --mode gate x", "policy check", "ask ls", "help check",
	} {
		args := strings.Fields(line)
		got := process(t, args, "{}", []string{"HOME=" + dir}, func(p ground.Process) int {
			var rest *Rest
			if _, done := answer(p, &rest); done || rest != nil {
				t.Errorf("%q was taken", line)
			}
			if at, err := p.Stdin.Seek(0, io.SeekCurrent); err != nil || at != 0 {
				t.Errorf("%q: stdin was read: %d, %v", line, at, err)
			}
			return 0
		})
		if got != (outcome{}) {
			t.Errorf("%q: %+v", line, got)
		}
	}
	for _, args := range [][]string{{"check", "bash", ""}, {"check", "", "ls"}, {"hook", ""}, {"hook", "claude-code", ""}} {
		if same(t, "", args, "{}", []string{"HOME=" + dir}) {
			t.Errorf("%q was taken", args)
		}
	}
	if same(t, "no home", []string{"check", "bash", "ls"}, "", []string{"PATH=/bin"}) {
		t.Error("it was taken where only the user database knows the home")
	}
}

// A judgement that panics ends as with the commands: with the code for a bug.
func TestPanicsAreTheSame(t *testing.T) {
	dir := home(t, nil)
	t.Chdir(dir)
	p := func(p ground.Process) int { return p.Guarded(func() int { panic("boom") }) }
	if got := process(t, nil, "", nil, p); got != (outcome{"", "nod: internal error: boom\n", 70}) {
		t.Errorf("%+v", got)
	}
}
