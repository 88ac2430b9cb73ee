//go:build !headless

package tray

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

// supervise runs the supervisor of window processes until the test ends.
func supervise(t *testing.T, n *node, change func(*Config)) (*windows, *windowsAt, *logged) {
	t.Helper()
	at := listenForWindows(t)
	log := &logged{}
	c := Config{Node: n, Window: at.argv(), Env: at.env(), Now: time.Now, Log: log.logger()}
	c.timing.again = 10 * time.Millisecond
	if change != nil {
		change(&c)
	}
	c.timing = c.timing.orReal()
	w := newWindows(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, cancel)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the supervisor does not end")
		}
	})
	return w, at, log
}

func TestAWindowIsFedAndHeard(t *testing.T) {
	n := newNode()
	a, b := n.add("scout", "ls"), n.add("worker", "rm -rf build")
	n.problems = []string{"mend this"}
	n.grants = []pipe.Grant{{ID: "7", Surface: "bash", Pattern: "ls *"}}
	w, at, log := supervise(t, n, nil)
	at.none()
	w.show(viewAsk, a.Key, "token-1")
	s := at.next()
	if s.hello[1] != "token-1" || s.hello[2] != "on" {
		t.Errorf("the window's environment: %v", s.hello)
	}
	d := s.told("a state", func(d pipe.Down) bool { return d.Type == "state" })
	if len(d.Asks) != 2 || d.Total != 2 || d.Asks[0].Key != a.Key || d.Asks[0].Hash != a.Hash || d.Asks[0].Question.Value != "ls" ||
		len(d.Grants) != 1 || len(d.Problems) != 1 || len(d.Serving) != 1 || d.Paused {
		t.Errorf("the first state: %+v", d)
	}
	s.shown(viewAsk, a.Key)

	// Answers that decide nothing.
	for _, u := range []pipe.Up{
		{Key: a.Key, Hash: "other", Verdict: engine.Approved},
		{Key: a.Key, Verdict: engine.Approved},
		{Key: "99", Hash: a.Hash, Verdict: engine.Approved},
		{Key: a.Key, Hash: b.Hash, Verdict: engine.Approved},
		{Key: a.Key, Hash: a.Hash, Verdict: engine.Unavailable},
		{Key: a.Key, Hash: a.Hash},
	} {
		u.Type = "answer"
		s.says(u)
		if r := s.result(); r.OK || r.Message == "" || r.Key != u.Key {
			t.Errorf("%+v gave %+v", u, r)
		}
	}
	if n.board.Len() != 2 {
		t.Fatal("one of them decided")
	}

	s.says(pipe.Up{Type: "answer", Key: a.Key, Hash: a.Hash, Verdict: engine.ApprovedForServingSession})
	if r := s.result(); !r.OK || r.Key != a.Key || r.Message != "allowed for the whole session" {
		t.Errorf("result %+v", r)
	}
	if e := n.end(t, a.Key); e.Decision.Verdict != engine.ApprovedForServingSession || e.View != "dialog" {
		t.Errorf("ended as %+v", e)
	}
	s.told("the rest", func(d pipe.Down) bool {
		return d.Type == "state" && d.Total == 1 && len(d.Ended) == 1 && d.Ended[0].How == "allowed for the whole session (dialog)"
	})
	s.says(pipe.Up{Type: "answer", Key: a.Key, Hash: a.Hash, Verdict: engine.Denied})
	if r := s.result(); r.OK || !strings.HasPrefix(r.Message, "Too late: allowed for the whole session") {
		t.Errorf("a late answer: %+v", r)
	}
	s.says(pipe.Up{Type: "answer", Key: b.Key, Hash: b.Hash, Verdict: engine.DeniedWithReason, Reason: "use make"})
	s.result()
	if e := n.end(t, b.Key); e.Decision.Reason != "use make" {
		t.Errorf("ended as %+v", e)
	}

	s.says(pipe.Up{Type: "revoke", Grant: "8"})
	if r := s.result(); r.OK {
		t.Error("revoked what is not there")
	}
	s.says(pipe.Up{Type: "revoke", Grant: "7"})
	if r := s.result(); !r.OK || len(n.Grants()) != 0 {
		t.Errorf("revoking: %+v", r)
	}
	n.change(func() { n.grants = []pipe.Grant{{ID: "8"}, {ID: "9"}} })
	s.told("the grants", func(d pipe.Down) bool { return d.Type == "state" && len(d.Grants) == 2 })
	s.says(pipe.Up{Type: "clear"})
	if r := s.result(); !r.OK || len(n.Grants()) != 0 {
		t.Errorf("clearing: %+v", r)
	}
	s.says(pipe.Up{Type: "pause", On: true})
	s.told("the pause", func(d pipe.Down) bool { return d.Type == "state" && d.Paused })
	s.says(pipe.Up{Type: "pause"})
	s.told("the end of the pause", func(d pipe.Down) bool { return d.Type == "state" && !d.Paused })
	s.says(pipe.Up{Type: "sudo\x1b"})
	eventually(t, "the log", func() bool { return strings.Contains(log.String(), `sudo\x1B`) })
}

