package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/reviewlog"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that only a broken program reaches.
const patience = 20 * time.Second

// desk is a node that serves real inboxes on disk.
type desk struct {
	*Node
	t      *testing.T
	dir    string
	config string
	log    *syncBuffer
	looked chan struct{} // of capacity 1: the policy was looked at again
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) Close() error { return nil }

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serve starts a node over sessions of one agent directory.
func serve(t *testing.T, policy string, human bool, sessions ...string) *desk {
	t.Helper()
	return serveIn(t, t.TempDir(), policy, human, nil, sessions...)
}

// serveIn starts a node in dir, which other nodes may share.
func serveIn(t *testing.T, dir, policy string, human bool, parent *Parent, sessions ...string) *desk {
	t.Helper()
	d := &desk{t: t, dir: dir, log: &syncBuffer{}}
	d.config = filepath.Join(d.dir, "config-"+sessions[0])
	if err := os.MkdirAll(d.config, 0o700); err != nil {
		t.Fatal(err)
	}
	d.policy(policy)
	cfg := Config{
		ConfigDir: d.config, Home: d.dir, Files: policyfile.Disk{}, Human: human, Parent: parent, Now: time.Now,
		Review: reviewlog.New(d.log), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, s := range sessions {
		cfg.Inboxes = append(cfg.Inboxes, Inbox{AgentDir: filepath.Join(d.dir, "agent"), SessionID: s})
	}
	d.Node, d.looked = New(cfg), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		d.WatchPolicy(ctx, func() {
			select {
			case d.looked <- struct{}{}:
			default:
			}
		})
	})
	for _, inbox := range cfg.Inboxes {
		ready := make(chan struct{})
		s := forwarding.NewServer(forwarding.ServerConfig{
			AgentDir: inbox.AgentDir, SessionID: inbox.SessionID, Decider: d, Log: cfg.Review,
			Ready: func() { close(ready) }, Problem: d.Problem,
		})
		wg.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		select {
		case <-ready:
		case <-time.After(patience):
			t.Fatal("the inbox is not served")
		}
	}
	return d
}

// policy replaces the policy file in one step.
func (d *desk) policy(text string) {
	d.t.Helper()
	next := filepath.Join(d.config, "next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(d.config, "policy.jsonc")); err != nil {
		d.t.Fatal(err)
	}
}

// child asks in the background for a bash command.
func (d *desk) child(session, requester, command, grant string) <-chan engine.Decision {
	who := engine.Principal{SessionID: requester, AgentName: "scout"}
	q := &engine.Question{
		Principal: who, Tool: "bash", Surface: "bash", Kind: "bash", Value: command,
		Intent:   &engine.Intent{Surface: "bash", MatchValues: []string{command}, RequesterCwd: d.dir, Principal: who},
		Evidence: []engine.Evidence{{Label: forwarding.LabelFullCommand, Text: command}},
	}
	if grant != "" {
		q.Suggestion = []engine.Grant{{Surface: "bash", Pattern: grant}}
	}
	r := &forwarding.Requester{Child: forwarding.Child{SessionID: requester, AgentDir: filepath.Join(d.dir, "agent")}, Target: session}
	out := make(chan engine.Decision, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	done := make(chan struct{})
	d.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		out <- r.Ask(ctx, q).Decision
	}()
	return out
}

// waits returns the pending asks once there are n.
func (d *desk) waits(n int) []*board.Ask {
	d.t.Helper()
	changes, stop := d.Board().Watch()
	defer stop()
	deadline := time.After(patience)
	for {
		if asks := d.Board().Pending(); len(asks) == n {
			return asks
		}
		select {
		case <-changes:
		case <-deadline:
			d.t.Fatalf("%d asks wait, want %d", d.Board().Len(), n)
		}
	}
}

func (d *desk) answer(a *board.Ask, v engine.Verdict, reason string) {
	d.t.Helper()
	if err := d.Board().Answer(a.Key, a.Hash, board.Answer{Verdict: v, Reason: reason, View: "test"}); err != nil {
		d.t.Fatal(err)
	}
}

func get(t *testing.T, c <-chan engine.Decision) engine.Decision {
	t.Helper()
	select {
	case d := <-c:
		return d
	case <-time.After(patience):
		t.Fatal("no answer came")
		panic("unreachable")
	}
}

