//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The buttons of an ask's notification, from the left.
const (
	buttonAllow  = 1
	buttonDeny   = 2
	buttonReview = 3
	buttonCount  = 3
)

// ran is what a model sees of a command that ran and printed nothing.
const ran = "(no output)"

// byHuman is who decided, as it is logged, if a human did.
const byHuman = `{"kind":"user","via":"dialog"}`

// decided makes sure that exactly these decisions of one event are in the log.
func (m *machine) decided(event, state string, by ...string) {
	m.t.Helper()
	for i, e := range m.awaitLog(event, len(by)) {
		if e.State != state || !sameJSON(m.t, string(e.DecidedBy), by[i]) {
			m.t.Errorf("logged as %s: state %s, decided by %s; want %s by %s", event, e.State, e.DecidedBy, state, by[i])
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", e.Timestamp); err != nil || e.RequestID == "" || e.Target != session {
			m.t.Errorf("an entry lacks its particulars: %+v", e)
		}
	}
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatalf("comparing %s and %s: %v", a, b, err)
	}
	return reflect.DeepEqual(x, y)
}

// quiet waits until nothing asks the human any more, anywhere.
func (m *machine) quiet(h *trayHost) {
	m.t.Helper()
	m.clean()
	m.noWindow()
	eventually(m.t, "no notification", func() bool { return len(m.screen.Notifications(m.t)) == 0 })
	h.awaitTooltip("nothing waits")
}

// ready waits for a notification whose buttons are alive.
func (m *machine) ready() {
	m.t.Helper()
	m.screen.Notification(m.t)
	time.Sleep(alive)
}

// review opens the ask window from the notification on the screen and returns
// it, its buttons alive.
func (m *machine) review(title string) string {
	m.t.Helper()
	m.screen.Notification(m.t)
	m.screen.ClickNotificationButton(m.t, buttonReview, buttonCount)
	w := m.window(title)
	m.focus(w)
	return w
}

func TestApprovedFromNotification(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve()
	h.awaitTooltip("nothing waits")
	idle := h.icon()
	c := m.child("scout", bash("touch made"))
	m.ready()
	h.awaitTooltip("1 ask waits")
	if h.icon() == idle {
		t.Error("the tray icon looks as if nothing waited")
	}
	h.awaitItem("scout: touch made")
	m.screen.Settled(t, "notification")
	if c.made("made") {
		t.Error("the command ran before it was approved")
	}

	m.screen.ClickNotificationButton(t, buttonAllow, buttonCount)
	if got := c.finish(); !slices.Equal(got, []string{ran}) || !c.made("made") {
		t.Errorf("the model saw %q, file made: %v", got, c.made("made"))
	}
	m.decided("forwarded_permission.approved", "approved", byHuman)
	m.awaitLog("forwarded_permission.prompted", 1)
	m.quiet(h)
	eventually(t, "the idle icon", func() bool { return h.icon() == idle })
}

func TestApprovedForThisSubagent(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve()
	c := m.child("scout", bash("touch made"), bash("touch made"))
	w := m.review("scout")
	m.screen.Screenshot(t, "dialog-ask")
	m.press(allowForSession)
	m.awaitAlive(w, scopeButton)
	m.screen.Screenshot(t, "dialog-scope")
	m.press(confirmScope)

	if got := c.finish(); !slices.Equal(got, []string{ran, ran}) || !c.made("made") {
		t.Errorf("the model saw %q", got)
	}
	m.awaitLog("forwarded_permission.prompted", 1) // the second call did not ask
	m.decided("forwarded_permission.approved", "approved_for_session", byHuman)
	if g := m.grants(); len(g) != 0 {
		t.Errorf("the serving node recorded what is the subagent's own: %+v", g)
	}
	m.quiet(h)
}

