//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"

	"github.com/nod-agents/nod/notify/notifytest"
)

// The names of the tray on the bus.
const (
	watcherName = "org.kde.StatusNotifierWatcher"
	watcherPath = dbus.ObjectPath("/StatusNotifierWatcher")
	itemIface   = "org.kde.StatusNotifierItem"
	menuIface   = "com.canonical.dbusmenu"
)

// trayHost is a StatusNotifierWatcher with a host: what a desktop's panel is
// to a program with an icon, but for the drawing.
type trayHost struct {
	t    testing.TB
	conn *dbus.Conn

	mu    sync.Mutex
	items []trayItem // registered, oldest first
}

// trayItem is one icon.
type trayItem struct {
	owner string // unique name on the bus
	path  dbus.ObjectPath
}

// startTrayHost puts a tray on the bus.
func startTrayHost(t testing.TB, bus *notifytest.Bus) *trayHost {
	t.Helper()
	h := &trayHost{t: t, conn: bus.Connect(t)}
	if err := h.conn.Export(watcher{h}, watcherPath, watcherName); err != nil {
		t.Fatal(err)
	}
	_, err := prop.Export(h.conn, watcherPath, prop.Map{watcherName: {
		"RegisteredStatusNotifierItems":  {Value: []string{}, Emit: prop.EmitFalse},
		"IsStatusNotifierHostRegistered": {Value: true, Emit: prop.EmitFalse},
		"ProtocolVersion":                {Value: int32(0), Emit: prop.EmitFalse},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := h.conn.RequestName(watcherName, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("taking the name %s: %v, %v", watcherName, reply, err)
	}
	return h
}

// watcher has the methods that are called over the bus.
type watcher struct{ h *trayHost }

func (w watcher) RegisterStatusNotifierItem(sender dbus.Sender, service string) *dbus.Error {
	path := dbus.ObjectPath("/StatusNotifierItem")
	if strings.HasPrefix(service, "/") {
		path = dbus.ObjectPath(service)
	}
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	w.h.items = append(w.h.items, trayItem{string(sender), path})
	return nil
}

func (w watcher) RegisterStatusNotifierHost(string) *dbus.Error { return nil }

// registered is how many icons have been put up so far.
func (h *trayHost) registered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.items)
}

// item is the latest icon.
func (h *trayHost) item() trayItem {
	h.t.Helper()
	eventually(h.t, "a tray icon", func() bool { return h.registered() > 0 })
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.items[len(h.items)-1]
}

// property reads a property of the icon into v.
func (h *trayHost) property(name string, v any) error {
	h.t.Helper()
	it := h.item()
	value, err := h.conn.Object(it.owner, it.path).GetProperty(itemIface + "." + name)
	if err == nil {
		err = value.Store(v)
	}
	if err != nil {
		return fmt.Errorf("reading %s of the tray icon: %w", name, err)
	}
	return nil
}

// tooltip is what the icon says, or why it says nothing.
func (h *trayHost) tooltip() string {
	h.t.Helper()
	var tip struct {
		Icon   string
		Pixels []struct {
			Width, Height int32
			Data          []byte
		}
		Title, Text string
	}
	if err := h.property("ToolTip", &tip); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(tip.Title + " " + tip.Text)
}

// icon is the picture of the icon, as bytes to compare.
func (h *trayHost) icon() string {
	h.t.Helper()
	var all []struct {
		Width, Height int32
		Data          []byte
	}
	if err := h.property("IconPixmap", &all); err != nil || len(all) == 0 {
		h.t.Fatalf("the tray icon has no picture: %v", err)
	}
	return string(all[0].Data)
}

// awaitTooltip waits until the icon says so.
func (h *trayHost) awaitTooltip(want string) {
	h.t.Helper()
	last := ""
	defer func() {
		if h.t.Failed() {
			h.t.Logf("the tray icon says %q", last)
		}
	}()
	eventually(h.t, fmt.Sprintf("the tray icon to say %q", want), func() bool {
		last = h.tooltip()
		return strings.Contains(last, want)
	})
}

// menuItem is one visible line of the menu.
type menuItem struct {
	ID      int32
	Label   string
	Enabled bool
	Items   []menuItem // of its submenu
}

// layout is a menu as it comes over the bus.
type layout struct {
	ID       int32
	Props    map[string]dbus.Variant
	Children []dbus.Variant
}

// menu reads the menu, without what is hidden and without separators.
func (h *trayHost) menu() []menuItem {
	h.t.Helper()
	var revision uint32
	var root layout
	err := h.menuObject().Call(menuIface+".GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root)
	if err != nil {
		h.t.Fatalf("reading the tray menu: %v", err)
	}
	return h.visible(root)
}

func (h *trayHost) menuObject() dbus.BusObject {
	h.t.Helper()
	var path dbus.ObjectPath
	if err := h.property("Menu", &path); err != nil {
		h.t.Fatal(err)
	}
	return h.conn.Object(h.item().owner, path)
}

func (h *trayHost) visible(l layout) []menuItem {
	h.t.Helper()
	var items []menuItem
	for _, c := range l.Children {
		var child layout
		if err := dbus.Store([]any{c.Value()}, &child); err != nil {
			h.t.Fatalf("reading a line of the tray menu: %v", err)
		}
		if flag(child.Props, "visible") && child.Props["type"].Value() != "separator" {
			label, _ := child.Props["label"].Value().(string)
			// A single underscore marks a letter for the keyboard.
			label = strings.ReplaceAll(label, "__", "_")
			items = append(items, menuItem{child.ID, label, flag(child.Props, "enabled"), h.visible(child)})
		}
	}
	return items
}

// flag reads a property that is true unless it says otherwise.
func flag(props map[string]dbus.Variant, name string) bool {
	v, ok := props[name].Value().(bool)
	return v || !ok
}

// find looks for an item by a path of labels, each of which may be the start
// of one.
func find(items []menuItem, labels ...string) (menuItem, bool) {
	for _, it := range items {
		if !strings.HasPrefix(it.Label, labels[0]) {
			continue
		}
		if len(labels) == 1 {
			return it, true
		}
		if found, ok := find(it.Items, labels[1:]...); ok {
			return found, true
		}
	}
	return menuItem{}, false
}

// awaitItem waits until the menu has an item, and returns it.
func (h *trayHost) awaitItem(labels ...string) menuItem {
	h.t.Helper()
	var it menuItem
	var last []menuItem
	defer func() {
		if h.t.Failed() {
			h.t.Logf("the tray menu: %+v", last)
		}
	}()
	eventually(h.t, fmt.Sprintf("the menu item %q", labels), func() (ok bool) {
		last = h.menu()
		it, ok = find(last, labels...)
		return ok
	})
	return it
}

// click clicks an item of the menu, by a path of labels.
func (h *trayHost) click(labels ...string) {
	h.t.Helper()
	it := h.awaitItem(labels...)
	if !it.Enabled {
		h.t.Fatalf("the menu item %q cannot be clicked", it.Label)
	}
	if err := h.menuObject().Call(menuIface+".Event", 0, it.ID, "clicked", dbus.MakeVariant(int32(0)), uint32(0)).Err; err != nil {
		h.t.Fatalf("clicking %q: %v", it.Label, err)
	}
}