// What leads to a window and from it cannot be opened by another process of the
// same user, as a pipe could by its name below /proc.
func TestNobodyElseSpeaksForAWindow(t *testing.T) {
	n := newNode()
	a := n.add("scout", "rm -rf build")
	w, at, _ := supervise(t, n, nil)
	w.show(viewAsk, a.Key, "")
	s := at.next()
	s.told("a state", func(d pipe.Down) bool { return d.Type == "state" })
	for fd := range 2 {
		name := fmt.Sprintf("/proc/%s/fd/%d", s.hello[0], fd)
		if _, err := os.Readlink(name); err != nil {
			t.Fatal(err) // the window has no such descriptor
		}
		for _, mode := range []int{os.O_RDONLY, os.O_WRONLY} {
			if f, err := os.OpenFile(name, mode|syscall.O_NONBLOCK, 0); err == nil {
				f.Close()
				t.Errorf("%s of the window was opened by name (mode %d)", name, mode)
			}
		}
	}
	if n.board.Get(a.Key) == nil {
		t.Error("the ask ended")
	}
}

func TestALongQueueIsCutButNotWhatIsShown(t *testing.T) {
	n := newNode()
	var last *board.Ask
	for i := range 500 {
		last = n.add(fmt.Sprint("agent", i%3), fmt.Sprint("cmd ", i))
	}
	w, at, _ := supervise(t, n, nil)
	w.show(viewAsk, last.Key, "")
	s := at.next()
	d := s.told("a state", func(d pipe.Down) bool { return d.Type == "state" })
	if len(d.Asks) != stateAsks || d.Total != 500 || d.Asks[stateAsks-1].Key != last.Key {
		t.Errorf("%d asks of %d, the last is %s", len(d.Asks), d.Total, d.Asks[len(d.Asks)-1].Key)
	}
	if d.Asks[0].Key != n.board.Pending()[0].Key {
		t.Error("the queue does not begin at its head")
	}
}

func TestHugeAsksFitTheLine(t *testing.T) {
	n := newNode()
	for i := range 60 {
		n.add(fmt.Sprint("agent", i), strings.Repeat("<", 150<<10)+fmt.Sprint(i))
	}
	shown := n.board.Pending()[30]
	w, at, _ := supervise(t, n, nil)
	w.show(viewAsk, shown.Key, "")
	s := at.next()
	d := s.told("a state", func(d pipe.Down) bool { return d.Type == "state" })
	has := false
	for _, a := range d.Asks {
		has = has || a.Key == shown.Key
	}
	if len(d.Asks) == 0 || len(d.Asks) > 10 || d.Total != 60 || !has {
		t.Errorf("%d huge asks of %d in one state, the shown one: %v", len(d.Asks), d.Total, has)
	}
}

func TestManyChangesAreFewStates(t *testing.T) {
	n := newNode()
	w, at, _ := supervise(t, n, nil)
	w.show(viewNod, "", "")
	s := at.next()
	s.shown(viewNod, "")
	for i := range 1000 {
		n.add("scout", fmt.Sprint(i))
	}
	states := 0
	s.told("the last state", func(d pipe.Down) bool { states++; return d.Total == 1000 })
	if states > 200 {
		t.Errorf("1000 changes were told in %d states", states)
	}
}

