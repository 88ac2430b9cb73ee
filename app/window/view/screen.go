//go:build !headless

// Package view holds the two windows that a person sees: the ask window, in
// which one ask is read and answered, and the Nod window, which lists what
// waits, what is granted and what was decided.
//
// It draws what package pipe brings and says what the person did; it decides
// nothing and keeps nothing. It never imports the toolkit's app package, so
// that it is tested without a display, and without C.
package view

import (
	"slices"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// endedTime is how long the ask window says how an ask ended elsewhere before
// it moves on.
const endedTime = 3 * time.Second

// noteTime is how long the Nod window says how a command went.
const noteTime = 6 * time.Second

// Options are what a Screen needs of the process around it.
type Options struct {
	Clock     Clock
	Send      func(pipe.Up)                   // to the resident
	NewWindow func(title string) fyne.Window  // hidden
	Present   func(w fyne.Window, focus bool) // shows w on top; with focus, it may take the keyboard
	Zoom      func(step int)                  // the user wants larger (1), smaller (-1) or usual (0) text
}

// Screen is what one window process shows. All its methods must be called on
// the goroutine that draws.
type Screen struct {
	o     Options
	state pipe.Down

	askWindow fyne.Window
	ask       *askView
	askShown  bool

	nodWindow fyne.Window
	nod       *overview
	nodShown  bool

	sent   string // the key of an ask that an answer is under way for
	over   bool   // the ask that is shown has ended elsewhere
	cancel func() // of moving on from it
	stop   func() // of the next tick
}

// New returns a Screen that shows nothing yet.
func New(o Options) *Screen { return &Screen{o: o} }

// Receive takes a message of the resident. It reports false if that told the
// process to quit.
func (s *Screen) Receive(d pipe.Down) bool {
	switch d.Type {
	case "state":
		d.Asks = slices.DeleteFunc(d.Asks, func(a pipe.Ask) bool { return a.Question == nil })
		s.state = d
		if s.nod != nil {
			s.nod.show(d)
		}
		s.follow()
	case "show":
		if d.View == "nod" {
			s.showNod(d.Focus)
			if d.Key == pipe.GrantsKey {
				s.nod.showGrants()
			}
		} else {
			s.showAsk(d.Key, d.Focus)
		}
	case "result":
		s.result(d)
	case "quit":
		return false
	}
	return true
}

// Foreground tells that one of the windows got the keyboard: the click or key
// that raised it must not answer.
func (s *Screen) Foreground() {
	if s.ask != nil {
		s.ask.guard.restart()
	}
}

func (s *Screen) showAsk(key string, focus bool) {
	s.makeAskWindow()
	if s.askShown && !focus && s.ask.ask != nil {
		return // somebody is reading; the new ask waits its turn
	}
	shown := s.askShown
	switch i := s.find(key); {
	case i >= 0:
		s.turnTo(i)
	case key != "":
		s.vanish(key)
	case len(s.state.Asks) > 0:
		s.turnTo(0)
	default:
		s.showNod(focus)
		return
	}
	s.askShown = true
	if !shown {
		s.ask.guard.restart()
	}
	s.o.Present(s.askWindow, focus)
	s.tick()
}

func (s *Screen) showNod(focus bool) {
	if s.nodWindow == nil {
		w := s.o.NewWindow("Nod")
		s.nodWindow = w
		s.nod = newOverview(w, s.o.Clock.Now, s.o.Send, func(key string) { s.showAsk(key, true) })
		fill(w, s.nod.root, fyne.NewSize(680, 520))
		w.SetCloseIntercept(s.hideNod)
		s.keys(w, s.hideNod, nil)
	}
	s.nod.show(s.state)
	s.nodShown = true
	s.o.Present(s.nodWindow, focus)
	s.tick()
}

func (s *Screen) makeAskWindow() {
	if s.askWindow != nil {
		return
	}
	w := s.o.NewWindow("Nod")
	s.askWindow = w
	s.ask = newAskView(s.o.Clock, s.answer, s.step)
	fill(w, s.ask.root, fyne.NewSize(640, 500))
	w.SetCloseIntercept(s.hideAsk)
	s.keys(w, s.hideAsk, s.ask)
}

// fill gives a window its content and size. The size comes first: at less than
// its width the paragraphs need more height, and a window never shrinks.
func fill(w fyne.Window, root fyne.CanvasObject, sz fyne.Size) {
	w.Resize(sz)
	root.Resize(sz)
	w.SetContent(root)
	w.Resize(sz)
}

// keys sets what the keys do while nothing has the focus. None approves.
func (s *Screen) keys(w fyne.Window, hide func(), a *askView) {
	c := w.Canvas()
	c.SetOnTypedKey(func(ev *fyne.KeyEvent) {
		if ev.Name == fyne.KeyEscape {
			hide()
			return
		}
		if a != nil {
			a.guard.typed()
			a.sheet.key(ev.Name)
		}
	})
	for key, step := range map[fyne.KeyName]int{fyne.KeyEqual: 1, fyne.KeyPlus: 1, fyne.KeyMinus: -1, fyne.Key0: 0} {
		for _, shift := range []fyne.KeyModifier{0, fyne.KeyModifierShift} {
			c.AddShortcut(&desktop.CustomShortcut{KeyName: key, Modifier: fyne.KeyModifierShortcutDefault | shift}, func(fyne.Shortcut) {
				if s.o.Zoom != nil {
					s.o.Zoom(step)
				}
			})
		}
	}
}

// hideAsk closes the ask window. It answers nothing: the ask goes on waiting.
func (s *Screen) hideAsk() {
	s.askWindow.Hide()
	s.askShown = false
	s.sent = ""
	s.forget()
	s.ask.ask = nil
	s.ask.guard.lock()
	s.hidden()
}

func (s *Screen) hideNod() {
	s.nodWindow.Hide()
	s.nodShown = false
	s.hidden()
}

// hidden tells the resident when nothing is in sight any more.
func (s *Screen) hidden() {
	if !s.askShown && !s.nodShown {
		if s.stop != nil {
			s.stop()
			s.stop = nil
		}
		s.o.Send(pipe.Up{Type: "hidden"})
	}
}

func (s *Screen) find(key string) int {
	return slices.IndexFunc(s.state.Asks, func(a pipe.Ask) bool { return a.Key == key })
}

// turnTo shows the i-th ask.
func (s *Screen) turnTo(i int) {
	s.forget()
	a := &s.state.Asks[i]
	s.ask.show(a, i, len(s.state.Asks), s.state.Total)
	s.askWindow.SetTitle(windowTitle(a.Question))
}

// step turns to the ask before or after the one that is shown.
func (s *Screen) step(by int) {
	if s.over {
		s.moveOn()
		return
	}
	if s.ask.ask == nil || s.sent != "" {
		return
	}
	if i := s.find(s.ask.ask.Key) + by; i >= 0 && i < len(s.state.Asks) {
		s.turnTo(i)
	}
}

// follow brings the ask window up to a new state.
func (s *Screen) follow() {
	if !s.askShown || s.over || s.ask.ask == nil {
		return
	}
	key := s.ask.ask.Key
	if i := s.find(key); i >= 0 {
		if s.sent == key {
			return
		}
		s.turnTo(i)
		return
	}
	if s.sent == key {
		return // the result says how it went
	}
	if _, how := s.ended(key); how == "" && s.state.Total > len(s.state.Asks) {
		s.ask.place(-1, 0, s.state.Total) // it waits among those that are not listed
		return
	}
	s.vanish(key)
}

// vanish says how an ask ended without this window, for a while.
func (s *Screen) vanish(key string) {
	title, how := s.ended(key)
	why, withdrawn := strings.CutPrefix(how, "withdrawn: ")
	switch {
	case title == "":
		how = "This ask no longer waits. Nothing was answered here."
	case withdrawn:
		how = "Withdrawn: " + visible.Line(why, 300)
	default:
		how = "Answered elsewhere: " + visible.Line(how, 300)
	}
	s.finish(key, title, how)
}

func (s *Screen) finish(key, title, how string) {
	s.forget()
	s.sent, s.over = "", true
	if s.ask.ask == nil || s.ask.ask.Key != key {
		s.ask.gone(title, how)
		s.askWindow.SetTitle("Nod")
	} else {
		s.ask.end(how)
	}
	s.cancel = s.o.Clock.After(endedTime, s.moveOn)
}

func (s *Screen) ended(key string) (title, how string) {
	for _, e := range s.state.Ended {
		if e.Key == key {
			return e.Title, e.How
		}
	}
	return "", ""
}

// forget drops a move that was to come.
func (s *Screen) forget() {
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
	s.over = false
}

// moveOn shows the first ask that waits, or closes the window if none does.
func (s *Screen) moveOn() {
	s.forget()
	s.ask.ask = nil
	if len(s.state.Asks) == 0 {
		s.hideAsk()
		return
	}
	s.turnTo(0)
}

// answer sends what the person decided, bound to the ask that was shown. The
// buttons stay dead until the resident says how it went.
func (s *Screen) answer(v engine.Verdict, reason string) {
	a := s.ask.ask
	if a == nil || s.sent != "" || s.over {
		return
	}
	s.sent = a.Key
	s.ask.guard.lock()
	s.o.Send(pipe.Up{Type: "answer", Key: a.Key, Hash: a.Hash, Verdict: v, Reason: reason})
}

func (s *Screen) result(d pipe.Down) {
	if d.Key == "" || s.ask == nil || s.sent != d.Key {
		if s.nod != nil && d.Message != "" {
			s.nod.note.show(visible.Line(d.Message, 300))
			s.o.Clock.After(noteTime, s.nod.note.hide)
		}
		return
	}
	s.sent = ""
	if !s.askShown {
		return
	}
	i := s.find(d.Key)
	switch {
	case d.OK:
		if i >= 0 { // the state still lists it; it is on its way out
			s.state.Asks = slices.Delete(slices.Clone(s.state.Asks), i, i+1)
			s.state.Total = max(0, s.state.Total-1)
		}
		s.moveOn()
	case i >= 0: // it waits on
		s.ask.ask = nil
		s.turnTo(i)
		s.ask.banner.show("Not answered. " + sentence(d.Message))
	default:
		s.finish(d.Key, "", "Not answered here. "+sentence(d.Message))
	}
}

// tick keeps the countdown going while a window is in sight.
func (s *Screen) tick() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if !s.askShown && !s.nodShown {
		return
	}
	if s.askShown && !s.over {
		s.ask.tick()
	}
	if s.nodShown {
		s.nod.tick()
	}
	s.stop = s.o.Clock.After(time.Second, s.tick)
}
