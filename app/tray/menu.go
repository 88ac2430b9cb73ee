//go:build !headless

package tray

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"fyne.io/systray"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
)

// How many of each the menu holds. Items are made once and then only change
// their words or hide: a menu that is rebuilt closes under the pointer.
const (
	askSlots     = 10
	grantSlots   = 12
	problemSlots = 3
)

// deadSlot is how long a click on an item that revokes is not meant for what
// the item has come to stand for.
const deadSlot = 500 * time.Millisecond

type clickKind int

const (
	clickAsk clickKind = iota + 1
	clickNod
	clickGrants // the window, at its grants
	clickRevoke
	clickClear
	clickPause
	clickLog
	clickQuit
)

// click is what a menu item stands for when it was clicked.
type click struct {
	what clickKind
	key  string // of the ask or grant
}

// item is one line of the menu, what it shows and what it stands for.
type item struct {
	*systray.MenuItem
	title          string
	hidden, greyed bool
	click          click
	since          time.Time // it stands for that
}

// menu is the fixed set of items. Only one goroutine may use it.
type menu struct {
	raw      chan *item // clicked
	status   *item
	problems []*item
	asks     []*item
	moreAsks *item
	grants   *item
	grant    []grantSlot
	moreGr   *item
	clearAll *item
	clear    *item // nil if shallow
	pause    *item

	shallow bool          // the desktop shows no menu within a menu within the menu
	delay   time.Duration // after a change
	icon    string        // what icon and tooltip show
	titles  map[*board.Ask]string
	gone    func() bool // the bus under it is
}

// grantSlot is a grant in the menu. It keeps its grant while that holds, so
// that the item under the pointer does not become another's.
type grantSlot struct {
	id     string
	head   *item
	detail *item
	revoke *item
}

// newMenu makes the items. It must run in the library's ready callback.
func newMenu(ctx context.Context, desktop string) *menu {
	m := &menu{raw: make(chan *item, 16), gone: func() bool { return false }}
	m.shallow = shallowMenus(desktop)
	top := func(title string) *item { return m.add(ctx, systray.AddMenuItem(title, ""), title) }
	sub := func(parent *item, title string) *item {
		return m.add(ctx, parent.AddSubMenuItem(title, ""), title)
	}
	m.status = top("Nod")
	for range problemSlots {
		m.problems = append(m.problems, top(""))
	}
	for range askSlots {
		m.asks = append(m.asks, top(""))
	}
	m.moreAsks = top("")
	systray.AddSeparator()
	m.grants = top("No grants")
	for range grantSlots {
		s := grantSlot{head: sub(m.grants, "")}
		if !m.shallow {
			s.detail, s.revoke = sub(s.head, ""), sub(s.head, "Revoke")
		}
		m.grant = append(m.grant, s)
	}
	m.moreGr = sub(m.grants, "")
	m.clearAll = sub(m.grants, "Revoke all…")
	if !m.shallow {
		m.clear = sub(m.clearAll, "")
	}
	systray.AddSeparator()
	m.pause = top("Pause")
	top("Open Nod…").click.what = clickNod
	top("Open log").click.what = clickLog
	systray.AddSeparator()
	top("Quit Nod").click.what = clickQuit
	return m
}

// add takes an item in and listens to it. The library drops a click that
// nobody waits for, so each has a goroutine that waits.
func (m *menu) add(ctx context.Context, mi *systray.MenuItem, title string) *item {
	it := &item{MenuItem: mi, title: title}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-mi.ClickedCh:
			}
			select {
			case <-ctx.Done():
				return
			case m.raw <- it:
			}
		}
	}()
	return it
}

// meaning is what a click on it stands for at now.
func (it *item) meaning(now time.Time) (click, bool) {
	c := it.click
	if (c.what == clickRevoke || c.what == clickClear) && now.Sub(it.since) < deadSlot {
		return click{}, false
	}
	return c, c.what != 0 && !it.hidden && !it.greyed
}

// show brings icon and menu in line with l, touching only what changed.
func (m *menu) show(ctx context.Context, l look, now time.Time) {
	if icon := fmt.Sprint(l.state(), min(len(l.asks), 10), l.status()); icon != m.icon {
		m.icon = icon
		setIcon(l)
	}
	put := func(it *item, title string, c click, greyed bool) { m.put(ctx, it, title, c, greyed, now) }

	put(m.status, "Nod: "+l.status(), click{}, true)
	for i, it := range m.problems {
		if i >= len(l.problems) {
			m.hide(ctx, it)
			continue
		}
		put(it, "! "+visible.Line(l.problems[i], 90), click{what: clickNod}, false)
	}
	titles := map[*board.Ask]string{}
	for i, it := range m.asks {
		if i >= len(l.asks) {
			m.hide(ctx, it)
			continue
		}
		a := l.asks[i]
		title, ok := m.titles[a]
		if !ok { // an ask may be a megabyte, and never changes
			title = desk.Who(a.Principal) + ": " + visible.Line(headline(a), 60)
		}
		titles[a] = title
		put(it, title, click{clickAsk, a.Key}, false)
	}
	m.titles = titles
	if more := len(l.asks) - askSlots; more > 0 {
		put(m.moreAsks, fmt.Sprintf("%d more…", more), click{clickAsk, l.asks[askSlots].Key}, false)
	} else {
		m.hide(ctx, m.moreAsks)
	}
	m.showGrants(ctx, l.grants, now)
	if l.paused {
		put(m.pause, "Resume", click{what: clickPause}, false)
	} else {
		put(m.pause, "Pause", click{what: clickPause}, false)
	}
}

