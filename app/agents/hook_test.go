package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
)

// said is a Gate that says one thing.
type said Ruling

func (s said) Judge(*Call) Ruling { return Ruling(s) }

// answers is a terminal that gives them in turn and remembers what it was
// asked.
type answers struct {
	list  []engine.Decision
	asked []string
}

func (a *answers) Authorize(ctx context.Context, q *engine.Question) (engine.Decision, error) {
	a.asked = append(a.asked, q.Value)
	if len(a.list) == 0 {
		<-ctx.Done() // nobody answers
		return engine.Decision{Verdict: engine.Unavailable, Reason: "The wait for an answer was broken off."}, nil
	}
	d := a.list[0]
	a.list = a.list[1:]
	return d, nil
}

func user(v engine.Verdict, reason string) engine.Decision {
	return engine.Decision{Verdict: v, Reason: reason, By: engine.DecisionSource{Kind: engine.ByForwarded, Decision: &engine.DecisionSource{Kind: engine.ByUser, Via: "dialog"}}}
}

func asks(values ...string) said {
	s := said{Action: engine.Ask}
	for _, v := range values {
		s.Questions = append(s.Questions, &engine.Question{Value: v})
	}
	return s
}

func hook(g Gate, a *answers) *Hook {
	return &Hook{
		Adapter: Claude{}, Gate: g, Parent: func(*Call) engine.Terminal { return a }, Mode: Gated, Unserved: UnservedDeny,
		Getenv: func(string) string { return "" }, Getwd: func() (string, error) { return "/home/dev/proj", nil }, Now: time.Now,
	}
}

// TestModes is the table of what is said, by mode, event, rules and answer.
func TestModes(t *testing.T) {
	yes, no, why := user(engine.Approved, ""), user(engine.Denied, ""), user(engine.DeniedWithReason, "use the other branch, please")
	absent := engine.Decision{Verdict: engine.Unavailable, Reason: "Session 'desktop' is not serving forwarded permission requests."}
	allowed, denied := said{Action: engine.Allow}, said{Action: engine.Deny, Reason: "not here"}
	for _, c := range []struct {
		name     string
		mode     Mode
		unserved Unserved
		call     Call
		gate     said
		answers  []engine.Decision
		want     Outcome
		asked    int
	}{
		{"rule allows", Gated, "deny", Call{}, allowed, nil, Outcome{Say: Allow}, 0},
		{"rule denies", Gated, "deny", Call{}, denied, nil, Outcome{Say: Deny, Reason: "not here"}, 0},
		{"there is nothing to ask", Gated, "defer", Call{}, asks(), nil, missing("Nod must ask about this call but found nothing to ask, so it was denied."), 0},
		{"rule allows what the agent asks", Gated, "deny", Call{Asks: true}, allowed, nil, Outcome{Say: Allow}, 0},
		{"the agent's notes", Gated, "deny", Call{Inner: true}, allowed, nil, Outcome{}, 0},
		{"the agent only plans", Gated, "deny", Call{Waits: true}, allowed, nil, Outcome{}, 0},
		{"the agent only plans, and rules deny", Gated, "deny", Call{Waits: true}, denied, nil, Outcome{Say: Deny, Reason: "not here"}, 0},
		{"the human allows though the agent plans", Gated, "deny", Call{Waits: true}, asks("a"), []engine.Decision{yes}, Outcome{}, 1},
		{"asked and approved", Gated, "deny", Call{}, asks("a"), []engine.Decision{yes}, Outcome{Say: Allow}, 1},
		{"approved for the session", Gated, "deny", Call{}, asks("a"), []engine.Decision{user(engine.ApprovedForSession, "")}, Outcome{Say: Allow}, 1},
		{"asked and denied", Gated, "deny", Call{Tool: "Bash"}, asks("a"), []engine.Decision{no}, Outcome{Say: Deny, Reason: "The user denied this Bash call."}, 1},
		{"denied by another node", Gated, "deny", Call{Tool: "Bash"}, asks("a"), []engine.Decision{{Verdict: engine.Denied}}, Outcome{Say: Deny, Reason: "This Bash call was denied by Nod."}, 1},
		{"denied with a reason", Gated, "deny", Call{}, asks("a"), []engine.Decision{why}, Outcome{Say: Deny, Reason: "use the other branch, please"}, 1},
		{"each ask in turn", Gated, "deny", Call{}, asks("a", "b", "c"), []engine.Decision{yes, yes, yes}, Outcome{Say: Allow}, 3},
		{"one denial ends it", Gated, "deny", Call{}, asks("a", "b", "c"), []engine.Decision{yes, why, yes}, Outcome{Say: Deny, Reason: "use the other branch, please"}, 2},
		{"nobody serves", Gated, "deny", Call{}, asks("a"), []engine.Decision{absent}, Outcome{Say: Deny, Unavailable: true, Reason: "Nobody could be asked, so this was denied: " + absent.Reason}, 1},
		{"nobody serves, left to the agent", Gated, "defer", Call{}, asks("a"), []engine.Decision{absent}, Outcome{Unavailable: true}, 1},
		{"rules count all the same", Gated, "defer", Call{}, denied, nil, Outcome{Say: Deny, Reason: "not here"}, 0},

		{"advice: allowed", Advising, "deny", Call{}, allowed, nil, Outcome{}, 0},
		{"advice: denied", Advising, "deny", Call{}, denied, nil, Outcome{Say: Deny, Reason: "not here"}, 0},
		{"advice: asks", Advising, "deny", Call{}, asks("a"), nil, Outcome{}, 0},
		{"advice: the agent asks, a rule allows", Advising, "deny", Call{Asks: true}, allowed, nil, Outcome{}, 0},
		{"advice: the agent asks, a rule denies", Advising, "deny", Call{Asks: true}, denied, nil, Outcome{Say: Deny, Reason: "not here"}, 0},
		{"advice: the agent asks, so do rules", Advising, "deny", Call{Asks: true}, asks("a"), []engine.Decision{yes}, Outcome{Say: Allow}, 1},
		{"advice: the agent asks, the human denies", Advising, "deny", Call{Asks: true}, asks("a"), []engine.Decision{why}, Outcome{Say: Deny, Reason: "use the other branch, please"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &answers{list: c.answers}
			h := hook(c.gate, a)
			h.Mode, h.Unserved = c.mode, c.unserved
			if got := h.Decide(t.Context(), &c.call, time.Minute); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if len(a.asked) != c.asked {
				t.Errorf("asked %q, want %d", a.asked, c.asked)
			}
		})
	}
}

