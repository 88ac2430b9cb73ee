//go:build linux

package e2e

import (
	"slices"
	"strings"
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

// Decisions as they are logged.
const (
	byHuman = `{"kind":"user","via":"dialog"}`
)

// decided makes sure that exactly these decisions of one event are in the log.
func (m *machine) decided(event, state string, by ...string) {
	m.t.Helper()
	for i, e := range m.awaitLog(event, len(by)) {
		if e.State != state || string(e.DecidedBy) != by[i] {
			m.t.Errorf("logged as %s: state %s, decided by %s; want %s by %s", event, e.State, e.DecidedBy, state, by[i])
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", e.Timestamp); err != nil || e.RequestID == "" || e.Target != session {
			m.t.Errorf("an entry lacks its particulars: %+v", e)
		}
	}
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
	if got := c.finish(); !slices.Equal(got, []string{"(no output)"}) || !c.made("made") {
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
	c := m.child("scout", bash("touch made && echo once"), bash("touch made && echo once"))
	m.review("scout")
	m.screen.Settled(t, "dialog-ask")
	m.press(allowForSession)
	time.Sleep(alive)
	m.screen.Settled(t, "dialog-scope")
	m.press(confirmScope)

	got := c.finish()
	if !slices.Equal(got, []string{"once\n", "once\n"}) && !slices.Equal(got, []string{"once", "once"}) || !c.made("made") {
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
	m.review("scout")
	m.press(allowForSession)
	time.Sleep(alive)
	m.press(wholeSession)
	time.Sleep(alive)
	m.screen.Settled(t, "dialog-whole-session")
	m.do("key", "Tab", "Tab", "space") // over Back to the button
	if got := first.finish(); !first.made("made") {
		t.Errorf("the model saw %q", got)
	}
	m.awaitLog("forwarded_permission.session_recorded", 1)
	m.decided("forwarded_permission.approved", "approved", byHuman)

	// Another child is let through by the grant, and nobody is asked.
	second := m.child("worker", bash("touch other"))
	if got := second.finish(); !second.made("other") {
		t.Errorf("the model saw %q", got)
	}
	m.decided("forwarded_permission.auto_approved", "approved", `{"kind":"session_approval","surface":"bash","pattern":"touch *"}`)
	m.awaitLog("forwarded_permission.prompted", 1)
	grants := m.grants()
	if len(grants) != 1 || grants[0].Surface != "bash" || grants[0].Pattern != "touch *" || grants[0].Hits != 1 || grants[0].SessionID != session {
		t.Fatalf("the grants: %+v", grants)
	}
	h.awaitItem("Grants (1)", "bash touch *", "since ")

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
	m.review("scout")
	m.press(denyWithReason)
	time.Sleep(alive)
	m.typeText(reason)
	m.screen.Settled(t, "dialog-reason")
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
