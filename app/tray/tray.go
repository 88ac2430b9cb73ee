//go:build !headless

package tray

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/notify"
)

// Config is what the desktop front end works on.
type Config struct {
	Node desk.Node

	// Notifier tells of asks. Nil: the dialog asks without being announced.
	Notifier notify.Notifier

	// BusAddress is the session bus as notify.SessionBus finds it. Empty:
	// there is none, so there is no tray on Linux. It must be the bus of
	// DBUS_SESSION_BUS_ADDRESS if that is set: the tray library reads it there.
	BusAddress string

	// Window starts a window process, argument by argument; it speaks
	// app/pipe on its standard input and output.
	Window []string
	Env    []string // its environment, and that of the program that opens the log

	Desktop string // XDG_CURRENT_DESKTOP
	Now     func() time.Time
	Log     *slog.Logger

	timing timing // zero: the times of real life
}

// timing is how long things take or may take.
type timing struct {
	dead      time.Duration // a button just shown is not meant
	idle      time.Duration // a window process without a window lives on
	start     time.Duration // for a window process to say that it is ready
	stop      time.Duration // for a window process to end when told to
	write     time.Duration // for a window process to take a message
	again     time.Duration // before the first restart of a window that died
	summary   time.Duration // between two wordings of the summary
	hostGrace time.Duration // for a tray host to appear before its lack is told
}

func (t timing) orReal() timing {
	set := func(d *time.Duration, real time.Duration) {
		if *d == 0 {
			*d = real
		}
	}
	set(&t.dead, 500*time.Millisecond)
	set(&t.idle, 2*time.Minute)
	set(&t.start, time.Minute)
	set(&t.stop, 3*time.Second)
	set(&t.write, 10*time.Second)
	set(&t.again, 200*time.Millisecond)
	set(&t.summary, 2*time.Second)
	set(&t.hostGrace, 3*time.Second)
	return t
}

// Tray is the desktop front end of one process: the library under it keeps the
// icon in package variables, so there can be no second one.
type Tray struct {
	cfg     Config
	windows *windows
	popups  *popups
	errands sync.WaitGroup // of the menu
}

// New returns a tray that does nothing until Run.
func New(c Config) *Tray {
	c.timing = c.timing.orReal()
	w := newWindows(c)
	return &Tray{cfg: c, windows: w, popups: newPopups(c, w)}
}

// Run serves the desktop until ctx ends or the user picks Quit, neither of
// which is an error. Windows and notifications are gone when it returns. On
// macOS and Windows it must be called on the main goroutine. A desktop without
// a session bus or a tray is served all the same, by windows.
func (t *Tray) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if len(t.cfg.Window) == 0 {
		return errors.New("starting the desktop: no window program is named")
	}
	var all sync.WaitGroup
	all.Go(func() { t.windows.run(ctx, cancel) })
	all.Go(func() { t.popups.run(ctx) })
	t.face(ctx, cancel)
	cancel()
	t.errands.Wait()
	all.Wait()
	return nil
}

// Show brings the Nod window to the front, as a second start of Nod does.
func (t *Tray) Show() error {
	t.windows.show(viewNod, "", "")
	return nil
}
