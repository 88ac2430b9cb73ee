//go:build linux

package e2e

import (
	"os/exec"
	"strings"
	"time"

	"github.com/nod-agents/nod/assets"
)

// alive is a little longer than a button that has just come up stays dead.
const alive = 700 * time.Millisecond

// The answering buttons of the ask window, by how often Shift+Tab goes back to
// them from nothing: they are its last.
const (
	allowOnce       = 1
	allowForSession = 2
	denyWithReason  = 3
	deny            = 4
)

// On the second page of an approval for the session.
const (
	confirmScope = 1
	wholeSession = 3 // the radio button, after Back
)

// xdotool does something on the screen, and returns what it printed.
func (m *machine) xdotool(args ...string) (string, error) {
	cmd := exec.Command("xdotool", args...)
	cmd.Env = append([]string{runMark}, m.env()...)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// windows are the titles of Nod's windows on the screen, by their ids.
func (m *machine) windows() map[string]string {
	all := map[string]string{}
	ids, err := m.xdotool("search", "--onlyvisible", "--class", "^"+assets.AppID+"$")
	if err != nil {
		return all // none
	}
	for _, id := range strings.Fields(ids) {
		if title, err := m.xdotool("getwindowname", id); err == nil {
			all[id] = title
		}
	}
	return all
}

// window waits for a window whose title has some text, and returns its id.
func (m *machine) window(title string) string {
	m.t.Helper()
	var found string
	eventually(m.t, "a window with the title "+title, func() bool {
		for id, name := range m.windows() {
			if strings.Contains(name, title) {
				found = id
			}
		}
		return found != ""
	})
	return found
}

// noWindow waits until there is none.
func (m *machine) noWindow() {
	m.t.Helper()
	eventually(m.t, "no window of Nod", func() bool { return len(m.windows()) == 0 })
}

// focus gives a window the keyboard, and waits until its buttons are alive.
func (m *machine) focus(window string) {
	m.t.Helper()
	m.do("windowactivate", "--sync", window)
	time.Sleep(alive)
}

func (m *machine) do(args ...string) {
	m.t.Helper()
	if out, err := m.xdotool(args...); err != nil {
		m.t.Fatalf("xdotool %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// press presses the button that Shift+Tab reaches in so many steps.
func (m *machine) press(button int) {
	m.t.Helper()
	for range button {
		m.do("key", "shift+Tab")
	}
	m.do("key", "space")
}

// typeText types text.
func (m *machine) typeText(text string) {
	m.t.Helper()
	m.do("type", "--delay", "5", text)
}