// TestLateAnswerIsADenial holds that a hook speaks before its host stops
// listening, and never leaves an ask that somebody may still answer.
func TestLateAnswerIsADenial(t *testing.T) {
	for _, unserved := range []Unserved{UnservedDeny, UnservedDefer} {
		h := hook(asks("a"), &answers{})
		h.Unserved = unserved
		h.Timeout = 2*time.Second + 50*time.Millisecond // 2 s before it, so after 50 ms
		r := h.Run(t.Context(), "", bytes.NewReader(claude("Bash", `{"command":"ls"}`)))
		if !strings.Contains(string(r.Stdout), `"permissionDecision":"deny"`) || !strings.Contains(string(r.Stdout), "Nobody answered within") {
			t.Errorf("%s: %s", unserved, r.Stdout)
		}
	}
	// A policy may say less than the host.
	g := asks("a")
	g.Patience = 20 * time.Millisecond
	if o := hook(g, &answers{}).Decide(t.Context(), &Call{}, time.Hour); o.Say != Deny || !o.Unavailable {
		t.Errorf("%+v", o)
	}
	// A host that gives up has nobody to answer to.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := hook(asks("a"), &answers{}).Decide(ctx, &Call{}, time.Hour); o.Say != Deny || !strings.Contains(o.Reason, "broken off") {
		t.Errorf("%+v", o)
	}
}

func TestDeadline(t *testing.T) {
	for host, want := range map[time.Duration]time.Duration{600: 590, 60: 54, 30: 27, 10: 8, 3600: 3590} {
		if got := Deadline(host * time.Second); got != want*time.Second {
			t.Errorf("%v: %v, want %vs", host*time.Second, got, want)
		}
	}
}

