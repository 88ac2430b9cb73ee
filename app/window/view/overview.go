//go:build !headless

package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/assets"
)

// An overview is the content of the Nod window: what waits, what is granted,
// what was decided, what is served, and what needs mending.
type overview struct {
	root   fyne.CanvasObject
	window fyne.Window
	now    func() time.Time

	status   *widget.RichText
	pause    *button
	problems *fyne.Container
	note     *banner
	tabs     *container.AppTabs

	waiting, grants, ended, serving *shelf
	clear                           *button

	state pipe.Down
	send  func(pipe.Up)
	open  func(key string)
}

func newOverview(w fyne.Window, now func() time.Time, send func(pipe.Up), open func(key string)) *overview {
	o := &overview{window: w, now: now, send: send, open: open}

	icon := canvas.NewImageFromResource(fyne.NewStaticResource("nod.png", assets.Icon(128)))
	icon.FillMode = canvas.ImageFillContain
	icon.SetMinSize(fyne.NewSize(40, 40))
	name := newWords(theme.SizeNameHeadingText, theme.ColorNameForeground, fyne.TextStyle{Bold: true})
	say(name, "Nod")
	o.status = newWords(theme.SizeNameText, colourQuiet, fyne.TextStyle{})
	o.pause = newButton("Pause", func() { o.send(pipe.Up{Type: "pause", On: !o.state.Paused}) })
	log := newButton("Open log", func() { o.send(pipe.Up{Type: "openlog"}) })
	o.problems = container.New(stack{gap: 4})
	o.note = newBanner()

	o.waiting = newShelf("Nothing waits. When an agent asks, it shows up here.", item{text: "x", mono: "x", quiet: "x"}, "Review", func(i int) { o.open(o.state.Asks[i].Key) })
	o.grants = newShelf("No grants. “Allow for this session” records one.", item{mono: "x", quiet: "x", more: "x"}, "Revoke", o.revoke)
	o.ended = newShelf("Nothing was decided yet.", item{text: "x", quiet: "x"}, "", nil)
	o.serving = newShelf("No inbox is served.", item{text: "x"}, "", nil)
	o.clear = newButton("Revoke all", o.revokeAll)
	o.tabs = container.NewAppTabs(
		container.NewTabItem("Waiting", o.waiting.root),
		container.NewTabItem("Grants", container.NewBorder(nil, container.New(layout.NewCustomPaddedLayout(4, 0, 0, 0),
			container.NewHBox(layout.NewSpacer(), o.clear)), nil, nil, o.grants.root)),
		container.NewTabItem("Recent", o.ended.root),
		container.NewTabItem("Serving", o.serving.root),
	)

	header := container.NewBorder(nil, nil, container.NewCenter(icon), container.NewCenter(container.NewHBox(o.pause, log)),
		container.New(stack{gap: -10}, name, o.status))
	o.root = container.New(layout.NewCustomPaddedLayout(10, 12, 12, 12),
		container.NewBorder(container.New(stack{gap: 6}, header, o.problems, o.note), nil, nil, nil, o.tabs))
	return o
}

// show draws a state.
func (o *overview) show(d pipe.Down) {
	first := o.state.Type == ""
	o.state = d
	total := max(d.Total, len(d.Asks))
	status := "Nothing waits."
	if total > 0 {
		status = desk.Count(total) + "."
		if n := len(d.Asks); n < total {
			status = fmt.Sprintf("%s, the first %d are listed.", desk.Count(total), n)
		}
	}
	if d.Paused {
		status += " Paused: asks wait and nothing pops up."
		o.pause.SetText("Resume")
		o.pause.Importance = widget.HighImportance
	} else {
		o.pause.SetText("Pause")
		o.pause.Importance = widget.MediumImportance
	}
	o.pause.Refresh()
	say(o.status, status)

	o.problems.RemoveAll()
	for _, p := range d.Problems {
		b := newBanner()
		b.show(visible.Line(p, 400))
		o.problems.Add(b)
	}

	o.tick()
	now := o.now()
	items := make([]item, len(d.Grants))
	for i, g := range d.Grants {
		items[i] = item{mono: g.Pattern, quiet: grantFor(g), more: grantUse(g, now)}
	}
	o.grants.set(items)
	if len(d.Grants) > 0 {
		o.clear.Enable()
	} else {
		o.clear.Disable()
	}

	items = items[:0:0]
	newest := slices.Clone(d.Ended)
	slices.SortStableFunc(newest, func(a, b pipe.Ended) int { return b.At.Compare(a.At) })
	for _, e := range newest {
		items = append(items, item{text: e.Title, quiet: clockTime(e.At, now) + "  ·  " + e.How})
	}
	o.ended.set(items)

	items = items[:0:0]
	for _, s := range d.Serving {
		items = append(items, item{text: s})
	}
	o.serving.set(items)

	o.tabs.Items[0].Text = counted("Waiting", total)
	o.tabs.Items[1].Text = counted("Grants", len(d.Grants))
	if first && total == 0 && len(d.Grants) > 0 {
		o.showGrants()
	}
	o.tabs.Refresh()
}

// showGrants turns to the grants.
func (o *overview) showGrants() { o.tabs.SelectIndex(1) }

// tick draws what waits, and how long it still does.
func (o *overview) tick() {
	now := o.now()
	items := make([]item, len(o.state.Asks))
	for i, a := range o.state.Asks {
		items[i] = item{text: desk.Title(a.Question), mono: a.Question.Value,
			quiet: strings.Join(list("since "+clockTime(a.Since, now), patience(a.Question, now), a.Question.RequesterCwd), "  ·  ")}
	}
	o.waiting.set(items)
}

