//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/notify/notifytest"
)

// A whole desktop of real parts: a panel draws the icon and the menu, and the
// mouse and the keyboard reach Nod through them. The README's pictures are
// this test's: readme-*.png among the artifacts.
func TestARealPanel(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Xvfb", "openbox", "xdotool", "import", "xsetroot", "dbus-daemon", "xfce4-panel")
	xfconfd := notifytest.Need(t, "/usr/lib/*/xfce4/xfconf/xfconfd")[0]
	// The bus gives what it starts its own environment: the daemon gets ours by
	// a script.
	m.withBus(notifytest.Service{Name: "org.xfce.Xfconf", Exec: []string{m.script("xfconfd.sh",
		"export HOME="+m.home+" XDG_CONFIG_HOME="+m.path("config")+" "+runMark+"\nexec "+xfconfd+"\n")}}).withScreen()
	config, err := os.ReadFile(filepath.Join("testdata", "panel", "xfce4-panel.xml"))
	if err != nil {
		t.Fatal(err)
	}
	m.write("config/xfce4/xfconf/xfce-perchannel-xml/xfce4-panel.xml", string(config))
	if paint := start(t, m.home, m.env(), notifytest.Need(t, "xsetroot")[0], "-solid", "#46687a"); paint.wait() != 0 {
		t.Fatalf("painting the background: %s", paint.err)
	}
	notifytest.StartXfceNotifyd(t, m.screen)
	panel := start(t, m.home, m.env(), notifytest.Need(t, "xfce4-panel")[0], "--disable-wm-check")
	watch := m.bus.Connect(t)
	eventually(t, "the panel's tray", func() bool {
		if !panel.running() {
			t.Fatalf("xfce4-panel ended: %s", panel.err)
		}
		var owned bool
		err := watch.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, watcherName).Store(&owned)
		return err == nil && owned
	})
	n := m.serve()

	// A grant, for the menu to list.
	m.submit(ask{id: "granted", agent: "builder", command: "npm test", cwd: "/home/dev/shop"})
	w := m.review("builder")
	m.press(allowForSession)
	m.awaitAlive(w, scopeButton)
	m.press(wholeSession)
	m.awaitAlive(w, sessionButton)
	m.do("key", "Tab", "Tab", "space")
	m.collect("granted")
	m.noWindow()
	for _, id := range []string{"hit-1", "hit-2"} {
		m.submit(ask{id: id, agent: "builder", command: "npm test", cwd: "/home/dev/shop"})
		if r := m.collect(id); !r.Approved {
			t.Errorf("by the grant: %+v", r)
		}
	}

	m.submit(ask{id: "first", agent: "scout", command: "git push origin main", cwd: "/home/dev/shop"})
	m.ready()
	m.do("mousemove", "640", "760")
	m.screen.Settled(t, "readme-notification")

	m.screen.ClickNotificationButton(t, buttonReview, buttonCount)
	w = m.window("scout")
	m.focus(w)
	m.do("mousemove", "640", "760")
	time.Sleep(alive)
	m.screen.Screenshot(t, "readme-dialog")
	m.do("key", "Escape") // decides nothing
	m.noWindow()

	m.submit(ask{id: "second", agent: "builder", command: "npm install left-pad", cwd: "/home/dev/shop"})
	note := m.screen.Notification(t)
	m.screen.Click(t, note, note.Width/2, 12) // closed: it waits in the menu
	eventually(t, "no notification", func() bool { return len(m.screen.Notifications(t)) == 0 })
	m.do("mousemove", "1264", "14", "click", "1")
	m.screen.Settled(t, "tray-menu")
	m.do("key", "Up", "Up", "Up", "Up", "Up", "Right") // the grants, up from the end
	m.do("mousemove", "640", "760")
	time.Sleep(alive) // a panel asks for a submenu when it is opened
	m.screen.Settled(t, "readme-tray-menu")
	m.do("key", "Return") // the grant: its window asks before it revokes
	w = m.window("Nod")
	m.screen.Screenshot(t, "window-grants")
	m.do("windowactivate", "--sync", w)
	m.do("key", "Escape")
	m.noWindow()
	if g := m.grants(); len(g) != 1 || g[0].Hits != 2 {
		t.Errorf("the grants: %+v", g)
	}

	m.do("mousemove", "1264", "14", "click", "1")
	time.Sleep(alive)
	m.do("key", "Up", "Up", "Up", "Up", "Return") // Pause
	eventually(t, "the pause", func() bool { return m.status().Paused })
	m.screen.Settled(t, "tray-paused")

	m.do("mousemove", "1264", "14", "click", "1")
	time.Sleep(alive)
	m.do("key", "Up", "Return") // Quit Nod
	if code := n.wait(); code != 0 || strings.Contains(n.err.String(), "panic") {
		t.Errorf("nod ended with %d: %s", code, n.err)
	}
	if left := m.spooled("requests"); len(left) != 2 {
		t.Errorf("what waited did not stay: %v", left)
	}
}
