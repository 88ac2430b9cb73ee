package forwarding

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

func child(dir string) *Requester {
	return &Requester{Child: Child{SessionID: "child-1", AgentDir: dir}, Target: "desk", Timeout: time.Minute, Log: &memoryLog{}}
}

// TestExchange carries every decision from a serving node to its child.
func TestExchange(t *testing.T) {
	forwarded := func(by engine.DecisionSource) engine.DecisionSource {
		return engine.DecisionSource{Kind: engine.ByForwarded, ResponderSessionID: "desk", Decision: &by}
	}
	nobody := engine.DecisionSource{Kind: engine.ByUnavailable, Reason: "Nobody is there."}
	broke := engine.DecisionSource{Kind: engine.ByGateError, Reason: "it broke"}
	for _, c := range []struct {
		name      string
		said, got engine.Decision
	}{
		{"rule", approved, engine.Decision{Verdict: engine.Approved, By: forwarded(byRule)}},
		{"once", engine.Decision{Verdict: engine.Approved, By: byUser}, engine.Decision{Verdict: engine.Approved, By: forwarded(byUser)}},
		{"this subagent", engine.Decision{Verdict: engine.ApprovedForSession, By: byUser}, engine.Decision{Verdict: engine.ApprovedForSession, By: forwarded(byUser)}},
		{"whole session", engine.Decision{Verdict: engine.ApprovedForServingSession, By: byUser}, engine.Decision{Verdict: engine.Approved, By: forwarded(byUser)}},
		{"denied", engine.Decision{Verdict: engine.Denied, By: byUser}, engine.Decision{Verdict: engine.Denied, By: forwarded(byUser)}},
		{"reason", engine.Decision{Verdict: engine.DeniedWithReason, Reason: "Use <make>.", By: byRule}, engine.Decision{Verdict: engine.DeniedWithReason, Reason: "Use <make>.", By: forwarded(byRule)}},
		{"nobody", engine.Decision{Verdict: engine.Unavailable, Reason: "Nobody is there.", By: nobody}, engine.Decision{Verdict: engine.Unavailable, Reason: "Nobody is there.", By: forwarded(nobody)}},
		{"gate error", engine.Decision{Verdict: engine.Denied, Reason: "it broke", By: broke}, engine.Decision{Verdict: engine.Denied, By: forwarded(broke)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			grants := 0
			s := serve(t, dir, "desk", always(c.said), func(cfg *ServerConfig) {
				cfg.Grant = func(in *Inbound) error {
					grants++
					if !reflect.DeepEqual(in.Request.Grants, question("touch x").Suggestion) {
						t.Errorf("granted %v", in.Request.Grants)
					}
					return nil
				}
			}).ready()
			r := child(dir)
			d, err := r.Authorize(t.Context(), question("touch x"))
			if err != nil || !reflect.DeepEqual(d, c.got) {
				t.Errorf("got %+v, %v", d, err)
			}
			s.stop()
			if want := c.said.Verdict == engine.ApprovedForServingSession; (grants == 1) != want || s.log.count(EventSessionRecorded) != grants {
				t.Errorf("%d grants recorded", grants)
			}
			if exists(InboxDir(dir, "desk")) {
				t.Error("the inbox was not cleared away")
			}
			log := r.Log.(*memoryLog)
			if log.count(EventRequestCreated) != 1 || log.count(EventResponseReceived) != 1 {
				t.Errorf("the child logged\n%s", log)
			}
		})
	}
}

// byHand plays a serving node: a live heartbeat, and a response to the first
// request it sees.
func byHand(t *testing.T, dir string, respond func(path, id string)) {
	t.Helper()
	a, err := newBeat().Announce(ServingDir(dir), "desk", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			files, _ := filepath.Glob(filepath.Join(InboxDir(dir, "desk"), "requests", "*.json"))
			if len(files) > 0 && respond != nil {
				id := strings.TrimSuffix(filepath.Base(files[0]), ".json")
				respond(responsePath(dir, "desk", id), id)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := a.Withdraw(); err != nil {
			t.Error(err)
		}
	})
}

func put(t testing.TB, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Error(err)
	}
	temp := path + ".part"
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Rename(temp, path); err != nil {
		t.Error(err)
	}
}

