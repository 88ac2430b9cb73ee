package app

import (
	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/check"
)

// checkCommands are the commands that judge without asking anybody.
func (n *nod) checkCommands() []*cobra.Command { return check.Commands(n.Judge()) }
