package forwarding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

func TestServerAnswersByDecision(t *testing.T) {
	for _, c := range []struct {
		name  string
		d     engine.Decision
		state engine.Verdict
		event string
	}{
		{"rule", approved, engine.Approved, EventAutoApproved},
		{"rule denies", engine.Decision{Verdict: engine.DeniedWithReason, Reason: "no pushing", By: byRule}, engine.DeniedWithReason, EventAutoDenied},
		{"user", engine.Decision{Verdict: engine.Approved, By: byUser}, engine.Approved, EventApproved},
		{"this subagent", engine.Decision{Verdict: engine.ApprovedForSession, By: byUser}, engine.ApprovedForSession, EventApproved},
		{"user denies", engine.Decision{Verdict: engine.Denied, By: byUser}, engine.Denied, EventDenied},
		{"nobody", engine.Decision{Verdict: engine.Unavailable, Reason: "nobody", By: engine.DecisionSource{Kind: engine.ByUnavailable, Reason: "nobody"}}, engine.Denied, EventDenied},
		{"nonsense", engine.Decision{Verdict: "yes"}, engine.Denied, EventDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := serve(t, dir, "desk 1/é", always(c.d)).ready()
			path := drop(t, dir, bash("r1", "desk 1/é", "git status"))
			r := answerOf(t, dir, "desk 1/é", "r1")
			if r.State != c.state || r.ResponderSessionID != "desk 1/é" || r.DenialReason != c.d.Reason && c.state == engine.DeniedWithReason {
				t.Errorf("response %+v", r)
			}
			eventually(t, "request removed", func() bool { return !exists(path) })
			eventually(t, "logged", func() bool { return s.log.count(c.event) == 1 })
		})
	}
}

func yes(by engine.DecisionSource) engine.Decision {
	return engine.Decision{Verdict: engine.Approved, By: by}
}

// TestSessionsAndAgentDirs serves several of each at once from one process.
func TestSessionsAndAgentDirs(t *testing.T) {
	beat := newBeat()
	dirs := []string{t.TempDir(), t.TempDir()}
	sessions := []string{"desk", "Ünï/cødé", "a b"}
	h := newHuman()
	var all []*serving
	for _, d := range dirs {
		for _, id := range sessions {
			all = append(all, serve(t, d, id, h, func(c *ServerConfig) { c.Beat = beat }).ready())
		}
	}
	for i, d := range dirs {
		for j, id := range sessions {
			drop(t, d, bash(fmt.Sprintf("r-%d-%d", i, j), id, "ls"))
		}
	}
	// Answered in another order than asked: none waits for another.
	for i := len(dirs) - 1; i >= 0; i-- {
		for j := len(sessions) - 1; j >= 0; j-- {
			id := fmt.Sprintf("r-%d-%d", i, j)
			a := h.wait(t, id)
			if a.in.AgentDir != dirs[i] || a.in.SessionID != sessions[j] || a.in.Question.SessionID != sessions[j] {
				t.Errorf("%s came from %s %q", id, a.in.AgentDir, a.in.SessionID)
			}
			a.answer <- yes(byUser)
			if r := answerOf(t, dirs[i], sessions[j], id); r.ResponderSessionID != sessions[j] {
				t.Errorf("%s answered by %q", id, r.ResponderSessionID)
			}
		}
	}
	for _, s := range all {
		s.stop()
	}
	for _, d := range dirs {
		if left, _ := os.ReadDir(ServingDir(d)); len(left) > 0 {
			t.Errorf("heartbeats left: %v", left)
		}
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, "desk", always(approved)).ready()
	for _, d := range []string{Root(dir), ServingDir(dir), InboxDir(dir, "desk"), filepath.Join(InboxDir(dir, "desk"), "requests")} {
		if fi, err := os.Stat(d); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", d, fi.Mode(), err)
		}
	}
	drop(t, dir, bash("r1", "desk", "ls"))
	answerOf(t, dir, "desk", "r1")
	if fi, err := os.Stat(responsePath(dir, "desk", "r1")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("response: %v %v", fi.Mode(), err)
	}
}

