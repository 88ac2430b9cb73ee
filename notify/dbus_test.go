//go:build linux

package notify

import (
	"context"
	"errors"
	"image"
	"image/color"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/nod-agents/nod/notify/notifytest"
)

// quick are times short enough to see them pass and long enough for a busy
// machine not to.
func quick() timing {
	return timing{
		call: 5 * time.Second, start: 5 * time.Second, grace: 300 * time.Millisecond,
		retry: 20 * time.Millisecond, retryMax: 100 * time.Millisecond,
		again: 20 * time.Millisecond, farewell: time.Second,
	}
}

// spoken collects what is told through the stand-in for beeep.
type spoken struct {
	mu   sync.Mutex
	said []string
	err  error
}

func (s *spoken) tell(_, message string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, message)
	return s.err
}

func (s *spoken) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

// notifier is one on b with quick times. What it says without a server goes to
// the returned spoken.
func notifier(t *testing.T, b *notifytest.Bus, change ...func(*Config)) (*desktop, *spoken) {
	t.Helper()
	cfg := Config{AppName: "Nod", DesktopEntry: "nod", BusAddress: b.Address, timing: quick()}
	for _, f := range change {
		f(&cfg)
	}
	s := &spoken{}
	d := newDesktop(context.Background(), cfg, s.tell)
	t.Cleanup(func() { _ = d.Close() })
	return d, s
}

// next is the next event that is not a Changed.
func next(t *testing.T, d *desktop) Event {
	t.Helper()
	for {
		if e := any1(t, d); e.Kind != Changed {
			return e
		}
	}
}

func any1(t *testing.T, d *desktop) Event {
	t.Helper()
	select {
	case e, ok := <-d.Events():
		if !ok {
			t.Fatal("the events have ended")
		}
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
	}
	panic("unreachable")
}

// backend waits for a Changed to that backend.
func backend(t *testing.T, d *desktop, want Backend) Capabilities {
	t.Helper()
	for {
		if e := any1(t, d); e.Kind == Changed && e.Caps.Backend == want {
			return e.Caps
		} else if e.Kind != Changed {
			t.Fatalf("event %+v while waiting for a change to %q", e, want)
		}
	}
}