// TestBadStdin sends every agent's hook what no agent sends. It must end in
// exit code 2, which all of them take as no, with one line for people; or in no
// opinion where the event carries no call.
func TestBadStdin(t *testing.T) {
	big := append([]byte(`{"tool_name":"Bash","tool_input":{"command":"`), bytes.Repeat([]byte("a"), 50<<20)...)
	for _, a := range All() {
		for name, data := range map[string][]byte{
			"empty": nil, "spaces": []byte(" \n"), "not JSON": []byte("rm -rf /"), "truncated": claude("Bash", `{"command":"ls"}`)[:60],
			"a list": []byte("[]"), "binary": {0, 1, 2, 0xff}, "50 MB": big,
		} {
			h := hook(said{Action: engine.Allow}, &answers{})
			h.Adapter = a
			r := h.Run(t.Context(), "", bytes.NewReader(data))
			if r.Exit != 2 || len(r.Stdout) != 0 || r.Stderr == "" || strings.ContainsAny(r.Stderr, "\n\r") {
				t.Errorf("%s: %s: %+v", a.Name(), name, r)
			}
		}
	}
	for _, c := range []struct {
		name string
		data string
		exit int
	}{
		{"an event without a call", `{"hook_event_name":"SessionStart","session_id":"s","cwd":"/p"}`, 0},
		{"a future event without a call", `{"hook_event_name":"Dream","session_id":"s","cwd":"/p"}`, 0},
		{"a future event with a call", `{"hook_event_name":"PreToolUse2","cwd":"/p","tool_name":"Bash","tool_input":{"command":"ls"}}`, 2},
		{"a path that is no string", string(claude("Write", `{"file_path":{"a":1}}`)), 2},
		{"a relative cwd", `{"hook_event_name":"PreToolUse","cwd":"p","tool_name":"Bash","tool_input":{"command":"ls"}}`, 2},
	} {
		r := hook(said{Action: engine.Allow}, &answers{}).Run(t.Context(), "", strings.NewReader(c.data))
		if r.Exit != c.exit || len(r.Stdout) != 0 || r.Stderr == "" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	broken := io.MultiReader(strings.NewReader("{"), errReader{})
	if r := hook(said{}, &answers{}).Run(t.Context(), "", broken); r.Exit != 2 || !strings.Contains(r.Stderr, "the pipe broke") {
		t.Errorf("a broken pipe: %+v", r)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("the pipe broke") }

// TestStdinThatNeverEnds checks that an agent which keeps its end open gets its
// denial all the same.
func TestStdinThatNeverEnds(t *testing.T) {
	r, w := io.Pipe()
	h := hook(said{Action: engine.Allow}, &answers{})
	h.Timeout = 2*time.Second + 30*time.Millisecond
	if got := h.Run(t.Context(), "", r); got.Exit != 2 || !strings.Contains(got.Stderr, "in time") {
		t.Errorf("%+v", got)
	}
	w.Close() // lets the reader go
}

// panics is a Gate with a defect.
type panics struct{}

func (panics) Judge(*Call) Ruling { panic("out of cheese") }

func TestPanicIsADenial(t *testing.T) {
	for _, a := range All() {
		h := hook(panics{}, &answers{})
		h.Adapter = a
		var data []byte
		payloads(t, func(b Adapter, name string, p payload) {
			if c, err := b.Parse(p.Event, p.Stdin, p.getenv); b == a && err == nil && !c.Asks && !c.Inner {
				data = p.Stdin
				h.Getenv = p.getenv
			}
		})
		event := ""
		r := h.Run(t.Context(), event, bytes.NewReader(data))
		if text := string(r.Stdout) + r.Stderr; !strings.Contains(text, "out of cheese") || r.Exit == 0 && !strings.Contains(text, "deny") {
			t.Errorf("%s: %+v", a.Name(), r)
		}
	}
}

// TestEndsAreTold checks that the end of a session or a subagent is known, by
// the id that its asks bore.
func TestEndsAreTold(t *testing.T) {
	told := map[string]int{}
	payloads(t, func(a Adapter, name string, p payload) {
		h := hook(said{}, &answers{})
		h.Adapter, h.Getenv = a, p.getenv
		h.Ended = func(_ context.Context, id string) {
			if id == "" {
				t.Errorf("%s: %s: nobody ended", a.Name(), name)
			}
			told[a.Name()+" "+p.Event]++
		}
		if r := h.Run(t.Context(), p.Event, bytes.NewReader(p.Stdin)); strings.Contains(p.Event, "End") && (r.Exit != 0 || len(r.Stdout) > 0) {
			t.Errorf("%s: %s: %+v", a.Name(), name, r)
		}
	})
	for _, want := range []string{"claude-code SessionEnd", "claude-code SubagentStop", "codex SessionEnd", "codex SubagentStop", "gemini SessionEnd", "copilot sessionEnd", "copilot subagentStop"} {
		if told[want] == 0 {
			t.Errorf("%s was not told", want)
		}
	}
	for name := range told {
		if !strings.Contains(strings.ToLower(name), "end") && !strings.Contains(strings.ToLower(name), "subagentstop") {
			t.Errorf("%s is no end", name)
		}
	}
}

// TestCopilotsOwnDenyRulesAreNotLifted holds that Nod says no allow where
// Copilot would let it lift a rule of its user's.
func TestCopilotsOwnDenyRulesAreNotLifted(t *testing.T) {
	data := `{"sessionId":"s","cwd":"/p","toolName":"bash","toolArgs":{"command":"ls"}}`
	for _, c := range []struct {
		args []string
		gate said
		want string
	}{
		{[]string{"copilot", "-p", "x"}, said{Action: engine.Allow}, `{"permissionDecision":"allow"}`},
		{[]string{"copilot", "--deny-tool", "shell(rm)"}, said{Action: engine.Allow}, ""},
		{[]string{"copilot", "--deny-tool=shell"}, said{Action: engine.Allow}, ""},
		{[]string{"copilot", "--deny-url", "x"}, said{Action: engine.Allow}, ""},
		{[]string{"copilot", "--deny-tool=shell"}, said{Action: engine.Deny, Reason: "no"}, `{"permissionDecision":"deny","permissionDecisionReason":"no"}`},
	} {
		h := hook(c.gate, &answers{})
		h.Adapter, h.Ancestors = Copilot{}, func() [][]string { return [][]string{{"sh", "-c", "nod hook copilot"}, c.args} }
		if r := h.Run(t.Context(), "preToolUse", strings.NewReader(data)); strings.TrimSpace(string(r.Stdout)) != c.want || r.Exit != 0 {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}

// TestNamesOfAgents checks who asks: a subagent by its own id and kind.
func TestNamesOfAgents(t *testing.T) {
	h := hook(said{Action: engine.Allow}, &answers{})
	h.Getenv = func(name string) string {
		return map[string]string{"PI_SUBAGENT_CHILD_AGENT": "scout", "CLAUDE_PROJECT_DIR": "/home/dev"}[name]
	}
	c := &Call{Principal: engine.Principal{SessionID: "s", AgentName: "claude-code"}}
	if err := h.place(c); err != nil || c.Principal.AgentName != "scout" || c.Cwd != "/home/dev/proj" || c.Project() != "/home/dev" {
		t.Errorf("%+v, %v", c, err)
	}
	c = &Call{Principal: engine.Principal{SessionID: "s", AgentName: "general-purpose"}, Cwd: "/elsewhere"}
	if err := h.place(c); err != nil || c.Principal.AgentName != "general-purpose" || c.Project() != "/elsewhere" {
		t.Errorf("%+v, %v", c, err)
	}
}

// FuzzHook gives every agent's hook any bytes. Whatever it says, it never
// allows what was not understood, and it never fails.
func FuzzHook(f *testing.F) {
	payloads(f, func(a Adapter, _ string, p payload) { f.Add(p.Event, []byte(p.Stdin)) })
	f.Add("preToolUse", []byte(`{"toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}`))
	f.Fuzz(func(t *testing.T, event string, data []byte) {
		for _, a := range All() {
			h := hook(said{Action: engine.Allow}, &answers{})
			h.Adapter = a
			r := h.Run(t.Context(), event, bytes.NewReader(data))
			if strings.ContainsAny(r.Stderr, "\n\r\x1b") {
				t.Errorf("%s: more than a line on stderr: %q", a.Name(), r.Stderr)
			}
			if r.Exit != 0 && r.Exit != 1 && r.Exit != 2 {
				t.Errorf("%s: exit code %d", a.Name(), r.Exit)
			}
			if allows := bytes.Contains(r.Stdout, []byte(`"allow"`)); allows {
				c, err := a.Parse(event, data, h.Getenv)
				if err != nil || len(c.Uses) == 0 {
					t.Errorf("%s: allowed %q, of which it knows %+v, %v", a.Name(), data, c, err)
				}
			}
		}
	})
}

func Example_shellLine() {
	fmt.Println(shellLine([]string{"/opt/my nod/nod", "hook", "claude-code", "it's"}))
	// Output: '/opt/my nod/nod' hook claude-code 'it'\''s'
}