// inner is what decided within the serving node.
func inner(d engine.Decision) engine.DecisionSource {
	if d.By.Kind == engine.ByForwarded && d.By.Decision != nil {
		return *d.By.Decision
	}
	return d.By
}

const askAll = `{"permission": {"*": "ask"}}`

func TestRulesAnswerAtOnce(t *testing.T) {
	d := serve(t, `{"permission": {"*": "ask", "bash": {"*": "ask", "git *": "allow", "rm *": {"action": "deny", "reason": "Not here."}}}}`, true, "desk")
	if got := get(t, d.child("desk", "c1", "git status", "")); got.Verdict != engine.Approved || inner(got).Kind != engine.ByRule {
		t.Errorf("allow rule: %+v", got)
	}
	if got := get(t, d.child("desk", "c1", "rm -rf x", "")); got.Verdict != engine.DeniedWithReason || got.Reason != "Not here." {
		t.Errorf("deny rule: %+v", got)
	}
	// A line is judged whole: an allowed head carries nothing else along.
	c := d.child("desk", "c1", "git status && make", "")
	d.answer(d.waits(1)[0], engine.Denied, "")
	if got := get(t, c); got.Verdict != engine.Denied || inner(got).Kind != engine.ByUser {
		t.Errorf("chain: %+v", got)
	}
	if got := get(t, d.child("desk", "c1", "git status && rm -rf x", "")); got.Verdict != engine.DeniedWithReason {
		t.Errorf("a denied part denies: %+v", got)
	}
}

// TestWholeSessionGrant holds record 0006: the serving node records, the child
// gets a plain approval, and asks that wait are judged again.
func TestWholeSessionGrant(t *testing.T) {
	d := serve(t, askAll, true, "desk", "other")
	first := d.child("desk", "c1", "npm test", "npm *")
	second := d.child("desk", "c2", "npm run x", "npm *")
	elsewhere := d.child("other", "c3", "npm run y", "npm *")
	for _, a := range d.waits(3) {
		if a.Value == "npm test" {
			d.answer(a, engine.ApprovedForServingSession, "")
		}
	}
	if got := get(t, first); got.Verdict != engine.Approved {
		t.Errorf("the child must get a plain approval, got %q", got.Verdict)
	}
	if got := get(t, second); got.Verdict != engine.Approved || inner(got).Kind != engine.BySessionApproval {
		t.Errorf("a waiting ask is judged again: %+v", got)
	}
	left := d.waits(1)[0]
	if left.SessionID != "other" {
		t.Errorf("the grant reached another session: %+v", left)
	}
	d.answer(left, engine.Denied, "")
	get(t, elsewhere)

	if got := get(t, d.child("desk", "c4", "npm ci", "")); inner(got).Kind != engine.BySessionApproval {
		t.Errorf("by the grant: %+v", got)
	}
	grants := d.Grants()
	if len(grants) != 1 || grants[0].Hits != 2 || grants[0].Pattern != "npm *" || grants[0].SessionID != "desk" {
		t.Fatalf("grants %+v", grants)
	}
	if err := d.Revoke(grants[0].ID); err != nil {
		t.Fatal(err)
	}
	c := d.child("desk", "c5", "npm ci", "")
	d.answer(d.waits(1)[0], engine.Denied, "")
	if got := get(t, c); got.Verdict != engine.Denied {
		t.Errorf("after revoking: %+v", got)
	}
	if log := d.log.String(); !strings.Contains(log, "forwarded_permission.session_recorded") {
		t.Errorf("no session_recorded in the log:\n%s", log)
	}
}

// A grant that answers one part of a line has answered, whatever answers the
// others.
func TestGrantOfAPartCounts(t *testing.T) {
	d := serve(t, `{"permission": {"*": "ask", "bash": {"*": "ask", "git *": "allow"}}}`, true, "desk")
	first := d.child("desk", "c1", "npm test", "npm *")
	d.answer(d.waits(1)[0], engine.ApprovedForServingSession, "")
	get(t, first)
	if got := get(t, d.child("desk", "c1", "git status && npm ci && npm test", "")); got.Verdict != engine.Approved {
		t.Errorf("got %+v", got)
	}
	if grants := d.Grants(); len(grants) != 1 || grants[0].Hits != 1 {
		t.Errorf("grants %+v", grants)
	}
}

