package forwarding_test

import (
	"context"
	"os"
	"path/filepath"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/forwarding"
)

// human approves one command and no other.
type human string

func (h human) Decide(_ context.Context, in *forwarding.Inbound) engine.Decision {
	by := engine.DecisionSource{Kind: engine.ByUser, Via: "dialog"}
	if in.Question.Value == string(h) {
		return engine.Decision{Verdict: engine.Approved, By: by}
	}
	return engine.Decision{Verdict: engine.DeniedWithReason, Reason: "Not on a Friday.", By: by}
}

const usersPolicy = `{"permission": {"bash": {
	"*": "ask",
	"go vet *": "allow",
	"rm *": {"action": "deny", "reason": "Move it to trash/."}
}}}`

// desktop is a user's machine: a policy, a project, and a Nod that serves the
// session desktop.
func desktop() (places policy.Places, agentDir string, stop func()) {
	dir, err := os.MkdirTemp("", "nod-example")
	if err != nil {
		panic(err)
	}
	places = policy.Places{ConfigDir: filepath.Join(dir, "config"), Project: filepath.Join(dir, "project")}
	for _, d := range []string{places.ConfigDir, places.Project} {
		if err := os.Mkdir(d, 0o700); err != nil {
			panic(err)
		}
	}
	if err := os.WriteFile(filepath.Join(places.ConfigDir, "policy.jsonc"), []byte(usersPolicy), 0o600); err != nil {
		panic(err)
	}
	agentDir = filepath.Join(dir, "agent")
	ready, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	server := forwarding.NewServer(forwarding.ServerConfig{AgentDir: agentDir, SessionID: "desktop", Decider: human("make test"), Ready: func() { close(ready) }})
	go func() {
		defer close(ended)
		if err := server.Run(ctx); err != nil {
			panic(err)
		}
	}()
	<-ready
	return places, agentDir, func() {
		cancel()
		<-ended
		_ = os.RemoveAll(dir)
	}
}
