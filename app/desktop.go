//go:build !headless && (cgo || ci)

package app

import (
	"bytes"
	"context"
	"image"
	"image/png"
	stdlog "log"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/node"
	"github.com/nod-agents/nod/app/tray"
	"github.com/nod-agents/nod/app/window"
	"github.com/nod-agents/nod/app/window/hush"
	"github.com/nod-agents/nod/assets"
	"github.com/nod-agents/nod/notify"
)

// hasDesktop: this build has the tray and the windows.
const hasDesktop = true

// desktop is the front end of the tray.
func (n *nod) desktop(ctx context.Context, nd *node.Node, log *slog.Logger) frontEnd {
	hush.Lift()
	// Libraries of the desktop log what they meet, and go on.
	stdlog.SetFlags(0)
	stdlog.SetOutput(slog.NewLogLogger(log.Handler(), slog.LevelDebug).Writer())
	self, err := os.Executable()
	if err != nil {
		nd.Problem("window", "Windows cannot be opened, because the program's own file is unknown: "+err.Error())
	}
	bus := sessionBus(n.Getenv)
	t := tray.New(tray.Config{
		Node:       nd,
		Notifier:   notify.New(ctx, notify.Config{AppName: "Nod", DesktopEntry: assets.AppID, Icon: icon(), BusAddress: bus, Log: log}),
		BusAddress: bus,
		Window:     []string{self, "window"},
		Env:        n.Environ,
		Desktop:    n.Getenv("XDG_CURRENT_DESKTOP"),
		Now:        time.Now,
		Log:        log,
	})
	return frontEnd{run: t.Run, show: t.Show}
}

// icon is what notifications show, in the size in which the servers do: the
// D-Bus library takes it byte by byte, which is most of the time of a Notify call.
func icon() image.Image {
	i, err := png.Decode(bytes.NewReader(assets.Icon(48)))
	if err != nil {
		panic(err) // it is part of the program
	}
	return i
}

// sessionBus is the address of the session bus; empty: there is none.
func sessionBus(getenv func(string) string) string { return notify.SessionBus(getenv, os.Getuid()) }

// windowCommands is the window process: the resident starts it and holds its
// pipes, so that starting it by hand answers nobody.
func (n *nod) windowCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use:    "window",
		Short:  "Draw the windows of the Nod that started this process",
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			hush.Lift()
			if code := window.Run(c.Context(), n.Stdin, n.Stdout, n.Stderr, n.Getenv); code != 0 {
				return &exit.Error{Code: code}
			}
			return nil
		},
	}}
}