func TestSubagentOnlyGoesOutUntouched(t *testing.T) {
	d := serve(t, askAll, true, "desk")
	c := d.child("desk", "c1", "npm test", "npm *")
	d.answer(d.waits(1)[0], engine.ApprovedForSession, "")
	if got := get(t, c); got.Verdict != engine.ApprovedForSession {
		t.Errorf("got %+v", got)
	}
	if g := d.Grants(); len(g) != 0 {
		t.Errorf("the node recorded %+v", g)
	}
}

// TestForeignGrantIsNotOffered holds that a proposed grant which would not have
// answered its own ask is never shown, let alone recorded.
func TestForeignGrantIsNotOffered(t *testing.T) {
	d := serve(t, askAll, true, "desk")
	c := d.child("desk", "c1", "npm test", "rm *")
	a := d.waits(1)[0]
	if len(a.Suggestion) != 0 || len(a.Notes) == 0 {
		t.Errorf("offered %+v, notes %q", a.Suggestion, a.Notes)
	}
	if err := d.Board().Answer(a.Key, a.Hash, board.Answer{Verdict: engine.ApprovedForServingSession, View: "test"}); err == nil {
		t.Error("a scope was taken that was not offered")
	}
	d.answer(a, engine.Approved, "")
	get(t, c)
	if g := d.Grants(); len(g) != 0 {
		t.Errorf("recorded %+v", g)
	}
}

func TestPolicyChangeSettlesWaitingAsks(t *testing.T) {
	d := serve(t, askAll, true, "desk")
	allow, deny, still := d.child("desk", "c1", "make a", ""), d.child("desk", "c1", "make b", ""), d.child("desk", "c1", "make c", "")
	d.waits(3)
	d.policy(`{"permission": {"*": "ask", "bash": {"*": "ask", "make a": "allow", "make b": "deny"}}}`)
	if got := get(t, allow); got.Verdict != engine.Approved || inner(got).Kind != engine.ByRule {
		t.Errorf("make a: %+v", got)
	}
	if got := get(t, deny); got.Verdict != engine.Denied || inner(got).Kind != engine.ByRule {
		t.Errorf("make b: %+v", got)
	}
	d.answer(d.waits(1)[0], engine.Denied, "")
	get(t, still)
}

// A file may change before it is watched, and then sends no event.
func TestPolicyIsLookedAtOnceItIsWatched(t *testing.T) {
	d := serve(t, askAll, true, "desk")
	select {
	case <-d.looked:
	case <-time.After(patience):
		t.Fatal("nobody looked at the policy after the watch began")
	}
}

// The human is told which of this node's rules asks.
func TestTheAskNamesTheRuleThatAsks(t *testing.T) {
	d := serve(t, `{"permission": {"*": "allow", "bash": {"*": "allow", "git push *": "ask"}}}`, true, "desk")
	reply := d.child("desk", "c1", "git push origin main", "")
	a := d.waits(1)[0]
	if a.Pattern != "git push *" {
		t.Errorf("the ask names the rule %q", a.Pattern)
	}
	d.answer(a, engine.Denied, "")
	get(t, reply)
}

// TestBrokenPolicyKeepsTheLastGoodOne also holds that what is wrong is told,
// with its place, and is gone once mended.
func TestBrokenPolicyKeepsTheLastGoodOne(t *testing.T) {
	d := serve(t, `{"permission": {"*": "ask", "bash": {"make a": "allow"}}}`, true, "desk")
	d.CheckPolicy() // it was good once
	changes, stop := d.Watch()
	defer stop()
	problem := func(want bool) string {
		deadline := time.After(patience)
		for {
			for _, p := range d.Problems() {
				if strings.Contains(p, "policy.jsonc") {
					if want {
						return p
					}
				}
			}
			if !want && len(d.Problems()) == 0 {
				return ""
			}
			select {
			case <-changes:
			case <-deadline:
				t.Fatalf("problems %q, want one: %v", d.Problems(), want)
			}
		}
	}
	d.policy("{\n  \"permission\": {\"*\": \"alow\"}\n}")
	if p := problem(true); !strings.Contains(p, "policy.jsonc:2") {
		t.Errorf("problem %q does not name its line", p)
	}
	if got := get(t, d.child("desk", "c1", "make a", "")); got.Verdict != engine.Approved {
		t.Errorf("the last good rules do not count: %+v", got)
	}
	d.policy(askAll)
	problem(false)
}

