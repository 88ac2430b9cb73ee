//go:build headless || !(cgo || ci)

package app

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/node"
)

// hasDesktop: this build has no tray and no windows.
const hasDesktop = false

func (n *nod) desktop(context.Context, *node.Node, *slog.Logger) frontEnd {
	panic("a build without a desktop chose it")
}

// sessionBus: nothing here speaks to it, and what would is not linked.
func sessionBus(func(string) string) string { return "" }

func (n *nod) windowCommands() []*cobra.Command { return nil }
