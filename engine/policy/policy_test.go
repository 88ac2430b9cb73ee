package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nod-agents/nod/engine"
)

// disk is a file system of texts. Each write makes a new state.
type disk struct {
	mu    sync.Mutex
	files map[string]string
	ids   map[string]uint64
	next  uint64
	reads int
	deny  map[string]bool
}

func (d *disk) write(name, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files, d.ids, d.deny = map[string]string{}, map[string]uint64{}, map[string]bool{}
	}
	d.next++
	d.files[name], d.ids[name] = text, d.next
}

func (d *disk) Identify(name string) (Identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.files[name]; !ok {
		return Identity{}, fs.ErrNotExist
	}
	return Identity{Inode: d.ids[name]}, nil
}

func (d *disk) Read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	if d.deny[name] {
		return nil, fs.ErrPermission
	}
	return []byte(d.files[name]), nil
}

const (
	globalPeer  = "/a/extensions/pi-permission-system/config.json"
	globalNod   = "/c/policy.jsonc"
	projectPeer = "/p/.pi/extensions/pi-permission-system/config.json"
	projectNod  = "/p/.nod/policy.jsonc"
	agentFileA  = "/a/agents/x.md"
	agentFileP  = "/p/.pi/agents/x.md"
)

func places() Places {
	return Places{AgentDir: "/a", ConfigDir: "/c", Project: "/p", Trusted: true, Agent: "x", Home: "/home/u"}
}

func resolve(p *Policy, surface, value string) engine.Match {
	return p.Ruleset(engine.Options{Home: "/home/u", Cwd: "/p", Now: time.Unix(0, 0)}).
		Resolve(&engine.Query{Surface: surface, Values: []string{value}})
}