func TestAWindowThatDies(t *testing.T) {
	for _, how := range []string{"!exit 2 something broke", "!kill", "nonsense", `!half {"type":"answer","key":"1","hash":"hash-ls","verd`} {
		t.Run(how, func(t *testing.T) {
			n := newNode()
			a := n.add("scout", "ls")
			w, at, log := supervise(t, n, nil)
			w.show(viewAsk, a.Key, "")
			s := at.next()
			s.shown(viewAsk, a.Key)
			s.does(how)
			if strings.HasPrefix(how, "!half") {
				s.does("!kill")
			}
			s.gone()
			again := at.next()
			again.shown(viewAsk, a.Key)
			if n.board.Get(a.Key) == nil {
				t.Fatal("the ask is gone")
			}
			again.says(pipe.Up{Type: "answer", Key: a.Key, Hash: a.Hash, Verdict: engine.Approved})
			n.end(t, a.Key)
			if strings.HasPrefix(how, "!exit") && !strings.Contains(log.String(), "something broke") {
				t.Errorf("the log does not say why: %s", log)
			}
		})
	}
	t.Run("right behind its answer", func(t *testing.T) {
		n := newNode()
		a := n.add("scout", "ls")
		w, at, _ := supervise(t, n, nil)
		w.show(viewAsk, a.Key, "")
		s := at.next()
		s.says(pipe.Up{Type: "answer", Key: a.Key, Hash: a.Hash, Verdict: engine.Denied})
		s.does("!exit 1")
		if e := n.end(t, a.Key); e.Decision.Verdict != engine.Denied {
			t.Errorf("ended as %+v", e)
		}
		at.next().shown(viewAsk, a.Key)
	})
	t.Run("by itself, in order, after it was closed", func(t *testing.T) {
		n := newNode()
		w, at, _ := supervise(t, n, nil)
		w.show(viewNod, "", "")
		s := at.next()
		s.shown(viewNod, "")
		s.does("!exit 0")
		s.gone()
		at.none()
		w.show(viewNod, "", "")
		at.next().shown(viewNod, "")
	})
	t.Run("while hidden", func(t *testing.T) {
		n := newNode()
		w, at, _ := supervise(t, n, nil)
		w.show(viewNod, "", "")
		s := at.next()
		s.shown(viewNod, "")
		s.says(pipe.Up{Type: "hidden"})
		eventually(t, "the hiding", func() bool { return !w.isVisible() })
		s.does("!exit 1")
		s.gone()
		at.none()
	})
}

func TestAWindowThatKeepsDying(t *testing.T) {
	n := newNode()
	a := n.add("scout", "ls")
	w, at, _ := supervise(t, n, nil)
	w.show(viewAsk, a.Key, "")
	for range restarts + 1 {
		s := at.nextUnready()
		s.does("!exit 1 panic: no display")
		s.gone()
	}
	eventually(t, "the problem", func() bool { return strings.Contains(w.problem(), "no display") })
	select {
	case <-w.changed:
	case <-time.After(patience):
		t.Error("nobody was told of the problem")
	}
	at.none()
	if n.board.Get(a.Key) == nil {
		t.Fatal("the ask is gone")
	}
	w.show(viewAsk, a.Key, "") // the user tries again
	at.next().shown(viewAsk, a.Key)
	eventually(t, "the problem to go", func() bool { return w.problem() == "" })
}

func TestAWindowThatNobodySees(t *testing.T) {
	n := newNode()
	w, at, _ := supervise(t, n, func(c *Config) { c.timing.idle = 150 * time.Millisecond })
	w.show(viewNod, "", "")
	s := at.next()
	s.shown(viewNod, "")
	time.Sleep(300 * time.Millisecond) // open: it stays
	s.says(pipe.Up{Type: "hidden"})
	s.told("to go", func(d pipe.Down) bool { return d.Type == "quit" })
	s.gone()
	a := n.add("scout", "ls")
	at.none()
	w.offer(a.Key)
	at.next().shown(viewAsk, a.Key)
}

func TestAWarmWindowIsShownAgain(t *testing.T) {
	n := newNode()
	w, at, _ := supervise(t, n, nil)
	w.show(viewNod, "", "")
	s := at.next()
	s.shown(viewNod, "")
	s.says(pipe.Up{Type: "hidden"})
	eventually(t, "the hiding", func() bool { return !w.isVisible() })
	a := n.add("scout", "ls")
	w.offer(a.Key)
	s.shown(viewAsk, a.Key)
	w.offer(a.Key) // open already
	w.show(viewNod, "", "")
	if d := s.told("something", func(d pipe.Down) bool { return d.Type == "show" }); d.View != viewNod {
		t.Errorf("an open window was raised: %+v", d)
	}
	at.none()
}

// Only what the human asked for may take the keyboard, and only once.
func TestTheKeyboardIsTakenOnlyWhenAskedFor(t *testing.T) {
	n := newNode()
	w, at, _ := supervise(t, n, nil)
	told := func(s *seat) pipe.Down {
		t.Helper()
		return s.told("to show something", func(d pipe.Down) bool { return d.Type == "show" })
	}
	a := n.add("scout", "ls")
	w.offer(a.Key)
	s := at.next()
	if d := told(s); d.Focus {
		t.Errorf("an offered ask: %+v", d)
	}
	w.show(viewAsk, a.Key, "")
	if d := told(s); !d.Focus {
		t.Errorf("an ask that was clicked: %+v", d)
	}
	s.does("!exit 1")
	s = at.next()
	if d := told(s); d.Focus {
		t.Errorf("after a crash: %+v", d)
	}
	w.volunteer(viewNod)
	if d := told(s); d.Focus {
		t.Errorf("what nobody asked for: %+v", d)
	}
}

