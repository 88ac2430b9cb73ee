// Package check holds the commands that judge a tool call without asking
// anybody, and those that look after policy files: check, policy, trust and
// untrust.
package check

import (
	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/judge"
)

// Env is what the commands work with.
type Env = judge.Env

// Commands returns check, policy, trust and untrust.
func Commands(env Env) []*cobra.Command {
	return []*cobra.Command{checkCommand(env), policyCommand(env), trustCommand(env), untrustCommand(env)}
}

// where adds the flags that say whose policy is meant.
func where(w *judge.Where, c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.Policy, "policy", "", "use this `FILE` instead of the global policy files")
	f.StringVar(&w.Agent, "agent", "", "judge as the agent of this `NAME`")
	f.StringVar(&w.Cwd, "cwd", "", "the project's directory `DIR` (default: the working directory)")
}