func TestScopes(t *testing.T) {
	type files map[string]string
	rule := func(pattern, action string) string {
		return fmt.Sprintf(`{"permission": {"bash": {%q: %q}}}`, pattern, action)
	}
	front := func(action string) string {
		return "---\nname: x\npermission:\n  bash: " + action + "\n---\nYou are x.\n"
	}
	tests := []struct {
		name   string
		files  files
		change func(*Places)
		want   string // action and origin
		line   int
	}{
		{"nothing", files{}, nil, "ask builtin", 0},
		{"global of the peer", files{globalPeer: `{"permission": {"bash": "deny"}}`}, nil, "deny global", 1},
		{"Nod's own global is above the peer's", files{globalPeer: rule("ls", "deny"), globalNod: "// mine\n{\n  \"permission\": {\"bash\": {\n    \"ls\": \"allow\"}}}"}, nil, "allow global", 4},
		{"project over global", files{globalNod: rule("ls", "deny"), projectPeer: rule("ls", "allow")}, nil, "allow project", 1},
		{"Nod's own project over the peer's", files{projectPeer: rule("ls", "deny"), projectNod: rule("ls", "allow")}, nil, "allow project", 1},
		{"agent over project", files{projectNod: rule("ls", "allow"), agentFileA: front("deny")}, nil, "deny agent", 4},
		{"project agent over agent", files{agentFileA: front("deny"), agentFileP: front("allow")}, nil, "allow project-agent", 4},
		{"an untrusted project is not read", files{globalNod: rule("ls", "deny"), projectPeer: "{", projectNod: rule("ls", "allow"), agentFileP: front("allow")}, func(p *Places) { p.Trusted = false }, "deny global", 1},
		{"an agent's own file needs no trust", files{agentFileA: front("allow")}, func(p *Places) { p.Trusted = false }, "allow agent", 4},
		{"no agent", files{agentFileA: front("deny")}, func(p *Places) { p.Agent = "" }, "ask builtin", 0},
		{"another case is another agent", files{agentFileA: front("deny")}, func(p *Places) { p.Agent = "X" }, "ask builtin", 0},
		{"one file instead of the global ones", files{globalPeer: rule("ls", "deny"), globalNod: rule("ls", "deny"), "/f.jsonc": rule("ls", "allow")}, func(p *Places) { p.Global = "/f.jsonc" }, "allow global", 1},
		{"that file missing", files{globalPeer: rule("ls", "allow")}, func(p *Places) { p.Global = "/f.jsonc" }, "ask fail-closed", 0},
		{"inline, a whole file", files{globalPeer: rule("ls", "deny")}, func(p *Places) { p.Inline = []byte(rule("ls", "allow")) }, "allow global", 1},
		{"inline, rules alone", files{globalPeer: rule("ls", "deny")}, func(p *Places) { p.Inline = []byte(`{"bash": "allow"}`) }, "allow global", 1},
		{"broken global", files{globalPeer: "{"}, nil, "ask fail-closed", 0},
		{"broken global does not clamp the project", files{globalPeer: "{", projectPeer: rule("ls", "allow")}, nil, "allow project", 1},
		{"one of two global files broken", files{globalPeer: rule("ls", "allow"), globalNod: "{"}, nil, "ask fail-closed", 1},
		{"and its denials stay", files{globalPeer: rule("ls", "deny"), globalNod: "{"}, nil, "deny global", 1},
		{"broken project clamps", files{globalPeer: rule("ls", "allow"), projectNod: "{"}, nil, "ask fail-closed", 1},
		{"and keeps denials", files{globalPeer: rule("ls", "deny"), projectNod: "{"}, nil, "deny global", 1},
		{"broken agent clamps", files{globalPeer: rule("ls", "allow"), agentFileA: front("dney")}, nil, "ask fail-closed", 1},
		{"broken project agent clamps", files{globalPeer: rule("ls", "allow"), agentFileP: front("[deny]")}, nil, "ask fail-closed", 1},
		{"an agent name that leads elsewhere clamps", files{globalPeer: rule("ls", "allow"), "/a/x.md": front("allow")}, func(p *Places) { p.Agent = "../x" }, "ask fail-closed", 1},
		{"a nested agent", files{"/a/agents/sub/y.md": front("deny")}, func(p *Places) { p.Agent = "sub/y" }, "deny agent", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &disk{}
			for name, text := range tt.files {
				d.write(name, text)
			}
			where := places()
			if tt.change != nil {
				tt.change(&where)
			}
			m := resolve(NewLoader(d, false).Load(where), "bash", "ls")
			if got := m.Action.String() + " " + string(m.Origin); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			line := 0
			if m.Rule != nil {
				line = m.Rule.Pos.Line
			}
			if line != tt.line {
				t.Errorf("rule on line %d, want %d", line, tt.line)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	d := &disk{}
	d.write(globalPeer, `{"permission": {"bash": "allow"}}`)
	d.write(projectNod, `{}`)
	d.deny[projectNod] = true
	p := NewLoader(d, false).Load(places())
	if m := resolve(p, "bash", "ls"); m.Action != engine.Ask || m.Origin != engine.OriginFailClosed {
		t.Errorf("got %+v", m)
	}
	if err := p.Err(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	d.deny[projectNod] = false
	if m := resolve(NewLoader(d, false).Load(places()), "bash", "ls"); m.Action != engine.Allow {
		t.Errorf("mended: %+v", m)
	}
}

func TestUntrustedIsSaid(t *testing.T) {
	d := &disk{}
	where := places()
	where.Trusted = false
	l := NewLoader(d, false)
	if l.Load(where).Untrusted {
		t.Error("there is nothing to trust")
	}
	d.write(agentFileP, "---\n---\n")
	if !l.Load(where).Untrusted {
		t.Error("not said")
	}
	if d.reads != 0 {
		t.Error("an untrusted file was read")
	}
}

func TestCacheByIdentity(t *testing.T) {
	d := &disk{}
	d.write(globalPeer, `{"permission": {"bash": "allow"}}`)
	l := NewLoader(d, false)
	opt := engine.Options{Home: "/home/u", Cwd: "/p", Now: time.Unix(0, 0)}
	_, first := l.Rules(places(), opt)
	if _, again := l.Rules(places(), opt); again != first || d.reads != 1 {
		t.Errorf("compiled anew, or %d reads", d.reads)
	}
	d.write(globalPeer, `{"permission": {"bash": "deny"}}`)
	if _, changed := l.Rules(places(), opt); changed == first || d.reads != 2 {
		t.Errorf("a change is not seen, %d reads", d.reads)
	}
	delete(d.files, globalPeer)
	_, gone := l.Rules(places(), opt)
	if m := gone.Resolve(&engine.Query{Surface: "bash", Values: []string{"ls"}}); m.Origin != engine.OriginBuiltin {
		t.Errorf("a removed file counts: %+v", m)
	}
	other := opt
	other.Cwd = "/q"
	if _, r := l.Rules(places(), other); r == gone {
		t.Error("another directory has the same rules")
	}
}

func TestLifetimeEndsInTheCache(t *testing.T) {
	d := &disk{}
	d.write(globalNod, `{"permission": {"bash": {"*": "ask", "make *": {"action": "allow", "until": "2030-01-02T00:00:00Z"}}}}`)
	l := NewLoader(d, false)
	opt := engine.Options{Now: time.Date(2030, 1, 1, 23, 59, 59, 0, time.UTC)}
	q := &engine.Query{Surface: "bash", Values: []string{"make x"}}
	if _, r := l.Rules(places(), opt); r.Resolve(q).Action != engine.Allow {
		t.Error("not yet over")
	}
	opt.Now = opt.Now.Add(time.Second)
	if _, r := l.Rules(places(), opt); r.Resolve(q).Action != engine.Ask || !r.Expires().IsZero() {
		t.Error("over, and still counting")
	}
}

func TestKeepsLastGood(t *testing.T) {
	d := &disk{}
	d.write(globalNod, `{"permission": {"bash": "allow"}, "yoloMode": true}`)
	l := NewLoader(d, true)
	l.Load(places())
	d.write(globalNod, `{"permission": {"bash": "alow"}}`)
	p := l.Load(places())
	if m := resolve(p, "bash", "ls"); m.Action != engine.Allow || !p.Settings.Yolo {
		t.Errorf("the last good state is lost: %+v", m)
	}
	if p.Err() == nil || !p.Files[1].Stale {
		t.Errorf("the error is not told: %+v", p.Files)
	}
	d.write(globalNod, `{`)
	if m := resolve(l.Load(places()), "bash", "ls"); m.Action != engine.Allow {
		t.Errorf("broken twice: %+v", m)
	}
	d.write(globalNod, `{"permission": {"bash": "deny"}}`)
	if p := l.Load(places()); resolve(p, "bash", "ls").Action != engine.Deny || p.Err() != nil {
		t.Error("mended, and not counting")
	}
	delete(d.files, globalNod)
	if m := resolve(l.Load(places()), "bash", "ls"); m.Origin != engine.OriginBuiltin {
		t.Errorf("a removed file counts: %+v", m)
	}
	d.write(globalNod, `{`)
	if m := resolve(l.Load(places()), "bash", "ls"); m.Origin != engine.OriginFailClosed {
		t.Errorf("no good state to keep: %+v", m)
	}
}

// TestConcurrentLoads changes a file while others judge by it: each sees one
// whole state or the other.
func TestConcurrentLoads(t *testing.T) {
	d := &disk{}
	states := []string{`{"permission": {"bash": "allow", "read": "allow"}}`, `{"permission": {"bash": "deny", "read": "deny"}}`, `{"permission": `}
	d.write(globalNod, states[0])
	l := NewLoader(d, true)
	l.Load(places())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 300 {
				_, r := l.Rules(places(), engine.Options{Cwd: "/p"})
				a := r.Resolve(&engine.Query{Surface: "bash", Values: []string{"ls"}})
				b := r.Resolve(&engine.Query{Surface: "read", Values: []string{"/p/a"}})
				if a.Action != b.Action || a.Action == engine.Ask {
					t.Errorf("half a policy: %v %v", a.Action, b.Action)
					return
				}
			}
		})
	}
	for i := range 300 {
		d.write(globalNod, states[i%3])
	}
	all.Wait()
}

func TestSettings(t *testing.T) {
	d := &disk{}
	d.write(globalPeer, `{"yoloMode": true, "shellTools": {"exec": {"commandArgument": "cmd"}, "sh": {"commandArgument": "c"}}, "piInfrastructureReadPaths": ["/x"], "authorizerChain": ["a"], "forwardingTimeoutMs": 5, "promptMaxRows": "whatever"}`)
	d.write(globalNod, `{"links": {"a": {"command": ["/a"]}}, "legacyRequests": "resolve"}`)
	d.write(projectPeer, `{"yoloMode": false, "shellTools": {"exec": {"commandArgument": "script"}}, "authorizerChain": []}`)
	s := NewLoader(d, false).Load(places()).Settings
	if s.Yolo || s.ShellTools["exec"].CommandArgument != "script" || s.ShellTools["sh"].CommandArgument != "c" ||
		len(s.InfrastructureReadPaths) != 1 || len(s.AuthorizerChain) != 0 || s.ForwardingTimeout != 5*time.Millisecond ||
		s.Links["a"].Timeout() != 5*time.Second || !s.ResolveLegacyRequests {
		t.Errorf("got %+v", s)
	}
	d.write(projectPeer, `{"yoloMode": tru}`)
	if s := NewLoader(d, false).Load(places()).Settings; !s.Yolo {
		t.Error("a broken project file changed the settings")
	}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		name, text string
		dialect    Dialect
		want       []string // parts of the first error
	}{
		{"syntax", "{\n  \"permission\": {\n    \"bash\" \"ask\"\n}}", Peer, []string{"f:3:12: ", "not valid JSON", "mend"}},
		{"empty", " \n", Peer, []string{"f:1:1: ", "empty"}},
		{"trailing comma", "{\"permission\":{\"*\":\"allow\",}}", Peer, []string{"f:1:", "comma"}},
		{"trailing comma in a list", `{"authorizerChain": ["a",]}`, Peer, []string{"comma"}},
		{"byte-order mark", "\ufeff{}", Peer, []string{"f:1:1: ", "byte-order mark"}},
		{"not UTF-8", "{\"permission\": {\"bash\": {\"\xff\": \"ask\"}}}", Peer, []string{"f:1:27: ", "UTF-8"}},
		{"an unknown key", "{\n \"yolomode\": true}", Peer, []string{"f:2:2: ", "yolomode: unknown key", `did you mean "yoloMode"?`}},
		{"another unknown key", `{"debugLogs": true}`, Peer, []string{`did you mean "debugLog"?`}},
		{"nothing near", `{"colour": 1}`, Peer, []string{"unknown key", "nearest known key is"}},
		{"an action", `{"permission": {"bash": {"rm *": "dney"}}}`, Peer, []string{"f:1:34: permission.bash.rm *: ", "dney", `did you mean "deny"?`}},
		{"an action's case", `{"permission": {"bash": "Allow"}}`, Peer, []string{`did you mean "allow"?`}},
		{"null", `{"permission": {"bash": null}}`, Peer, []string{"permission.bash: ", "null"}},
		{"links in the peer's file", `{"links": {}}`, Peer, []string{"f:1:2: links: ", "only Nod knows this", "policy.jsonc"}},
		{"glob in the peer's file", `{"permission": {"path": {"glob:*.c": "deny"}}}`, Peer, []string{"permission.path.glob:*.c", "only Nod knows this"}},
		{"examples in the peer's file", `{"permission": {"bash": {"a": {"action": "deny", "match": ["a"]}}}}`, Peer, []string{"permission.bash.a.match", "only Nod knows this"}},
		{"a lifetime in the peer's file", `{"permission": {"bash": {"a": {"action": "deny", "until": "2030-01-01"}}}}`, Peer, []string{".until", "only Nod knows this"}},
		{"an object that allows in the peer's file", `{"permission": {"bash": {"a": {"action": "allow"}}}}`, Peer, []string{"can only be deny", `"allow"`}},
		{"a glob on bash", `{"permission": {"bash": {"glob:*.c": "deny"}}}`, Nod, []string{"a glob is for paths only"}},
		{"a bad glob", `{"permission": {"path": {"glob:[": "deny"}}}`, Nod, []string{"not a valid glob"}},
		{"an example that does not match", `{"permission": {"bash": {"npm *": {"action": "deny", "match": ["npx"]}}}}`, Nod, []string{"f:1:64: ", "npm *.match", `does not match "npx"`}},
		{"an example that matches", `{"permission": {"bash": {"npm*": {"action": "deny", "not_match": ["npmx"]}}}}`, Nod, []string{"not_match", `matches "npmx"`}},
		{"a rule's unknown key", `{"permission": {"bash": {"npm*": {"action": "deny", "reson": "x"}}}}`, Nod, []string{`did you mean "reason"?`}},
		{"a link without a command", `{"links": {"j": {}}}`, Nod, []string{"links.j: command is missing"}},
		{"deep", strings.Repeat(`{"permission":`, 10000), Nod, []string{"nested more than"}},
		{"deep lists", strings.Repeat(`[`, 1<<20), Nod, []string{"nested more than"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			layer, _, _, err := Parse("f", []byte(tt.text), tt.dialect, "/home/u")
			var errs Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("got %v", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(errs[0].Error(), part) {
					t.Errorf("%q lacks %q", errs[0], part)
				}
			}
			if errs[0].Remedy == "" {
				t.Errorf("%q has no remedy", errs[0])
			}
			if layer.Broken == nil || len(layer.Sections) != 0 {
				t.Errorf("a broken file has rules")
			}
		})
	}
}

