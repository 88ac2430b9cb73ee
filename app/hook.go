package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/control"
	"github.com/nod-agents/nod/app/doctor"
	"github.com/nod-agents/nod/app/hooks"
)

// hookCommands are what agents call before they run a tool.
func (n *nod) hookCommands() []*cobra.Command { return []*cobra.Command{hooks.Command(n.agents())} }

// hookFindings are the agents whose settings have Nod's hook, and what keeps it
// from running. An agent without it is no finding.
func (n *nod) hookFindings() []doctor.Finding {
	var list []doctor.Finding
	for _, h := range n.agents().Installed() {
		f := doctor.Finding{Check: "hook of " + h.Agent, Level: doctor.OK, Says: "it is in " + h.File}
		switch {
		case h.State == "unreadable":
			f.Level, f.Says, f.Remedy = doctor.Warn, "its settings can't be read: "+h.Problem, "mend "+h.File
		case h.State == "outdated":
			f.Level, f.Says, f.Remedy = doctor.Bad, h.Problem, "nod hook install "+h.Agent
		case len(h.Warnings) > 0:
			f.Level, f.Says, f.Remedy = doctor.Warn, h.Warnings[0], "see: nod hook status "+h.Agent
		}
		list = append(list, f)
	}
	return list
}

// ended has the running Nod, if there is one, take back what was granted to
// one requester only.
func (n *nod) ended(ctx context.Context, agentDir, requester string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dir, err := absolute(agentDir)
	if err != nil {
		return
	}
	client, err := control.Dial(ctx, n.place(), dir)
	if err != nil {
		return // no Nod, no grants
	}
	defer client.Close()
	grants, err := client.Grants(ctx)
	if err != nil {
		fmt.Fprintf(n.Stderr, "nod: %v\n", err)
		return
	}
	var ids []string
	for _, g := range grants {
		if g.Requester == requester {
			ids = append(ids, g.ID)
		}
	}
	if len(ids) > 0 {
		if _, err := client.Revoke(ctx, ids...); err != nil {
			fmt.Fprintf(n.Stderr, "nod: %v\n", err)
		}
	}
}

// agents is what asking needs.
func (n *nod) agents() agents.Env { return n.Agents(n.ended) }