func counted(s string, n int) string {
	if n == 0 {
		return s
	}
	return fmt.Sprintf("%s (%d)", s, n)
}

func list(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// grantFor says where and for whom a grant holds.
func grantFor(g pipe.Grant) string {
	if g.Requester == "" {
		return "on " + g.Surface + "  ·  the whole session " + g.SessionID
	}
	who := g.Agent
	if who == "" || who == "unknown" {
		who = g.Requester
	}
	return "on " + g.Surface + "  ·  " + who + " only, in session " + g.SessionID
}

// grantUse says how long a grant holds and how it was used.
func grantUse(g pipe.Grant, now time.Time) string {
	hits := "not used yet"
	if g.Hits > 0 {
		hits = plural(g.Hits, "hit", "hits")
		if !g.LastUse.IsZero() {
			hits += ", last at " + clockTime(g.LastUse, now)
		}
	}
	until := ""
	if !g.Until.IsZero() {
		until = "until " + clockTime(g.Until, now)
	}
	return strings.Join(list("since "+clockTime(g.Since, now), until, hits), "  ·  ")
}

func (o *overview) revoke(i int) {
	g := o.state.Grants[i]
	s := newSheet(3)
	s.show([]section{{label: "on " + g.Surface, text: g.Pattern}})
	what := newWords(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{})
	say(what, "The next call that it covers asks again.")
	o.confirm("Revoke this grant?", "Revoke", container.New(stack{gap: 4}, s, what), func() {
		o.send(pipe.Up{Type: "revoke", Grant: g.ID})
	})
}

func (o *overview) revokeAll() {
	what := newWords(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{})
	say(what, "What they cover asks again from now on.")
	title := "Revoke all " + plural(len(o.state.Grants), "grant", "grants") + "?"
	if len(o.state.Grants) == 1 {
		title = "Revoke the only grant?"
	}
	o.confirm(title, "Revoke all", what, func() { o.send(pipe.Up{Type: "clear"}) })
}

func (o *overview) confirm(title, verb string, content fyne.CanvasObject, do func()) {
	d := dialog.NewCustomConfirm(title, verb, "Keep", content, func(yes bool) {
		if yes {
			do()
		}
	}, o.window)
	d.SetConfirmImportance(widget.DangerImportance)
	sz := o.window.Canvas().Size()
	d.Resize(fyne.NewSize(min(480, sz.Width-40), d.MinSize().Height))
	d.Show()
}

// An item is one entry of a shelf. Its strings are raw.
type item struct{ text, mono, quiet, more string }

// A shelf is a list of items with one button each, or a sentence while there
// are none.
type shelf struct {
	root  fyne.CanvasObject
	list  *widget.List
	none  *widget.RichText
	items []item
}

// newShelf returns an empty shelf. like is an item that has the strings that
// its items will have, which sets their height.
func newShelf(none string, like item, verb string, act func(i int)) *shelf {
	s := &shelf{none: newWords(theme.SizeNameText, colourQuiet, fyne.TextStyle{})}
	say(s.none, none)
	s.list = widget.NewList(
		func() int { return len(s.items) },
		func() fyne.CanvasObject {
			c := newCard(verb)
			c.set(like)
			return c
		},
		func(i int, o fyne.CanvasObject) {
			c := o.(*card)
			c.set(s.items[i])
			c.act = func() {
				if i < len(s.items) && act != nil {
					act(i)
				}
			}
		})
	s.list.OnSelected = func(i int) { s.list.Unselect(i) }
	s.root = container.NewStack(s.list, s.none)
	return s
}

func (s *shelf) set(items []item) {
	changed := !slices.Equal(items, s.items)
	s.items = items
	s.shown()
	if changed {
		s.list.Refresh()
	}
}

func (s *shelf) shown() {
	if len(s.items) == 0 {
		s.list.Hide()
		s.none.Show()
	} else {
		s.none.Hide()
		s.list.Show()
	}
}

// A card draws an item.
type card struct {
	widget.BaseWidget
	text, mono, quiet, more *fit
	button                  *button
	body                    fyne.CanvasObject
	act                     func()
}

func newCard(verb string) *card {
	c := &card{
		text:  newFit(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{Bold: true}),
		mono:  newFit(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{Monospace: true}),
		quiet: newFit(theme.SizeNameCaptionText, colourQuiet, fyne.TextStyle{}),
		more:  newFit(theme.SizeNameCaptionText, colourQuiet, fyne.TextStyle{}),
	}
	c.button = newButton(verb, func() {
		if c.act != nil {
			c.act()
		}
	})
	var right fyne.CanvasObject
	if verb != "" {
		right = container.NewCenter(c.button)
	}
	c.body = container.New(layout.NewCustomPaddedLayout(6, 6, 4, 4),
		container.NewBorder(nil, nil, nil, right, container.New(stack{gap: 3}, c.text, c.mono, c.quiet, c.more)))
	c.ExtendBaseWidget(c)
	return c
}

func (c *card) set(it item) {
	for _, p := range []struct {
		f *fit
		s string
	}{{c.text, it.text}, {c.mono, it.mono}, {c.quiet, it.quiet}, {c.more, it.more}} {
		if p.s == "" {
			p.f.Hide()
		} else {
			p.f.Show()
		}
		p.f.set(p.s)
	}
	c.body.Refresh()
}

func (c *card) CreateRenderer() fyne.WidgetRenderer { return widget.NewSimpleRenderer(c.body) }
