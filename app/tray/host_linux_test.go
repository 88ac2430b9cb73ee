//go:build !headless

package tray

import (
	"bytes"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"

	"github.com/nod-agents/nod/assets"
	"github.com/nod-agents/nod/notify/notifytest"
)

// host is the panel of a desktop: it takes tray icons in, reads their menus
// and clicks on their items, over the bus as a real one.
type host struct {
	t    testing.TB
	conn *dbus.Conn

	mu   sync.Mutex
	name string // of the item's owner
	path dbus.ObjectPath
}

// startHost puts a panel on the bus.
func startHost(t testing.TB, b *notifytest.Bus) *host {
	t.Helper()
	h := &host{t: t, conn: b.Connect(t)}
	if err := h.conn.Export(watcher{h}, watcherPath, watcherName); err != nil {
		t.Fatal(err)
	}
	if _, err := prop.Export(h.conn, watcherPath, prop.Map{watcherName: {
		"RegisteredStatusNotifierItems":  {Value: []string{}, Emit: prop.EmitFalse},
		"IsStatusNotifierHostRegistered": {Value: true, Emit: prop.EmitFalse},
		"ProtocolVersion":                {Value: int32(0), Emit: prop.EmitFalse},
	}}); err != nil {
		t.Fatal(err)
	}
	reply, err := h.conn.RequestName(watcherName, dbus.NameFlagDoNotQueue)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("becoming the panel: %v, %v", reply, err)
	}
	return h
}

// watcher has the panel's methods.
type watcher struct{ h *host }

func (w watcher) RegisterStatusNotifierItem(sender dbus.Sender, service string) *dbus.Error {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	w.h.name, w.h.path = string(sender), dbus.ObjectPath(service)
	return nil
}

func (w watcher) RegisterStatusNotifierHost(string) *dbus.Error { return nil }

func (h *host) item() dbus.BusObject {
	h.t.Helper()
	var o dbus.BusObject
	eventually(h.t, "a tray icon", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.name != "" {
			o = h.conn.Object(h.name, h.path)
		}
		return o != nil
	})
	return o
}

func (h *host) property(name string) any {
	h.t.Helper()
	v, err := h.item().GetProperty("org.kde.StatusNotifierItem." + name)
	if err != nil {
		h.t.Fatalf("reading %s: %v", name, err)
	}
	return v.Value()
}

func (h *host) tooltip() string {
	h.t.Helper()
	v := h.property("ToolTip").([]any)
	return v[2].(string)
}

// icon names the state whose picture is shown.
func (h *host) icon() string {
	h.t.Helper()
	var shown []struct {
		W, H int32
		Pix  []byte
	}
	v, err := h.item().GetProperty("org.kde.StatusNotifierItem.IconPixmap")
	if err == nil {
		err = v.Store(&shown)
	}
	if err != nil || len(shown) != 1 || shown[0].W != assets.TraySize || len(shown[0].Pix) != int(4*shown[0].W*shown[0].H) {
		h.t.Fatalf("the icon: %v, %d pictures", err, len(shown))
	}
	for _, s := range []assets.State{assets.Idle, assets.Pending, assets.Paused, assets.Degraded} {
		for n := range 12 {
			img, err := png.Decode(bytes.NewReader(assets.Tray(s, n)))
			if err != nil {
				h.t.Fatal(err)
			}
			same := true
			for i := 0; same && i < len(shown[0].Pix); i += 4 {
				r, g, b, a := img.At(i/4%assets.TraySize, i/4/assets.TraySize).RGBA()
				p := shown[0].Pix[i : i+4]
				same = byte(a) == p[0] && byte(r) == p[1] && byte(g) == p[2] && byte(b) == p[3]
			}
			switch {
			case !same:
			case s == assets.Pending && n > 9:
				return "pending 9+"
			case s == assets.Pending && n > 0:
				return fmt.Sprint("pending ", n)
			default:
				return s.String()
			}
		}
	}
	return "unknown"
}

