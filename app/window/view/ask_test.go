//go:build !headless

package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"
	"pgregory.net/rapid"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

func answerOf(i string, v engine.Verdict, reason string) pipe.Up {
	return pipe.Up{Type: "answer", Key: i, Hash: "hash" + i, Verdict: v, Reason: reason}
}

// Every way through the dialog, and the answer at its end.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name string
		walk func(s *stage)
		want pipe.Up
	}{
		{"allow once", func(s *stage) { click(s.verb("Allow once")) }, answerOf("1", engine.Approved, "")},
		{"deny", func(s *stage) { click(s.verb("Deny")) }, answerOf("1", engine.Denied, "")},
		{"this subagent is preselected", func(s *stage) {
			click(s.verb("Allow for this session…"))
			s.clock.advance(deadTime)
			click(s.verb("Allow for this subagent"))
		}, answerOf("1", engine.ApprovedForSession, "")},
		{"the whole session", func(s *stage) {
			click(s.verb("Allow for this session…"))
			s.Screen.ask.choice.SetSelected(scopeSession)
			s.clock.advance(deadTime)
			click(s.verb("Allow for the whole session"))
		}, answerOf("1", engine.ApprovedForServingSession, "")},
		{"back and forth leaves the scope narrow", func(s *stage) {
			click(s.verb("Allow for this session…"))
			test.Tap(s.button(s.askWindow, "Back"))
			s.clock.advance(deadTime)
			click(s.verb("Allow for this session…"))
			s.clock.advance(deadTime)
			click(s.verb("Allow for this subagent"))
		}, answerOf("1", engine.ApprovedForSession, "")},
		{"deny with a reason", func(s *stage) {
			click(s.verb("Deny with reason…"))
			test.Type(s.Screen.ask.because, "  use a branch\nof your own \n")
			s.clock.advance(deadTime)
			click(s.verb("Deny with this reason"))
		}, answerOf("1", engine.DeniedWithReason, "use a branch\nof your own")},
		{"tap without a mouse", func(s *stage) { test.Tap(s.verb("Allow once")) }, answerOf("1", engine.Approved, "")},
		{"space on a focused button", func(s *stage) {
			s.askWindow.Canvas().Focus(s.verb("Deny"))
			s.key(s.askWindow, fyne.KeySpace)
		}, answerOf("1", engine.Denied, "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			s.open(s.ask(1), s.ask(2))
			tc.walk(s)
			s.wants(tc.want)
		})
	}
}

func TestASecondAnswerIsNotSent(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1), s.ask(2))
	once := s.verb("Allow once")
	click(once)
	s.clock.advance(2 * deadTime)
	click(once)
	click(s.verb("Deny"))
	s.wants(answerOf("1", engine.Approved, ""))
}

func TestNoScopeWithoutASuggestion(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1, func(q *engine.Question) { q.Suggestion = nil }), s.ask(2))
	if got := strings.Join(s.verbTexts(), "|"); got != "Deny|Deny with reason…|Allow once" {
		t.Errorf("offers %s", got)
	}
	s.step(1)
	if got := strings.Join(s.verbTexts(), "|"); got != "Deny|Deny with reason…|Allow for this session…|Allow once" {
		t.Errorf("offers %s", got)
	}
}

func TestScopeNamesEveryPattern(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1, func(q *engine.Question) {
		q.Suggestion = []engine.Grant{{Surface: "bash", Pattern: "cargo publish *"}, {Surface: "external_directory_read", Pattern: "/home/ada/\u202e.cargo/*"}}
	}))
	click(s.verb("Allow for this session…"))
	for _, want := range []string{"on bash", "cargo publish *", "on external_directory_read", `\u202E`, ".cargo/*", scopeSubagent, scopeSession} {
		s.sees(s.askWindow, want)
	}
	if s.Screen.ask.choice.Selected != scopeSubagent || s.Screen.ask.choice.Options[0] != scopeSubagent {
		t.Error("this subagent is not first and preselected")
	}
}

