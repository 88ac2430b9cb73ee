package forwarding

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

// adopting is a running Adopter of a test.
type adopting struct {
	*Adopter
	t    testing.TB
	log  *memoryLog
	stop func()

	mu  sync.Mutex
	now map[string]bool
	all []string // "+id" when adopted, "-id" when given back
}

func adopt(t testing.TB, agentDir string, d Decider, change ...func(*Adopter)) *adopting {
	t.Helper()
	a := &adopting{t: t, log: &memoryLog{}, now: map[string]bool{}}
	a.Adopter = &Adopter{AgentDir: agentDir, Mine: []string{"desktop"}, Delay: time.Hour, Server: ServerConfig{Decider: d, Log: a.log, Beat: newBeat()},
		Adopted: func(id string, on bool) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.now[id] = on
			a.all = append(a.all, map[bool]string{true: "+", false: "-"}[on]+id)
		}}
	for _, c := range change {
		c(a.Adopter)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	a.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(a.stop)
	return a
}

func (a *adopting) has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now[id]
}

func (a *adopting) story() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

func noDelay(a *Adopter) { a.Delay = 0 }

func alive(dir, session string) heartbeat.State {
	s, _ := heartbeat.Reader{Clock: heartbeat.SystemClock()}.Read(ServingDir(dir), session)
	return s
}

// record writes a heartbeat as a peer does.
func record(t testing.TB, dir, session string, pid int, at time.Time) {
	t.Helper()
	put(t, filepath.Join(ServingDir(dir), heartbeat.Encode(session)+".json"), fmt.Sprintf(`{"sessionId":%q,"pid":%d,"updatedAt":%d}`, session, pid, at.UnixMilli()))
}

// deadPID is the id of a process that has ended.
func deadPID(t testing.TB) int {
	p := spawn(t, "ask", t.TempDir(), "ls")
	p.kill()
	return p.cmd.Process.Pid
}

