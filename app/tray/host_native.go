//go:build !headless && (windows || darwin)

package tray

import (
	"context"

	"fyne.io/systray"
)

// hostNews says whether there is something that shows tray icons.
type hostNews struct {
	there bool
	why   string // if not
}

// loop runs the system's own loop, which wants the main goroutine, and serve
// beside it.
func (t *Tray) loop(ctx context.Context, serve func(*menu)) {
	served := make(chan struct{})
	systray.Run(func() {
		m := newMenu(ctx, t.cfg.Desktop)
		m.show(ctx, t.look(), t.cfg.Now())
		go func() {
			defer close(served)
			serve(m)
			systray.Quit()
		}()
	}, nil)
	<-served
}

// watchHost has nothing to tell: the tray is always there.
func (t *Tray) watchHost(context.Context) <-chan hostNews { return nil }