func TestReasonIsBounded(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1))
	click(s.verb("Deny with reason…"))
	s.clock.advance(deadTime)
	for _, tc := range []struct {
		reason string
		live   bool
	}{
		{"", false}, {" \n\t ", false}, {"x", true},
		{strings.Repeat("ü", reasonRunes), true}, {strings.Repeat("x", reasonRunes+1), false},
	} {
		s.Screen.ask.because.SetText(tc.reason)
		v := s.verb("Deny with this reason")
		if v.Disabled() == tc.live {
			t.Errorf("a reason of %d bytes: disabled is %v", len(tc.reason), v.Disabled())
		}
		if !tc.live {
			click(v)
			s.wants()
		}
	}
}

// dead fails unless none of the buttons does anything now, and all do when
// the dead time is over.
func (s *stage) dead(t *testing.T) {
	t.Helper()
	for _, left := range []time.Duration{deadTime, time.Millisecond} {
		s.clock.advance(deadTime - left - (deadTime - s.Screen.ask.guard.until.Sub(s.clock.now)))
		for _, text := range s.verbTexts() {
			v := s.verb(text)
			if !v.Disabled() {
				t.Errorf("%q looks alive %v before the end of the dead time", text, left)
			}
			click(v)
			test.Tap(v)
			s.askWindow.Canvas().Focus(v)
		}
	}
	s.wants()
	s.clock.advance(time.Millisecond)
	click(s.verb("Allow once"))
	if len(s.answers()) != 1 {
		t.Error("still dead after the dead time")
	}
	s.sent = nil
}

func TestDeadTime(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(s *stage)
	}{
		{"first shown", func(s *stage) {
			s.hideAsk()
			s.sent = nil
			s.Receive(pipe.Down{Type: "show", View: "ask", Key: "1"})
		}},
		{"got the keyboard", func(s *stage) { s.Foreground() }},
		{"another ask", func(s *stage) { s.step(1) }},
		{"brought up by the user", func(s *stage) { s.Receive(pipe.Down{Type: "show", View: "ask", Key: "2", Focus: true}) }},
		{"content changed under the same key", func(s *stage) {
			a := s.ask(1, func(q *engine.Question) { q.Value = "rm -rf /" })
			s.state(a, s.ask(2))
		}},
		{"hash changed", func(s *stage) {
			a := s.ask(1)
			a.Hash = "other"
			s.state(a, s.ask(2))
		}},
		{"back from another panel", func(s *stage) {
			click(s.verb("Deny with reason…"))
			test.Tap(s.button(s.askWindow, "Back"))
		}},
		{"a failed answer", func(s *stage) {
			click(s.verb("Allow once"))
			s.sent = nil
			s.Receive(pipe.Down{Type: "result", Key: "1", Message: "no"})
		}},
		{"the next ask after an answer", func(s *stage) {
			click(s.verb("Allow once"))
			s.sent = nil
			s.Receive(pipe.Down{Type: "result", Key: "1", OK: true})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			s.open(s.ask(1), s.ask(2))
			s.clock.advance(time.Minute)
			tc.do(s)
			s.dead(t)
		})
	}
}

func TestANewStateThatChangesNothingLeavesTheButtonsAlive(t *testing.T) {
	s := newStage(t)
	a, b := s.ask(1), s.ask(2)
	s.open(a, b)
	var again pipe.Ask // as it comes over the pipe: equal, not the same
	text, err := json.Marshal(a)
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.state(again, b, s.ask(3))
	if v := s.verb("Allow once"); v.Disabled() {
		t.Error("dead because another ask came in")
	}
	s.sees(s.askWindow, "ask 1 of 3")
}