// TestGivingUpIsUnavailable meets every way in which no answer comes.
func TestGivingUpIsUnavailable(t *testing.T) {
	response := func(text string) func(*testing.T, string, *Requester) {
		return func(t *testing.T, dir string, r *Requester) {
			byHand(t, dir, func(path, id string) { put(t, path, text) })
		}
	}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string, r *Requester)
		reason  string
		event   string
	}{
		"no parent":        {func(_ *testing.T, _ string, r *Requester) { r.Target = "" }, "No parent session is named", ""},
		"itself":           {func(_ *testing.T, _ string, r *Requester) { r.Target = " child-1 " }, "cannot forward a request to itself", ""},
		"no session":       {func(_ *testing.T, _ string, r *Requester) { r.Target = "unknown" }, "names no session", ""},
		"no agent dir":     {func(_ *testing.T, _ string, r *Requester) { r.Child.AgentDir = "" }, "no agent directory", ""},
		"nobody serves":    {func(*testing.T, string, *Requester) {}, "Session 'desk' is not serving forwarded permission requests.", EventNoServingSession},
		"no directory":     {func(t *testing.T, dir string, _ *Requester) { put(t, filepath.Join(dir, "sessions"), "x") }, "could not be written", ""},
		"timeout":          {func(t *testing.T, dir string, r *Requester) { byHand(t, dir, nil); r.Timeout = 300 * time.Millisecond }, "did not answer within 300ms", EventResponseTimedOut},
		"contradiction":    {response(`{"approved":true,"state":"denied","responderSessionId":"desk"}`), "contradicts", EventResponseReceived},
		"unknown state":    {response(`{"approved":true,"state":"sure","responderSessionId":"desk"}`), "must be one of four words", EventResponseReceived},
		"internal state":   {response(`{"approved":true,"state":"approved_for_serving_session","responderSessionId":"desk"}`), "must be one of four words", EventResponseReceived},
		"not JSON":         {response(`approved`), "is unreadable", EventResponseReceived},
		"no responder":     {response(`{"approved":true,"state":"approved"}`), `"responderSessionId" is missing`, EventResponseReceived},
		"a large response": {response(strings.Repeat(" ", maxFile) + `{}`), "is larger than", EventResponseReceived},
		"a linked response": {func(t *testing.T, dir string, _ *Requester) {
			byHand(t, dir, func(path, id string) {
				put(t, filepath.Join(dir, "elsewhere"), `{"approved":true,"state":"approved","responderSessionId":"desk"}`)
				if err := os.Symlink(filepath.Join(dir, "elsewhere"), path); err != nil {
					t.Error(err)
				}
			})
		}, "is a symbolic link", EventResponseReceived},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := child(dir)
			c.prepare(t, dir, r)
			a := r.Ask(t.Context(), question("touch x"))
			if a.Verdict != engine.Unavailable || a.By.Kind != engine.ByUnavailable || a.By.Reason != a.Reason || !strings.Contains(a.Reason, c.reason) {
				t.Errorf("got %+v, want unavailable: …%s…", a, c.reason)
			}
			log := r.Log.(*memoryLog)
			if c.event != "" && log.count(c.event) != 1 {
				t.Errorf("no %s in\n%s", c.event, log)
			}
			if left, _ := filepath.Glob(filepath.Join(InboxDir(dir, "desk"), "requests", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if exists(InboxDir(dir, "desk")) {
				t.Error("the inbox was not cleared away")
			}
		})
	}
}

func TestTakingAnAskBack(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	s := serve(t, dir, "desk", h).ready()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := child(dir)
	got := make(chan Answer)
	go func() { got <- r.Ask(ctx, question("touch x")) }()
	var id string
	eventually(t, "asked", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for id = range h.asks {
		}
		return id != ""
	})
	cancel(fmt.Errorf("the user pressed escape"))
	if a := <-got; a.Verdict != engine.Unavailable || !strings.Contains(a.Reason, "the user pressed escape") {
		t.Errorf("got %+v", a)
	}
	eventually(t, "withdrawn", func() bool { return h.end(id) == whyGone.Why && s.log.count(EventWithdrawn) == 1 })
}

