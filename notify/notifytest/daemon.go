//go:build linux

package notifytest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// The server's name on the bus, its object and its interface.
const (
	Name = "org.freedesktop.Notifications"
	Path = "/org/freedesktop/Notifications"
)

// Capability lists as real servers give them.
var (
	capsXfce  = []string{"action-icons", "actions", "body", "body-hyperlinks", "body-markup", "icon-static", "x-canonical-private-icon-only"}
	capsPlain = []string{"actions", "body"}
)

// XfceCaps are the capabilities of xfce4-notifyd 0.7.3.
func XfceCaps() []string { return slices.Clone(capsXfce) }

// PlainCaps are actions and a body without markup.
func PlainCaps() []string { return slices.Clone(capsPlain) }

// Posted is one Notify call as a server received it.
type Posted struct {
	ID       uint32 // that was given
	App      string
	Replaces uint32
	Icon     string
	Title    string
	Body     string
	Actions  []string // key, label, key, label, …
	Hints    map[string]dbus.Variant
	Expire   int32 // milliseconds
	At       time.Time
}

// Daemon is a notification server in Go. It does nothing by itself but give
// ids, from 1 on like every server. It handles one call after the other, in the
// order of their coming, as real servers do.
type Daemon struct {
	Conn *dbus.Conn
	name string
	caps []string

	mu     sync.Mutex
	last   uint32
	live   map[uint32]bool
	posted []Posted
	closed []uint32
	before func(Posted) *dbus.Error
	change chan struct{}
	turn   *sync.Cond
	calls  []call // that have arrived and are not done, oldest first
	ended  bool
}

type call struct {
	sender string
	serial uint32
}

func called(m *dbus.Message) call {
	sender, _ := m.Headers[dbus.FieldSender].Value().(string)
	return call{sender, m.Serial()}
}

// arrived notes the order of the calls: godbus runs each in a goroutine.
func (d *Daemon) arrived(m *dbus.Message) {
	name, _ := m.Headers[dbus.FieldInterface].Value().(string)
	if m.Type != dbus.TypeMethodCall || name != Name {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, called(m))
}

// begin waits for the turn of this call. end ends it.
func (d *Daemon) begin(m dbus.Message) (end func()) {
	c := called(&m)
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.ended && len(d.calls) > 0 && d.calls[0] != c {
		d.turn.Wait()
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.calls = slices.DeleteFunc(d.calls, func(have call) bool { return have == c })
		d.turn.Broadcast()
	}
}

// FakeDaemon puts a server with these capabilities on the bus. It fails the
// test if another one is there.
func FakeDaemon(t testing.TB, b *Bus, name string, caps []string) *Daemon {
	t.Helper()
	d, err := Serve(b.Address, name, caps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

// Serve is FakeDaemon for a program of its own, such as one that the bus starts.
func Serve(address, name string, caps []string) (*Daemon, error) {
	d := &Daemon{name: name, caps: caps, live: map[uint32]bool{}, change: make(chan struct{})}
	d.turn = sync.NewCond(&d.mu)
	var err error
	if d.Conn, err = dbus.Connect(address, dbus.WithIncomingInterceptor(d.arrived)); err != nil {
		return nil, fmt.Errorf("connecting to the test's bus: %w", err)
	}
	if err := d.Conn.Export(served{d}, Path, Name); err != nil {
		return nil, errors.Join(err, d.Conn.Close())
	}
	reply, err := d.Conn.RequestName(Name, dbus.NameFlagDoNotQueue)
	if err == nil && reply != dbus.RequestNameReplyPrimaryOwner {
		err = errors.New("somebody else has it")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("taking the name %s: %w", Name, err), d.Conn.Close())
	}
	return d, nil
}

// Before has f called in each Notify before the reply is sent; an error is the
// reply then. It may block.
func (d *Daemon) Before(f func(Posted) *dbus.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = f
}

// Stop takes the server off the bus.
func (d *Daemon) Stop() {
	_ = d.Conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.turn.Broadcast()
}

// Posted returns every Notify so far.
func (d *Daemon) Posted() []Posted {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.posted)
}

// Live returns the ids that are on screen, in order.
func (d *Daemon) Live() []uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []uint32
	for id := range d.live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Closed returns the ids for which CloseNotification was called.
func (d *Daemon) Closed() []uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.closed)
}

// Wait waits for the n-th Notify, counted from 1, and returns it.
func (d *Daemon) Wait(t testing.TB, n int) Posted {
	t.Helper()
	d.WaitFor(t, fmt.Sprintf("Notify number %d", n), func() bool { return len(d.posted) >= n })
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.posted[n-1]
}

