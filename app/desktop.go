//go:build !headless

package app

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/node"
	"github.com/nod-agents/nod/app/tray"
	"github.com/nod-agents/nod/app/window"
	"github.com/nod-agents/nod/notify"
)

// hasDesktop: this build has the tray and the windows.
const hasDesktop = true

// desktop is the front end of the tray.
func (n *nod) desktop(ctx context.Context, nd *node.Node, log *slog.Logger) frontEnd {
	self, err := os.Executable()
	if err != nil {
		nd.Problem("window", "Windows cannot be opened, because the program's own file is unknown: "+err.Error())
	}
	bus := notify.SessionBus(n.getenv, os.Getuid())
	t := tray.New(tray.Config{
		Node:       nd,
		Notifier:   notify.New(ctx, notify.Config{AppName: "Nod", DesktopEntry: "nod", BusAddress: bus, Log: log}),
		BusAddress: bus,
		Window:     []string{self, "window"},
		Env:        n.Environ,
		Desktop:    n.getenv("XDG_CURRENT_DESKTOP"),
		Now:        time.Now,
		Log:        log,
	})
	return frontEnd{run: t.Run, show: t.Show}
}

// windowCommands is the window process: the resident starts it and holds its
// pipes, so that starting it by hand answers nobody.
func (n *nod) windowCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use:    "window",
		Short:  "Draw the windows of the Nod that started this process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if code := window.Run(c.Context(), n.Stdin, n.Stdout, n.Stderr); code != 0 {
				return &exitError{code: code}
			}
			return nil
		},
	}}
}
