package node

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
)

// TestGrantOfAOneShotChild holds that a grant for this subagent only is kept by
// the node for a child that says it remembers nothing, counts for that child
// alone, and is left to any other child to keep.
func TestGrantOfAOneShotChild(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "policy.jsonc"), []byte(`{"permission": {"*": "ask"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	inbox := Inbox{AgentDir: filepath.Join(dir, "agent"), SessionID: "desk"}
	n := New(Config{Inboxes: []Inbox{inbox}, ConfigDir: config, Home: dir, Files: policyfile.Disk{}, Human: true, Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})

	inbound := func(requester, command string, oneShot bool) *forwarding.Inbound {
		word, _, _ := strings.Cut(command, " ")
		who := engine.Principal{SessionID: requester, AgentName: "scout"}
		q := &engine.Question{
			ID: requester + command, SessionID: "desk", CreatedAt: time.Now(), Principal: who, Tool: "bash", Surface: "bash", Value: command, Kind: "bash", Generation: 3,
			Intent:     &engine.Intent{Surface: "bash", MatchValues: []string{command}, RequesterCwd: dir, Principal: who},
			Suggestion: []engine.Grant{{Surface: "bash", Pattern: word + " *"}},
		}
		return &forwarding.Inbound{Question: q, Request: &forwarding.Request{OneShot: oneShot}, Hash: "h", AgentDir: inbox.AgentDir, SessionID: "desk"}
	}
	// decide answers for the session if the human is asked, and says whether.
	decide := func(in *forwarding.Inbound) (d engine.Decision, asked bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		changes, stop := n.Board().Watch()
		defer stop()
		done := make(chan engine.Decision, 1)
		go func() { done <- n.Decide(ctx, in) }()
		for {
			for _, a := range n.Board().Pending() {
				asked = true
				if err := n.Board().Answer(a.Key, a.Hash, board.Answer{Verdict: engine.ApprovedForSession, View: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case d = <-done:
				return d, asked
			case <-changes:
			case <-ctx.Done():
				t.Fatal("no decision")
			}
		}
	}

	for _, step := range []struct {
		name, requester, command string
		oneShot, asked           bool
		verdict                  engine.Verdict
	}{
		{"another child keeps its own", "a", "touch 1", false, true, engine.ApprovedForSession},
		{"so it is asked again", "a", "touch 2", false, true, engine.ApprovedForSession},
		{"the first call of a hook", "b", "touch 1", true, true, engine.ApprovedForSession},
		{"the second is silent", "b", "touch 2", true, false, engine.Approved},
		{"another subagent is asked", "c", "touch 1", false, true, engine.ApprovedForSession},
		{"what it does not cover asks", "b", "rm x", true, true, engine.ApprovedForSession},
	} {
		d, asked := decide(inbound(step.requester, step.command, step.oneShot))
		if d.Verdict != step.verdict || asked != step.asked {
			t.Errorf("%s: %s, asked %v; want %s, %v", step.name, d.Verdict, asked, step.verdict, step.asked)
		}
	}
	grants := n.Grants()
	if len(grants) != 2 || grants[0].Requester != "b" || grants[0].SessionID != "desk" || grants[0].Pattern != "touch *" {
		t.Errorf("grants: %+v", grants)
	}
}