func TestBrokenPolicyFromTheStartAsks(t *testing.T) {
	d := serve(t, `{"permission": {"bash": "allow"},}`, true, "desk")
	c := d.child("desk", "c1", "make a", "")
	d.answer(d.waits(1)[0], engine.Denied, "")
	get(t, c)
}

func TestNobodyToAskIsUnavailable(t *testing.T) {
	d := serve(t, askAll, false, "desk")
	got := get(t, d.child("desk", "c1", "make", ""))
	if got.Verdict.Approves() || inner(got).Kind != engine.ByUnavailable {
		t.Errorf("got %+v", got)
	}
}

// TestOneOpenAskHoldsUpNobody leaves one ask open and has fifty others answered
// in any order.
func TestOneOpenAskHoldsUpNobody(t *testing.T) {
	d := serve(t, `{"permission": {"*": "ask", "bash": {"*": "ask", "ok *": "allow"}}}`, true, "desk")
	open := d.child("desk", "slow", "make forever", "")
	d.waits(1)
	var rest []<-chan engine.Decision
	for i := range 25 {
		rest = append(rest, d.child("desk", fmt.Sprint("r", i), fmt.Sprint("ok ", i), ""), d.child("desk", fmt.Sprint("h", i), fmt.Sprint("make ", i), ""))
	}
	for _, a := range d.waits(26) {
		if a.Value != "make forever" {
			d.answer(a, engine.Approved, "")
		}
	}
	for _, c := range rest {
		if got := get(t, c); got.Verdict != engine.Approved {
			t.Errorf("got %+v", got)
		}
	}
	d.answer(d.waits(1)[0], engine.DeniedWithReason, "Enough.")
	if got := get(t, open); got.Reason != "Enough." {
		t.Errorf("got %+v", got)
	}
}

// TestGuardStandsBelowEveryPolicy holds that an ask which the guard denies is
// denied whatever policy and grants say, and that the guard is made anew when a
// file that it depends on changes.
func TestGuardStandsBelowEveryPolicy(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	hook := filepath.Join(dir, "hook.json")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "policy.jsonc"), []byte(`{"permission": {"*": "allow", "path_write": "allow"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	n := New(Config{ConfigDir: config, Home: dir, Files: policyfile.Disk{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Guard: func(Inbox) (*engine.Ruleset, []string) {
			s := engine.Section{Surface: "path_write"}
			if _, err := os.Stat(hook); err == nil {
				s.Rules = []engine.Rule{{Surface: "path_write", Pattern: hook, Action: engine.Deny, Reason: "Not yours.", Origin: engine.OriginBuiltin}}
			}
			return engine.Compile([]engine.Layer{{Origin: engine.OriginBuiltin, Sections: []engine.Section{s}}}, engine.Options{}), []string{hook}
		}})
	in := &forwarding.Inbound{AgentDir: dir, SessionID: "desk", Question: &engine.Question{SessionID: "desk", Tool: "write", Kind: "path", Message: "asks", Surface: "path_write", Value: hook,
		Intent: &engine.Intent{Surface: "path_write", MatchValues: []string{hook}, Boundary: &hook}}}
	if d := n.Decide(t.Context(), in); d.Verdict != engine.Approved {
		t.Errorf("before there is a hook: %+v", d)
	}
	if err := os.WriteFile(hook, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := n.Decide(t.Context(), in); d.Verdict != engine.DeniedWithReason || d.Reason != "Not yours." || d.By.Origin != engine.OriginBuiltin {
		t.Errorf("with one: %+v", d)
	}
}

// The width of the review log's fields is a setting as any other: that of a
// trusted project counts, too.
func TestFieldWidth(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".nod"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".nod", "policy.jsonc"), []byte(`{"reviewLogFieldMaxWidth": 12}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{false, true} {
		n := New(Config{Project: dir, Trusted: trusted, Home: dir, Files: policyfile.Disk{}, Now: time.Now})
		if got := n.FieldWidth(Inbox{AgentDir: filepath.Join(dir, "agent")}); (got == 12) != trusted {
			t.Errorf("trusted %v: %d", trusted, got)
		}
	}
}
