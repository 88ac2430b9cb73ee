//go:build !headless

package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

// full is a state with something of everything.
func (s *stage) full() pipe.Down {
	now := s.clock.now
	return pipe.Down{
		Type: "state", Total: 2,
		Asks: []pipe.Ask{s.ask(1), s.ask(2, func(q *engine.Question) { q.Principal.AgentName = "scout"; q.Value = "rm -rf ./build && make all" })},
		Grants: []pipe.Grant{
			{ID: "g1", SessionID: "desktop", Requester: "3f2a9c1e", Agent: "reviewer", Surface: "bash", Pattern: "git push *", Since: now.Add(-time.Hour)},
			{ID: "g2", SessionID: "desktop", Surface: "external_directory_read", Pattern: "/home/ada/.cargo/registry/*", Since: now.Add(-26 * time.Hour), Hits: 12, LastUse: now.Add(-time.Minute), Until: now.Add(time.Hour)},
			{ID: "g3", SessionID: "desktop", Surface: "mcp", Pattern: "exa_search", Since: now.Add(-2 * time.Hour), Hits: 1, LastUse: now},
		},
		Ended: []pipe.Ended{
			{Key: "8", Title: "reviewer wants to run a command", How: "allowed once (notification)", At: now.Add(-5 * time.Minute)},
			{Key: "9", Title: "scout wants to read a file", How: "denied (dialog): not yours to read", At: now.Add(-time.Minute)},
		},
		Problems: []string{"config.json, line 4: expected a comma. The last good policy is in use; mend the file."},
		Serving:  []string{"session desktop in ~/.pi/agent"},
	}
}

func (s *stage) openNod(d pipe.Down) {
	s.Receive(d)
	s.Receive(pipe.Down{Type: "show", View: "nod", Focus: true})
}

// nth finds the i-th visible button of that text on the Nod window.
func (s *stage) nth(text string, i int) *widget.Button {
	s.t.Helper()
	for _, o := range s.objects(s.nodWindow) {
		if b := buttonOf(o); b != nil && b.Text == text {
			if i--; i < 0 {
				return b
			}
		}
	}
	s.t.Fatalf("there is no such button %q", text)
	return nil
}

func TestTheGrantsAreShownWhenAskedFor(t *testing.T) {
	s := newStage(t)
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{s.ask(1)}, Total: 1, Grants: []pipe.Grant{{ID: "g", Surface: "bash", Pattern: "ls *"}}})
	s.Receive(pipe.Down{Type: "show", View: "nod", Focus: true})
	if at := s.nod.tabs.SelectedIndex(); at != 0 {
		t.Errorf("tab %d, want what waits", at)
	}
	s.Receive(pipe.Down{Type: "show", View: "nod", Key: pipe.GrantsKey, Focus: true})
	if at := s.nod.tabs.SelectedIndex(); at != 1 {
		t.Errorf("tab %d, want the grants", at)
	}
}

func TestOverviewShowsEverything(t *testing.T) {
	s := newStage(t)
	s.openNod(s.full())
	see := func(tab int, wants ...string) {
		t.Helper()
		s.nod.tabs.SelectIndex(tab)
		for _, want := range wants {
			s.sees(s.nodWindow, want)
		}
	}
	see(0, "2 asks wait.", "expected a comma", "Waiting (2)", "Grants (3)", "scout wants to run a command", "rm -rf ./build && make all", "since 14:30", "waits 10:00 more")
	see(1, "git push *", "on bash  ·  reviewer only, in session desktop", "since 13:30  ·  not used yet",
		"/home/ada/.cargo/registry/*", "the whole session desktop", "since Mar 4 12:30  ·  until 15:30  ·  12 hits, last at 14:29", "1 hit, last at 14:30")
	see(2, "scout wants to read a file", "14:29  ·  denied (dialog): not yours to read", "allowed once (notification)")
	see(3, "session desktop in ~/.pi/agent")
	for range 2 { // in whichever order they come
		if got := s.nod.ended.items[0].text; got != "scout wants to read a file" {
			t.Errorf("the newest is not first but %q", got)
		}
		d := s.full()
		slices.Reverse(d.Ended)
		s.Receive(d)
	}
}

func TestOverviewOfNothing(t *testing.T) {
	s := newStage(t)
	s.openNod(pipe.Down{Type: "state"})
	for i, want := range []string{"Nothing waits. When an agent asks", "No grants.", "Nothing was decided yet.", "No inbox is served."} {
		s.nod.tabs.SelectIndex(i)
		s.sees(s.nodWindow, want)
	}
	if !s.nod.clear.Disabled() {
		t.Error("there is nothing to revoke")
	}
}