func show(t *testing.T, d *desktop, n Note) Shown {
	t.Helper()
	s, err := d.Show(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// silent makes sure that what came before raises no event: it closes a second
// note and expects that event first.
func silent(t *testing.T, d *desktop, srv *notifytest.Daemon) {
	t.Helper()
	show(t, d, Note{Key: "marker", Title: "marker"})
	p := srv.Posted()
	srv.Dismiss(t, p[len(p)-1].ID, 2)
	if e := next(t, d); e.Kind != Closed || e.Note.Key != "marker" {
		t.Fatalf("an event that should not be: %+v", e)
	}
}

func ask() Note {
	return Note{
		Key: "1", Ref: "first", Title: "pi asks to run bash", Body: `rm -rf ./build && echo "a < b"`,
		Actions: []Action{{Key: "allow", Label: "Allow once", WholeOnly: true}, {Key: "deny", Label: "Deny"}, {Key: "review", Label: "Review…"}},
		Click:   "review", Urgency: Critical, Category: "x-nod.ask",
	}
}

func TestNotifyArguments(t *testing.T) {
	b := notifytest.StartBus(t)
	icon := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	icon.SetNRGBA(1, 0, color.NRGBA{1, 2, 3, 4})
	long := strings.Repeat("x", 4000)
	escaped := `rm -rf ./build &amp;&amp; echo &quot;a &lt; b&quot;`
	all := []string{"default", "Review…", "allow", "Allow once", "deny", "Deny", "review", "Review…"}
	for name, c := range map[string]struct {
		server  string
		caps    []string
		note    Note
		body    string // empty: it is cut
		actions []string
		whole   bool
	}{
		"markup":              {"Other", notifytest.XfceCaps(), ask(), escaped, all, true},
		"no markup":           {"Other", notifytest.PlainCaps(), ask(), ask().Body, all, true},
		"default is a button": {xfce, notifytest.XfceCaps(), ask(), escaped, all[2:], true},
		"no click":            {"Other", notifytest.PlainCaps(), func() Note { n := ask(); n.Click = ""; return n }(), ask().Body, all[2:], true},
		"no actions":          {"Other", []string{"body"}, ask(), ask().Body, []string{}, true},
		"no body":             {"Other", []string{"actions"}, ask(), " ", []string{"default", "Review…", "deny", "Deny", "review", "Review…"}, false},
		"long":                {"Other", notifytest.PlainCaps(), func() Note { n := ask(); n.Body = long; return n }(), "", []string{"default", "Review…", "deny", "Deny", "review", "Review…"}, false},
		"bad text":            {"Other", notifytest.PlainCaps(), func() Note { n := ask(); n.Body = "a\x00\xffb\nc"; return n }(), "a\uFFFD\uFFFDb\nc", all, true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := notifytest.FakeDaemon(t, b, c.server, c.caps)
			defer srv.Stop()
			d, _ := notifier(t, b, func(cfg *Config) { cfg.Icon, cfg.IconName = icon, "nod" })
			s := show(t, d, c.note)
			p := srv.Wait(t, 1)
			if s.Backend != ByDBus || s.Whole != c.whole {
				t.Errorf("shown %+v", s)
			}
			if c.body == "" {
				if len(p.Body) > 1000 || !strings.Contains(p.Body, "more characters") {
					t.Errorf("body %q", p.Body)
				}
			} else if p.Body != strings.TrimSpace(c.body) {
				t.Errorf("body %q", p.Body)
			}
			if !slices.Equal(p.Actions, c.actions) {
				t.Errorf("actions %q", p.Actions)
			}
			if p.App != "Nod" || p.Title != "pi asks to run bash" || p.Icon != "nod" || p.Expire != 0 || p.Replaces != 0 {
				t.Errorf("posted %+v", p)
			}
			for hint, want := range map[string]any{"urgency": byte(2), "category": "x-nod.ask", "desktop-entry": "nod"} {
				if got := p.Hints[hint].Value(); got != want {
					t.Errorf("hint %s = %v", hint, got)
				}
			}
			var pic picture
			if err := dbus.Store([]any{p.Hints["image-data"].Value()}, &pic); err != nil {
				t.Fatal(err)
			}
			if pic.Width != 2 || pic.Height != 1 || pic.Stride != 8 || !slices.Equal(pic.Data[4:], []byte{1, 2, 3, 4}) {
				t.Errorf("picture %+v", pic)
			}
		})
	}
}

func TestInvoked(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	for _, c := range []struct{ signal, action string }{{"allow", "allow"}, {"default", "review"}} {
		show(t, d, ask())
		p := srv.Posted()
		id := p[len(p)-1].ID
		srv.Emit(t, "ActivationToken", id, "token-"+c.signal)
		srv.Invoke(t, id, c.signal)
		e := next(t, d)
		if e.Kind != Invoked || e.Action != c.action || e.Note.Ref != "first" || e.Token != "token-"+c.signal {
			t.Errorf("event %+v", e)
		}
		srv.WaitClosed(t, id) // the server did not close it, so we did
		srv.Invoke(t, id, c.signal)
		srv.Dismiss(t, id, 2)
	}
	silent(t, d, srv)
}

func TestOnlyTheServerIsHeard(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	id := srv.Wait(t, 1).ID
	evil := b.Connect(t)
	var ours string // the notifier's own unique name: everybody can list them
	var names []string
	if err := evil.BusObject().Call("org.freedesktop.DBus.ListNames", 0).Store(&names); err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(){
		"broadcast": func() { notifytest.Forge(t, evil, "ActionInvoked", id, "allow") },
		"closed":    func() { notifytest.Forge(t, evil, "NotificationClosed", id, uint32(2)) },
		"token":     func() { notifytest.Forge(t, evil, "ActivationToken", id, "stolen") },
		"to everybody": func() {
			for _, ours = range names {
				if strings.HasPrefix(ours, ":") {
					notifytest.ForgeTo(t, evil, ours, "ActionInvoked", id, "allow")
				}
			}
		},
		"owner change": func() {
			for _, ours = range names {
				if strings.HasPrefix(ours, ":") && ours != evil.Names()[0] {
					if c := evil.Send(&dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
						dbus.FieldDestination: dbus.MakeVariant(ours), dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(busPath)),
						dbus.FieldInterface: dbus.MakeVariant(busName), dbus.FieldMember: dbus.MakeVariant("NameOwnerChanged"),
						dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf("", "", "")),
					}, Body: []any{serverName, srv.Conn.Names()[0], evil.Names()[0]}}, nil); c != nil && c.Err != nil {
						t.Fatal(c.Err)
					}
				}
			}
			notifytest.Forge(t, evil, "ActionInvoked", id, "allow")
		},
	} {
		t.Run(name, func(t *testing.T) {
			forge()
			// The bus has passed it on when it answers the next call.
			if err := evil.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil {
				t.Fatal(err)
			}
			silent(t, d, srv)
		})
	}
	// The server itself, but not what was offered, or not of the right types.
	srv.Invoke(t, id, "allow-all")
	srv.Emit(t, "ActionInvoked", int32(id), "allow")
	srv.Emit(t, "ActionInvoked", id, uint32(1))
	srv.Emit(t, "ActionInvoked", id)
	srv.Emit(t, "ActionInvoked", id+1000, "allow")
	srv.Emit(t, "NotificationClosed", id, "2")
	srv.Emit(t, "Strange", id, "allow")
	if err := srv.Conn.Emit("/elsewhere", notifytest.Name+".ActionInvoked", id, "allow"); err != nil {
		t.Fatal(err)
	}
	silent(t, d, srv)
	srv.Invoke(t, id, "allow")
	if e := next(t, d); e.Kind != Invoked || e.Token != "" {
		t.Errorf("event %+v", e)
	}
}