func TestEveryErrorOfAFileIsTold(t *testing.T) {
	_, _, _, err := Parse("f", []byte(`{"a": 1, "permission": {"bash": "x", "": "ask", "mcp": {"": "y"}}}`), Peer, "")
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != 5 {
		t.Errorf("got %v", err)
	}
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct{ name, text, surface, value, want string }{
		{"a pattern written twice stands where it was last written", `{"permission":{"bash":{"rm *":"allow","*":"allow","rm *":"deny"}}}`, "bash", "rm x", "deny"},
		{"its earlier place is void", `{"permission":{"bash":{"rm *":"deny","*":"allow","rm *":"allow"}}}`, "bash", "rm x", "allow"},
		{"an integer-like deny counts wherever it stands", `{"permission":{"skill":{"7":"deny","*":"allow"}}}`, "skill", "7", "deny"},
		{"an integer-like ask too", `{"permission":{"skill":{"7":"ask","8":"deny","*":"allow"}}}`, "skill", "7", "ask"},
		{"an integer-like ask does not lift a denial", `{"permission":{"skill":{"7":"ask","*":"deny"}}}`, "skill", "7", "deny"},
		{"an integer-like allow counts after the catch-all", `{"permission":{"skill":{"*":"deny","7":"allow"}}}`, "skill", "7", "allow"},
		{"leading zeros are no integer", `{"permission":{"skill":{"07":"deny","*":"allow"}}}`, "skill", "07", "allow"},
		{"an integer-like allow keeps its place", `{"permission":{"skill":{"7":"allow","*":"deny"}}}`, "skill", "7", "deny"},
		{"escapes in keys are read", `{"permission":{"bash":{"r\u006d *":"deny"}}}`, "bash", "rm x", "deny"},
		{"slashes in strings are no comments", `{"permission":{"bash":{"curl http://x//y":"deny"}}}`, "bash", "curl http://x//y", "deny"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			layer, _, _, err := Parse("f", []byte(tt.text), Peer, "")
			if err != nil {
				t.Fatal(err)
			}
			r := engine.Compile([]engine.Layer{layer}, engine.Options{})
			if m := r.Resolve(&engine.Query{Surface: tt.surface, Values: []string{tt.value}}); m.Action.String() != tt.want {
				t.Errorf("got %+v", m)
			}
		})
	}
	_, _, warnings, _ := Parse("f", []byte("{\"permission\":{\"bash\":{\"a\":\"ask\",\n\"a\":\"deny\"}}}"), Peer, "")
	if len(warnings) != 1 || warnings[0].Pos.Line != 2 || !strings.Contains(warnings[0].Error(), "line 1") {
		t.Errorf("a key written twice: %v", warnings)
	}
}