// generation1 is a request as the oldest children write it.
func generation1(id, target, command string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"createdAt":%d,"requesterSessionId":"child-1","targetSessionId":%q,"requesterAgentName":"scout",`+
		`"message":"Agent 'scout' requested bash command '%s'. Allow this command?","surface":"bash","value":%q,"sessionApproval":{"surface":"bash","patterns":["x *"]}}`,
		id, time.Now().UnixMilli(), target, command, command)
}

// TestAdoptsWhatNobodyServes plays the three readings of a heartbeat that is
// not alive, with asks that were there before and asks that come later, and an
// unmodified child of the newest kind, which would give up after Grace.
func TestAdoptsWhatNobodyServes(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(t *testing.T, dir string)
		late   bool // the ask comes when the Adopter runs
	}{
		"absent":          {func(*testing.T, string) {}, false},
		"absent, later":   {func(*testing.T, string) {}, true},
		"dead":            {func(t *testing.T, dir string) { record(t, dir, "gone/1", deadPID(t), time.Now()) }, false},
		"dead, later":     {func(t *testing.T, dir string) { record(t, dir, "gone/1", deadPID(t), time.Now()) }, true},
		"stale":           {func(t *testing.T, dir string) { record(t, dir, "gone/1", os.Getppid(), time.Now().Add(-time.Minute)) }, true},
		"an empty inbox":  {func(t *testing.T, dir string) { mkdirs(t, filepath.Join(InboxDir(dir, "gone/1"), "requests")) }, true},
		"a half-made one": {func(t *testing.T, dir string) { mkdirs(t, InboxDir(dir, "gone/1")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tt.before(t, dir)
			h := newHuman()
			if !tt.late {
				dropBytes(t, dir, "gone/1", "r1.json", generation1("r1", "gone/1", "ls"))
			}
			a := adopt(t, dir, h, noDelay)
			if tt.late {
				eventually(t, "it looks", func() bool { return exists(filepath.Join(Root(dir), "sessions")) })
				dropBytes(t, dir, "gone/1", "r1.json", generation1("r1", "gone/1", "ls"))
			}
			asked := h.wait(t, "r1")
			eventually(t, "announced", func() bool { return alive(dir, "gone/1") == heartbeat.Alive && a.has("gone/1") })
			if asked.in.SessionID != "gone/1" || asked.in.Request.Generation != 1 {
				t.Errorf("asked %+v", asked.in)
			}
			asked.answer <- engine.Decision{Verdict: engine.Approved, By: byUser}
			if r := answerOf(t, dir, "gone/1", "r1"); !r.Approved || r.ResponderSessionID != "gone/1" {
				t.Errorf("answered %+v", r)
			}
			r := child(dir)
			r.Target = "gone/1"
			got := make(chan engine.Decision, 1)
			go func() { d, _ := r.Authorize(context.Background(), question("make")); got <- d }()
			eventually(t, "the next is asked", func() bool { return a.has("gone/1") && len(h.pending()) > 0 })
			for _, p := range h.pending() {
				p.answer <- engine.Decision{Verdict: engine.Denied, By: byUser}
			}
			if d := <-got; d.Verdict != engine.Denied {
				t.Errorf("the child got %+v", d)
			}
			a.stop()
			if s := alive(dir, "gone/1"); s != heartbeat.Absent {
				t.Errorf("given back, the heartbeat reads %s", s)
			}
		})
	}
}

func (h *human) pending() (list []*asked) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, a := range h.asks {
		if id != "r1" && h.ends[id] == "" {
			list = append(list, a)
		}
	}
	return list
}

func mkdirs(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestAdoptLeavesAlone: what is served, what is no ask any more, what names no
// session, and what this process serves anyway.
func TestAdoptLeavesAlone(t *testing.T) {
	dir := t.TempDir()
	srv := spawn(t, "serve", dir, "") // serves desk
	srv.line("ready")
	drop(t, dir, bash("r1", "desk", "ls"))
	srv.line("asked r1")
	drop(t, dir, bash("r2", "desktop", "ls"))
	drop(t, dir, bash("r3", "answered", "ls"))
	put(t, responsePath(dir, "answered", "r3"), `{"approved":false,"state":"denied","responderSessionId":"answered"}`)
	old := drop(t, dir, bash("r4", "expired", "ls"))
	if err := os.Chtimes(old, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a b", "%2e%2E", "%zz", "unknown", "%20x"} {
		mkdirs(t, filepath.Join(Root(dir), "sessions", name, "requests"))
		put(t, filepath.Join(Root(dir), "sessions", name, "requests", "r5.json"), string(generation1("r5", name, "ls")))
	}
	elsewhere := t.TempDir()
	mkdirs(t, filepath.Join(elsewhere, "requests"))
	put(t, filepath.Join(elsewhere, "requests", "r6.json"), string(generation1("r6", "link", "ls")))
	if err := os.Symlink(elsewhere, InboxDir(dir, "link")); err != nil {
		t.Skip(err)
	}
	h := newHuman()
	a := adopt(t, dir, h, noDelay)
	drop(t, dir, bash("r7", "gone", "ls")) // proves that it has looked
	h.wait(t, "r7")
	if s := a.story(); !slices.Equal(s, []string{"+gone"}) || len(h.counts) != 1 {
		t.Errorf("adopted %q, asked %v", s, h.counts)
	}
}

// TestAdoptAfterDeath: a server that dies with an ask open is followed within
// the child's grace, so that the child gets its answer after all.
func TestAdoptAfterDeath(t *testing.T) {
	dir := t.TempDir()
	srv := spawn(t, "serve", dir, "")
	srv.line("ready")
	h := newHuman()
	a := adopt(t, dir, h, noDelay)
	got := make(chan engine.Decision, 1)
	go func() { d, _ := child(dir).Authorize(context.Background(), question("make")); got <- d }()
	srv.line("asked")
	srv.kill()
	eventually(t, "asked again", func() bool { return a.has("desk") && len(h.pending()) == 1 })
	h.pending()[0].answer <- engine.Decision{Verdict: engine.Approved, By: byUser}
	if d := <-got; d.Verdict != engine.Approved {
		t.Errorf("the child got %+v", d)
	}
}

// TestAdoptStepsBack: for a peer that announces itself, and for another Nod,
// whom a stand-in's heartbeat does not keep from serving.
func TestAdoptStepsBack(t *testing.T) {
	t.Run("peer", func(t *testing.T) {
		dir := t.TempDir()
		h := newHuman()
		a := adopt(t, dir, h, noDelay)
		request := drop(t, dir, bash("r1", "desk", "ls"))
		h.wait(t, "r1")
		peer := spawn(t, "ask", t.TempDir(), "ls")
		record(t, dir, "desk", peer.cmd.Process.Pid, time.Now().Add(2*time.Second))
		eventually(t, "it steps back", func() bool { return len(a.story()) == 2 && !a.has("desk") })
		if h.end("r1") != whyServed.Why || exists(responsePath(dir, "desk", "r1")) || !exists(request) {
			t.Errorf("the ask ended because %q", h.end("r1"))
		}
		if s := alive(dir, "desk"); s != heartbeat.Alive {
			t.Errorf("the peer's heartbeat reads %s", s)
		}
		// It dies without a word.
		peer.kill()
		eventually(t, "it is adopted again", func() bool { return a.has("desk") && h.count("r1") == 2 })
	})
	t.Run("nod", func(t *testing.T) {
		dir := t.TempDir()
		h := newHuman()
		a := adopt(t, dir, h, noDelay)
		drop(t, dir, bash("r1", "desk", "ls"))
		h.wait(t, "r1")
		srv := spawn(t, "serve", dir, "")
		srv.line("asked r1")
		eventually(t, "it steps back", func() bool { return len(a.story()) == 2 && !a.has("desk") })
		fmt.Fprintln(srv.in, "approve r1")
		answerOf(t, dir, "desk", "r1")
		if h.end("r1") != whyServed.Why {
			t.Errorf("the ask ended because %q", h.end("r1"))
		}
	})
}

// TestAdoptLetsAnOldPeerAnswer: where a peer without a heartbeat may be
// serving, it has the delay to answer, and nothing is asked, let alone answered,
// that it answered.
func TestAdoptLetsAnOldPeerAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHuman()
	const delay = 5 * time.Second
	a := adopt(t, dir, h, func(a *Adopter) { a.Delay = delay })
	began := time.Now()
	request := dropBytes(t, dir, "old", "r1.json", generation1("r1", "old", "ls"))
	eventually(t, "announced, so that the child waits", func() bool { return a.has("old") && alive(dir, "old") == heartbeat.Alive })
	// The peer answers as it does: the response appears, then the request goes.
	const said = `{"approved":true,"state":"approved","responderSessionId":"old","respondedAt":1}`
	put(t, responsePath(dir, "old", "r1"), said)
	if err := os.Remove(request); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(began.Add(delay + time.Second)))
	if h.count("r1") != 0 {
		t.Error("it was asked")
	}
	if data, err := os.ReadFile(responsePath(dir, "old", "r1")); err != nil || string(data) != said {
		t.Errorf("the peer's answer is %s, %v", data, err)
	}
}

// TestAdoptDelay: the delay counts until one ask has been decided here.
func TestAdoptDelay(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	const delay = 300 * time.Millisecond
	adopt(t, dir, h, func(a *Adopter) { a.Delay = delay })
	began := time.Now()
	drop(t, dir, bash("r1", "bg", "ls"))
	asked := h.wait(t, "r1")
	if waited := time.Since(began); waited < delay {
		t.Errorf("asked after %v", waited)
	}
	// An old peer that answers while the human thinks comes first.
	put(t, responsePath(dir, "bg", "r1"), `{"approved":false,"state":"denied","responderSessionId":"bg"}`)
	asked.answer <- engine.Decision{Verdict: engine.Approved, By: byUser}
	eventually(t, "the request is gone", func() bool { return !exists(filepath.Join(InboxDir(dir, "bg"), "requests", "r1.json")) })
	if r := answerOf(t, dir, "bg", "r1"); r.Approved {
		t.Errorf("the peer's answer was overwritten: %+v", r)
	}
}

// TestAdoptGivesBackWhatIsIdle, and takes it over again when an ask comes.
func TestAdoptGivesBackWhatIsIdle(t *testing.T) {
	dir := t.TempDir()
	a := adopt(t, dir, always(approved), noDelay, func(a *Adopter) { a.Idle = 100 * time.Millisecond })
	for i, want := range [][]string{{"+bg", "-bg"}, {"+bg", "-bg", "+bg", "-bg"}} {
		id := fmt.Sprint("r", i)
		drop(t, dir, bash(id, "bg", "ls"))
		answerOf(t, dir, "bg", id)
		if err := os.Remove(responsePath(dir, "bg", id)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "given back", func() bool { return slices.Equal(a.story(), want) })
		if s := alive(dir, "bg"); s != heartbeat.Absent {
			t.Errorf("the heartbeat reads %s", s)
		}
	}
}

// TestAdoptSurvivesItsDirectory: the whole forwarding root goes and comes back.
func TestAdoptSurvivesItsDirectory(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	adopt(t, dir, h, noDelay)
	eventually(t, "it looks", func() bool { return exists(filepath.Join(Root(dir), "sessions")) })
	for os.RemoveAll(Root(dir)) != nil { // it makes anew what it misses
	}
	drop(t, dir, bash("r1", "bg", "ls"))
	h.wait(t, "r1")
}