// A press belongs to what was shown when it began.
func TestAPressDoesNotCarryOver(t *testing.T) {
	down := &desktop.MouseEvent{Button: desktop.MouseButtonPrimary}
	t.Run("pressed while dead", func(t *testing.T) {
		s := newStage(t)
		s.open(s.ask(1))
		s.Foreground()
		v := s.verb("Allow once")
		v.MouseDown(down)
		s.clock.advance(time.Minute)
		v.Tapped(&fyne.PointEvent{})
		s.wants()
	})
	t.Run("pressed on the ask before", func(t *testing.T) {
		s := newStage(t)
		s.open(s.ask(1), s.ask(2))
		v := s.verb("Allow once")
		v.MouseDown(down)
		s.step(1)
		s.clock.advance(time.Minute)
		v.Tapped(&fyne.PointEvent{})
		s.wants()
	})
	t.Run("space held over a change", func(t *testing.T) {
		s := newStage(t)
		s.open(s.ask(1), s.ask(2))
		s.askWindow.Canvas().Focus(s.verb("Allow once"))
		s.press(s.askWindow, fyne.KeySpace, 3)
		s.state(s.ask(1, func(q *engine.Question) { q.Value = "rm -rf /" }), s.ask(2))
		s.clock.advance(time.Minute)
		s.release(s.askWindow, fyne.KeySpace)
		s.wants()
	})
	t.Run("space pressed while dead", func(t *testing.T) {
		s := newStage(t)
		s.open(s.ask(1))
		s.askWindow.Canvas().Focus(s.verb("Allow once"))
		s.Foreground()
		s.press(s.askWindow, fyne.KeySpace, 0)
		s.clock.advance(time.Minute)
		s.release(s.askWindow, fyne.KeySpace)
		s.wants()
	})
	t.Run("space held repeats nothing", func(t *testing.T) {
		s := newStage(t)
		s.open(s.ask(1), s.ask(2))
		s.askWindow.Canvas().Focus(s.verb("Allow once"))
		s.press(s.askWindow, fyne.KeySpace, 50)
		s.wants()
	})
}

func TestTypingProlongsTheDeadTime(t *testing.T) {
	s := newStage(t)
	s.state(s.ask(1))
	s.Receive(pipe.Down{Type: "show", View: "ask", Key: "1"})
	for range 20 {
		s.clock.advance(deadTime / 2)
		s.key(s.askWindow, fyne.KeyA)
	}
	if !s.verb("Allow once").Disabled() {
		t.Error("came alive under somebody's typing")
	}
	s.clock.advance(deadTime)
	if s.verb("Allow once").Disabled() {
		t.Error("still dead")
	}
}

func TestTypingOnAButtonProlongsTheDeadTime(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1))
	s.askWindow.Canvas().Focus(s.verb("Allow once"))
	s.Foreground()
	for range 20 {
		s.clock.advance(deadTime / 2)
		s.key(s.askWindow, fyne.KeySpace)
	}
	s.wants()
}

var keys = []fyne.KeyName{fyne.KeyReturn, fyne.KeyEnter, fyne.KeySpace, fyne.KeyTab, fyne.KeyEscape, fyne.KeyY, fyne.KeyUp, fyne.KeyDown, fyne.KeyPageDown, fyne.KeyHome}

// No sequence of keys answers while the window is as new as a blink.
func TestNoKeysAnswerInTheDeadTime(t *testing.T) {
	s := newStage(t)
	rapid.Check(t, func(rt *rapid.T) {
		s.state(s.ask(1), s.ask(2))
		s.Receive(pipe.Down{Type: "show", View: "ask", Key: "1", Focus: true})
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(keys[:4]), 1, 40).Draw(rt, "keys") {
			s.press(s.askWindow, k, rapid.IntRange(0, 2).Draw(rt, "repeats"))
			if rapid.Bool().Draw(rt, "release") {
				s.release(s.askWindow, k)
			}
			left := s.Screen.ask.guard.until.Sub(s.clock.now)
			s.clock.advance(time.Duration(rapid.Int64Range(0, int64(left)-1).Draw(rt, "pause")))
		}
		if a := s.answers(); len(a) > 0 {
			rt.Fatalf("answered %v", a)
		}
		s.hideAsk()
	})
}

// Enter approves nothing, ever; nor does any key but the space bar, and that
// only on a button that the person went to.
func TestOnlyTheSpaceBarOnAFocusedButtonAnswers(t *testing.T) {
	s := newStage(t)
	rapid.Check(t, func(rt *rapid.T) {
		s.sent = nil
		s.open(s.ask(1), s.ask(2), s.ask(3))
		defer func() {
			if s.askShown {
				s.hideAsk()
			}
		}()
		for range rapid.IntRange(1, 40).Draw(rt, "n") {
			k := rapid.SampledFrom(keys).Draw(rt, "key")
			on, focused := s.askWindow.Canvas().Focused().(*verb)
			before := len(s.answers())
			s.press(s.askWindow, k, rapid.IntRange(0, 2).Draw(rt, "repeats"))
			s.release(s.askWindow, k)
			s.clock.advance(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "pause")))
			if after := s.answers(); len(after) > before && (k != fyne.KeySpace || !focused || len(after) > before+1) {
				rt.Fatalf("%s answered %v (on %v)", k, after[before:], on)
			}
			if !s.askShown {
				break
			}
		}
	})
}