// TestIntegerKeys holds that the place of a key that looks like a whole number
// never softens it, as a program in JavaScript may have moved it to the front,
// and that it decides nothing else.
func TestIntegerKeys(t *testing.T) {
	for _, tt := range []struct{ rules, value, want string }{
		{`{"7": "deny", "*": "allow"}`, "7", "deny"},
		{`{"7": "ask", "*": "allow"}`, "7", "ask"},
		{`{"7": "allow", "*": "deny"}`, "7", "deny"},
		{`{"7": "allow", "*": "ask"}`, "7", "ask"},
		{`{"7": "ask", "*": "deny"}`, "7", "deny"},
		{`{"*": "deny", "7": "allow"}`, "7", "allow"},
		{`{"*": "allow", "7": "deny"}`, "7", "deny"},
		{`{"7": "deny", "*": "allow", "7": "allow"}`, "7", "allow"}, // written twice: the last counts
		{`{"7": "deny", "*": "allow"}`, "8", "allow"},
		{`{"7": "deny", "*": "allow"}`, "77", "allow"},
		{`{"07": "deny", "*": "allow"}`, "07", "allow"}, // no number to JavaScript: it stands where it was written
		{`{"4294967295": "deny", "*": "allow"}`, "4294967295", "allow"},
		{`{"4294967294": "deny", "*": "allow"}`, "4294967294", "deny"},
		{`{"-1": "deny", "*": "allow"}`, "-1", "allow"},
		{`{"7": {"action": "deny", "reason": "r"}, "*": "allow"}`, "7", "deny"},
		{`{"0": "deny", "1": "ask", "*": "allow", "?": "allow"}`, "0", "deny"},
		{`{"0": "deny", "1": "ask", "*": "allow", "?": "allow"}`, "1", "ask"},
	} {
		d := &disk{}
		d.write(globalPeer, `{"permission": {"skill": `+tt.rules+`}}`)
		p := NewLoader(d, false).Load(places())
		if m := resolve(p, "skill", tt.value); m.Action.String() != tt.want || p.Err() != nil {
			t.Errorf("%s: %s gets %s, want %s; %v", tt.rules, tt.value, m.Action, tt.want, p.Err())
		}
	}
}

