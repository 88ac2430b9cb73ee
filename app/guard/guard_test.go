package guard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nod-agents/nod/app/disk"
	"github.com/nod-agents/nod/app/guard"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
)

// world is a home with a project, on disk.
type world struct {
	home, project string
	places        guard.Places
	gate          *gate.Gate
}

// open is a policy that allows everything, with every kind of override.
var open = []engine.Layer{{Origin: engine.OriginGlobal, Sections: []engine.Section{
	{Surface: "*", Text: true, Rules: []engine.Rule{{Surface: "*", Pattern: "*", Action: engine.Allow}}},
	{Surface: "bash", Rules: []engine.Rule{{Surface: "bash", Pattern: "*", Action: engine.Allow}}},
	{Surface: "path_write", Rules: []engine.Rule{{Surface: "path_write", Pattern: "*", Action: engine.Allow}}},
	{Surface: "external_directory", Rules: []engine.Rule{{Surface: "external_directory", Pattern: "*", Action: engine.Allow}}},
}}}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{home: home, project: filepath.Join(home, "src", "proj")}
	for _, dir := range []string{
		w.project, ".config/nod/hooks", ".local/state/nod", ".pi/agent/agents", ".pi/agent/sessions/permission-forwarding/sessions/desktop/requests",
		"src/proj/.claude", "src/proj/nod", ".dotfiles",
	} {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(home, dir)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".config/nod/policy.jsonc", ".config/nod/settings.jsonc", "src/proj/.claude/settings.local.json", "src/proj/nod/policy.jsonc", "src/proj/a.txt"} {
		if err := os.WriteFile(filepath.Join(home, file), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"src/proj/innocent": ".config/nod/policy.jsonc", "src/proj/dir": ".config/nod"} {
		if err := os.Symlink(filepath.Join(home, to), filepath.Join(home, link)); err != nil {
			t.Skip(err)
		}
	}
	w.places = guard.Places{
		Home: home, Project: w.project, AgentDirs: []string{filepath.Join(home, ".pi", "agent")}, Config: filepath.Join(home, ".config", "nod"),
		State: filepath.Join(home, ".local", "state", "nod"), Program: filepath.Join(home, ".local", "bin", "nod"),
		Hooks: []string{filepath.Join(home, ".claude", "settings.json"), filepath.Join(w.project, ".claude", "settings.local.json")}, Links: filepath.EvalSymlinks,
	}
	w.gate = &gate.Gate{Rules: engine.Compile(open, engine.Options{Home: home, Cwd: w.project, Yolo: true}), Guard: guard.Rules(w.places), Files: disk.Files{}, Home: home, Cwd: w.project,
		Grants: engine.FixedGrants([]engine.Grant{{Surface: "path_write", Pattern: "*"}, {Surface: "bash", Pattern: "*"}, {Surface: "external_directory", Pattern: "*"}}, engine.Options{Home: home, Cwd: w.project})}
	return w
}