// TestServerKilledWhileAsked: the child gives up within its grace.
func TestServerKilledWhileAsked(t *testing.T) {
	dir := t.TempDir()
	srv := spawn(t, "serve", dir, "")
	srv.line("ready")
	got := make(chan Answer)
	go func() { got <- child(dir).Ask(t.Context(), question("touch x")) }()
	srv.line("asked")
	srv.kill()
	if a := <-got; a.Verdict != engine.Unavailable || a.Reason != "Session 'desk' is not serving forwarded permission requests." {
		t.Errorf("got %+v", a)
	}
}

// TestServerRestartedWhileAsked: killed and started again within the grace,
// the next server asks anew, and the answer arrives.
func TestServerRestartedWhileAsked(t *testing.T) {
	dir := t.TempDir()
	srv := spawn(t, "serve", dir, "")
	srv.line("ready")
	asker := spawn(t, "ask", dir, "touch x")
	srv.line("asked")
	srv.kill()
	srv = spawn(t, "serve", dir, "")
	id := strings.TrimPrefix(srv.line("asked"), "asked ")
	fmt.Fprintf(srv.in, "approve %s\n", id)
	var a Answer
	if err := json.Unmarshal([]byte(asker.line("{")), &a); err != nil || a.Verdict != engine.Approved {
		t.Errorf("got %+v, %v", a, err)
	}
	srv.end()
	if state, rec := (heartbeat.Reader{Clock: heartbeat.SystemClock()}).Read(ServingDir(dir), "desk"); state != heartbeat.Absent {
		t.Errorf("after the end the session reads %s %+v", state, rec)
	}
}

// TestChildKilledWhileAsked: its request stays, and the next look at its age
// ends the ask. Here the file is removed, as whoever reaps the child may.
func TestChildKilledWhileAsked(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	serve(t, dir, "desk", h, func(c *ServerConfig) { c.Timeout = 1500 * time.Millisecond }).ready()
	asker := spawn(t, "ask", dir, "touch x")
	var id string
	eventually(t, "asked", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for id = range h.asks {
		}
		return id != ""
	})
	asker.kill()
	eventually(t, "expired", func() bool { return h.end(id) == whyExpired.Why })
	eventually(t, "request removed", func() bool {
		return !exists(filepath.Join(InboxDir(dir, "desk"), "requests", id+".json"))
	})
	if exists(responsePath(dir, "desk", id)) {
		t.Error("an expired ask was answered")
	}
}

// TestLayersAreAskedInTurn: one answer never stands for another.
func TestLayersAreAskedInTurn(t *testing.T) {
	dir := t.TempDir()
	var values []string
	serve(t, dir, "desk", deciderFunc(func(_ context.Context, in *Inbound) engine.Decision {
		values = append(values, in.Question.Value)
		if in.Question.Value == "two" {
			return engine.Decision{Verdict: engine.Denied, By: byUser}
		}
		return approved
	})).ready()
	all := child(dir).AskEach(t.Context(), []*engine.Question{question("one"), question("two"), question("three")})
	if len(all) != 2 || all[0].Verdict != engine.Approved || all[1].Verdict != engine.Denied || !reflect.DeepEqual(values, []string{"one", "two"}) {
		t.Errorf("asked %v, got %+v", values, all)
	}
}