func TestFrontMatter(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{ // what `git x` gets, with bash allowed globally
		{"plain", "---\nname: a\npermission:\n  bash: deny\n---\nbody\n", "deny"},
		{"CRLF", "---\r\nname: a\r\npermission:\r\n  bash: deny\r\n---\r\n", "deny"},
		{"blanks after the rule", "---  \npermission:\n  bash: deny\n---\n", "deny"},
		{"no front matter", "permission:\n  bash: deny\n", "allow"},
		{"not at the top", "x\n---\npermission:\n  bash: deny\n---\n", "allow"},
		{"never closed", "---\npermission:\n  bash: deny\n", "ask"},
		{"only the opening", "---", "ask"},
		{"empty", "---\n---\n", "allow"},
		{"a longer closing rule", "---\npermission:\n  bash: deny\n-----\n", "deny"},
		{"another key with colons", "---\ndescription: reads: only\npermission:\n  bash: deny\n---\n", "deny"},
		{"another key is broken, the rules allow", "---\ndescription: [x\npermission:\n  bash: allow\n---\n", "allow"},
		{"the rules are broken too", "---\ndescription: a: b\npermission:\n  bash: [\n---\n", "ask"},
		{"broken without rules", "---\ndescription: a: b\n---\n", "allow"},
		{"tabs", "---\npermission:\n\tbash: deny\n---\n", "deny"},
		{"tabs that allow", "---\npermission:\n\tbash: allow\n---\n", "ask"},
		{"flow", "---\npermission: {bash: {\"git *\": deny}}\n---\n", "deny"},
		{"unquoted pattern", "---\npermission:\n  bash:\n    git *: deny\n---\n", "deny"},
		{"anchors", "---\nx: &no deny\npermission:\n  bash: *no\n---\n", "deny"},
		{"an unquoted star is no key", "---\npermission:\n  bash:\n    *: allow\n---\n", "ask"},
		{"list", "---\npermission:\n  bash:\n    - deny\n---\n", "ask"},
		{"nothing under permission", "---\npermission:\n---\n", "ask"},
		{"a scalar", "---\npermission: deny\n---\n", "ask"},
		{"an object with a reason", "---\npermission:\n  bash:\n    \"git *\":\n      action: deny\n      reason: no\n---\n", "deny"},
		{"an unrelated key", "---\npermissions:\n  bash: deny\n---\n", "allow"},
		{"text between rules", "---\nhello there\n---\n", "allow"},
		{"comments", "---\n# c\npermission: # c\n  # c\n  bash: deny # c\n---\n", "deny"},
		{"written twice, at its last place", "---\npermission:\n  bash:\n    git *: allow\n    \"*\": ask\n    git *: deny\n---\n", "deny"},
		{"refers to itself", "---\npermission: &a\n  bash: *a\n---\n", "ask"},
		{"UTF-16", "\xff\xfe-\x00-\x00-\x00\n\x00", "ask"},
		{"UTF-16 without its mark", "-\x00-\x00-\x00\n\x00", "ask"},
		{"UTF-16, the other way round", "\x00-\x00-\x00-\x00\n", "ask"},
		{"deep", "---\npermission: " + strings.Repeat("{a: ", 5000) + "\n---\n", "ask"},
		{"a laugh", "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\npermission: {bash: *g}\n---\n", "ask"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &disk{}
			d.write(globalPeer, `{"permission": {"bash": "allow"}}`)
			d.write(agentFileA, tt.text)
			p := NewLoader(d, false).Load(places())
			if m := resolve(p, "bash", "git x"); m.Action.String() != tt.want {
				t.Errorf("got %s (%s), want %s; %v", m.Action, m.Origin, tt.want, p.Err())
			}
		})
	}
}

