//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nod-agents/nod/notify/notifytest"
)

// watched is a machine with a screen, a tray host, and a notification server
// that keeps what it was told.
func watched(t testing.TB) (*machine, *trayHost, *notifytest.Daemon) {
	t.Helper()
	m := newMachine(t, "Xvfb", "openbox", "xdotool", "import", "dbus-daemon").withScreen()
	d := notifytest.FakeDaemon(t, m.bus, "Xfce Notify Daemon", notifytest.XfceCaps())
	return m, startTrayHost(t, m.bus), d
}

func TestAnsweredInTheDialogFirst(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	m.serve()
	m.submit(ask{id: "first", command: "make test"})
	note := d.Wait(t, 1)
	h.click("scout: make test")
	m.focus(m.window("scout"))
	m.press(allowOnce)
	if r := m.collect("first"); !r.Approved || r.State != "approved" || r.Responder != session || !sameJSON(t, string(r.DecidedBy), byHuman) {
		t.Errorf("the answer: %+v", r)
	}
	d.WaitClosed(t, note.ID)
	m.noWindow()

	// The click that was on its way meets another ask, and must not answer it.
	m.submit(ask{id: "second", command: "make clean"})
	d.Wait(t, 2)
	d.Invoke(t, note.ID, "deny")
	never(t, "a late click decided something", time.Second, func() bool { _, ok := m.answered("second"); return ok })
	m.decided("forwarded_permission.approved", "approved", byHuman)
	m.awaitLog("forwarded_permission.denied", 0)
}

func TestForgedClicksDecideNothing(t *testing.T) {
	t.Parallel()
	m, _, d := watched(t)
	m.serve()
	m.submit(ask{id: "one", command: "make test"})
	note := d.Wait(t, 1)
	time.Sleep(alive)
	stranger := m.bus.Connect(t)
	for id := range note.ID + 3 {
		notifytest.Forge(t, stranger, "ActionInvoked", id, "allow")
	}
	never(t, "a stranger's click decided something", time.Second, func() bool { _, ok := m.answered("one"); return ok })
	d.Invoke(t, note.ID, "allow") // the server's own click does
	if r := m.collect("one"); !r.Approved {
		t.Errorf("the answer: %+v", r)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	m.serve("--policy", m.policy(`{"permission": {"bash": {"*": "ask", "ls": "allow"}}}`))
	idle := h.icon()
	h.click("Pause")
	h.awaitTooltip("paused")
	if h.icon() == idle {
		t.Error("the tray icon looks as if nothing was paused")
	}
	m.submit(ask{id: "waits", command: "make test"})
	h.awaitTooltip("paused, 1 ask waits")
	m.submit(ask{id: "by-rule", command: "ls"}) // rules go on
	if r := m.collect("by-rule"); !r.Approved {
		t.Errorf("by rule, while paused: %+v", r)
	}
	never(t, "something popped up while paused", time.Second, func() bool { return len(d.Posted()) > 0 || len(m.windows()) > 0 })
	if s := m.status(); !s.Paused || s.Waiting != 1 {
		t.Errorf("the status while paused: %+v", s)
	}
	h.click("Resume")
	note := d.Wait(t, 1)
	time.Sleep(alive)
	d.Invoke(t, note.ID, "deny")
	if r := m.collect("waits"); r.Approved || r.State != "denied" {
		t.Errorf("the answer: %+v", r)
	}
	h.awaitTooltip("Nod: nothing waits")
}

func TestABurstIsOneNotification(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve()
	for i := range 5 {
		m.submit(ask{id: fmt.Sprint("burst-", i), agent: []string{"scout", "worker"}[i%2], command: fmt.Sprint("make step", i)})
	}
	h.awaitTooltip("5 asks wait")
	// Those that came before it was a burst are replaced.
	m.screen.Notification(t)
	m.screen.Settled(t, "notification-burst")
	m.screen.ClickNotificationButton(t, 1, 1)
	for left := 5; left > 0; left-- {
		w := m.window("bash")
		m.focus(w)
		if left == 5 {
			m.screen.Screenshot(t, "dialog-queue")
		}
		m.press(deny)
		eventually(t, "one ask fewer", func() bool { return len(m.spooled("responses")) == 6-left })
	}
	for i := range 5 {
		if r := m.collect(fmt.Sprint("burst-", i)); r.Approved {
			t.Errorf("answer %d: %+v", i, r)
		}
	}
	m.quiet(h)
	m.awaitLog("forwarded_permission.denied", 5)
}

func TestAWholeSessionGrantSettlesWhatWaits(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	m.extra = []string{"XDG_CURRENT_DESKTOP=KDE"} // where menus may be three deep
	m.serve()
	m.submit(ask{id: "one", agent: "scout", command: "make test"})
	m.submit(ask{id: "two", agent: "worker", command: "make test"})
	m.submit(ask{id: "other", agent: "worker", command: "make clean"})
	h.awaitTooltip("3 asks wait")
	h.click("scout: make test")
	w := m.window("scout")
	m.focus(w)
	m.press(allowForSession)
	m.awaitAlive(w, scopeButton)
	m.press(wholeSession)
	m.awaitAlive(w, sessionButton)
	m.do("key", "Tab", "Tab", "space")
	for _, id := range []string{"one", "two"} {
		if r := m.collect(id); r.State != "approved" {
			t.Errorf("%s was answered with %+v", id, r)
		}
	}
	h.awaitTooltip("1 ask waits")
	eventually(t, "one notification left", func() bool { return len(d.Live()) == 1 })
	if r, ok := m.answered("other"); ok {
		t.Errorf("the grant covered another command: %+v", r)
	}

	// The grant can be taken back in the menu, after a confirm.
	h.awaitItem("Grants (1)", "bash make test", "Revoke")
	time.Sleep(alive)
	h.click("Grants (1)", "bash make test", "Revoke")
	h.awaitItem("No grants")
	m.submit(ask{id: "again", agent: "scout", command: "make test"})
	h.awaitTooltip("2 asks wait")
}

func TestTheAgentTakesItsAskBack(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve()
	m.submit(ask{id: "one", command: "make test"})
	h.click("scout: make test")
	m.window("scout")
	m.screen.Notification(t)
	m.remove("requests", "one.json")
	h.awaitTooltip("nothing waits")
	m.screen.Screenshot(t, "dialog-withdrawn")
	m.quiet(h) // the window says how it ended, and goes
	m.awaitLog("forwarded_permission.withdrawn", 1)
}

func TestASecondStartShowsTheFirst(t *testing.T) {
	t.Parallel()
	m, _ := desktop(t)
	n := m.serve()
	if w := m.windows(); len(w) > 0 {
		t.Fatalf("windows came up unasked: %v", w)
	}
	code, _, errs := m.run("serve")
	if code != 0 || !strings.Contains(errs, fmt.Sprintf("already running (process %d)", n.cmd.Process.Pid)) {
		t.Errorf("the second start ended with %d: %s", code, errs)
	}
	w := m.window("Nod")
	m.screen.Screenshot(t, "window-nod")
	// A window that dies comes again; one that is closed does not.
	pid, err := m.xdotool("getwindowpid", w)
	if err != nil {
		t.Fatal(err)
	}
	var number int
	if _, err := fmt.Sscan(pid, &number); err != nil || number == n.cmd.Process.Pid {
		t.Fatalf("the window is of process %s, Nod of %d", pid, n.cmd.Process.Pid)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another window", func() bool {
		for id := range m.windows() {
			if now, err := m.xdotool("getwindowpid", id); err == nil && now != pid {
				return true
			}
		}
		return false
	})
	m.do("windowactivate", "--sync", m.window("Nod"))
	m.do("key", "Escape")
	m.noWindow()
	if !n.running() {
		t.Error("Nod ended with its window")
	}
}

