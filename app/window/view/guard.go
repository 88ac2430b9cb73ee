//go:build !headless

package view

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// deadTime is how long the answering buttons do nothing after their window
// came up, got the keyboard, or shows something else than before: a click or
// key that was meant for what stood there a moment ago must not answer.
const deadTime = 500 * time.Millisecond

// Clock is the time that a Screen lives by.
type Clock struct {
	Now func() time.Time
	// After calls f once, d later, on the goroutine that draws. cancel, called
	// there too, prevents it.
	After func(d time.Duration, f func()) (cancel func())
}

// A guard keeps the answering buttons dead for a while.
type guard struct {
	clock  Clock
	verbs  []*verb
	until  time.Time
	locked bool // dead until further notice: there is nothing to answer
	turn   int  // counts what the buttons were about
	cancel func()
}

// restart makes every button dead for deadTime.
func (g *guard) restart() {
	g.turn++
	g.until = g.clock.Now().Add(deadTime)
	if g.cancel != nil {
		g.cancel()
	}
	g.cancel = g.clock.After(deadTime, g.show)
	g.show()
}

// lock makes every button dead until unlock, which also starts a dead time.
func (g *guard) lock() {
	g.turn++
	g.locked = true
	g.show()
}

func (g *guard) unlock() {
	g.locked = false
	g.restart()
}

func (g *guard) live() bool { return !g.locked && !g.clock.Now().Before(g.until) }

// show makes the buttons look as dead or alive as they are.
func (g *guard) show() {
	live := g.live()
	for _, v := range g.verbs {
		if live && !v.barred {
			v.Enable()
		} else {
			v.Disable()
		}
	}
}

// A verb is a button that answers. It acts only if it was pressed and released
// while it was about the same thing and alive both times; of the keys only
// the space bar presses it, when it has the focus, and holding it repeats nothing.
type verb struct {
	widget.Button
	guard  *guard
	barred bool // by its own panel, such as for want of a reason

	pressed, keyed int // the guard's turn when it was pressed, or 0
}

func newVerb(g *guard, text string, importance widget.Importance, act func()) *verb {
	v := &verb{guard: g}
	v.Text, v.Importance, v.OnTapped = text, importance, act
	v.ExtendBaseWidget(v)
	g.verbs = append(g.verbs, v)
	return v
}

// press notes what the button is about now; a dead button notes a turn that
// never comes.
func (v *verb) press() int {
	if !v.guard.live() {
		return -1
	}
	return v.guard.turn
}

// MouseDown implements desktop.Mouseable.
func (v *verb) MouseDown(*desktop.MouseEvent) { v.pressed = v.press() }

// MouseUp implements desktop.Mouseable.
func (v *verb) MouseUp(*desktop.MouseEvent) {}

// Tapped answers, if the press before it was good.
func (v *verb) Tapped(ev *fyne.PointEvent) {
	pressed := v.pressed
	v.pressed = 0
	if pressed == 0 { // a tap without a mouse, as from a touch screen
		pressed = v.guard.turn
	}
	if pressed == v.guard.turn && v.guard.live() && !v.barred {
		v.Button.Tapped(ev)
	}
}

// KeyDown implements desktop.Keyable. It is called once per press.
func (v *verb) KeyDown(ev *fyne.KeyEvent) {
	if ev.Name == fyne.KeySpace {
		v.keyed = v.press()
	}
	v.typed()
}

// KeyUp implements desktop.Keyable.
func (v *verb) KeyUp(ev *fyne.KeyEvent) {
	keyed := v.keyed
	v.keyed = 0
	if ev.Name == fyne.KeySpace && keyed > 0 && keyed == v.guard.turn && v.guard.live() && !v.barred {
		v.Button.Tapped(nil)
	}
}

// TypedKey presses nothing: it is also called for every repeat of a key.
func (v *verb) TypedKey(ev *fyne.KeyEvent) { passEscape(v, ev) }

// FocusLost forgets a key that is still down.
func (v *verb) FocusLost() {
	v.keyed = 0
	v.Button.FocusLost()
}

// typed prolongs the dead time of one who goes on typing what was meant for
// another window.
func (v *verb) typed() { v.guard.typed() }

// A button is one that answers nothing.
type button struct{ widget.Button }

func newButton(text string, act func()) *button {
	b := &button{}
	b.Text, b.OnTapped = text, act
	b.ExtendBaseWidget(b)
	return b
}

// TypedKey presses it, or closes its window.
func (b *button) TypedKey(ev *fyne.KeyEvent) {
	b.Button.TypedKey(ev)
	passEscape(b, ev)
}

// passEscape has the Escape key do for the window what it does where nothing
// has the focus.
func passEscape(o fyne.CanvasObject, ev *fyne.KeyEvent) {
	if c := fyne.CurrentApp().Driver().CanvasForObject(o); ev.Name == fyne.KeyEscape && c != nil && c.OnTypedKey() != nil {
		c.OnTypedKey()(ev)
	}
}

func (g *guard) typed() {
	if !g.locked && !g.live() {
		g.restart()
	}
}