// TestLongErrors: a file may hold keys and values of any length, and what is
// said of them is short and still says where and what helps.
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	for _, text := range []string{
		`{"` + long + `": 1}`,
		`{"permission": {"bash": "` + long + `"}}`,
		`{"permission": {"` + long + `": 1}}`,
		`{"permission": {"bash": {"x": {"` + long + `": 1}}}}`,
		`{"permission": {"read": {"glob:[` + long + `": "deny"}}}`,
	} {
		_, _, _, err := Parse("f", []byte(text), Nod, "/home/u")
		if err == nil {
			t.Fatalf("%.40s is taken", text)
		}
		if s := err.Error(); len(s) > 4000 || !strings.HasPrefix(s, "f:1:") || !strings.Contains(s, "; ") || !utf8.ValidString(s) {
			t.Errorf("%.40s: %d bytes: %.200s", text, len(s), s)
		}
	}
}

// TestUnreadableRemedy: what cannot be read is said with what helps.
func TestUnreadableRemedy(t *testing.T) {
	d := &disk{}
	d.write(globalPeer, `{}`)
	d.deny[globalPeer] = true
	err := NewLoader(d, false).Load(places()).Err()
	if err == nil || !strings.Contains(err.Error(), "; make it a file that you can read, or remove it") {
		t.Errorf("got %v", err)
	}
}

