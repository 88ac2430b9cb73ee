package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
)

// above makes a node relay to a session, over its real inbox.
func above(session string) *Parent {
	return &Parent{SessionID: session, Terminal: func(i Inbox) engine.Terminal {
		return &forwarding.Requester{Child: forwarding.Child{SessionID: i.SessionID, AgentDir: i.AgentDir}, Target: session, Relays: true}
	}}
}

// requests are the ids that wait in a session's inbox.
func (d *desk) requests(session string) []string {
	entries, _ := os.ReadDir(filepath.Join(forwarding.InboxDir(filepath.Join(d.dir, "agent"), session), "requests"))
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names
}

func (d *desk) gone(session string) {
	d.t.Helper()
	for end := time.Now().Add(patience); len(d.requests(session)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("session %s is still asked %q", session, d.requests(session))
		}
	}
}

// TestRelayedAsk holds what a node in between does: it judges by its own rules
// first, passes on the facts and the originator, adds one hop on either way,
// and the node above judges anew.
func TestRelayedAsk(t *testing.T) {
	top := serve(t, `{"permission": {"*": "ask", "bash": {"*": "ask", "make *": "allow", "rm *": {"action": "deny", "reason": "Not above."}}}}`, true, "top")
	mid := serveIn(t, top.dir, `{"permission": {"*": "ask", "bash": {"*": "ask", "git *": "allow", "make forbidden": "deny"}}}`, false, above("top"), "mid")

	by := func(d engine.Decision) (hops []string, kind engine.SourceKind) {
		s := d.By
		for ; s.Kind == engine.ByForwarded && s.Decision != nil; s = *s.Decision {
			hops = append(hops, s.ResponderSessionID)
		}
		return hops, s.Kind
	}
	for _, tt := range []struct {
		name, command, reason string
		verdict               engine.Verdict
		hops                  []string
		kind                  engine.SourceKind
	}{
		{"by a rule of the relay", "git status", "", engine.Approved, []string{"mid"}, engine.ByRule},
		{"denied by a rule of the relay, which the one above does not hear of", "make forbidden", "", engine.Denied, []string{"mid"}, engine.ByRule},
		{"by a rule above", "make all", "", engine.Approved, []string{"mid", "top"}, engine.ByRule},
		{"denied by a rule above, with its reason", "rm x", "Not above.", engine.DeniedWithReason, []string{"mid", "top"}, engine.ByRule},
	} {
		got := get(t, mid.child("mid", "c1", tt.command, ""))
		hops, kind := by(got)
		if got.Verdict != tt.verdict || got.Reason != tt.reason || !slices.Equal(hops, tt.hops) || kind != tt.kind {
			t.Errorf("%s: %+v, through %q by %s", tt.name, got, hops, kind)
		}
	}

	c := mid.child("mid", "c1", "touch x", "touch *")
	a := top.waits(1)[0]
	if a.Principal != (engine.Principal{SessionID: "c1", AgentName: "scout"}) || !slices.Equal(a.Hops, []string{"mid"}) {
		t.Errorf("the originator must stay the principal and the relay be a hop: %+v, %q", a.Principal, a.Hops)
	}
	if a.Intent == nil || !slices.Equal(a.Intent.MatchValues, []string{"touch x"}) || a.RequesterCwd != mid.dir || a.Intent.Principal != a.Principal {
		t.Errorf("the facts were changed: %+v", a.Intent)
	}
	top.answer(a, engine.ApprovedForSession, "")
	got := get(t, c)
	if hops, kind := by(got); got.Verdict != engine.ApprovedForSession || !slices.Equal(hops, []string{"mid", "top"}) || kind != engine.ByUser {
		t.Errorf("%+v", got)
	}
	if g := append(mid.Grants(), top.Grants()...); len(g) != 0 {
		t.Errorf("a grant for this subagent only is its own to keep: %+v", g)
	}

	c = mid.child("mid", "c1", "touch y", "touch *")
	top.answer(top.waits(1)[0], engine.ApprovedForServingSession, "")
	if got := get(t, c); got.Verdict != engine.Approved {
		t.Errorf("%+v", got)
	}
	if g := top.Grants(); len(g) != 1 || g[0].Pattern != "touch *" || len(mid.Grants()) != 0 {
		t.Errorf("a grant for the whole session is kept where it was given: %+v, %+v", g, mid.Grants())
	}

	c = mid.child("mid", "c1", "chmod x", "")
	top.answer(top.waits(1)[0], engine.DeniedWithReason, "Ask me tomorrow.")
	if got := get(t, c); got.Verdict != engine.DeniedWithReason || got.Reason != "Ask me tomorrow." {
		t.Errorf("%+v", got)
	}
}