// WaitClosed waits until CloseNotification was called for id.
func (d *Daemon) WaitClosed(t testing.TB, id uint32) {
	t.Helper()
	d.WaitFor(t, fmt.Sprintf("CloseNotification of %d", id), func() bool { return slices.Contains(d.closed, id) })
}

// WaitFor waits until ok, which is called under the server's lock.
func (d *Daemon) WaitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		d.mu.Lock()
		fine, change := ok(), d.change
		d.mu.Unlock()
		if fine {
			return
		}
		select {
		case <-change:
		case <-limit.C:
			t.Fatalf("waited %v for: %s", patience, what)
		}
	}
}

// Invoke does what a press of the button with this key does. As with some real
// servers no NotificationClosed follows.
func (d *Daemon) Invoke(t testing.TB, id uint32, key string) {
	t.Helper()
	d.Emit(t, "ActionInvoked", id, key)
}

// Dismiss closes id for a reason: 1 expired, 2 by the user, 3 by a call, 4.
func (d *Daemon) Dismiss(t testing.TB, id, reason uint32) {
	t.Helper()
	d.mu.Lock()
	delete(d.live, id)
	d.mu.Unlock()
	d.Emit(t, "NotificationClosed", id, reason)
}

// Emit sends any signal of the server's interface.
func (d *Daemon) Emit(t testing.TB, signal string, body ...any) {
	t.Helper()
	Forge(t, d.Conn, signal, body...)
}

// Forge emits a signal of the server's interface from any connection, as any
// program on the bus can.
func Forge(t testing.TB, from *dbus.Conn, signal string, body ...any) {
	t.Helper()
	if err := from.Emit(Path, Name+"."+signal, body...); err != nil {
		t.Fatalf("emitting %s: %v", signal, err)
	}
}

// ForgeTo sends the signal to one connection only, past its match rules.
func ForgeTo(t testing.TB, from *dbus.Conn, to, signal string, body ...any) {
	t.Helper()
	msg := &dbus.Message{
		Type: dbus.TypeSignal,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: dbus.MakeVariant(to),
			dbus.FieldPath:        dbus.MakeVariant(dbus.ObjectPath(Path)),
			dbus.FieldInterface:   dbus.MakeVariant(Name),
			dbus.FieldMember:      dbus.MakeVariant(signal),
			dbus.FieldSignature:   dbus.MakeVariant(dbus.SignatureOf(body...)),
		},
		Body: body,
	}
	if call := from.Send(msg, nil); call != nil && call.Err != nil {
		t.Fatalf("sending %s: %v", signal, call.Err)
	}
}

func (d *Daemon) changed() {
	close(d.change)
	d.change = make(chan struct{})
}

// served has the methods of the interface, as godbus exports them.
type served struct{ d *Daemon }

func (s served) GetCapabilities(m dbus.Message) ([]string, *dbus.Error) {
	defer s.d.begin(m)()
	return s.d.caps, nil
}

func (s served) GetServerInformation(m dbus.Message) (name, vendor, version, spec string, _ *dbus.Error) {
	defer s.d.begin(m)()
	return s.d.name, "notifytest", "1", "1.2", nil
}

func (s served) Notify(m dbus.Message, app string, replaces uint32, icon, title, body string, actions []string,
	hints map[string]dbus.Variant, expire int32) (uint32, *dbus.Error) {
	defer s.d.begin(m)()
	p := Posted{App: app, Replaces: replaces, Icon: icon, Title: title, Body: body, Actions: actions, Hints: hints, Expire: expire, At: time.Now()}
	d := s.d
	d.mu.Lock()
	if p.ID = replaces; p.ID == 0 {
		d.last++
		p.ID = d.last
	}
	before := d.before
	d.mu.Unlock()
	if before != nil {
		if err := before(p); err != nil {
			return 0, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[p.ID] = true
	d.posted = append(d.posted, p)
	d.changed()
	return p.ID, nil
}

func (s served) CloseNotification(m dbus.Message, id uint32) *dbus.Error {
	defer s.d.begin(m)()
	d := s.d
	d.mu.Lock()
	live := d.live[id]
	delete(d.live, id)
	d.closed = append(d.closed, id)
	d.changed()
	d.mu.Unlock()
	if live {
		_ = d.Conn.Emit(Path, Name+".NotificationClosed", id, uint32(3))
	}
	return nil
}
