package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPageSaysWhatInstallDoes holds docs/agents.md against the settings that
// install writes, for the agents that no test drives; of the others the tests of
// livetest write what they see.
func TestPageSaysWhatInstallDoes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, a := range All() {
		if !strings.Contains(page, "`"+a.Name()+"`") || a.Name() != "generic" && !strings.Contains(page, "\n**"+a.Title()+"**") {
			t.Errorf("the page does not tell of %s", a.Title())
		}
	}
	commander := func(event string, _ time.Duration) []string { return []string{"nod", "hook", "x", event} }
	home := site{Home: "/home/dev", Config: "/home/dev/.config/nod", Getenv: func(string) string { return "" }}
	for _, a := range []installer{Cursor{}, Crush{}, Amp{}} {
		_, row, ok := strings.Cut(page, "\n| "+a.Title()+" |")
		if !ok {
			t.Errorf("the page has no row of %s", a.Title())
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		says := func(words string) {
			t.Helper()
			if !strings.Contains(row, words) {
				t.Errorf("%s: %q is missing in: %s", a.Title(), words, row)
			}
		}
		for _, p := range a.setup(home, Gated, commander).parts {
			if h, ok := p.element.(hookCommand); ok {
				says(p.path[len(p.path)-1])
				says("install writes 600 s")
				if h.FailClosed != strings.Contains(row, "failClosed") {
					t.Errorf("%s: whether it fails closed: %s", a.Title(), row)
				}
				if h.Timeout != 600 {
					t.Errorf("%s waits %d s", a.Title(), h.Timeout)
				}
				continue
			}
			says("delegate")
			says("within " + strings.TrimSuffix(Deadline(a.Timeout()).String(), "s") + " s")
		}
	}
}