func (m *menu) showGrants(ctx context.Context, grants []pipe.Grant, now time.Time) {
	put := func(it *item, title string, c click, greyed bool) { m.put(ctx, it, title, c, greyed, now) }
	if len(grants) == 0 {
		put(m.grants, "No grants", click{}, true)
	} else {
		put(m.grants, "Grants ("+fmt.Sprint(len(grants))+")", click{}, false)
	}
	free := map[string]pipe.Grant{}
	for _, g := range grants {
		free[g.ID] = g
	}
	held := 0
	for i := range m.grant {
		s := &m.grant[i]
		g, ok := free[s.id]
		if !ok {
			s.id = ""
			continue
		}
		delete(free, s.id)
		held++
		m.showGrant(ctx, s, g, now)
	}
	for i := range m.grant {
		s := &m.grant[i]
		if s.id != "" {
			continue
		}
		n := slices.IndexFunc(grants, func(g pipe.Grant) bool { _, ok := free[g.ID]; return ok })
		if n < 0 {
			m.hide(ctx, s.head)
			continue
		}
		s.id = grants[n].ID
		delete(free, s.id)
		held++
		m.showGrant(ctx, s, grants[n], now)
	}
	if more := len(grants) - held; more > 0 {
		put(m.moreGr, fmt.Sprintf("%d more…", more), click{what: clickGrants}, false)
	} else {
		m.hide(ctx, m.moreGr)
	}
	switch {
	case len(grants) == 0:
		m.hide(ctx, m.clearAll)
	case m.shallow:
		put(m.clearAll, "Revoke all…", click{what: clickGrants}, false) // the window asks
	default:
		put(m.clearAll, "Revoke all…", click{}, false)
		put(m.clear, "Yes, revoke all "+fmt.Sprint(len(grants)), click{what: clickClear}, false)
	}
}

func (m *menu) showGrant(ctx context.Context, s *grantSlot, g pipe.Grant, now time.Time) {
	whom := "whole session"
	if g.Requester != "" {
		whom = "one subagent"
		if g.Agent != "" {
			whom = desk.Who(principal(g))
		}
	}
	title := visible.Line(g.Surface, 24) + " " + visible.Line(g.Pattern, 50) + " (" + whom + ")"
	used := "not used yet"
	if g.Hits > 0 {
		used = "used " + plural(g.Hits, "times")
	}
	detail := "since " + g.Since.Local().Format("15:04") + ", " + used
	if !g.Until.IsZero() {
		detail += ", until " + g.Until.Local().Format("15:04")
	}
	if m.shallow {
		m.put(ctx, s.head, title+", "+detail, click{what: clickGrants}, false, now) // the window asks
		return
	}
	m.put(ctx, s.head, title, click{}, false, now)
	m.put(ctx, s.detail, detail, click{}, true, now)
	m.put(ctx, s.revoke, "Revoke", click{clickRevoke, g.ID}, false, now)
}

// put makes it show title and stand for c.
func (m *menu) put(ctx context.Context, it *item, title string, c click, greyed bool, now time.Time) {
	if it.click != c {
		it.click, it.since = c, now
	}
	if it.title != title {
		it.title = title
		it.SetTitle(literal(title))
		m.breathe(ctx)
	}
	if it.greyed != greyed {
		if it.greyed = greyed; greyed {
			it.Disable()
		} else {
			it.Enable()
		}
		m.breathe(ctx)
	}
	if it.hidden {
		it.hidden = false
		it.Show()
		m.breathe(ctx)
	}
}

func (m *menu) hide(ctx context.Context, it *item) {
	if it.hidden {
		return
	}
	it.hidden, it.click = true, click{}
	it.Hide()
	m.breathe(ctx)
}

// breathe waits after a change where hosts lose changes that follow at once.
func (m *menu) breathe(ctx context.Context) {
	if m.delay == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(m.delay):
	}
}

// shallowMenus reports whether a desktop may show a menu within a menu within
// the menu without its items. GNOME has no such menus, and panels that read the
// menu by libdbusmenu-gtk (Xfce, MATE, Cinnamon, Budgie) lose the innermost
// items when all of them come to be shown together.
func shallowMenus(desktop string) bool {
	up := strings.ToUpper(desktop)
	return runtime.GOOS != "windows" && runtime.GOOS != "darwin" && !strings.Contains(up, "KDE") && !strings.Contains(up, "LXQT")
}

// delayFor is how long a desktop wants between two changes of a menu.
func delayFor(desktop string) time.Duration {
	up := strings.ToUpper(desktop)
	if runtime.GOOS != "linux" || strings.Contains(up, "KDE") || strings.Contains(up, "GNOME") {
		return 0
	}
	return 10 * time.Millisecond
}

// literal keeps a menu from reading a mark for a keyboard letter into text.
func literal(s string) string {
	if runtime.GOOS == "windows" {
		return strings.ReplaceAll(s, "&", "&&")
	}
	if runtime.GOOS == "darwin" {
		return s
	}
	return strings.ReplaceAll(s, "_", "__")
}
