//go:build linux

package livetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/notify/notifytest"
)

// serveDesktop starts a Nod in the tray of a desktop of its own, whose asks are
// shown by xfce4-notifyd.
func (w *world) serveDesktop() *notifytest.Screen {
	w.t.Helper()
	bus := notifytest.StartBus(w.t)
	screen := notifytest.StartXvfb(w.t, bus, 1024, 600, true)
	notifytest.StartXfceNotifyd(w.t, screen)
	w.serveWith([]string{"DISPLAY=" + screen.Display, "DBUS_SESSION_BUS_ADDRESS=" + bus.Address, "XDG_SESSION_TYPE=x11", "XDG_CURRENT_DESKTOP=X-Generic"},
		"--frontend", "desktop")
	return screen
}

// allow clicks on Allow in the one notification that is shown. It has three
// buttons, which take no click in the first moments.
func allow(t *testing.T, screen *notifytest.Screen) {
	t.Helper()
	eventually(t, "a notification", func() bool { return len(screen.Notifications(t)) == 1 })
	time.Sleep(700 * time.Millisecond)
	screen.ClickNotificationButton(t, 1, 3)
}

// decision is an entry of the review log.
type decision struct {
	Event     string          `json:"event"`
	Agent     string          `json:"requesterAgentName"`
	Value     string          `json:"value"`
	DecidedBy json.RawMessage `json:"decidedBy"`
}

// decisions are the entries of one event in the review log.
func (w *world) decisions(event string) []decision {
	w.t.Helper()
	f, err := os.Open(filepath.Join(w.home, ".local", "state", "nod", "review.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	var all []decision
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var d decision
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			w.t.Fatalf("%v: %s", err, lines.Text())
		}
		if d.Event == event {
			all = append(all, d)
		}
	}
	return all
}

// approvedByClick plays the agent while a human clicks on Allow.
func approvedByClick(t *testing.T, w *world) string {
	screen := w.serveDesktop()
	done := w.start()
	allow(t, screen)
	ran(t, w, done(), "one")
	eventually(t, "the log of the decision", func() bool { return len(w.decisions("forwarded_permission.approved")) > 0 })
	if list := w.decisions("forwarded_permission.approved"); len(list) != 1 || list[0].Agent != w.c.name || !strings.HasPrefix(list[0].Value, "touch ") ||
		string(list[0].DecidedBy) != `{"kind":"user","via":"dialog"}` {
		t.Errorf("decided %+v", list)
	}
	return "runs"
}
