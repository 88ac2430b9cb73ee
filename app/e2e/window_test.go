//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/nod-agents/nod/assets"
)

// alive is a little longer than a button of a notification that has just come
// up stays dead.
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

// window waits for a window whose title has some text to be drawn, and returns
// its id.
func (m *machine) window(title string) string {
	m.t.Helper()
	var found string
	eventually(m.t, "a window with the title "+title, func() bool {
		for id, name := range m.windows() {
			if strings.Contains(name, title) {
				found = id
			}
		}
		if found == "" {
			return false
		}
		pix, _, _ := m.pixels(found)
		return slices.ContainsFunc(pix, func(b byte) bool { return b > 200 }) // text
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
	time.Sleep(alive) // what is drawn may be older than what is there
	m.awaitAlive(window, onceButton)
}

// The widths of the button in the corner of the ask window, in pixels, at
// least: that is how a picture tells the pages apart.
const (
	onceButton    = 60  // Allow once
	reasonButton  = 120 // Deny with this reason
	scopeButton   = 120 // Allow for this subagent
	sessionButton = 185 // Allow for the whole session
)

// awaitAlive waits until the answering buttons of an ask window are alive, and
// the one in the corner is as wide as that. It is drawn in the theme's strong
// colour then. A page that was just asked for may take a while to be drawn, and
// the buttons of the one before look alive until then.
func (m *machine) awaitAlive(window string, wide int) {
	m.t.Helper()
	const row = 45 // pixels at the bottom that hold the buttons
	last := 0
	defer func() {
		if m.t.Failed() {
			m.t.Logf("the button in the corner is %d pixels wide", last)
		}
	}()
	eventually(m.t, "live buttons in "+window, func() bool {
		pix, width, height := m.pixels(window)
		strong := map[int]int{} // column to height
		for at := 3 * width * max(0, height-row); at < len(pix); at += 3 {
			if r, g, b := int(pix[at]), int(pix[at+1]), int(pix[at+2]); g-r > 80 && b-r > 60 {
				strong[at/3%width]++
			}
		}
		last = 0
		for _, tall := range strong {
			if tall > 8 {
				last++
			}
		}
		return last >= wide
	})
}

// pixels takes a picture of a window: red, green and blue, row by row.
func (m *machine) pixels(window string) (pix []byte, width, height int) {
	m.t.Helper()
	cmd := exec.Command("import", "-window", window, "-depth", "8", "ppm:-")
	cmd.Env = append([]string{runMark}, m.env()...)
	raw, err := cmd.Output()
	if err != nil {
		return nil, 0, 0 // it is gone
	}
	var top int
	if _, err := fmt.Sscanf(string(raw[:min(len(raw), 40)]), "P6\n%d %d\n%d\n", &width, &height, &top); err != nil || top != 255 {
		m.t.Fatalf("import made no picture: %v", err)
	}
	return raw[len(raw)-3*width*height:], width, height
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