func TestNothingHasTheFocusAtFirst(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1), s.ask(2))
	if f := s.askWindow.Canvas().Focused(); f != nil {
		t.Errorf("%T has the focus", f)
	}
	s.askWindow.Canvas().Focus(s.verb("Allow once"))
	s.step(1)
	if f := s.askWindow.Canvas().Focused(); f != nil {
		t.Errorf("%T has the focus after another ask came", f)
	}
	// The way to an approval leads past the ways to deny.
	s.clock.advance(deadTime)
	var order []string
	for range 12 {
		s.askWindow.Canvas().FocusNext()
		if v, ok := s.askWindow.Canvas().Focused().(*verb); ok {
			order = append(order, v.Text)
		}
	}
	if got := strings.Join(order, "|"); !strings.HasPrefix(got, "Deny|Deny with reason…|Allow for this session…|Allow once") {
		t.Errorf("tab order %s", got)
	}
}

// Closing, in whatever state, answers nothing.
// Escape closes the window whatever has the focus.
func TestEscapeOnAButton(t *testing.T) {
	for name, button := range map[string]func(v *askView) fyne.Focusable{
		"of the sheet": func(v *askView) fyne.Focusable { return v.sheet.strip },
		"that answers": func(v *askView) fyne.Focusable { return v.deny },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.open(s.ask(1, func(q *engine.Question) { q.Value = strings.Repeat("x\n", 100) }))
			s.askWindow.Canvas().Focus(button(s.Screen.ask))
			s.key(s.askWindow, fyne.KeyEscape)
			s.wants(pipe.Up{Type: "hidden"})
		})
	}
}

// Escape leaves the field of the reason, not the ask, and what was typed stays.
func TestEscapeLeavesTheReason(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1))
	click(s.verb("Deny with reason…"))
	s.Screen.ask.because.SetText("no")
	s.key(s.askWindow, fyne.KeyEscape)
	if !s.askWindow.(*frame).visible || !s.Screen.ask.verbs.Visible() || s.Screen.ask.because.Text != "no" {
		t.Error("not back at the answers, or the reason is gone")
	}
	s.wants()
}

func TestClosingAnswersNothing(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(s *stage)
	}{
		{"at once", func(*stage) {}},
		{"in the scope question", func(s *stage) { click(s.verb("Allow for this session…")) }},
		{"in the scope question, whole session chosen", func(s *stage) {
			click(s.verb("Allow for this session…"))
			s.Screen.ask.choice.SetSelected(scopeSession)
		}},
		{"with a reason typed", func(s *stage) {
			click(s.verb("Deny with reason…"))
			s.Screen.ask.because.SetText("no")
		}},
	} {
		for way, closes := range map[string]func(s *stage){
			"button": func(s *stage) { s.askWindow.(*frame).onClose() },
			"escape": func(s *stage) {
				s.askWindow.Canvas().Unfocus()
				s.key(s.askWindow, fyne.KeyEscape)
			},
			"escape while reading": func(s *stage) {
				s.askWindow.Canvas().Focus(s.Screen.ask.sheet.page)
				s.key(s.askWindow, fyne.KeyEscape)
			},
		} {
			t.Run(tc.name+", "+way, func(t *testing.T) {
				s := newStage(t)
				s.open(s.ask(1))
				tc.do(s)
				closes(s)
				s.wants(pipe.Up{Type: "hidden"})
				if s.askWindow.(*frame).visible {
					t.Error("still visible")
				}
				// It comes back as new.
				s.Receive(pipe.Down{Type: "show", View: "ask", Key: "1", Focus: true})
				if got := strings.Join(s.verbTexts(), "|"); !strings.HasSuffix(got, "Allow once") {
					t.Errorf("came back with %s", got)
				}
				s.clock.advance(time.Minute)
				s.wants()
			})
		}
	}
}

