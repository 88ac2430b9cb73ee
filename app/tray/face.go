//go:build !headless

package tray

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fyne.io/systray"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/assets"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/notify"
)

// faceEvery is the least time between two changes of the menu.
const faceEvery = 100 * time.Millisecond

// look is all that icon and menu show, taken at one moment.
type look struct {
	asks     []*board.Ask
	grants   []pipe.Grant
	paused   bool
	problems []string
}

func (t *Tray) look() look {
	n := t.cfg.Node
	return look{
		asks: n.Board().Pending(), grants: n.Grants(), paused: n.Paused(),
		problems: append(slices.Clone(n.Problems()), nonEmpty(t.windows.problem())...),
	}
}

// state is what the icon tells. What waits for the human comes before what
// they should mend: it waits now.
func (l look) state() assets.State {
	switch {
	case l.paused:
		return assets.Paused
	case len(l.asks) > 0:
		return assets.Pending
	case len(l.problems) > 0:
		return assets.Degraded
	default:
		return assets.Idle
	}
}

// status is one line that says the same.
func (l look) status() string {
	var said []string
	if l.paused {
		said = append(said, "paused")
	}
	if len(l.asks) > 0 {
		said = append(said, desk.Count(len(l.asks)))
	} else if !l.paused {
		said = append(said, "nothing waits")
	}
	switch n := len(l.problems); n {
	case 0:
	case 1:
		said = append(said, "1 thing to mend")
	default:
		said = append(said, fmt.Sprintf("%d things to mend", n))
	}
	return strings.Join(said, ", ")
}

// face keeps icon and menu up to date and does what is clicked, until ctx ends
// or the user quits.
func (t *Tray) face(ctx context.Context, quit context.CancelFunc) {
	hosts := t.watchHost(ctx)
	t.loop(ctx, func(m *menu) { t.serve(ctx, quit, m, hosts) })
}

// serve is the loop of face. m is nil where there can be no icon.
func (t *Tray) serve(ctx context.Context, quit context.CancelFunc, m *menu, hosts <-chan hostNews) {
	boardNews, unwatchBoard := t.cfg.Node.Board().Watch()
	defer unwatchBoard()
	nodeNews, unwatchNode := t.cfg.Node.Watch()
	defer unwatchNode()
	var (
		clicks <-chan *item
		pause  <-chan time.Time
		stale  = true
		told   bool
	)
	if m != nil {
		clicks = m.raw
	}
	grace := time.After(t.cfg.timing.hostGrace)
	var missing string // why there is no tray, once that is known
	for {
		if stale && pause == nil && m != nil && !m.gone() {
			l := t.look()
			m.show(ctx, l, t.cfg.Now())
			stale = false
			pause = time.After(faceEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-boardNews:
			stale = true
		case <-nodeNews:
			stale = true
		case <-t.windows.changed:
			stale = true
		case <-pause:
			pause = nil
		case h, ok := <-hosts:
			switch {
			case !ok:
				hosts = nil
			case h.there:
				if missing != "" {
					t.cfg.Log.Info("there is a tray now")
				}
				missing = ""
			default:
				missing = h.why
			}
			if missing != "" && grace == nil && !told {
				told = true
				t.noHost(missing)
			}
		case <-grace:
			if grace = nil; missing != "" && !told {
				told = true
				t.noHost(missing)
			}
		case it := <-clicks:
			if c, ok := it.meaning(t.cfg.Now()); ok {
				t.clicked(ctx, quit, c)
			}
		}
	}
}

// noHost says once that there is no tray, and gives the user a window instead.
func (t *Tray) noHost(why string) {
	t.cfg.Log.Warn("no tray icon: "+why, "instead", "asks come as notifications and windows; run nod again for the window")
	t.windows.volunteer(viewNod)
}

// clicked does what a menu item stands for.
func (t *Tray) clicked(ctx context.Context, quit context.CancelFunc, c click) {
	n := t.cfg.Node
	switch c.what {
	case clickAsk:
		t.windows.show(viewAsk, c.key, "")
	case clickNod:
		t.windows.show(viewNod, "", "")
	case clickGrants:
		t.windows.show(viewNod, pipe.GrantsKey, "")
	case clickRevoke:
		if err := n.Revoke(c.key); err != nil {
			t.cfg.Log.Warn("revoking a grant", "error", err)
		}
	case clickClear:
		t.cfg.Log.Info("every grant was revoked", "grants", n.ClearGrants())
	case clickPause:
		n.SetPaused(!n.Paused())
	case clickLog:
		t.errands.Go(func() {
			if err := openFile(n.LogPath(), t.cfg.Env); err != nil {
				t.sayNoLog(ctx, err)
			}
		})
	case clickQuit:
		quit()
	}
}

// sayNoLog answers the click on Open log where nothing opened.
func (t *Tray) sayNoLog(ctx context.Context, err error) {
	t.cfg.Log.Warn("opening the log", "error", err)
	if t.cfg.Notifier == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, _ = t.cfg.Notifier.Show(ctx, notify.Note{
		Key: "log", Title: "The log was not opened", Body: visible.Line(err.Error(), 400),
		Urgency: notify.Normal, Expire: 2 * lateFor,
	})
}

// setIcon shows the state. Before there is a connection the library keeps it;
// after the bus is gone it panics, which only means that nobody sees the icon.
func setIcon(l look) {
	defer func() { _ = recover() }()
	systray.SetIcon(iconFile(assets.Tray(l.state(), len(l.asks))))
	systray.SetTooltip("Nod: " + l.status())
}

// headline is what an ask is about, in raw text.
func headline(a *board.Ask) string {
	if facts := desk.Facts(a); len(facts) > 0 {
		return facts[0].Text
	}
	return desk.Wish(a.Question)
}

func principal(g pipe.Grant) engine.Principal {
	return engine.Principal{SessionID: g.Requester, AgentName: g.Agent}
}

// plural is "3 times" or "1 time".
func plural(n int, things string) string {
	if n == 1 {
		things = strings.TrimSuffix(things, "s")
	}
	return fmt.Sprintf("%d %s", n, things)
}