func TestLint(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // parts of the warnings, in order
	}{
		{"fine", `{"permission": {"*": "ask", "bash": {"*": "ask", "git *": "allow", "git push *": "deny"}}}`, nil},
		{"shadowed by a catch-all", "{\"permission\": {\"bash\": {\n\"git push *\": \"deny\",\n\"*\": \"ask\"}}}", []string{"f:2:1: permission.bash.git push *: it never counts: \"*\" on line 3"}},
		{"shadowed by a wider rule", `{"permission": {"bash": {"git push *": "deny", "git *": "ask"}}}`, []string{"it never counts"}},
		{"shadowed by a surface pattern", `{"permission": {"read": "deny", "re*": "ask"}}`, []string{"it never counts"}},
		{"shadowed by the bare name", `{"permission": {"path_read": {"x": "deny"}, "path": "allow"}}`, []string{"it never counts"}},
		{"not shadowed: the word boundary", `{"permission": {"bash": {"gitk": "ask", "git *": "ask"}}}`, nil},
		{"not shadowed: the bare word", `{"permission": {"bash": {"git *": "ask", "git ?*": "ask"}}}`, nil},
		{"not shadowed: the universal key is lowest", `{"permission": {"bash": "ask", "*": "deny"}}`, nil},
		{"a permissive default and no bash rule", `{"permission": {"*": "allow", "read": "ask"}}`, []string{"it allows every shell command"}},
		{"a permissive default with a bash rule", `{"permission": {"*": "allow", "bash": {"rm *": "deny"}}}`, nil},
		{"a glued star", `{"permission": {"bash": {"npm*": "allow"}}}`, []string{`every program whose name starts with "npm"`}},
		{"a leading star", `{"permission": {"bash": {"* --version": "allow"}}}`, []string{"it allows any program"}},
		{"an interpreter", `{"permission": {"bash": {"python3 *": "allow"}}}`, []string{"python3 can run any other program or code"}},
		{"a star inside", `{"permission": {"bash": {"git * status": "allow"}}}`, []string{"a star inside"}},
		{"the whole home", `{"permission": {"external_directory": {"~/*": "allow"}}}`, []string{"it opens all of ~/"}},
		{"an unreachable example", `{"permission": {"bash": {"npm ci": {"action": "allow", "match": ["npm ci"]}, "npm ?i": "deny"}}}`, []string{`example "npm ci" is decided by "npm ?i"`}},
		{"not shadowed: a bare star on mcp decides only if nothing else does", `{"permission": {"mcp": {"exa:*": {"action": "allow", "match": ["exa:search"]}, "*": "ask"}}}`, nil},
		{"nor one on a surface pattern", `{"permission": {"mcp": {"exa:*": "deny"}, "mc*": "ask"}}`, nil},
		{"shadowed on mcp by a wider rule", `{"permission": {"mcp": {"exa:*": "deny", "ex*": "ask"}}}`, []string{"it never counts"}},
		{"an example with a final slash", `{"permission": {"read": {"src/": {"action": "ask", "match": ["src/", "src", "./src"], "not_match": ["src/a"]}}}}`, nil},
		{"an example by the home directory", `{"permission": {"bash": {"~/bin/x *": {"action": "ask", "match": ["~/bin/x a", "/home/u/bin/x"]}}}}`, nil},
		{"written twice", `{"yoloMode": true, "yoloMode": false}`, []string{"written twice"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			layer, _, warnings, err := Parse("f", []byte(tt.text), Nod, "/home/u")
			if err != nil {
				t.Fatal(err)
			}
			p := &Policy{Layers: []engine.Layer{layer}, Files: []Status{{Warnings: warnings}}}
			got := p.Lint(engine.Options{Home: "/home/u"})
			for i, want := range tt.want {
				if i >= len(got) || !strings.Contains(got[i].Error(), want) {
					t.Fatalf("want %q, got %v", want, got)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestHugePolicy reads, checks and uses very many rules; with NOD_SOAK set, a
// hundred thousand.
func TestHugePolicy(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"permission": {"bash": {"*": "ask"`)
	n := 20_000
	if os.Getenv("NOD_SOAK") != "" {
		n = 100_000
	}
	for i := range n {
		fmt.Fprintf(&b, ",\n%q: %q", fmt.Sprintf([]string{"cmd%d *", "%d", "*.x%d", "a%d?b*c"}[i%4], i), []string{"allow", "deny"}[i/4%2])
	}
	b.WriteString("}}}")
	d := &disk{}
	d.write(globalPeer, b.String())
	p := NewLoader(d, false).Load(places())
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	// The same on one line, as programs write it.
	line := strings.ReplaceAll(b.String(), "\n", " ")
	layer, _, _, err := Parse("one-line.json", []byte(line), Nod, "/home/u")
	if err != nil {
		t.Fatal(err)
	}
	last := layer.Sections[0].Rules[len(layer.Sections[0].Rules)-1]
	if want := strings.LastIndex(line, fmt.Sprintf("%q", last.Pattern)) + 1; last.Pos.Line != 1 || last.Pos.Column != want {
		t.Errorf("the last rule is at %s, want column %d", last.Pos, want)
	}
	opt := engine.Options{Home: "/home/u", Cwd: "/p"}
	r := p.Ruleset(opt)
	for value, want := range map[string]engine.Action{fmt.Sprintf("cmd%d x", n-4): engine.Deny, fmt.Sprintf("cmd%d", n-8): engine.Allow, "zzz": engine.Ask, fmt.Sprint(n - 3): engine.Deny} {
		if m := r.Resolve(&engine.Query{Surface: "bash", Values: []string{value}}); m.Action != want {
			t.Errorf("%s: %+v", value, m)
		}
	}
	p.Lint(opt)
}

func FuzzPolicy(f *testing.F) {
	for _, s := range []string{`{}`, `{"permission":{"bash":{"a *":"deny","*":"allow"}}}`, "// c\n{\"x\":1,}", `{"permission":{"path":{"glob:**":"ask"}}}`, "\ufeff", `{"links":{"a":{"command":["b"]}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, dialect := range []Dialect{Peer, Nod} {
			layer, _, _, err := Parse("f", []byte(text), dialect, "/h")
			if (err != nil) != (layer.Broken != nil) || err != nil && len(layer.Sections) > 0 {
				t.Fatalf("error %v with %d sections", err, len(layer.Sections))
			}
			r := engine.Compile([]engine.Layer{layer}, engine.Options{Home: "/h", Cwd: "/p"})
			for _, s := range []string{"bash", "path", "mcp", "x"} {
				m := r.Resolve(&engine.Query{Surface: s, Values: []string{"a b"}, Strict: []string{"b"}, Whole: []string{"a b; c"}})
				if err != nil && m.Action != engine.Ask {
					t.Fatalf("a broken file says %s", m.Action)
				}
			}
		}
	})
}

func FuzzFrontMatter(f *testing.F) {
	for _, s := range []string{"---\npermission:\n  bash: deny\n---\n", "---\na: &a\npermission: *a\n---", "---\n\tx: [\n---\n", "---\npermission: {a: {b: ask}}\n----"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := &disk{}
		d.write(globalPeer, `{"permission": {"bash": {"*": "allow", "rm *": "deny"}}}`)
		d.write(agentFileA, text)
		p := NewLoader(d, false).Load(places())
		if p.Err() != nil {
			if m := resolve(p, "bash", "ls"); m.Action == engine.Allow {
				t.Fatal("allowed under a broken agent file")
			}
		}
	})
}