func TestApprovedForTheWholeSession(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve("--policy", m.policy(`{"legacyRequests": "resolve", "permission": {"*": "ask"}}`))
	first := m.child("scout", bash("touch made"))
	w := m.review("scout")
	m.press(allowForSession)
	m.awaitAlive(w, scopeButton)
	m.press(wholeSession)
	m.awaitAlive(w, sessionButton)
	m.screen.Screenshot(t, "dialog-whole-session")
	m.do("key", "Tab", "Tab", "space") // over Back to the button
	if got := first.finish(); !slices.Equal(got, []string{ran}) || !first.made("made") {
		t.Errorf("the model saw %q", got)
	}
	m.awaitLog("forwarded_permission.session_recorded", 1)
	m.decided("forwarded_permission.approved", "approved", byHuman)

	// Another child is let through by the grant, and nobody is asked.
	second := m.child("worker", bash("touch other"))
	if got := second.finish(); !slices.Equal(got, []string{ran}) || !second.made("other") {
		t.Errorf("the model saw %q", got)
	}
	m.decided("forwarded_permission.auto_approved", "approved", `{"kind":"session_approval","surface":"bash","pattern":"touch *"}`)
	m.awaitLog("forwarded_permission.prompted", 1)
	grants := m.grants()
	if len(grants) != 1 || grants[0].Surface != "bash" || grants[0].Pattern != "touch *" || grants[0].Hits != 1 || grants[0].SessionID != session {
		t.Fatalf("the grants: %+v", grants)
	}
	h.awaitItem("Grants (1)", "bash touch * (whole session), since ")

	// Once revoked, it asks again.
	if code, out, errs := m.run("grants", "revoke", grants[0].ID); code != 0 || out != "1 revoked\n" {
		t.Errorf("nod grants revoke: %d %s%s", code, out, errs)
	}
	h.awaitItem("No grants")
	third := m.child("worker", bash("touch third"))
	m.ready()
	m.screen.ClickNotificationButton(t, buttonDeny, buttonCount)
	if got := third.finish(); third.made("third") {
		t.Errorf("the model saw %q", got)
	}
	m.quiet(h)
}

func TestDenied(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve()
	c := m.child("scout", bash("touch made"))
	m.ready()
	m.screen.ClickNotificationButton(t, buttonDeny, buttonCount)
	got := c.finish()
	if len(got) != 1 || !strings.Contains(got[0], "User denied bash command 'touch made'") || c.made("made") {
		t.Errorf("the model saw %q, file made: %v", got, c.made("made"))
	}
	m.decided("forwarded_permission.denied", "denied", byHuman)
	m.quiet(h)
}

func TestDeniedWithReason(t *testing.T) {
	t.Parallel()
	const reason = "Use the staging copy: /srv/stage, not <prod>!"
	m, h := desktop(t)
	m.serve()
	c := m.child("scout", bash("touch made"))
	w := m.review("scout")
	m.press(denyWithReason)
	time.Sleep(alive)
	m.screen.Screenshot(t, "dialog-why")
	m.typeText(reason)
	m.awaitAlive(w, reasonButton)
	m.screen.Screenshot(t, "dialog-reason")
	m.do("key", "Tab", "Tab", "space") // over Back to the button
	got := c.finish()
	if len(got) != 1 || !strings.Contains(got[0], reason) || c.made("made") {
		t.Errorf("the model saw %q, file made: %v", got, c.made("made"))
	}
	m.decided("forwarded_permission.denied", "denied_with_reason", byHuman)
	if e := m.logged("forwarded_permission.denied"); e[0].Denial != reason {
		t.Errorf("logged reason: %q", e[0].Denial)
	}
	m.quiet(h)
}

// stopping are the ways in which a Nod may end while a child waits.
var stopping = map[string]func(*nod, *trayHost){
	"SIGTERM": func(n *nod, _ *trayHost) { n.quit() },
	"Quit in the tray": func(n *nod, h *trayHost) {
		h.click("Quit Nod")
		if code := n.wait(); code != 0 {
			n.t.Errorf("nod ended with %d:\n%s", code, n.err)
		}
	},
}

func TestQuitWhileAChildWaits(t *testing.T) {
	for name, stop := range stopping {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, h := desktop(t)
			n := m.serve()
			c := m.child("scout", bash("touch made"))
			m.review("scout") // so that a notification, a window and a child are there
			stop(n, h)

			if left := m.screen.Notifications(t); len(left) > 0 {
				t.Errorf("notifications outlived Nod: %+v", left)
			}
			m.noWindow()
			if m.exists("agent/sessions/permission-forwarding/serving/" + session + ".json") {
				t.Error("the heartbeat outlived Nod")
			}
			// Nobody decided, and the child, of a generation that reads no
			// heartbeat, waits for whoever serves next.
			m.awaitLog("forwarded_permission.withdrawn", 1)
			m.awaitLog("forwarded_permission.serving_stopped", 1)
			m.awaitLog("forwarded_permission.approved", 0)
			m.awaitLog("forwarded_permission.denied", 0)
			if len(m.spooled("requests")) != 1 || len(m.spooled("responses")) != 0 || !c.running() || c.made("made") {
				t.Errorf("requests %v, responses %v, child running: %v, file made: %v",
					m.spooled("requests"), m.spooled("responses"), c.running(), c.made("made"))
			}
			m.serve()
			h.awaitTooltip("1 ask waits")
			m.ready()
			m.screen.ClickNotificationButton(t, buttonAllow, buttonCount)
			if got := c.finish(); !slices.Equal(got, []string{ran}) || !c.made("made") {
				t.Errorf("the model saw %q, file made: %v", got, c.made("made"))
			}
			m.quiet(h)
		})
	}
}

