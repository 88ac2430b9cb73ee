package app

import (
	"github.com/nod-agents/nod/app/guard"
	"github.com/nod-agents/nod/app/node"
	"github.com/nod-agents/nod/app/settings"
	"github.com/nod-agents/nod/engine"
)

// unprotected is what a user is told who has switched self-protection off.
const unprotected = "Self-protection is off (selfProtection in settings.jsonc), so rules may let agents write Nod's inboxes, settings, policy and log, and the hooks that call it."

// servedProtection makes the rules by which Nod protects itself, for a node, and the files on which it depends.
func (n *nod) servedProtection(set *settings.Settings, project string) func(node.Inbox) (*engine.Ruleset, []string) {
	if set == nil || !set.SelfProtects() {
		return nil
	}
	return func(i node.Inbox) (*engine.Ruleset, []string) {
		p, looked := n.Guarding(set, i.AgentDir, project)
		return guard.Rules(p), looked
	}
}
