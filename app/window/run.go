//go:build !headless && (cgo || ci)

// Package window is the process that draws: a child of the resident one, which
// it speaks with over its standard input and output (package pipe) and with
// nobody else. It is the only room that links the graphics toolkit; build with
// -tags headless to leave it out.
//
// The toolkit draws with C libraries, so the package is empty without cgo.
package window

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/window/view"
	"github.com/nod-agents/nod/assets"
)

// Exit codes of Run.
const (
	exitDone     = 0
	exitDisplay  = 2  // there is no display to draw on
	exitInternal = 70 // the pipe or the toolkit broke
)

// farewell is how long the toolkit may take to end.
const farewell = 2 * time.Second

// Run draws what stdin brings (lines of pipe.Down) and writes what the person
// does to stdout (lines of pipe.Up), first of all that it is ready. It returns
// the exit code when stdin ends, a quit message came or ctx is done; a line
// that is no message ends it with an error on stderr. getenv tells where the
// display is. It must be called on the main goroutine, once.
func Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) (code int) {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if why := noDisplay(getenv); why != "" {
		log.Error(why)
		return exitDisplay
	}
	defer func() { // the toolkit panics where a display refuses it
		if r := recover(); r != nil {
			log.Error("the window system failed", "cause", fmt.Sprint(r))
			code = exitDisplay
		}
	}()

	// A name keeps the toolkit from looking for a FyneApp.toml in a directory
	// that may be anybody's; without an id it keeps no files of its own.
	app.SetMetadata(fyne.AppMetadata{Name: "Nod", Release: true, Migrations: map[string]bool{"fyneDo": true}})
	a := app.NewWithID("")
	a.SetIcon(fyne.NewStaticResource("nod.png", assets.Icon(256)))
	zoom := float32(1)
	a.Settings().SetTheme(view.NewSkin(zoom))

	var (
		loop loop
		once sync.Once
		end  = func(c int, err error) {
			once.Do(func() {
				if err != nil {
					log.Error("closing the window", "cause", err)
				}
				code = c
				// The toolkit can hang in its ending, for one where the display
				// went at the same time. There is nothing here to lose.
				time.AfterFunc(farewell, func() { os.Exit(c) })
				loop.do(func() {
					loop.close()
					a.Quit()
				})
			})
		}
		out  = pipe.NewWriter(stdout)
		send = func(u pipe.Up) {
			if err := out.Write(u); err != nil {
				go end(exitInternal, err)
			}
		}
	)
	screen := view.New(view.Options{
		Clock: view.Clock{Now: time.Now, After: loop.after},
		Send:  send,
		NewWindow: func(title string) fyne.Window {
			w := a.NewWindow(title)
			prepare(w)
			return w
		},
		Present: present,
		Zoom: func(step int) {
			switch step {
			case 0:
				zoom = 1
			case 1:
				zoom = min(zoom*1.1, 3)
			default:
				zoom = max(zoom/1.1, 0.5)
			}
			a.Settings().SetTheme(view.NewSkin(zoom))
		},
	})
	a.Lifecycle().SetOnEnteredForeground(screen.Foreground)
	a.Lifecycle().SetOnStopped(loop.close)
	a.Lifecycle().SetOnStarted(func() { send(pipe.Up{Type: "ready"}) })

	go func() {
		err := pipe.Read(stdin, func(d pipe.Down) {
			loop.do(func() {
				if !screen.Receive(d) {
					go end(exitDone, nil)
				}
			})
		})
		if err != nil {
			end(exitInternal, err)
			return
		}
		end(exitDone, nil)
	}()
	stop := context.AfterFunc(ctx, func() { end(exitDone, nil) })
	defer stop()

	a.Run()
	return code
}

// loop is the toolkit's, as long as it goes round. What it is given once it has
// ended it runs at once, on whatever goroutine brings it: several at a time, and
// beside its own clearing up; what comes in just then makes it panic.
type loop struct {
	mu   sync.Mutex // held while something is given to it
	over bool
}

// do has f run on the goroutine that draws, unless the loop is over.
func (l *loop) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	fyne.Do(func() {
		if !l.over {
			f()
		}
	})
}

// close lets nothing more begin. It is called on the goroutine that draws.
func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// after is the clock's timer: f runs on the goroutine that draws, and not once
// cancel was called there.
func (l *loop) after(d time.Duration, f func()) (cancel func()) {
	cancelled := false
	t := time.AfterFunc(d, func() {
		l.do(func() {
			if !cancelled {
				f()
			}
		})
	})
	return func() {
		cancelled = true
		t.Stop()
	}
}

// noDisplay says why nothing can be drawn, or "".
func noDisplay(getenv func(string) string) string {
	switch runtime.GOOS {
	case "windows", "darwin":
		return ""
	}
	if getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" {
		return "there is no display: neither DISPLAY nor WAYLAND_DISPLAY is set"
	}
	return ""
}