// TestWithdrawn: an ask whose file goes or changes is never answered.
func TestWithdrawn(t *testing.T) {
	other := bash("r1", "desk", "rm -rf build")
	for name, c := range map[string]struct {
		disturb func(t *testing.T, dir, path string)
		why     string
		refused bool // what is there now is reported and left
	}{
		"removed": {func(t *testing.T, _, path string) { must(t, os.Remove(path)) }, whyGone.Why, false},
		"rewritten in place": {func(t *testing.T, _, path string) {
			data, _ := other.Marshal()
			must(t, os.WriteFile(path, data, 0o600))
		}, whyChanged.Why, true},
		"one byte, same size and time": {func(t *testing.T, _, path string) {
			fi, err := os.Stat(path)
			must(t, err)
			data, err := os.ReadFile(path)
			must(t, err)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt([]byte("rm"), int64(bytes.Index(data, []byte("ls"))))
			must(t, err)
			must(t, f.Close())
			must(t, os.Chtimes(path, fi.ModTime(), fi.ModTime()))
		}, whyChanged.Why, true},
		"replaced": {func(t *testing.T, dir, _ string) { drop(t, dir, other) }, whyChanged.Why, true},
		"removed and made anew": {func(t *testing.T, dir, path string) {
			must(t, os.Remove(path))
			time.Sleep(20 * time.Millisecond)
			drop(t, dir, other)
		}, "", true},
		"replaced by a link": {func(t *testing.T, dir, path string) {
			to := filepath.Join(dir, "elsewhere")
			must(t, os.Rename(path, to))
			must(t, os.Symlink(to, path))
		}, "", true},
		"inbox removed": {func(t *testing.T, dir, _ string) { removeAll(t, InboxDir(dir, "desk")) }, whyGone.Why, false},
		"inbox moved away": {func(t *testing.T, dir, _ string) {
			must(t, os.Rename(InboxDir(dir, "desk"), InboxDir(dir, "old")))
		}, whyGone.Why, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := newHuman()
			s := serve(t, dir, "desk", h).ready()
			path := drop(t, dir, bash("r1", "desk", "ls"))
			a := h.wait(t, "r1")
			c.disturb(t, dir, path)
			if strings.HasPrefix(name, "one byte") {
				// Only the content tells; it is compared before answering.
				a.answer <- yes(byUser)
			} else {
				eventually(t, "withdrawn", func() bool { return h.end("r1") != "" })
				if got := h.end("r1"); c.why != "" && got != c.why {
					t.Errorf("withdrawn because %q, want %q", got, c.why)
				}
				a.answer <- yes(byUser) // too late
			}
			eventually(t, "logged", func() bool { return s.log.count(EventWithdrawn) == 1 })
			if c.refused {
				eventually(t, "reported", func() bool { return s.log.count(EventWarning) == 1 })
			}
			// A bystander is served all the while.
			drop(t, dir, bash("r2", "desk", "ls"))
			h.wait(t, "r2").answer <- yes(byUser)
			answerOf(t, dir, "desk", "r2")
			if exists(responsePath(dir, "desk", "r1")) || exists(responsePath(dir, "old", "r1")) {
				t.Error("the withdrawn ask was answered")
			}
			if n := h.count("r1"); n != 1 {
				t.Errorf("asked %d times", n)
			}
			s.lookAgain()
			time.Sleep(50 * time.Millisecond)
			if n := s.log.count(EventWarning); c.refused && n != 1 || !c.refused && n != 0 {
				t.Errorf("%d warnings\n%s", n, s.log)
			}
		})
	}
}