func TestKilledAndRestartedWhileAChildWaits(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	n := m.serve()
	c := m.child("scout", bash("touch made"))
	m.ready()
	stale := m.screen.Notification(t)
	n.signal(syscall.SIGKILL)
	n.wait()
	m.serve()
	h.awaitTooltip("1 ask waits")
	// The server shows the dead one's notification beside the new one's: a
	// click on its body closes it in this server.
	eventually(t, "two notifications", func() bool { return len(m.screen.Notifications(t)) == 2 })
	m.screen.Click(t, stale, stale.Width/2, 12)
	m.ready()
	m.screen.ClickNotificationButton(t, buttonAllow, buttonCount)
	if got := c.finish(); !slices.Equal(got, []string{ran}) || !c.made("made") {
		t.Errorf("the model saw %q, file made: %v", got, c.made("made"))
	}
	m.decided("forwarded_permission.approved", "approved", byHuman)
	m.quiet(h)
}

func TestRulesDecideWithoutAsking(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve("--policy", m.policy(`{"legacyRequests": "resolve", "permission": {
		"bash": {"*": "ask", "touch *": "allow", "rm *": {"action": "deny", "reason": "Move it to trash/ instead."}}}}`))
	c := m.child("scout", bash("touch made"), bash("rm made"))
	got := c.finish()
	if len(got) != 2 || got[0] != ran || !strings.Contains(got[1], "Move it to trash/ instead.") || !c.made("made") {
		t.Errorf("the model saw %q", got)
	}
	m.decided("forwarded_permission.auto_approved", "approved", `{"kind":"rule","surface":"bash","pattern":"touch *","origin":"global"}`)
	m.decided("forwarded_permission.auto_denied", "denied_with_reason", `{"kind":"rule","surface":"bash","pattern":"rm *","origin":"global"}`)
	m.awaitLog("forwarded_permission.prompted", 0)
	m.quiet(h)
}

func TestAChainIsAskedWhole(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve("--policy", m.policy(`{"legacyRequests": "resolve", "permission": {"bash": {"*": "ask", "git *": "allow"}}}`))
	c := m.child("scout", bash("git status && rm -rf x"))
	x := filepath.Join(c.dir, "x")
	if err := os.Mkdir(x, 0o700); err != nil {
		t.Fatal(err)
	}
	m.ready()
	m.screen.Settled(t, "notification-chain")
	m.screen.ClickNotificationButton(t, buttonDeny, buttonCount)
	if got := c.finish(); len(got) != 1 || !strings.Contains(got[0], "denied") || !c.made("x") {
		t.Errorf("the model saw %q, the directory is there: %v", got, c.made("x"))
	}
	m.decided("forwarded_permission.denied", "denied", byHuman)
	m.quiet(h)
}

func TestThreeChildrenInAnyOrder(t *testing.T) {
	t.Parallel()
	m, h := desktop(t)
	m.serve()
	names := []string{"ada", "bob", "cyd"}
	children := map[string]*child{}
	for _, n := range names {
		children[n] = m.child(n, bash("touch made"))
	}
	h.awaitTooltip("3 asks wait")
	eventually(t, "three notifications", func() bool { return len(m.screen.Notifications(t)) == 3 })
	m.screen.Settled(t, "notification-three")
	// Each is answered in the window that its line in the tray menu opens, the
	// last first.
	for i, n := range []string{"cyd", "ada", "bob"} {
		h.click(n + ": touch made")
		w := m.window(n)
		m.focus(w)
		if i == 1 {
			m.press(deny)
		} else {
			m.press(allowOnce)
		}
		if got := children[n].finish(); children[n].made("made") == (i == 1) {
			t.Errorf("the model of %s saw %q", n, got)
		}
		if left := 2 - i; left > 0 {
			eventually(t, "one notification fewer", func() bool { return len(m.screen.Notifications(t)) == left })
		}
	}
	m.awaitLog("forwarded_permission.approved", 2)
	m.awaitLog("forwarded_permission.denied", 1)
	m.quiet(h)
}