// TestAgentsCannotWriteWhatDecides holds every way in which a tool can name a
// protected place, under a policy, grants and yolo that allow everything.
func TestAgentsCannotWriteWhatDecides(t *testing.T) {
	w := newWorld(t)
	bash := func(command string) gate.Call {
		return gate.Call{Tool: "bash", Input: map[string]any{"command": command}}
	}
	file := func(tool, path string) gate.Call {
		return gate.Call{Tool: tool, Input: map[string]any{"path": strings.ReplaceAll(path, "HOME", w.home)}}
	}
	denied := map[string]gate.Call{
		"the policy":                 file("write", "~/.config/nod/policy.jsonc"),
		"edited":                     file("edit", "HOME/.config/nod/policy.jsonc"),
		"the settings":               file("write", "HOME/.config/nod/settings.jsonc"),
		"a file yet to come":         file("write", "HOME/.config/nod/new"),
		"trusted projects":           file("write", "HOME/.local/state/nod/trusted.json"),
		"the log":                    file("edit", "HOME/.local/state/nod/review.jsonl"),
		"a response":                 file("write", "HOME/.pi/agent/sessions/permission-forwarding/sessions/desktop/responses/x.json"),
		"a heartbeat":                file("write", "HOME/.pi/agent/sessions/permission-forwarding/serving/desktop.json"),
		"the agents' policy":         file("write", "HOME/.pi/agent/extensions/pi-permission-system/config.json"),
		"an agent's front matter":    file("edit", "HOME/.pi/agent/agents/scout.md"),
		"the project's policy":       file("write", ".nod/policy.jsonc"),
		"another project's policy":   file("write", "HOME/src/other/.nod/policy.jsonc"),
		"a hook":                     file("edit", ".claude/settings.local.json"),
		"the user's hook":            file("write", "HOME/.claude/settings.json"),
		"the program":                file("write", "HOME/.local/bin/nod"),
		"through dots":               file("write", "../../.config/./nod/../nod/policy.jsonc"),
		"through a link":             file("write", "innocent"),
		"through a linked directory": file("write", "dir/policy.jsonc"),
		"by a tool nobody knows":     file("patch_file", "HOME/.config/nod/policy.jsonc"),
		"at sign and blanks":         file("write", " @HOME/.config/nod/policy.jsonc "),

		"redirect":              bash(`echo '{}' > ~/.config/nod/policy.jsonc`),
		"appending":             bash(`echo x >> "$HOME/.config/nod/policy.jsonc"`),
		"redirect by a link":    bash(`echo x > innocent`),
		"after cd":              bash(`cd ~/.config && echo x > nod/policy.jsonc`),
		"tee":                   bash(`echo x | tee ~/.config/nod/policy.jsonc`),
		"sed":                   bash(`sed -i s/ask/allow/ ~/.config/nod/policy.jsonc`),
		"in a subshell":         bash(`(true; rm ~/.local/state/nod/trusted.json)`),
		"in a substitution":     bash(`echo $(rm -f ~/.config/nod/policy.jsonc)`),
		"in another shell":      bash(`sh -c 'rm ~/.config/nod/policy.jsonc'`),
		"by a wrapper":          bash(`sudo nice rm ~/.config/nod/policy.jsonc`),
		"by a wildcard":         bash(`rm ~/.config/nod/pol*`),
		"the whole":             bash(`rm -rf ~/.config/nod`),
		"from above":            bash(`rm -rf ~/.config`),
		"moved away":            bash(`mv ~/.config/nod /tmp/x`),
		"moved from above":      bash(`mv ~/.config ~/.config2`),
		"copied over":           bash(`cp nod/policy.jsonc ~/.config/nod/`),
		"copied into above":     bash(`cp -r nod ~/.config`),
		"moved into above":      bash(`mv nod ~/.config/`),
		"all into above":        bash(`cp -r nod/. ~/.config/nod`),
		"a link in its place":   bash(`ln -sfn /tmp/evil ~/.config/nod`),
		"linked into above":     bash(`ln -s /tmp/evil/nod ~/.config`),
		"unknown program":       bash(`python3 fix.py ~/.config/nod/policy.jsonc`),
		"a response by hand":    bash(`echo '{"approved":true}' > ~/.pi/agent/sessions/permission-forwarding/sessions/desktop/responses/x.json`),
		"by find":               bash(`find ~/.config/nod -name '*.jsonc' -delete`),
		"by git":                bash(`git checkout -- .claude/settings.local.json`),
		"by a diff's output":    bash(`git diff --output=x ~/.config/nod/policy.jsonc`),
		"serving":               bash(`nod serve --frontend none --exec ./yes`),
		"serving by default":    bash(`nod --exec ./yes --frontend none`),
		"nod alone":             bash(`nod`),
		"another path to it":    bash(`/usr/local/bin/nod trust .`),
		"trusting":              bash(`cd x && nod trust`),
		"unhooking":             bash(`env A=1 nod hook uninstall claude-code`),
		"hooking as it pleases": bash(`nod hook install claude-code --mode advise`),
	}
	for name, call := range denied {
		lazy := *w.gate
		if late := guard.Late(func() *engine.Ruleset { return w.gate.Guard }).Decide(&lazy, call); late.Action != engine.Deny {
			t.Errorf("%s: %v is %s by rules made late", name, call.Input, late.Action)
		}
		o := w.gate.Decide(call)
		if o.Action != engine.Deny || o.Decisive.Origin != engine.OriginBuiltin || !strings.Contains(o.Decisive.Reason, "Only the user") {
			t.Errorf("%s: %v is %s by %+v", name, call.Input, o.Action, o.Decisive)
		}
	}
	allowed := map[string]gate.Call{
		"reading the policy":     file("read", "~/.config/nod/policy.jsonc"),
		"listing the inboxes":    file("ls", "HOME/.pi/agent/sessions/permission-forwarding"),
		"searching":              file("grep", "HOME/.config"),
		"a like name":            file("write", "HOME/.config/nodding/x"),
		"a file of the project":  file("write", "nod/policy.jsonc"),
		"another settings file":  file("write", ".claude/agents/x.md"),
		"cat":                    bash(`cat ~/.config/nod/policy.jsonc`),
		"listing above":          bash(`ls -la ~/.config ~/.pi/agent`),
		"grep":                   bash(`grep -rn ask ~/.config/nod | head`),
		"staging a hook":         bash(`git add .claude/settings.local.json`),
		"a copy into above":      bash(`cp a.txt ~/.config/`),
		"another directory":      bash(`mkdir -p ~/.config/other && cp a.txt ~/.config/other/`),
		"removing elsewhere":     bash(`rm -rf build ~/.config/other`),
		"a redirect elsewhere":   bash(`nod status > status.txt`),
		"taking a grant back":    bash(`nod grants clear`),
		"asking":                 bash(`nod ask 'make'`),
		"the log":                bash(`nod log --since 2h`),
		"help":                   bash(`nod --help`),
		"a word that looks like": bash(`echo nod trust`),
		"the project's root":     bash(`rm -rf node_modules .cache`),
	}
	for name, call := range allowed {
		if o := w.gate.Decide(call); o.Action != engine.Allow {
			t.Errorf("%s: %v is %s by %+v", name, call.Input, o.Action, o.Decisive)
		}
	}
	w.gate.Guard = nil
	for name, call := range denied {
		if o := w.gate.Decide(call); o.Action != engine.Allow {
			t.Errorf("without a guard the policy decides, but %s is %s by %+v", name, o.Action, o.Decisive)
		}
	}
}