func TestWithdrawn(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1))
	s.Receive(pipe.Down{Type: "state", Ended: []pipe.Ended{{Key: "1", Title: "t", How: "withdrawn: The agent took it back.", At: s.clock.now}}})
	s.sees(s.askWindow, "Withdrawn: The agent took it back.")
}

func TestAnsweredElsewhere(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1), s.ask(2))
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{s.ask(2)}, Total: 1, Ended: []pipe.Ended{{Key: "1", Title: "t", How: "denied (terminal)", At: s.clock.now}}})
	s.sees(s.askWindow, "Answered elsewhere: denied (terminal)")
	s.sees(s.askWindow, "git push origin branch-1")
	for _, v := range s.verbTexts() {
		click(s.verb(v))
	}
	s.clock.advance(endedTime - time.Millisecond)
	for _, v := range s.verbTexts() {
		click(s.verb(v))
	}
	s.wants()
	s.clock.advance(time.Millisecond)
	s.sees(s.askWindow, "git push origin branch-2")
	s.dead(t)
}

func TestTheLastAskEndsElsewhere(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1))
	s.state()
	s.sees(s.askWindow, "no longer waits")
	s.wants()
	s.clock.advance(endedTime)
	s.wants(pipe.Up{Type: "hidden"})
	if s.askWindow.(*frame).visible {
		t.Error("an empty window stays")
	}
}

// The answer of this window is not reported as somebody else's, in whichever
// order the resident tells.
func TestOwnAnswer(t *testing.T) {
	for _, order := range []string{"result state", "state result"} {
		t.Run(order, func(t *testing.T) {
			s := newStage(t)
			s.open(s.ask(1), s.ask(2))
			click(s.verb("Deny"))
			s.wants(answerOf("1", engine.Denied, ""))
			for _, step := range strings.Fields(order) {
				if step == "state" {
					s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{s.ask(2)}, Total: 1, Ended: []pipe.Ended{{Key: "1", How: "denied (dialog)"}}})
				} else {
					s.Receive(pipe.Down{Type: "result", Key: "1", OK: true})
				}
				if strings.Contains(s.texts(s.askWindow), "elsewhere") {
					t.Error("reported as answered elsewhere")
				}
			}
			s.sees(s.askWindow, "git push origin branch-2")
			click(s.verb("Deny"))
			s.dead(t)
		})
	}
}

func TestALateAnswerIsAVisibleNoOp(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1), s.ask(2))
	click(s.verb("Allow once"))
	s.wants(answerOf("1", engine.Approved, ""))
	s.state(s.ask(2))
	s.Receive(pipe.Down{Type: "result", Key: "1", Message: "too late: already denied (terminal)"})
	s.sees(s.askWindow, "too late: already denied (terminal)")
	click(s.verb("Allow once"))
	s.wants()
	s.clock.advance(endedTime)
	s.sees(s.askWindow, "git push origin branch-2")
}

// With more asks than a state lists, one that is not listed waits on.
func TestAnAskBeyondTheListStays(t *testing.T) {
	s := newStage(t)
	a := s.ask(1)
	s.open(a, s.ask(2))
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{s.ask(2), s.ask(3)}, Total: 3})
	s.sees(s.askWindow, "git push origin branch-1")
	click(s.verb("Deny"))
	s.wants(answerOf("1", engine.Denied, ""))
	s.Receive(pipe.Down{Type: "result", Key: "1", OK: true})
	s.sees(s.askWindow, "git push origin branch-2")
}

// A window that somebody reads is not taken over by what merely comes in.
func TestShowDoesNotTakeTheReadersAsk(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1), s.ask(2))
	s.Receive(pipe.Down{Type: "show", View: "ask", Key: "2"})
	s.sees(s.askWindow, "git push origin branch-1")
	if s.verb("Allow once").Disabled() {
		t.Error("dead though nothing changed")
	}
	s.Receive(pipe.Down{Type: "show", View: "ask", Key: "2", Focus: true})
	s.sees(s.askWindow, "git push origin branch-2")
}