func TestOverviewFollowsTheState(t *testing.T) {
	s := newStage(t)
	s.openNod(pipe.Down{Type: "state"})
	s.Receive(s.full())
	s.sees(s.nodWindow, "scout wants to run a command")
	s.clock.advance(time.Minute)
	s.sees(s.nodWindow, "waits 9:00 more")
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{s.ask(1), s.ask(2)}, Total: 57})
	s.sees(s.nodWindow, "57 asks wait, the first 2 are listed.")
	s.Receive(pipe.Down{Type: "state"})
	s.sees(s.nodWindow, "Nothing waits.")
	if strings.Contains(s.texts(s.nodWindow), "expected a comma") {
		t.Error("a mended problem is still told")
	}
}

func TestRevoke(t *testing.T) {
	for name, tc := range map[string]struct {
		click []string
		want  []pipe.Up
	}{
		"one":      {[]string{"Revoke", "Revoke"}, []pipe.Up{{Type: "revoke", Grant: "g2"}}},
		"not one":  {[]string{"Revoke", "Keep"}, nil},
		"all":      {[]string{"Revoke all", "Revoke all"}, []pipe.Up{{Type: "clear"}}},
		"not all":  {[]string{"Revoke all", "Keep"}, nil},
		"unasked":  {[]string{"Revoke"}, nil},
		"unasked*": {[]string{"Revoke all"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.openNod(s.full())
			s.nod.tabs.SelectIndex(1)
			first := 0
			if tc.click[0] == "Revoke" {
				first = 1 // of three grants the second
			}
			test.Tap(s.nth(tc.click[0], first))
			if top := s.nodWindow.Canvas().Overlays().Top(); top == nil {
				t.Fatal("no question")
			}
			s.wants()
			if len(tc.click) > 1 {
				for _, o := range test.LaidOutObjects(s.nodWindow.Canvas().Overlays().Top()) {
					if b := buttonOf(o); b != nil && b.Text == tc.click[1] {
						test.Tap(b)
					}
				}
				if s.nodWindow.Canvas().Overlays().Top() != nil {
					t.Error("the question stays")
				}
			}
			s.wants(tc.want...)
		})
	}
}

func TestPauseAndLog(t *testing.T) {
	s := newStage(t)
	s.openNod(s.full())
	test.Tap(s.button(s.nodWindow, "Pause"))
	s.wants(pipe.Up{Type: "pause", On: true})
	d := s.full()
	d.Paused = true
	s.Receive(d)
	s.sees(s.nodWindow, "Paused: asks wait and nothing pops up.")
	test.Tap(s.button(s.nodWindow, "Resume"))
	s.wants(pipe.Up{Type: "pause"})
	test.Tap(s.button(s.nodWindow, "Open log"))
	s.wants(pipe.Up{Type: "openlog"})
}

func TestReviewOpensTheAskWindow(t *testing.T) {
	s := newStage(t)
	s.openNod(s.full())
	test.Tap(s.nth("Review", 1))
	if !s.askShown {
		t.Fatal("the ask window is not shown")
	}
	s.sees(s.askWindow, "rm -rf ./build && make all")
	s.wants()
}

func TestHiddenIsSentWhenNothingIsInSight(t *testing.T) {
	s := newStage(t)
	s.openNod(s.full())
	s.Receive(pipe.Down{Type: "show", View: "ask", Key: "1", Focus: true})
	s.nodWindow.(*frame).onClose()
	s.wants()
	s.key(s.askWindow, fyne.KeyEscape)
	s.wants(pipe.Up{Type: "hidden"})
	s.Receive(pipe.Down{Type: "show", View: "nod"})
	s.key(s.nodWindow, fyne.KeyEscape)
	s.wants(pipe.Up{Type: "hidden"})
}

func TestACommandThatFailsIsTold(t *testing.T) {
	s := newStage(t)
	s.openNod(s.full())
	s.Receive(pipe.Down{Type: "result", Message: "no such grant"})
	s.sees(s.nodWindow, "no such grant")
	s.clock.advance(noteTime)
	if strings.Contains(s.texts(s.nodWindow), "no such grant") {
		t.Error("told for ever")
	}
}

func TestQuit(t *testing.T) {
	s := newStage(t)
	if !s.Receive(pipe.Down{Type: "state"}) || s.Receive(pipe.Down{Type: "quit"}) {
		t.Error("want quit, and nothing else, to end the process")
	}
}

func TestAStateWithoutAQuestionIsNoAsk(t *testing.T) {
	s := newStage(t)
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{{Key: "1"}, s.ask(2)}, Total: 2})
	s.Receive(pipe.Down{Type: "show", View: "ask"})
	s.sees(s.askWindow, "git push origin branch-2")
}