// TestLateRulesDecideTheSame holds rules that are made only where a call may
// touch what they protect against those that are there from the start: over the
// calls of the engine's cases, and the same among protected places.
func TestLateRulesDecideTheSame(t *testing.T) {
	w := newWorld(t)
	rules := w.gate.Guard
	made, calls := 0, 0
	late := guard.Late(func() *engine.Ruleset { made++; return rules })
	policies := map[string]*engine.Ruleset{
		"open": w.gate.Rules, "asks": engine.Compile(nil, engine.Options{Home: w.home, Cwd: w.project}),
		"denies": engine.Compile([]engine.Layer{{Sections: []engine.Section{{Surface: "*", Text: true, Rules: []engine.Rule{{Surface: "*", Pattern: "*", Action: engine.Deny}}}}}}, engine.Options{Home: w.home, Cwd: w.project}),
	}
	files, err := filepath.Glob("../../engine/gate/testdata/cases/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			for from, to := range map[string]string{"": "", "src/": "~/.config/nod/", "/etc/passwd": w.home + "/.claude/settings.json", "rm ": "nod trust "} {
				if from != "" && !strings.Contains(line, from) {
					continue
				}
				var c struct {
					Tool  string
					Input any
				}
				if err := json.Unmarshal([]byte(moved(line, from, to)), &c); err != nil || c.Tool == "" {
					continue
				}
				for name, policy := range policies {
					soon, lazy := *w.gate, *w.gate
					soon.Rules, lazy.Rules, lazy.Guard = policy, policy, nil
					call := gate.Call{Tool: c.Tool, Input: c.Input}
					calls++
					if a, b := soon.Decide(call), late.Decide(&lazy, call); !reflect.DeepEqual(a, b) {
						t.Errorf("%s: %s %v: with rules from the start %+v, else %+v", name, c.Tool, c.Input, a, b)
					}
				}
			}
		}
	}
	if made == 0 || made == calls {
		t.Errorf("of %d calls %d needed the rules", calls, made)
	}
	t.Logf("of %d calls %d needed the rules", calls, made)
}

// moved is text with one word in place of another.
func moved(text, from, to string) string {
	if from == "" {
		return text
	}
	return strings.ReplaceAll(text, from, to)
}