// removeAll removes a directory that a server makes anew at once.
func removeAll(t testing.TB, path string) {
	t.Helper()
	for range 100 {
		if os.RemoveAll(path) == nil {
			return
		}
	}
	t.Fatalf("%s cannot be removed", path)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestart: what a server has not answered waits for the next one; what it
// has answered is not asked again.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	first := serve(t, dir, "desk", h).ready()
	path := drop(t, dir, bash("r1", "desk", "ls"))
	h.wait(t, "r1")
	first.stop()
	if h.end("r1") != whyStopping.Why || !exists(path) {
		t.Fatalf("ended because %q, request there: %t", h.end("r1"), exists(path))
	}
	if state, _ := (heartbeat.Reader{Clock: heartbeat.SystemClock()}).Read(ServingDir(dir), "desk"); state != heartbeat.Absent {
		t.Errorf("stopped, the session reads %s", state)
	}
	// As a server leaves it that is killed between its two steps.
	answered := drop(t, dir, bash("r2", "desk", "ls"))
	data, err := NewResponse(yes(byUser), "desk", time.Now()).Marshal()
	must(t, err)
	must(t, os.WriteFile(responsePath(dir, "desk", "r2"), data, 0o600))

	second := serve(t, dir, "desk", h).ready()
	eventually(t, "asked again", func() bool { return h.count("r1") == 2 })
	h.wait(t, "r1").answer <- yes(byUser)
	answerOf(t, dir, "desk", "r1")
	eventually(t, "answered request removed", func() bool { return !exists(answered) })
	if h.count("r2") != 0 {
		t.Error("the answered request was asked again")
	}
	if now, err := os.ReadFile(responsePath(dir, "desk", "r2")); err != nil || !bytes.Equal(now, data) {
		t.Errorf("the response is now %s, %v", now, err)
	}
	second.stop()
	if second.log.count(EventServingStarted) != 1 || second.log.count(EventServingStopped) != 1 {
		t.Errorf("logged\n%s", second.log)
	}
}

func TestExpiredRequestsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	old := bash("r1", "desk", "ls")
	old.CreatedAt -= DefaultTimeout.Milliseconds()
	path := drop(t, dir, old)
	s := serve(t, dir, "desk", h).ready()
	eventually(t, "removed", func() bool { return !exists(path) })
	eventually(t, "logged", func() bool { return s.log.count(EventWithdrawn) == 1 })
	if h.count("r1") > 0 || exists(responsePath(dir, "desk", "r1")) {
		t.Errorf("asked or answered\n%s", s.log)
	}
	// A child whose clock is ahead is not hurried.
	ahead := bash("r2", "desk", "ls")
	ahead.CreatedAt += time.Hour.Milliseconds()
	drop(t, dir, ahead)
	h.wait(t, "r2").answer <- yes(byUser)
	answerOf(t, dir, "desk", "r2")
}

// TestSuspendEndsPatience: timers stand still while the machine sleeps.
func TestSuspendEndsPatience(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	var slept atomic.Int64
	s := serve(t, dir, "desk", h, func(c *ServerConfig) {
		c.Clock = heartbeat.Clock{Now: time.Now, Boot: func() time.Duration { return time.Hour + time.Duration(slept.Load()) }}
	}).ready()
	drop(t, dir, bash("r1", "desk", "ls"))
	h.wait(t, "r1")
	slept.Store(int64(DefaultTimeout + 2*time.Second))
	s.lookAgain()
	eventually(t, "withdrawn", func() bool { return h.end("r1") == whyExpired.Why })
}

// TestLeftoversAreReaped by age, and nothing else is.
func TestLeftoversAreReaped(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-time.Hour)
	place := func(which, name string, age bool) string {
		path := filepath.Join(InboxDir(dir, "desk"), which, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("x"), 0o600))
		if age {
			must(t, os.Chtimes(path, long, long))
		}
		return path
	}
	gone := []string{
		place("responses", ".nod-A.tmp", true), place("requests", ".nod-B.tmp", true), place("responses", "r1.json", true),
		place("requests", "not an id.json", true),
	}
	kept := []string{
		place("responses", ".nod-C.tmp", false), place("responses", "r2.json", false), place("responses", "r3.json.tmp-1", true),
		place("requests", "notes.txt", true),
	}
	serve(t, dir, "desk", newHuman()).ready()
	eventually(t, "reaped", func() bool {
		for _, p := range gone {
			if exists(p) {
				return false
			}
		}
		return true
	})
	for _, p := range kept {
		if !exists(p) {
			t.Errorf("%s is gone", p)
		}
	}
}