// A button that was left out cannot be pressed.
func TestActionThatWasLeftOut(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	n := ask()
	n.Body = strings.Repeat("long ", 1000)
	if s := show(t, d, n); s.Whole || len(s.Actions) != 2 {
		t.Fatalf("shown %+v", s)
	}
	srv.Invoke(t, srv.Wait(t, 1).ID, "allow")
	silent(t, d, srv)
}

func TestClosed(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	for reason, want := range map[uint32]Reason{1: Expired, 2: Dismissed, 3: Other, 4: Other, 77: Other} {
		show(t, d, ask())
		p := srv.Posted()
		id := p[len(p)-1].ID
		srv.Dismiss(t, id, reason)
		if e := next(t, d); e.Kind != Closed || e.Reason != want || e.Note.Ref != "first" {
			t.Errorf("reason %d: event %+v", reason, e)
		}
		srv.Invoke(t, id, "allow") // too late
	}
	silent(t, d, srv)
}

func TestWithdraw(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	id := srv.Wait(t, 1).ID
	d.Withdraw("1")
	d.Withdraw("nobody")
	srv.WaitClosed(t, id)
	srv.Invoke(t, id, "allow")
	silent(t, d, srv) // our own closing is no news either
}

func TestReplaceKeepsTheID(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	n := ask()
	n.Ref = "second"
	show(t, d, n)
	if p := srv.Wait(t, 2); p.Replaces != 1 || p.ID != 1 || len(srv.Live()) != 1 {
		t.Errorf("posted %+v, live %v", p, srv.Live())
	}
	srv.Invoke(t, 1, "deny")
	if e := next(t, d); e.Kind != Invoked || e.Note.Ref != "second" {
		t.Errorf("event %+v", e)
	}
}

