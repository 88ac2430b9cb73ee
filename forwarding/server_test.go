package forwarding

import (
	"testing"

	"github.com/nod-agents/nod/engine"
)

func TestServerAnswersByDecision(t *testing.T) {
	for _, c := range []struct {
		name  string
		d     engine.Decision
		state engine.Verdict
		event string
	}{
		{"rule", approved, engine.Approved, EventAutoApproved},
		{"rule denies", engine.Decision{Verdict: engine.DeniedWithReason, Reason: "no pushing", By: byRule}, engine.DeniedWithReason, EventAutoDenied},
		{"user", engine.Decision{Verdict: engine.Approved, By: byUser}, engine.Approved, EventApproved},
		{"this subagent", engine.Decision{Verdict: engine.ApprovedForSession, By: byUser}, engine.ApprovedForSession, EventApproved},
		{"user denies", engine.Decision{Verdict: engine.Denied, By: byUser}, engine.Denied, EventDenied},
		{"nobody", engine.Decision{Verdict: engine.Unavailable, Reason: "nobody", By: engine.DecisionSource{Kind: engine.ByUnavailable, Reason: "nobody"}}, engine.Denied, EventDenied},
		{"nonsense", engine.Decision{Verdict: "yes"}, engine.Denied, EventDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := serve(t, dir, "desk 1/é", always(c.d)).ready()
			path := drop(t, dir, bash("r1", "desk 1/é", "git status"))
			r := answerOf(t, dir, "desk 1/é", "r1")
			if r.State != c.state || r.ResponderSessionID != "desk 1/é" || r.DenialReason != c.d.Reason && c.state == engine.DeniedWithReason {
				t.Errorf("response %+v", r)
			}
			eventually(t, "request removed", func() bool { return !exists(path) })
			eventually(t, "logged", func() bool { return s.log.count(c.event) == 1 })
		})
	}
}
