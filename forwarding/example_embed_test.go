package forwarding_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nod-agents/nod/app/disk"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/forwarding"
)

// A Go program that hosts agents holds each tool call against the user's rules
// before it runs it, and asks the running Nod where they ask. Its subagents live
// in the same process: the registry says whose they are.
func Example_embed() {
	places, agentDir, stop := desktop() // a user's rules, and a Nod that serves
	defer stop()

	var children forwarding.Registry
	loader := policy.NewLoader(policyfile.Disk{}, true)
	mayRun := func(ctx context.Context, child, command string) error {
		_, rules := loader.Rules(places, engine.Options{Cwd: places.Project, Now: time.Now()})
		g := gate.Gate{Rules: rules, Files: disk.Files{}, Cwd: places.Project}
		o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": command}})
		if o.Action == engine.Deny {
			return errors.New(o.Refusal("bash"))
		}
		nod := forwarding.Requester{
			Child:   forwarding.Child{SessionID: child, Registry: &children, AgentDir: agentDir},
			OneShot: true, // Nod remembers what is granted for the session
		}
		who := engine.Principal{SessionID: child, AgentName: "scout"}
		for _, a := range nod.AskEach(ctx, o.Questions(gate.Asker{Principal: who, Tool: "bash", Cwd: places.Project, Now: time.Now()})) {
			if !a.Verdict.Approves() {
				return errors.New(a.Reason)
			}
		}
		return nil
	}

	disposed := children.Created("child-1", "desktop") // before it can ask anything
	defer disposed()
	for _, command := range []string{"go vet ./...", "rm -rf build", "make test", "make deploy"} {
		fmt.Printf("%s: %v\n", command, mayRun(context.Background(), "child-1", command))
	}
	fmt.Printf("a stranger's make test: %v\n", mayRun(context.Background(), "child-2", "make test"))
	// Output:
	// go vet ./...: <nil>
	// rm -rf build: Move it to trash/.
	// make test: <nil>
	// make deploy: Not on a Friday.
	// a stranger's make test: No parent session is named to forward the request to.
}