// A click that the server took before it took the replacement meant what was
// on screen then, however the messages overtake each other here.
func TestClickJustBeforeReplacement(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	for range 30 {
		show(t, d, ask())
		var once sync.Once
		srv.Before(func(p notifytest.Posted) *dbus.Error {
			once.Do(func() { srv.Invoke(t, p.Replaces, "allow") })
			return nil
		})
		n := ask()
		n.Ref = "second"
		show(t, d, n)
		srv.Before(nil)
		if e := next(t, d); e.Kind != Invoked || e.Note.Ref != "first" {
			t.Fatalf("the click was taken for %q", e.Note.Ref)
		}
		posted := srv.Posted()
		id := posted[len(posted)-1].ID
		if !slices.Contains(srv.Live(), id) {
			t.Fatal("the new content was closed by a click on the old")
		}
		srv.Invoke(t, id, "deny")
		if e := next(t, d); e.Kind != Invoked || e.Note.Ref != "second" {
			t.Fatalf("event %+v", e)
		}
	}
}

// A server may tell of a click before it answers the Notify that made the note.
func TestClickBeforeTheReply(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, Note{Key: "other", Title: "other"})
	srv.Before(func(p notifytest.Posted) *dbus.Error {
		srv.Invoke(t, p.ID, "deny")
		return nil
	})
	show(t, d, ask())
	if e := next(t, d); e.Kind != Invoked || e.Action != "deny" || e.Note.Key != "1" {
		t.Errorf("event %+v", e)
	}
}

// A server that gives another id instead of replacing leaves no second note.
func TestServerThatDoesNotReplace(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	srv.Dismiss(t, 1, 2) // gone there; we may not know yet when we replace it
	show(t, d, ask())
	p := srv.Wait(t, 2)
	srv.Invoke(t, p.ID, "deny")
	for {
		e := next(t, d)
		if e.Kind == Closed { // of the first, if that came in time
			continue
		}
		if e.Kind != Invoked || e.Action != "deny" {
			t.Errorf("event %+v", e)
		}
		break
	}
}

func TestServerRestarts(t *testing.T) {
	b := notifytest.StartBus(t)
	old := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	first := backend(t, d, ByDBus)
	show(t, d, ask())
	second := ask()
	second.Key, second.Ref = "2", "other"
	show(t, d, second)
	old.Wait(t, 2)
	old.Stop()
	srv := notifytest.FakeDaemon(t, b, "Newer", notifytest.PlainCaps())
	// In their first order, so that the ids are the same by chance.
	srv.Wait(t, 2)
	seen := map[string]bool{}
	for range 2 {
		e := next(t, d)
		if e.Kind != Reshown || len(e.Shown.Actions) != 3 {
			t.Fatalf("event %+v", e)
		}
		seen[e.Note.Ref] = true
	}
	if !seen["first"] || !seen["other"] {
		t.Errorf("shown again: %v", seen)
	}
	if c := d.Capabilities(); c.Server != "Newer" || c.Owner == first.Owner {
		t.Errorf("capabilities %+v", c)
	}
	d.Withdraw("1")
	srv.WaitClosed(t, 1)
	srv.Invoke(t, 1, "allow") // the id is known from before, but not wanted
	srv.Invoke(t, 2, "deny")
	if e := next(t, d); e.Kind != Invoked || e.Note.Ref != "other" {
		t.Errorf("event %+v", e)
	}
}

// A note that ends every server it is shown to is given up.
func TestServersEndAgainAndAgain(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	for range againMax {
		srv.Stop()
		srv = notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
		if e := next(t, d); e.Kind != Reshown {
			t.Fatalf("event %+v", e)
		}
	}
	srv.Stop()
	srv = notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	if e := next(t, d); e.Kind != Lost || e.Note.Ref != "first" {
		t.Fatalf("event %+v", e)
	}
	silent(t, d, srv)
}

// The same, but the server ends before it answers.
func TestServersEndInNotify(t *testing.T) {
	b := notifytest.StartBus(t)
	d, s := notifier(t, b)
	crash := func() {
		srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
		srv.Before(func(notifytest.Posted) *dbus.Error {
			go srv.Stop()
			<-srv.Conn.Context().Done()
			return dbus.NewError("org.example.Dying", nil)
		})
		backend(t, d, ByDBus)
		<-srv.Conn.Context().Done()
	}
	backend(t, d, ByBeeep)
	show(t, d, ask()) // told
	for range againMax {
		crash()
	}
	notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	for {
		e := any1(t, d)
		if e.Kind == Lost {
			break
		}
		if e.Kind != Changed {
			t.Fatalf("event %+v", e)
		}
	}
	if told := s.all(); len(told) != 1 {
		t.Errorf("told %q", told)
	}
}

