//go:build !headless

package view

import (
	"fmt"
	"image/color"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// reasonRunes is the longest reason of a denial, in characters.
const reasonRunes = 500

// What the second question of an approval offers, the narrower first
// (record 0006).
const (
	scopeSubagent = "this subagent only"
	scopeSession  = "the whole session: every agent it serves"
)

// An askView is the content of the ask window: one ask, and the ways to
// answer it.
type askView struct {
	root  fyne.CanvasObject
	guard *guard
	now   func() time.Time

	title, meta, reason, note *widget.RichText // reason is why it asks
	waits                     *widget.RichText
	position                  *widget.Label
	previous, next            *button
	nav                       *fyne.Container
	banner                    *banner
	sheet                     *sheet

	verbs, scope, why *fyne.Container // the panels below the sheet; one is visible
	once, session     *verb
	deny, denyWhy     *verb

	grants *sheet
	choice *widget.RadioGroup
	grant  *verb

	because *reasonEntry
	count   *widget.RichText
	refuse  *verb

	ask    *pipe.Ask
	answer func(engine.Verdict, string)
}

func newAskView(clock Clock, answer func(engine.Verdict, string), step func(int)) *askView {
	v := &askView{guard: &guard{clock: clock, locked: true}, now: clock.Now, answer: answer}

	v.title = newWords(theme.SizeNameSubHeadingText, theme.ColorNameForeground, fyne.TextStyle{Bold: true})
	v.meta = newWords(theme.SizeNameCaptionText, colourQuiet, fyne.TextStyle{})
	v.reason = newWords(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{})
	v.note = newWords(theme.SizeNameCaptionText, theme.ColorNameWarning, fyne.TextStyle{})
	v.waits = newWords(theme.SizeNameCaptionText, colourQuiet, fyne.TextStyle{})
	v.waits.Wrapping = fyne.TextWrapOff
	v.position = widget.NewLabel("")
	v.position.SizeName = theme.SizeNameCaptionText
	v.previous, v.next = newButton("", func() { step(-1) }), newButton("", func() { step(1) })
	v.previous.Icon, v.next.Icon = theme.NavigateBackIcon(), theme.NavigateNextIcon()
	v.previous.Importance, v.next.Importance = widget.LowImportance, widget.LowImportance
	v.nav = container.NewHBox(v.position, v.previous, v.next)
	v.banner = newBanner()
	v.sheet = newSheet(5)

	v.verbPanel()
	v.scopePanel()
	v.reasonPanel()

	head := container.NewBorder(nil, nil, nil, container.NewVBox(v.nav), v.title)
	facts := container.NewBorder(nil, nil, nil, container.NewVBox(v.waits), v.meta)
	top := container.New(stack{gap: -4}, head, facts, v.reason, v.note)
	v.root = container.New(layout.NewCustomPaddedLayout(10, 12, 12, 12),
		container.NewBorder(
			container.New(stack{gap: 6}, top, v.banner, &fyne.Container{}),
			container.New(layout.NewCustomPaddedLayout(10, 0, 0, 0), container.NewStack(v.verbs, v.scope, v.why)),
			nil, nil, v.sheet))
	v.panel(v.verbs)
	return v
}

func (v *askView) verbPanel() {
	g := v.guard
	v.deny = newVerb(g, "Deny", widget.MediumImportance, func() { v.answer(engine.Denied, "") })
	v.denyWhy = newVerb(g, "Deny with reason…", widget.MediumImportance, func() {
		v.panel(v.why)
		v.focus(v.because)
	})
	v.session = newVerb(g, "Allow for this session…", widget.MediumImportance, func() { v.panel(v.scope) })
	v.once = newVerb(g, "Allow once", widget.HighImportance, func() { v.answer(engine.Approved, "") })
	v.verbs = container.New(&buttonRow{left: 2, gap: 8}, v.deny, v.denyWhy, v.session, v.once)
}

func (v *askView) scopePanel() {
	question := newWords(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{Bold: true})
	say(question, "Until the session ends, allow without asking:")
	v.grants = newSheet(2.6)
	v.grants.most = 8
	v.choice = widget.NewRadioGroup([]string{scopeSubagent, scopeSession}, func(string) { v.showScope() })
	v.choice.Required = true
	back := newButton("Back", func() { v.panel(v.verbs) })
	v.grant = newVerb(v.guard, "Allow for the whole session", widget.HighImportance, func() {
		if v.choice.Selected == scopeSession {
			v.answer(engine.ApprovedForServingSession, "")
		} else {
			v.answer(engine.ApprovedForSession, "")
		}
	})
	forWhom := newWords(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{Bold: true})
	say(forWhom, "For:")
	forWhom.Wrapping = fyne.TextWrapOff
	v.scope = container.New(stack{gap: 6}, question, v.grants, container.NewBorder(nil, nil, forWhom, nil, v.choice),
		container.New(&buttonRow{left: 1, gap: 8}, back, v.grant))
}

func (v *askView) showScope() {
	if v.grant == nil {
		return
	}
	if v.choice.Selected == scopeSession {
		v.grant.SetText("Allow for the whole session")
	} else {
		v.grant.SetText("Allow for this subagent")
	}
	v.guard.restart() // the button now says something else
}

func (v *askView) reasonPanel() {
	v.because = newReasonEntry(func() { v.panel(v.verbs) })
	v.because.SetPlaceHolder("Why not? The agent reads this, so say what it should do instead.")
	v.because.Wrapping = fyne.TextWrapWord
	v.because.SetMinRowsVisible(3)
	v.because.OnChanged = func(string) { v.showReason() }
	v.count = newWords(theme.SizeNameCaptionText, colourQuiet, fyne.TextStyle{})
	v.count.Wrapping = fyne.TextWrapOff
	back := newButton("Back", func() { v.panel(v.verbs) })
	v.refuse = newVerb(v.guard, "Deny with this reason", widget.HighImportance, func() {
		v.answer(engine.DeniedWithReason, strings.TrimSpace(v.because.Text))
	})
	v.why = container.New(stack{gap: 8}, v.because, container.New(&buttonRow{left: 2, gap: 8}, back, v.count, v.refuse))
}

// A reasonEntry is the field for a reason. Tab leaves it as it leaves any other
// field: a reason needs no tabs, and who has only a keyboard must get from here
// to the button. Escape goes back.
type reasonEntry struct {
	widget.Entry
	back func()
}

func newReasonEntry(back func()) *reasonEntry {
	e := &reasonEntry{back: back}
	e.MultiLine = true
	e.ExtendBaseWidget(e)
	return e
}

// TypedKey implements fyne.Focusable.
func (e *reasonEntry) TypedKey(ev *fyne.KeyEvent) {
	if ev.Name == fyne.KeyEscape {
		e.back()
		return
	}
	e.Entry.TypedKey(ev)
}

// AcceptsTab implements fyne.Tabbable.
func (e *reasonEntry) AcceptsTab() bool { return false }

func (v *askView) showReason() {
	n := utf8.RuneCountInString(strings.TrimSpace(v.because.Text))
	style := &v.count.Segments[0].(*widget.TextSegment).Style
	style.ColorName = colourQuiet
	if n > reasonRunes {
		style.ColorName = theme.ColorNameError
	}
	say(v.count, fmt.Sprintf("%d of %d characters", n, reasonRunes))
	v.refuse.barred = n == 0 || n > reasonRunes
	v.guard.show()
}

// panel shows one of the panels below the sheet. It is another thing to
// answer, so the buttons are dead again.
func (v *askView) panel(p *fyne.Container) {
	for _, o := range []*fyne.Container{v.verbs, v.scope, v.why} {
		if o == p {
			o.Show()
		} else {
			o.Hide()
		}
	}
	v.focus(nil)
	v.guard.restart()
	if v.root != nil {
		v.root.Refresh()
	}
}

func (v *askView) focus(o fyne.Focusable) {
	if v.root == nil {
		return
	}
	if c := fyne.CurrentApp().Driver().CanvasForObject(v.root); c != nil {
		if o == nil {
			c.Unfocus()
		} else {
			c.Focus(o)
		}
	}
}

// show draws an ask, the i-th (from 0) of total. What changes makes the
// buttons dead; what does not leaves them, the panel and the scroll alone.
func (v *askView) show(a *pipe.Ask, i, known, total int) {
	v.place(i, known, total)
	if v.ask != nil && reflect.DeepEqual(a, v.ask) {
		v.tick()
		return
	}
	v.ask = a
	q := a.Question
	say(v.title, desk.Title(q))
	say(v.meta, where(a))
	say(v.reason, why(q))
	say(v.note, strings.Join(notes(a), "\n"))
	v.banner.hide()
	v.sheet.show(sections(a))
	v.tick()

	if len(q.Suggestion) > 0 {
		v.session.Show()
	} else {
		v.session.Hide()
	}
	var grants []section
	for _, g := range q.Suggestion {
		grants = append(grants, section{label: "on " + g.Surface, text: g.Pattern})
	}
	v.grants.show(grants)
	v.choice.SetSelected(scopeSubagent)
	v.because.SetText("")
	v.showReason()
	v.guard.unlock()
	v.panel(v.verbs)
}

func (v *askView) place(i, known, total int) {
	total = max(total, known)
	if total < 2 && i >= 0 {
		v.nav.Hide()
		return
	}
	v.nav.Show()
	if i < 0 {
		v.position.SetText(desk.Count(total))
		v.nav.Hide()
		return
	}
	v.position.SetText(fmt.Sprintf("ask %d of %d", i+1, total))
	able := func(b *button, on bool) {
		if on {
			b.Enable()
		} else {
			b.Disable()
		}
	}
	able(v.previous, i > 0)
	able(v.next, i+1 < known)
}

// tick draws how long the child still waits.
func (v *askView) tick() {
	if v.ask != nil {
		say(v.waits, patience(v.ask.Question, v.now()))
	}
}

// end says how the ask ended without this window, and leaves its content in
// sight. There is nothing left to answer.
func (v *askView) end(how string) {
	v.guard.lock()
	v.panel(v.verbs)
	say(v.waits, "")
	v.banner.show(how)
}

// gone says how an ask ended that this window never showed.
func (v *askView) gone(title, how string) {
	v.ask = nil
	v.place(-1, 0, 0)
	for _, t := range []*widget.RichText{v.meta, v.reason, v.note, v.waits} {
		say(t, "")
	}
	if title == "" {
		title = "This ask no longer waits"
	}
	say(v.title, visible.Line(title, 200))
	v.sheet.show(nil)
	v.end(how)
}

// A banner is a sentence that the user should not miss.
type banner struct {
	widget.BaseWidget
	back *canvas.Rectangle
	text *widget.RichText
}

func newBanner() *banner {
	b := &banner{back: canvas.NewRectangle(color.Transparent), text: newWords(theme.SizeNameText, theme.ColorNameForeground, fyne.TextStyle{Bold: true})}
	b.ExtendBaseWidget(b)
	b.Hide()
	return b
}

func (b *banner) show(s string) {
	say(b.text, s)
	b.Show()
	b.Refresh()
}

func (b *banner) hide() { b.Hide() }

func (b *banner) CreateRenderer() fyne.WidgetRenderer {
	return &bannerRenderer{WidgetRenderer: widget.NewSimpleRenderer(container.NewStack(b.back, b.text)), banner: b}
}

type bannerRenderer struct {
	fyne.WidgetRenderer
	banner *banner
}

func (r *bannerRenderer) Refresh() {
	b := r.banner
	b.back.FillColor = colour(b, colourNotice)
	b.back.CornerRadius = size(b, theme.SizeNameInputRadius)
	b.back.Refresh()
	r.WidgetRenderer.Refresh()
}