func TestReviewOfAnAskThatIsGone(t *testing.T) {
	s := newStage(t)
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{s.ask(2)}, Total: 1, Ended: []pipe.Ended{{Key: "1", Title: "reviewer wants to run a command", How: "allowed once (notification)"}}})
	s.Receive(pipe.Down{Type: "show", View: "ask", Key: "1", Focus: true})
	s.sees(s.askWindow, "reviewer wants to run a command")
	s.sees(s.askWindow, "Answered elsewhere: allowed once (notification)")
	s.clock.advance(2 * deadTime)
	for _, v := range s.verbTexts() {
		click(s.verb(v))
	}
	s.wants()
	s.clock.advance(endedTime - 2*deadTime)
	s.sees(s.askWindow, "git push origin branch-2")
	s.dead(t)
}

func TestShowWithoutAnyAskShowsTheNodWindow(t *testing.T) {
	s := newStage(t)
	s.state()
	s.Receive(pipe.Down{Type: "show", View: "ask"})
	if s.nodWindow == nil || !s.nodWindow.(*frame).visible || s.askWindow.(*frame).visible {
		t.Error("want the Nod window, and no empty ask window")
	}
}

func TestQueue(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1), s.ask(2), s.ask(3))
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{s.ask(1), s.ask(2), s.ask(3)}, Total: 57})
	s.sees(s.askWindow, "ask 1 of 57")
	a := s.Screen.ask
	if !a.previous.Disabled() || a.next.Disabled() {
		t.Error("the first of three: previous must be dead and next alive")
	}
	test.Tap(a.next)
	test.Tap(a.next)
	s.sees(s.askWindow, "ask 3 of 57")
	if a.previous.Disabled() || !a.next.Disabled() {
		t.Error("the last that is known: previous must be alive and next dead")
	}
	s.step(1)
	s.sees(s.askWindow, "ask 3 of 57")
	if got := s.askWindow.Title(); got != "reviewer: bash - Nod" {
		t.Errorf("title %q", got)
	}
}

func TestCountdownTicksOnlyWhileVisible(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1))
	s.clock.advance(time.Second - deadTime)
	s.sees(s.askWindow, "waits 9:59 more")
	s.clock.advance(time.Minute)
	s.sees(s.askWindow, "waits 8:59 more")
	s.clock.advance(10 * time.Minute)
	s.sees(s.askWindow, "has stopped waiting")
	if s.verb("Allow once").Disabled() {
		t.Error("the countdown stopped something")
	}
	s.hideAsk()
	s.clock.advance(time.Hour)
	if n := len(s.clock.timers); n != 0 {
		t.Errorf("%d timers run while nothing is in sight", n)
	}
}

func TestWhy(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                             "Asks because no rule matches on bash.",
		"git *":                        "Asks because of the rule “git *” on bash.",
		"<opaque-bash-wrapper>":        "hides what it runs",
		"<indirection-bash-wrapper>":   "through a wrapper",
		"<computed-bash-command>":      "only computed when it runs",
		"<unparseable-bash-command>":   "cannot be read",
		"<something-new>":              "whatever the rules allow: something new.",
		"evil\u202e\n*":                `“evil\u202E\n*”`,
		strings.Repeat("x", 500) + "!": "x!”",
	} {
		if got := why(&engine.Question{Surface: "bash", Pattern: pattern, Intent: &engine.Intent{}}); !strings.Contains(got, want) {
			t.Errorf("why of %q is %q, want %q in it", pattern, got, want)
		}
	}
}

// A child of generation 1 sends no facts, so no rule can have been asked.
func TestWhyWithoutFacts(t *testing.T) {
	if got := why(&engine.Question{Surface: "bash"}); !strings.Contains(got, "too few facts") {
		t.Errorf("got %q", got)
	}
	if got := why(&engine.Question{Surface: "bash", Pattern: "*"}); !strings.Contains(got, "rule “*”") {
		t.Errorf("got %q", got)
	}
}