func TestWithoutATray(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Xvfb", "openbox", "xdotool", "import", "dbus-daemon").withScreen()
	notifytest.StartXfceNotifyd(t, m.screen)
	n := m.serve()
	m.window("Nod") // in the icon's place
	eventually(t, "a word about it", func() bool { return strings.Contains(n.err.String(), "no tray icon") })
	h := startTrayHost(t, m.bus) // a panel that comes later is used
	h.awaitTooltip("nothing waits")
}

func TestWithoutANotificationServer(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Xvfb", "openbox", "xdotool", "import", "dbus-daemon").withScreen()
	h := startTrayHost(t, m.bus)
	m.serve()
	m.submit(ask{id: "one", command: "make test"})
	w := m.window("scout") // the dialog asks by itself
	m.focus(w)
	m.press(allowOnce)
	if r := m.collect("one"); !r.Approved {
		t.Errorf("the answer: %+v", r)
	}
	h.awaitTooltip("nothing waits")
	m.noWindow()
}

func TestWithoutABus(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Xvfb", "openbox", "xdotool", "import", "dbus-daemon").withScreen()
	m.extra = []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + m.path("run/no-such-bus")}
	n := m.serve()
	m.submit(ask{id: "one", command: "make test"})
	m.focus(m.window("scout"))
	m.press(deny)
	if r := m.collect("one"); r.State != "denied" {
		t.Errorf("the answer: %+v", r)
	}
	if !n.running() {
		t.Errorf("Nod ended: %s", n.err)
	}
	n.quit()
}

// What an agent writes is shown for what it is, and never reaches a shell.
func TestHostileText(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	m.serve()
	commands := []string{
		"echo <b>bold</b> & <a href=\"x\">y</a> $(touch " + m.path("pwned") + ") `touch " + m.path("pwned") + "`",
		"rm -rf /\rls",
		"ls \u202etxt.exe \u200b\x1b[2J",
	}
	for i, c := range commands {
		m.submit(ask{id: fmt.Sprint("h", i), command: c})
		note := d.Wait(t, i+1)
		if i == 0 {
			if !strings.Contains(note.Body, "&lt;b&gt;bold&lt;/b&gt; &amp;") || !slices.Contains(note.Actions, "allow") {
				t.Errorf("the notification: %q, %q", note.Body, note.Actions)
			}
			continue
		}
		// What had to be escaped to be seen is not approved without a look.
		if slices.Contains(note.Actions, "allow") || !slices.Contains(note.Actions, "review") || strings.ContainsAny(note.Body, "\r\x1b\u202e\u200b") {
			t.Errorf("the notification: %q, %q", note.Body, note.Actions)
		}
	}
	h.awaitTooltip("3 asks wait")
	h.click(`scout: ls \u202Etxt.exe`)
	m.window("scout")
	m.screen.Screenshot(t, "dialog-hostile")
	if m.exists("pwned") {
		t.Error("text of an agent was run")
	}
}