// The id of a dead server's note says nothing about the new server's.
func TestIDsDieWithTheirServer(t *testing.T) {
	b := notifytest.StartBus(t)
	old := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	old.Stop()
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	srv.Before(func(notifytest.Posted) *dbus.Error {
		return dbus.NewError("org.example.Full", []any{"no room"})
	})
	if e := next(t, d); e.Kind != Lost || e.Note.Ref != "first" {
		t.Fatalf("event %+v", e)
	}
	srv.Before(nil)
	srv.Invoke(t, 1, "allow") // another program's note of that id, say
	silent(t, d, srv)
}

// The new server shows less, so what approves is not offered any more.
func TestReshownWithWhatTheNewServerCan(t *testing.T) {
	b := notifytest.StartBus(t)
	old := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	old.Stop()
	srv := notifytest.FakeDaemon(t, b, "Dumb", []string{"actions"})
	if e := next(t, d); e.Kind != Reshown || e.Shown.Whole || len(e.Shown.Actions) != 2 {
		t.Fatalf("event %+v", e)
	}
	srv.Invoke(t, 1, "allow")
	silent(t, d, srv)
}

func TestServerDiesAndNobodyComes(t *testing.T) {
	b := notifytest.StartBus(t)
	old := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, s := notifier(t, b)
	show(t, d, ask())
	backend(t, d, ByDBus)
	old.Stop()
	if c := backend(t, d, ByBeeep); c.HasActions || c.Why == "" {
		t.Errorf("capabilities %+v", c)
	}
	n := ask()
	n.Key, n.Ref, n.Title = "2", "told", "pi asks $(x)"
	if sh := show(t, d, n); sh.Backend != ByBeeep || sh.Whole || sh.Actions != nil {
		t.Errorf("shown %+v", sh)
	}
	if got := s.all(); !slices.Equal(got, []string{"pi asks ?x?"}) {
		t.Errorf("told %q", got)
	}
	// And then one comes after all: both are wanted, both get their buttons.
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	backend(t, d, ByDBus)
	for range 2 {
		if e := next(t, d); e.Kind != Reshown || len(e.Shown.Actions) != 3 {
			t.Errorf("event %+v", e)
		}
	}
	if p := srv.Posted(); len(p) != 2 || p[0].Title != ask().Title || p[1].Title != n.Title {
		t.Errorf("posted %+v", p)
	}
}

func TestNoServerThenOneAppears(t *testing.T) {
	b := notifytest.StartBus(t)
	d, s := notifier(t, b)
	if sh := show(t, d, ask()); sh.Backend != ByBeeep {
		t.Errorf("shown %+v", sh)
	}
	if len(s.all()) != 1 {
		t.Errorf("told %q", s.all())
	}
	d.Withdraw("1") // answered elsewhere: the server that comes must not show it
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	backend(t, d, ByDBus)
	if sh := show(t, d, ask()); sh.Backend != ByDBus {
		t.Errorf("shown %+v", sh)
	}
	if p := srv.Posted(); len(p) != 1 {
		t.Errorf("%d notes", len(p))
	}
}

func TestNothingToTellWith(t *testing.T) {
	b := notifytest.StartBus(t)
	d, s := notifier(t, b)
	s.err = errors.New("no voice")
	if _, err := d.Show(t.Context(), ask()); !errors.Is(err, s.err) || !strings.Contains(err.Error(), "no notification server") {
		t.Errorf("Show = %v", err)
	}
	// Nobody was told, so nothing is wanted.
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	backend(t, d, ByDBus)
	silent(t, d, srv)
	if p := srv.Posted(); len(p) != 1 {
		t.Errorf("%d notes", len(p))
	}
}