// TestRelay passes an ask through a node in between: facts and principal as
// they were, one more hop on both ways.
func TestRelay(t *testing.T) {
	dir := t.TempDir()
	top := deciderFunc(func(_ context.Context, in *Inbound) engine.Decision {
		q := in.Question
		if !reflect.DeepEqual(q.Intent, question("touch x").Intent) || q.Principal.SessionID != "child-1" || !reflect.DeepEqual(q.Hops, []string{"desk"}) ||
			in.Request.RequesterSessionID != "desk" {
			t.Errorf("the top was asked %+v by %s", q, in.Request.RequesterSessionID)
		}
		return engine.Decision{Verdict: engine.Approved, By: byUser}
	})
	up := func(target string) Decider {
		return deciderFunc(func(ctx context.Context, in *Inbound) engine.Decision {
			r := &Requester{Child: Child{SessionID: in.SessionID, AgentDir: dir}, Target: target, Relays: true}
			d, _ := r.Authorize(ctx, in.Question)
			return d
		})
	}
	serve(t, dir, "top", top).ready()
	serve(t, dir, "desk", up("top")).ready()
	d, _ := child(dir).Authorize(t.Context(), question("touch x"))
	want := engine.DecisionSource{Kind: engine.ByForwarded, ResponderSessionID: "desk",
		Decision: &engine.DecisionSource{Kind: engine.ByForwarded, ResponderSessionID: "top", Decision: &byUser}}
	if d.Verdict != engine.Approved || !reflect.DeepEqual(d.By, want) {
		t.Errorf("got %+v", d)
	}

	t.Run("in a circle", func(t *testing.T) {
		dir = t.TempDir()
		serve(t, dir, "a", up("b")).ready()
		serve(t, dir, "b", up("a")).ready()
		r := child(dir)
		r.Target = "a"
		d, _ := r.Authorize(t.Context(), question("touch x"))
		if d.Verdict != engine.Unavailable || !strings.Contains(d.Reason, "in a circle") {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("hops that name the server", func(t *testing.T) {
		dir := t.TempDir()
		h := newHuman()
		serve(t, dir, "desk", h).ready()
		r := bash("r1", "desk", "ls")
		r.Hops = []string{"desk"}
		drop(t, dir, r)
		if a := answerOf(t, dir, "desk", "r1").Decision(); a.Verdict != engine.Unavailable || h.count("r1") > 0 {
			t.Errorf("got %+v", a)
		}
	})
}

func TestWhoIsAChild(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	var registry Registry
	dispose := registry.Created("me", "host")
	bare := registry.Created("bare", "")
	defer bare()
	for name, c := range map[string]struct {
		child  Child
		is     bool
		target string // or a part of the refusal
	}{
		"nothing":            {Child{SessionID: "x"}, false, "No parent"},
		"empty environment":  {Child{SessionID: "x", Env: env()}, false, "No parent"},
		"marker only":        {Child{SessionID: "x", Env: env("PI_SUBAGENT_CHILD", "1")}, true, "No parent"},
		"old marker":         {Child{SessionID: "x", Env: env("PI_SUBAGENT_ACTIVITY_FILE", "/x")}, true, "No parent"},
		"empty marker":       {Child{SessionID: "x", Env: env("PI_IS_SUBAGENT", "")}, false, "No parent"},
		"parent":             {Child{SessionID: "x", Env: env(EnvParentSession, " desk ")}, true, "desk"},
		"router first":       {Child{SessionID: "x", Env: env(EnvParentSession, "desk", EnvRouterParent, "router")}, true, "router"},
		"router unusable":    {Child{SessionID: "x", Env: env(EnvParentSession, "desk", EnvRouterParent, "unknown")}, true, "desk"},
		"itself":             {Child{SessionID: "x", Env: env(EnvParentSession, "x")}, true, "its own parent"},
		"itself by router":   {Child{SessionID: "x", Env: env(EnvParentSession, "desk", EnvRouterParent, "x")}, true, "its own parent"},
		"registry first":     {Child{SessionID: "me", Registry: &registry, Env: env(EnvRouterParent, "router")}, true, "host"},
		"registry no parent": {Child{SessionID: "bare", Registry: &registry, Env: env(EnvParentSession, "desk")}, true, "desk"},
		"not registered":     {Child{SessionID: "you", Registry: &registry, Env: env()}, false, "No parent"},
		"by directory":       {Child{SessionID: "x", AgentDir: "/a", SessionDir: "/a/subagent-sessions/1"}, true, "No parent"},
		"other directory":    {Child{SessionID: "x", AgentDir: "/a", SessionDir: "/a/subagent-sessions-old/1"}, false, "No parent"},
		"above":              {Child{SessionID: "x", AgentDir: "/a", SessionDir: "/a"}, false, "No parent"},
	} {
		target, err := c.child.Target()
		if err != nil {
			target = err.Error()
		}
		if got := c.child.Is(); got != c.is || !strings.Contains(target, c.target) {
			t.Errorf("%s: child %t target %q, want %t %q", name, got, target, c.is, c.target)
		}
	}

	// A sibling of the same id, announced later, is not taken back with the first.
	again := registry.Created("me", "other host")
	dispose()
	dispose()
	if parent, ok := registry.Parent("me"); !ok || parent != "other host" {
		t.Errorf("parent %q, %t", parent, ok)
	}
	again()
	if _, ok := registry.Parent("me"); ok {
		t.Error("still announced")
	}
}