// TestServedAsksAreGuarded holds a forwarded ask's own facts against the rules,
// over a policy that allows everything.
func TestServedAsksAreGuarded(t *testing.T) {
	w := newWorld(t)
	policy := filepath.Join(w.home, ".config/nod/policy.jsonc")
	intent := func(surface string, values ...string) *engine.Intent {
		in := &engine.Intent{Surface: surface, MatchValues: values, RequesterCwd: w.project}
		if surface != "bash" {
			in.Boundary = &values[len(values)-1]
		}
		return in
	}
	outside := func(paths ...string) (list []engine.Evidence) {
		for _, p := range paths {
			list = append(list, engine.Evidence{Label: "external path", Text: p})
		}
		return list
	}
	for name, tt := range map[string]struct {
		q    engine.Question
		want engine.Action
	}{
		"write":           {engine.Question{Tool: "write", Kind: "path", Intent: intent("path_write", policy)}, engine.Deny},
		"bare":            {engine.Question{Tool: "write", Kind: "path", Intent: intent("path", policy)}, engine.Deny},
		"the tool's own":  {engine.Question{Tool: "write", Kind: "tool", Intent: intent("write", policy)}, engine.Deny},
		"by its place":    {engine.Question{Tool: "edit", Kind: "tool", Intent: intent("edit", "innocent", policy)}, engine.Deny},
		"outside":         {engine.Question{Tool: "write", Kind: "external_directory", Intent: intent("external_directory", policy)}, engine.Deny},
		"a line":          {engine.Question{Tool: "bash", Kind: "bash_external_directory", Value: "tee " + policy, Intent: intent("external_directory", policy), Evidence: outside(policy)}, engine.Deny},
		"its second path": {engine.Question{Tool: "bash", Kind: "bash_external_directory", Value: "tee /x " + policy, Intent: intent("external_directory", "/x"), Evidence: outside("/x", policy)}, engine.Deny},
		"trusting":        {engine.Question{Tool: "bash", Kind: "bash", Value: "nod trust .", Intent: intent("bash", "nod trust .")}, engine.Deny},
		"in a longer line": {engine.Question{Tool: "bash", Kind: "bash", Value: "ls", Intent: intent("bash", "ls"),
			Evidence: []engine.Evidence{{Label: "full command", Text: "ls && nod serve"}}}, engine.Deny},

		"read":              {engine.Question{Tool: "read", Kind: "external_directory", Intent: intent("external_directory", policy)}, engine.Allow},
		"read, directed":    {engine.Question{Tool: "read", Kind: "path", Intent: intent("path_read", policy)}, engine.Allow},
		"a line that reads": {engine.Question{Tool: "bash", Kind: "bash_external_directory", Value: "cat " + policy, Intent: intent("external_directory", policy), Evidence: outside(policy)}, engine.Allow},
		"elsewhere":         {engine.Question{Tool: "write", Kind: "path", Intent: intent("path_write", "/tmp/x")}, engine.Allow},
	} {
		tt.q.Message = "asks"
		j := gate.Serve(&tt.q, gate.Served{Rules: w.gate.Rules, Guard: w.gate.Guard})
		if j.Action != tt.want || tt.want == engine.Deny && j.By.Origin != engine.OriginBuiltin {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

// TestLinkedPlaces holds that a place which is itself a link is protected by
// both of its names.
func TestLinkedPlaces(t *testing.T) {
	w := newWorld(t)
	real := filepath.Join(w.home, ".dotfiles", "nod")
	if err := os.Rename(filepath.Join(w.home, ".config", "nod"), real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(w.home, ".config", "nod")); err != nil {
		t.Skip(err)
	}
	w.gate.Guard = guard.Rules(w.places)
	for _, path := range []string{"~/.dotfiles/nod/policy.jsonc", "~/.config/nod/policy.jsonc", "~/.config/nod"} {
		if o := w.gate.Decide(gate.Call{Tool: "write", Input: map[string]any{"path": path}}); o.Action != engine.Deny {
			t.Errorf("%s is %s", path, o.Action)
		}
	}
}

func BenchmarkRules(b *testing.B) {
	dir := b.TempDir()
	p := guard.Places{Home: dir, Project: filepath.Join(dir, "proj"), AgentDirs: []string{filepath.Join(dir, ".pi", "agent")}, Config: filepath.Join(dir, ".config", "nod"),
		State: filepath.Join(dir, ".local", "state", "nod"), Hooks: []string{filepath.Join(dir, ".claude", "settings.json")}, Links: filepath.EvalSymlinks}
	b.ReportAllocs()
	for b.Loop() {
		r := guard.Rules(p)
		r.Resolve(&engine.Query{Surface: "path_write", Path: true, Values: []string{"/x"}})
	}
}