func lying(q *engine.Question) {
	lie := "\x1b[31mred\x1b[0m \u202egpj\u202c\u200b\x00\r\u2066\U000e0041\u3164 日本語 g\u0456t"
	detail := "/etc/" + lie
	q.Value, q.Pattern, q.Tool, q.RequesterCwd, q.SessionID = lie, lie, lie, "/home/"+lie, lie
	q.Principal = engine.Principal{SessionID: lie, AgentName: lie}
	q.Message, q.ExecutedUnit, q.CommandContext = lie+"m", lie+"u", lie+"c"
	q.Evidence = []engine.Evidence{{Label: lie, Text: lie + "e", Detail: &detail}}
	q.Annotations = []engine.Annotation{{Source: lie, Text: lie + "a"}}
	q.Suggestion = []engine.Grant{{Surface: lie, Pattern: lie}}
	q.Hops = []string{lie}
}

// Nothing of an agent reaches the screen unescaped, on any panel or window.
func TestNoLyingTextOnScreen(t *testing.T) {
	s := newStage(t)
	a := s.ask(1, lying)
	lie := a.Question.Value
	a.Notes = []string{lie}
	s.open(a)
	s.Receive(pipe.Down{Type: "state", Asks: []pipe.Ask{a}, Total: 1,
		Grants:   []pipe.Grant{{ID: "g", SessionID: lie, Requester: lie, Agent: lie, Surface: lie, Pattern: lie}},
		Ended:    []pipe.Ended{{Key: "9", Title: lie, How: lie}},
		Problems: []string{lie}, Serving: []string{lie}})
	s.Receive(pipe.Down{Type: "show", View: "nod"})

	check := func(w interface{ Title() string }, text string) {
		t.Helper()
		for _, r := range text + w.Title() {
			if r != '\n' && !unicode.IsPrint(r) || r == 0x3164 || r == 0x0456 {
				t.Errorf("%U is on screen in %q", r, text)
				return
			}
		}
	}
	check(s.askWindow, s.texts(s.askWindow))
	s.sees(s.askWindow, `\x1B[31mred`)
	s.sees(s.askWindow, "11 ")
	s.Screen.ask.sheet.key(fyne.KeyEnd)
	check(s.askWindow, s.texts(s.askWindow))
	s.sees(s.askWindow, "written by the model")
	click(s.verb("Allow for this session…"))
	check(s.askWindow, s.texts(s.askWindow))
	for i := range s.nod.tabs.Items {
		s.nod.tabs.SelectIndex(i)
		check(s.nodWindow, s.texts(s.nodWindow))
	}
	s.nod.revoke(0)
	check(s.nodWindow, s.texts(s.nodWindow))
	s.Receive(pipe.Down{Type: "result", Message: lie})
	check(s.nodWindow, s.texts(s.nodWindow))
	s.Receive(pipe.Down{Type: "state", Ended: []pipe.Ended{{Key: "1", Title: lie, How: lie}}})
	check(s.askWindow, s.texts(s.askWindow))
}

// An escape is drawn in a colour of its own, the same text typed is not.
func TestEscapesAreTold(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1, func(q *engine.Question) { q.Value = "a\u202eb \\u202E" }))
	var marked, plain int
	for _, o := range s.objects(s.askWindow) {
		if x, ok := o.(*canvas.Text); ok && strings.Contains(x.Text, `\u202E`) {
			if x.Color == colour(s.Screen.ask.sheet, colourEscape) {
				marked++
			} else {
				plain++
			}
		}
	}
	if marked != 1 || plain != 1 {
		t.Errorf("%d marked and %d plain, want one of each", marked, plain)
	}
}

func TestZoom(t *testing.T) {
	s := newStage(t)
	s.open(s.ask(1))
	sc, ok := s.askWindow.Canvas().(fyne.Shortcutable)
	if !ok {
		t.Skip("the test canvas takes no shortcuts")
	}
	for _, k := range []fyne.KeyName{fyne.KeyEqual, fyne.KeyMinus, fyne.Key0} {
		sc.TypedShortcut(&desktop.CustomShortcut{KeyName: k, Modifier: fyne.KeyModifierShortcutDefault})
	}
	if len(s.zooms) != 3 {
		t.Errorf("zoomed %v", s.zooms)
	}
}