func TestWindowsThatHang(t *testing.T) {
	t.Run("never ready", func(t *testing.T) {
		w, at, _ := supervise(t, newNode(), func(c *Config) { c.timing.start = 200 * time.Millisecond })
		w.show(viewNod, "", "")
		at.nextUnready().gone()
		at.next().shown(viewNod, "")
	})
	t.Run("does not read", func(t *testing.T) {
		n := newNode()
		w, at, _ := supervise(t, n, func(c *Config) { c.timing.write = 3 * time.Second })
		w.show(viewNod, "", "")
		s := at.next()
		s.shown(viewNod, "")
		s.does("!deaf")
		<-s.done
		n.add("scout", strings.Repeat("x", 300<<10)) // it was reading already and takes the first line
		time.Sleep(3 * stateEvery)
		n.add("worker", strings.Repeat("x", 300<<10))
		s.gone()
		at.next().shown(viewNod, "")
	})
	t.Run("does not go", func(t *testing.T) {
		w, at, _ := supervise(t, newNode(), func(c *Config) {
			c.timing.stop = 200 * time.Millisecond
			c.timing.idle = 50 * time.Millisecond
		})
		w.show(viewNod, "", "")
		s := at.next()
		s.shown(viewNod, "")
		s.does("!stubborn")
		<-s.done
		s.says(pipe.Up{Type: "hidden"})
		s.gone()
	})
}

func TestTheEndTakesTheWindowAlong(t *testing.T) {
	for _, how := range []string{"the context", "the window's user"} {
		t.Run(how, func(t *testing.T) {
			at := listenForWindows(t)
			c := Config{Node: newNode(), Window: at.argv(), Env: at.env(), Now: time.Now, Log: (&logged{}).logger()}
			c.timing = c.timing.orReal()
			w := newWindows(c)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan struct{})
			go func() { defer close(ended); w.run(ctx, cancel) }()
			w.show(viewNod, "", "")
			s := at.next()
			s.shown(viewNod, "")
			if how == "the context" {
				cancel()
			} else {
				s.says(pipe.Up{Type: "quit"})
			}
			s.told("to go", func(d pipe.Down) bool { return d.Type == "quit" })
			s.gone()
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("the supervisor does not end")
			}
		})
	}
}

func TestNoWindowProgram(t *testing.T) {
	n := newNode()
	w, _, _ := supervise(t, n, func(c *Config) { c.Window = []string{filepath.Join(t.TempDir(), "none")} })
	w.show(viewNod, "", "")
	eventually(t, "the problem", func() bool { return strings.Contains(w.problem(), "No window can be opened") })
	if w.isVisible() {
		t.Error("a window that could not start counts as open")
	}
}

// The log is opened by one program with one argument, whatever its path says.
func TestOpenFile(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	seen := filepath.Join(dir, "seen")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(bin, "xdg-open"), "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done > '"+seen+".new'; mv '"+seen+".new' '"+seen+"'\n")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	log := filepath.Join(dir, "log $(touch pwned); touch pwned.jsonl")
	write(log, "")
	if err := openFile(log, os.Environ()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(seen); err != nil || string(text) != log+"\n" {
		t.Errorf("xdg-open got %q, %v", text, err)
	}
	for path, why := range map[string]string{
		"":                            "no log",
		"relative.jsonl":              "absolute",
		filepath.Join(dir, "missing"): "no such file",
	} {
		if err := openFile(path, os.Environ()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("opening %q: %v", path, err)
		}
	}
	write(filepath.Join(bin, "xdg-open"), "#!/bin/sh\nexit 3\n")
	if err := openFile(log, os.Environ()); err == nil || !strings.Contains(err.Error(), log) {
		t.Errorf("a failing xdg-open: %v", err)
	}

	n := newNode()
	n.log = filepath.Join(dir, "missing")
	w, at, _ := supervise(t, n, nil)
	w.show(viewNod, "", "")
	s := at.next()
	s.says(pipe.Up{Type: "openlog"})
	if r := s.result(); r.OK || !strings.Contains(r.Message, "no such file") {
		t.Errorf("result %+v", r)
	}
}