// entry is one item of the menu that is not hidden.
type entry struct {
	id       int32
	label    string // as a person reads it
	grey     bool
	line     bool // a separator
	children []entry
}

type layout struct {
	ID       int32
	Props    map[string]dbus.Variant
	Children []dbus.Variant
}

func (h *host) menuObject() dbus.BusObject {
	h.t.Helper()
	h.item()
	h.mu.Lock()
	name := h.name
	h.mu.Unlock()
	return h.conn.Object(name, h.property("Menu").(dbus.ObjectPath))
}

// menu reads the menu as it is now.
func (h *host) menu() []entry {
	h.t.Helper()
	o := h.menuObject()
	var rev uint32
	var root layout
	if err := o.Call("com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Store(&rev, &root); err != nil {
		h.t.Fatalf("reading the menu: %v", err)
	}
	return h.entries(root)
}

func (h *host) entries(l layout) []entry {
	h.t.Helper()
	var all []entry
	for _, c := range l.Children {
		var child layout
		if err := dbus.Store([]any{c.Value()}, &child); err != nil {
			h.t.Fatal(err)
		}
		if visible, ok := child.Props["visible"].Value().(bool); ok && !visible {
			continue
		}
		e := entry{id: child.ID}
		label, _ := child.Props["label"].Value().(string)
		e.label = read(label)
		if enabled, ok := child.Props["enabled"].Value().(bool); ok {
			e.grey = !enabled
		}
		kind, _ := child.Props["type"].Value().(string)
		e.line = kind == "separator"
		e.children = h.entries(child)
		all = append(all, e)
	}
	return all
}

// read takes a label as toolkits do: one underline marks a letter, two are one.
func read(label string) string {
	var b strings.Builder
	for i := 0; i < len(label); i++ {
		if label[i] == '_' {
			if i++; i == len(label) {
				break
			}
		}
		b.WriteByte(label[i])
	}
	return b.String()
}

// text is the menu as lines, submenus indented, greyed ones in brackets.
func text(all []entry) string {
	var lines []string
	var add func([]entry, string)
	add = func(all []entry, indent string) {
		for _, e := range all {
			l := e.label
			if e.grey {
				l = "[" + l + "]"
			}
			if e.line {
				l = "--"
			}
			lines = append(lines, indent+l)
			add(e.children, indent+"  ")
		}
	}
	add(all, "")
	return strings.Join(lines, "\n")
}

// reads waits until the menu reads so.
func (h *host) reads(want string) {
	h.t.Helper()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\n\t\t", "\n"))
	var got string
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if got = text(h.menu()); got == want {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("the menu reads\n%s\n\nwant\n%s", got, want)
		}
	}
}

// find returns the item that the labels lead to, each a beginning.
func (h *host) find(labels ...string) entry {
	h.t.Helper()
	var found entry
	eventually(h.t, fmt.Sprintf("the menu item %q in\n%s", labels, text(h.menu())), func() bool {
		all := h.menu()
		for _, label := range labels {
			i := slices.IndexFunc(all, func(e entry) bool { return !e.line && strings.HasPrefix(e.label, label) })
			if i < 0 {
				return false
			}
			found, all = all[i], all[i].children
		}
		return true
	})
	return found
}

// clicks on the item that the labels lead to.
func (h *host) clicks(labels ...string) {
	h.t.Helper()
	e := h.find(labels...)
	if e.grey {
		h.t.Fatalf("%q is greyed", labels)
	}
	h.clicksOn(e)
}

func (h *host) clicksOn(e entry) {
	h.t.Helper()
	if err := h.menuObject().Call("com.canonical.dbusmenu.Event", 0, e.id, "clicked", dbus.MakeVariant(int32(0)), uint32(time.Now().Unix())).Err; err != nil {
		h.t.Fatalf("clicking on %q: %v", e.label, err)
	}
}