// TestSecondServerIsTurnedAway: a living process serves the session already.
func TestSecondServerIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	srv := spawn(t, "serve", dir, "")
	srv.line("ready")
	err := NewServer(ServerConfig{AgentDir: dir, SessionID: "desk", Decider: newHuman(), Beat: newBeat()}).Run(t.Context())
	if !errors.Is(err, ErrServed) || !strings.Contains(err.Error(), fmt.Sprint(srv.cmd.Process.Pid)) {
		t.Errorf("Run: %v", err)
	}
	srv.kill()
	serve(t, dir, "desk", always(approved)).ready() // a dead one's record is no hindrance
}

// TestStepBack: a server that stands in for a session leaves it to the real one.
func TestStepBack(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	ready, stepped := make(chan struct{}), make(chan heartbeat.Record, 1)
	done := make(chan error)
	srv := NewServer(ServerConfig{AgentDir: dir, SessionID: "desk", Decider: h, Beat: newBeat(), Ready: func() { close(ready) },
		StepBack: func(by heartbeat.Record) { stepped <- by }})
	go func() { done <- srv.Run(t.Context()) }()
	<-ready
	drop(t, dir, bash("r1", "desk", "ls"))
	h.wait(t, "r1")
	// The real one does not look at heartbeats before it serves; ours would,
	// so its record is written by hand for a process that lives.
	other := spawn(t, "ask", t.TempDir(), "ls")
	text := fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, other.cmd.Process.Pid, time.Now().Add(2*time.Second).UnixMilli())
	put(t, filepath.Join(ServingDir(dir), "desk.json"), text)
	if by := <-stepped; by.PID != other.cmd.Process.Pid {
		t.Errorf("stepped back for %+v", by)
	}
	if err := <-done; !errors.Is(err, ErrServed) {
		t.Errorf("Run: %v", err)
	}
	if h.end("r1") != whyServed.Why || exists(responsePath(dir, "desk", "r1")) {
		t.Errorf("the ask ended because %q", h.end("r1"))
	}
	if data, err := os.ReadFile(filepath.Join(ServingDir(dir), "desk.json")); err != nil || string(data) != text {
		t.Errorf("the real one's record is %s, %v", data, err)
	}
}

func TestBadConfiguration(t *testing.T) {
	for _, c := range []ServerConfig{
		{AgentDir: t.TempDir(), SessionID: "unknown", Decider: newHuman()}, {SessionID: "desk", Decider: newHuman()}, {AgentDir: t.TempDir(), SessionID: "desk"},
	} {
		if err := NewServer(c).Run(t.Context()); err == nil {
			t.Errorf("%+v runs", c)
		}
	}
}

// TestDeciderPanics: an error inside the gate blocks, and blocks only its own ask.
func TestDeciderPanics(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, "desk", deciderFunc(func(_ context.Context, in *Inbound) engine.Decision {
		if in.Request.ID == "r1" {
			panic("oh")
		}
		return approved
	})).ready()
	drop(t, dir, bash("r1", "desk", "ls"))
	drop(t, dir, bash("r2", "desk", "ls"))
	if r := answerOf(t, dir, "desk", "r1"); r.State != engine.Denied || r.DecidedBy == nil || r.DecidedBy.Kind != engine.ByGateError {
		t.Errorf("response %+v", r)
	}
	answerOf(t, dir, "desk", "r2")
}

// TestGrantFails: the child still gets its own approval.
func TestGrantFails(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, "desk", always(engine.Decision{Verdict: engine.ApprovedForServingSession, By: byUser}), func(c *ServerConfig) {
		c.Grant = func(*Inbound) error { return errors.New("no room") }
	}).ready()
	drop(t, dir, bash("r1", "desk", "ls"))
	if r := answerOf(t, dir, "desk", "r1"); r.State != engine.Approved {
		t.Errorf("response %+v", r)
	}
	eventually(t, "logged", func() bool { return s.log.count(EventError) == 1 && s.log.count(EventSessionRecorded) == 0 })
	// Nothing suggested, nothing to record.
	bare := bash("r2", "desk", "ls")
	bare.Grants = nil
	drop(t, dir, bare)
	answerOf(t, dir, "desk", "r2")
	eventually(t, "logged", func() bool { return s.log.count(EventApproved) == 2 })
	if s.log.count(EventError) != 1 {
		t.Errorf("logged\n%s", s.log)
	}
}
