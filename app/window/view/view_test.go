//go:build !headless

package view

import (
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

// A fakeClock moves only when told to.
type fakeClock struct {
	now    time.Time
	timers []*fakeTimer
}

type fakeTimer struct {
	at  time.Time
	run func()
}

func (c *fakeClock) clock() Clock {
	return Clock{
		Now: func() time.Time { return c.now },
		After: func(d time.Duration, f func()) func() {
			t := &fakeTimer{c.now.Add(d), f}
			c.timers = append(c.timers, t)
			return func() { t.run = nil }
		},
	}
}

// advance moves the clock and runs what falls due, in order.
func (c *fakeClock) advance(d time.Duration) {
	end := c.now.Add(d)
	for {
		c.timers = slices.DeleteFunc(c.timers, func(t *fakeTimer) bool { return t.run == nil })
		var next *fakeTimer
		for _, t := range c.timers {
			if !t.at.After(end) && (next == nil || t.at.Before(next.at)) {
				next = t
			}
		}
		if next == nil {
			break
		}
		c.now = next.at
		run := next.run
		next.run = nil
		run()
	}
	c.now = end
}

// A frame is a test window that remembers what closing it would do.
type frame struct {
	fyne.Window
	onClose   func()
	visible   bool
	presented int
}

func (f *frame) SetCloseIntercept(do func()) { f.onClose = do }
func (f *frame) Hide()                       { f.visible = false; f.Window.Hide() }

// A stage is a Screen with a fake world around it.
type stage struct {
	*Screen
	t     testing.TB
	clock *fakeClock
	sent  []pipe.Up
	zooms []int
}

func newStage(t testing.TB) *stage {
	a := test.NewTempApp(t)
	a.Settings().SetTheme(NewSkin(1))
	s := &stage{t: t, clock: &fakeClock{now: time.Date(2026, 3, 5, 14, 30, 0, 0, time.UTC)}}
	s.Screen = New(Options{
		Clock:     s.clock.clock(),
		Send:      func(u pipe.Up) { s.sent = append(s.sent, u) },
		NewWindow: func(title string) fyne.Window { return &frame{Window: a.NewWindow(title)} },
		Present: func(w fyne.Window, focus bool) {
			f := w.(*frame)
			f.visible = true
			f.presented++
			w.Show()
		},
		Zoom: func(step int) { s.zooms = append(s.zooms, step) },
	})
	return s
}

// ask returns the i-th ask of a test.
func (s *stage) ask(i int, change ...func(*engine.Question)) pipe.Ask {
	q := &engine.Question{
		ID: fmt.Sprint("r", i), SessionID: "desktop", CreatedAt: s.clock.now, Deadline: s.clock.now.Add(10 * time.Minute),
		Principal: engine.Principal{SessionID: "3f2a9c1e", AgentName: "reviewer"}, RequesterCwd: "/home/ada/src/harbour",
		Source: "tool_call", Tool: "bash", Surface: "bash", Kind: "bash", Value: fmt.Sprintf("git push origin branch-%d", i), Pattern: "git push *",
		Suggestion: []engine.Grant{{Surface: "bash", Pattern: "git push *"}},
		Intent:     &engine.Intent{Surface: "bash", MatchValues: []string{"x"}},
		Generation: 3,
	}
	for _, c := range change {
		c(q)
	}
	return pipe.Ask{Key: fmt.Sprint(i), Hash: fmt.Sprint("hash", i), Since: s.clock.now, Question: q}
}

func (s *stage) state(asks ...pipe.Ask) {
	s.Receive(pipe.Down{Type: "state", Asks: asks, Total: len(asks)})
}

// open shows the first of the asks and lets the dead time pass.
func (s *stage) open(asks ...pipe.Ask) {
	s.state(asks...)
	s.Receive(pipe.Down{Type: "show", View: "ask", Key: asks[0].Key, Focus: true})
	s.clock.advance(deadTime)
}

func (s *stage) objects(w fyne.Window) []fyne.CanvasObject {
	all := test.LaidOutObjects(w.Content())
	for _, o := range w.Canvas().Overlays().List() {
		all = append(all, test.LaidOutObjects(o)...)
	}
	return all
}

// verb finds a visible answering button of the ask window.
func (s *stage) verb(text string) *verb {
	s.t.Helper()
	for _, o := range s.objects(s.askWindow) {
		if v, ok := o.(*verb); ok && v.Text == text && s.onScreen(v) {
			return v
		}
	}
	s.t.Fatalf("there is no %q in %v", text, s.verbTexts())
	return nil
}

func (s *stage) verbTexts() []string {
	var all []string
	for _, o := range s.objects(s.askWindow) {
		if v, ok := o.(*verb); ok && s.onScreen(v) {
			all = append(all, v.Text)
		}
	}
	return all
}

// onScreen reports whether o and the panel it is in are visible.
func (s *stage) onScreen(o fyne.CanvasObject) bool {
	for _, p := range []*fyne.Container{s.Screen.ask.verbs, s.Screen.ask.scope, s.Screen.ask.why} {
		for _, c := range test.LaidOutObjects(p) {
			if c == o {
				return p.Visible() && o.Visible()
			}
		}
	}
	return o.Visible()
}

// buttonOf is o as a button that answers nothing, or nil.
func buttonOf(o fyne.CanvasObject) *widget.Button {
	switch b := o.(type) {
	case *widget.Button:
		return b
	case *button:
		return &b.Button
	}
	return nil
}

func (s *stage) button(w fyne.Window, text string) *widget.Button {
	s.t.Helper()
	for _, o := range s.objects(w) {
		if b := buttonOf(o); b != nil && b.Text == text && b.Visible() {
			return b
		}
	}
	s.t.Fatalf("there is no button %q", text)
	return nil
}

// click presses and releases the mouse on v.
func click(v *verb) {
	v.MouseDown(&desktop.MouseEvent{Button: desktop.MouseButtonPrimary})
	v.MouseUp(&desktop.MouseEvent{Button: desktop.MouseButtonPrimary})
	v.Tapped(&fyne.PointEvent{})
}

// press and release do what the window system does with a key.
func (s *stage) press(w fyne.Window, k fyne.KeyName, repeats int) {
	c := w.Canvas()
	ev := &fyne.KeyEvent{Name: k}
	if f, ok := c.Focused().(desktop.Keyable); ok {
		f.KeyDown(ev)
	}
	for range repeats + 1 {
		if k == fyne.KeyTab {
			c.FocusNext()
			continue
		}
		if f := c.Focused(); f != nil {
			f.TypedKey(ev)
			if k == fyne.KeySpace {
				f.TypedRune(' ')
			}
		} else if f := c.OnTypedKey(); f != nil {
			f(ev)
		}
	}
}

func (s *stage) release(w fyne.Window, k fyne.KeyName) {
	if f, ok := w.Canvas().Focused().(desktop.Keyable); ok {
		f.KeyUp(&fyne.KeyEvent{Name: k})
	}
}

func (s *stage) key(w fyne.Window, k fyne.KeyName) {
	s.press(w, k, 0)
	s.release(w, k)
}

func (s *stage) answers() []pipe.Up {
	var all []pipe.Up
	for _, u := range s.sent {
		if u.Type == "answer" {
			all = append(all, u)
		}
	}
	return all
}

// wants fails unless exactly these messages were sent, and forgets them.
func (s *stage) wants(ups ...pipe.Up) {
	s.t.Helper()
	got, _ := json.Marshal(s.sent)
	want, _ := json.Marshal(ups)
	if len(ups) == 0 && len(s.sent) == 0 {
		return
	}
	if string(got) != string(want) {
		s.t.Fatalf("sent %s\nwant %s", got, want)
	}
	s.sent = nil
}

// texts are all the strings that are in sight on a window.
func (s *stage) texts(w fyne.Window) string {
	var b strings.Builder
	var walk func(o fyne.CanvasObject)
	walk = func(o fyne.CanvasObject) {
		if !o.Visible() {
			return
		}
		switch o := o.(type) {
		case *canvas.Text:
			b.WriteString(o.Text + "\n")
		case *widget.RichText: // whole; drawn, it is cut into lines
			b.WriteString(o.String() + "\n")
		case *fyne.Container:
			for _, c := range o.Objects {
				walk(c)
			}
		case fyne.Widget:
			for _, c := range test.WidgetRenderer(o).Objects() {
				walk(c)
			}
		}
	}
	walk(w.Content())
	for _, o := range w.Canvas().Overlays().List() {
		walk(o)
	}
	return b.String()
}

func (s *stage) sees(w fyne.Window, want string) {
	s.t.Helper()
	if got := s.texts(w); !strings.Contains(got, want) {
		s.t.Fatalf("%q is not in sight:\n%s", want, got)
	}
}

// shoot keeps a picture of w where NOD_ARTIFACTS says.
func (s *stage) shoot(w fyne.Window, name string) {
	s.t.Helper()
	dir := os.Getenv("NOD_ARTIFACTS")
	if dir == "" {
		return
	}
	dir = filepath.Join(dir, "window")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, name+".png"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, w.Canvas().Capture()); err != nil {
		s.t.Fatal(err)
	}
}