// TestRelayTakesBack holds that an ask which ends below ends above: when its
// agent goes, and when a rule of the relay decides it after all.
func TestRelayTakesBack(t *testing.T) {
	top := serve(t, askAll, true, "top")
	mid := serveIn(t, top.dir, askAll, false, above("top"), "mid")

	ctx, cancel := context.WithCancel(t.Context())
	who := engine.Principal{SessionID: "c1", AgentName: "scout"}
	r := &forwarding.Requester{Child: forwarding.Child{SessionID: "c1", AgentDir: filepath.Join(top.dir, "agent")}, Target: "mid"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Ask(ctx, &engine.Question{Principal: who, Tool: "bash", Surface: "bash", Kind: "bash", Value: "ls",
			Intent: &engine.Intent{Surface: "bash", MatchValues: []string{"ls"}, Principal: who}})
	}()
	top.waits(1)
	cancel()
	<-done
	top.waits(0)
	mid.gone("top")

	c := mid.child("mid", "c1", "make a", "")
	top.waits(1)
	mid.policy(`{"permission": {"*": "ask", "bash": {"make a": "deny"}}}`)
	if got := get(t, c); got.Verdict != engine.Denied || inner(got).Kind != engine.ByRule {
		t.Errorf("%+v", got)
	}
	top.waits(0)
	mid.gone("top")
}

// TestRelayAsksBoth holds that with a human at the relay the first answer
// counts, wherever it is given.
func TestRelayAsksBoth(t *testing.T) {
	top := serve(t, askAll, true, "top")
	mid := serveIn(t, top.dir, askAll, true, above("top"), "mid")

	c := mid.child("mid", "c1", "ls a", "")
	top.waits(1)
	a := mid.waits(1)[0]
	if !slices.ContainsFunc(a.Notes, func(n string) bool { return strings.Contains(n, `"top"`) }) {
		t.Errorf("nothing says that the session above is asked too: %q", a.Notes)
	}
	mid.answer(a, engine.Approved, "")
	if got := get(t, c); got.Verdict != engine.Approved || inner(got).Kind != engine.ByUser {
		t.Errorf("%+v", got)
	}
	top.waits(0)

	c = mid.child("mid", "c1", "ls b", "")
	mid.waits(1)
	top.answer(top.waits(1)[0], engine.Denied, "")
	if got := get(t, c); got.Verdict != engine.Denied || inner(got).Kind != engine.ByForwarded {
		t.Errorf("%+v", got)
	}
	mid.waits(0)
	if ends := mid.Board().Ended(); ends[len(ends)-1].View != "parent" {
		t.Errorf("ended %+v", ends[len(ends)-1])
	}
}

// TestRelayWithNobodyAbove holds that the ask is unavailable with the reason
// where nobody is at the relay, and waits for whoever is.
func TestRelayWithNobodyAbove(t *testing.T) {
	mid := serve(t, askAll, false, "mid")
	lone := serveIn(t, mid.dir, askAll, false, above("nobody"), "lone")
	got := get(t, lone.child("lone", "c1", "ls", ""))
	if got.Verdict != engine.Unavailable || !strings.Contains(got.Reason, "'nobody' is not serving") {
		t.Errorf("%+v", got)
	}

	watched := serveIn(t, mid.dir, askAll, true, above("nobody"), "watched")
	c := watched.child("watched", "c1", "ls", "")
	a := watched.waits(1)[0]
	watched.gone("nobody") // given up above after the grace
	watched.answer(a, engine.Approved, "")
	if got := get(t, c); got.Verdict != engine.Approved {
		t.Errorf("%+v", got)
	}
}

// TestRelayInACircle has two nodes that name each other as the session above.
func TestRelayInACircle(t *testing.T) {
	a := serveIn(t, t.TempDir(), askAll, false, above("b"), "a")
	serveIn(t, a.dir, askAll, false, above("a"), "b")
	got := get(t, a.child("a", "c1", "ls", ""))
	if got.Verdict != engine.Unavailable || !strings.Contains(got.Reason, "in a circle") {
		t.Errorf("%+v", got)
	}
}

// TestRelayOfAnAskWithoutFacts holds that the originator is known above even
// where the child is so old that it sent no facts.
func TestRelayOfAnAskWithoutFacts(t *testing.T) {
	top := serve(t, askAll, true, "top")
	serveIn(t, top.dir, askAll, false, above("top"), "mid")
	requests := filepath.Join(forwarding.InboxDir(filepath.Join(top.dir, "agent"), "mid"), "requests")
	text := `{"id":"old-1","createdAt":` + strconv.FormatInt(time.Now().UnixMilli(), 10) + `,"requesterSessionId":"c9","targetSessionId":"mid","requesterAgentName":"scout",` +
		`"message":"Agent 'scout' requested bash command 'ls'. Allow this command?","surface":"bash","value":"ls"}`
	if err := os.WriteFile(filepath.Join(requests, "old-1.tmp"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(requests, "old-1.tmp"), filepath.Join(requests, "old-1.json")); err != nil {
		t.Fatal(err)
	}
	asked := top.waits(1)[0]
	if asked.Principal.SessionID != "c9" || !slices.Equal(asked.Hops, []string{"mid"}) || asked.Intent != nil || !strings.Contains(asked.Message, "'ls'") {
		t.Errorf("%+v", asked.Question)
	}
	if err := top.Board().Answer(asked.Key, asked.Hash, board.Answer{Verdict: engine.Denied, View: "test"}); err != nil {
		t.Fatal(err)
	}
}