func TestNoBusAtAll(t *testing.T) {
	n := New(t.Context(), Config{AppName: "Nod"})
	defer n.Close()
	if _, err := n.Show(t.Context(), ask()); err == nil || !strings.Contains(err.Error(), errNoBus.Error()) {
		t.Errorf("Show = %v", err)
	}
	if c := n.Capabilities(); c.Backend != ByNobody || c.Why != errNoBus.Error() {
		t.Errorf("capabilities %+v", c)
	}
}

func TestBusDiesAndComesBack(t *testing.T) {
	b := notifytest.StartBus(t)
	notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	show(t, d, ask())
	backend(t, d, ByDBus)
	b.Stop()
	if c := backend(t, d, ByBeeep); !strings.Contains(c.Why, "session bus") {
		t.Errorf("why: %q", c.Why)
	}
	n := ask()
	n.Key = "2"
	if sh := show(t, d, n); sh.Backend != ByBeeep {
		t.Errorf("shown %+v", sh)
	}
	b.Start(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	srv.Wait(t, 2)
	for range 2 {
		if e := next(t, d); e.Kind != Reshown {
			t.Errorf("event %+v", e)
		}
	}
	srv.Invoke(t, 1, "deny")
	if e := next(t, d); e.Kind != Invoked || e.Note.Key != "1" {
		t.Errorf("event %+v", e)
	}
}

func TestServerRefusesOneNote(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, s := notifier(t, b)
	show(t, d, ask())
	srv.Before(func(notifytest.Posted) *dbus.Error { return dbus.NewError("org.example.Full", []any{"no room"}) })
	n := ask()
	n.Ref = "second"
	if sh := show(t, d, n); sh.Backend != ByBeeep || len(s.all()) != 1 {
		t.Errorf("shown %+v, told %q", sh, s.all())
	}
	// The old content is off the screen: a click on it must not count as one
	// on the new.
	srv.WaitClosed(t, 1)
	srv.Invoke(t, 1, "allow")
	if c := d.Capabilities(); c.Backend != ByDBus {
		t.Errorf("one refusal made the server useless: %+v", c)
	}
	srv.Before(nil)
	silent(t, d, srv)
}

func TestServerHangs(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, s := notifier(t, b, func(cfg *Config) { cfg.timing.call = 200 * time.Millisecond })
	backend(t, d, ByDBus)
	free := make(chan struct{})
	srv.Before(func(notifytest.Posted) *dbus.Error { <-free; return nil })
	if sh := show(t, d, ask()); sh.Backend != ByBeeep || len(s.all()) != 1 {
		t.Fatalf("shown %+v, told %q", sh, s.all())
	}
	backend(t, d, ByBeeep)
	close(free) // it shows the note after all, which was told already
	srv.WaitClosed(t, 1)
	srv.Before(nil)
	n := ask()
	n.Ref = "second"
	notifytest.Eventually(t, "the server to be tried again", func() bool { return show(t, d, n).Backend == ByDBus })
	p := srv.Posted()
	srv.Invoke(t, p[len(p)-1].ID, "deny")
	for {
		e := next(t, d)
		if e.Kind == Reshown {
			continue
		}
		if e.Kind != Invoked || e.Note.Ref != "second" {
			t.Errorf("event %+v", e)
		}
		return
	}
}

// beeep that hangs does not hang us, and those who wait for it get an error.
func TestTellingHangs(t *testing.T) {
	b := notifytest.StartBus(t)
	free := make(chan struct{})
	cfg := Config{AppName: "Nod", BusAddress: b.Address, timing: quick()}
	cfg.timing.call = 200 * time.Millisecond
	d := newDesktop(context.Background(), cfg, func(string, string) error { <-free; return nil })
	defer d.Close()
	defer close(free)
	var wg sync.WaitGroup
	for _, key := range []string{"1", "2", "3"} {
		wg.Go(func() {
			n := ask()
			n.Key = key
			if _, err := d.Show(context.Background(), n); !errors.Is(err, errSlow) {
				t.Errorf("Show = %v", err)
			}
		})
	}
	wg.Wait()
	if _, err := d.Show(t.Context(), ask()); err == nil {
		t.Error("Show told while beeep hangs")
	}
}

func TestShowIsAbandoned(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	backend(t, d, ByDBus)
	in, free := make(chan struct{}), make(chan struct{})
	srv.Before(func(notifytest.Posted) *dbus.Error { close(in); <-free; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-in; cancel() }()
	if _, err := d.Show(ctx, ask()); !errors.Is(err, context.Canceled) {
		t.Errorf("Show = %v", err)
	}
	close(free)
	srv.WaitClosed(t, 1) // an error means that nobody was told
	srv.Before(nil)
	srv.Invoke(t, 1, "allow")
	silent(t, d, srv)
}

func TestWithdrawnWhileOnItsWay(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	in, free := make(chan struct{}), make(chan struct{})
	srv.Before(func(notifytest.Posted) *dbus.Error { close(in); <-free; return nil })
	go func() { <-in; d.Withdraw("1"); close(free) }()
	if _, err := d.Show(t.Context(), ask()); !errors.Is(err, ErrWithdrawn) {
		t.Errorf("Show = %v", err)
	}
	srv.WaitClosed(t, 1)
	srv.Before(nil)
	silent(t, d, srv)
}

func TestExpire(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	n := ask()
	n.Expire = 50 * time.Millisecond
	show(t, d, n)
	if p := srv.Wait(t, 1); p.Expire != 50 {
		t.Errorf("expire %d", p.Expire)
	}
	if e := next(t, d); e.Kind != Closed || e.Reason != Expired {
		t.Errorf("event %+v", e)
	}
	srv.WaitClosed(t, 1) // not every server keeps the time
}

func TestCloseTakesEverythingOff(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	for _, key := range []string{"1", "2"} {
		n := ask()
		n.Key = key
		show(t, d, n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if live := srv.Live(); len(live) > 0 {
		t.Errorf("still on screen: %v", live)
	}
	if _, err := d.Show(t.Context(), ask()); !errors.Is(err, ErrEnded) {
		t.Errorf("Show = %v", err)
	}
	d.Withdraw("1")
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for range d.Events() { // ends
	}
}

func TestContextEndsIt(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	ctx, cancel := context.WithCancel(context.Background())
	d := newDesktop(ctx, Config{BusAddress: b.Address, timing: quick()}, nil)
	show(t, d, ask())
	cancel()
	srv.WaitClosed(t, 1)
	<-d.done
}

// Everything at once, for the race detector.
func TestManyAtOnce(t *testing.T) {
	b := notifytest.StartBus(t)
	srv := notifytest.FakeDaemon(t, b, "Other", notifytest.PlainCaps())
	d, _ := notifier(t, b)
	go func() {
		for range d.Events() {
		}
	}()
	var wg sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 25 {
				n := ask()
				n.Key = key
				if _, err := d.Show(context.Background(), n); err != nil && !errors.Is(err, ErrWithdrawn) {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				d.Withdraw(key)
			}
		})
	}
	wg.Wait()
	for _, key := range []string{"a", "b", "c", "d"} {
		d.Withdraw(key)
	}
	srv.WaitFor(t, "an empty screen", func() bool { return true })
	notifytest.Eventually(t, "an empty screen", func() bool { return len(srv.Live()) == 0 })
}

// From Show to the server's having the note, and back to the caller.
func BenchmarkShow(b *testing.B) {
	bus := notifytest.StartBus(b)
	srv := notifytest.FakeDaemon(b, bus, "Other", notifytest.PlainCaps())
	d := newDesktop(context.Background(), Config{BusAddress: bus.Address}, nil)
	defer d.Close()
	n := ask()
	if _, err := d.Show(b.Context(), n); err != nil {
		b.Fatal(err)
	}
	b.Run("received", func(b *testing.B) {
		var sum time.Duration
		for b.Loop() {
			start := time.Now()
			if _, err := d.Show(b.Context(), n); err != nil {
				b.Fatal(err)
			}
			p := srv.Posted()
			sum += p[len(p)-1].At.Sub(start)
		}
		b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs/received")
	})
}
