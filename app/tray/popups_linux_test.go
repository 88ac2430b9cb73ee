//go:build !headless

package tray

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/notify"
	"github.com/nod-agents/nod/notify/notifytest"
)

// clock is moved by the test.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// scene is a desktop with a notification server in Go, windows played by the
// test, and the policy under test between them.
type scene struct {
	*testing.T
	bus    *notifytest.Bus
	server *notifytest.Daemon
	node   *node
	at     *windowsAt
	clock  *clock
	log    *logged
	popups *popups
}

// open runs it until the test ends. caps nil: there is no server, nor a bus.
func open(t *testing.T, caps []string) *scene {
	t.Helper()
	s := &scene{T: t, node: newNode(), clock: &clock{at: time.Now()}, log: &logged{}}
	address := ""
	if caps != nil {
		s.bus = notifytest.StartBus(t)
		address = s.bus.Address
		s.server = notifytest.FakeDaemon(t, s.bus, "Xfce Notify Daemon", caps)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := notify.New(ctx, notify.Config{AppName: "Nod", BusAddress: address, Log: s.log.logger()})
	var w *windows
	w, s.at, _ = supervise(t, s.node, func(c *Config) {
		c.Notifier, c.Now = n, s.clock.now
		c.timing.summary = 300 * time.Millisecond
	})
	s.popups = newPopups(w.cfg, w)
	ended := make(chan struct{})
	go func() { defer close(ended); s.popups.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// buttons are the keys a notification offers, in order.
func buttons(p notifytest.Posted) string {
	var keys []string
	for i := 0; i+1 < len(p.Actions); i += 2 {
		if p.Actions[i] != "default" {
			keys = append(keys, p.Actions[i])
		}
	}
	return strings.Join(keys, " ")
}

// considers lets the time pass in which a click is not meant. The policy notes
// the time of a notification when the server has it, so it must have got there.
func (s *scene) considers() {
	time.Sleep(50 * time.Millisecond)
	s.clock.pass(time.Second)
}

func TestANotificationAnswers(t *testing.T) {
	for button, want := range map[string]engine.Verdict{actAllow: engine.Approved, actDeny: engine.Denied} {
		t.Run(button, func(t *testing.T) {
			s := open(t, notifytest.XfceCaps())
			a := s.node.add("scout", "git status && <b>x</b>")
			p := s.server.Wait(t, 1)
			if p.Title != "scout wants to run a command" || p.Body != "git status &amp;&amp; &lt;b&gt;x&lt;/b&gt;\nin: /home/dev" {
				t.Errorf("it says %q, %q", p.Title, p.Body)
			}
			if buttons(p) != "allow deny review" || p.Hints["urgency"].Value() != byte(2) {
				t.Errorf("it offers %q with urgency %v", buttons(p), p.Hints["urgency"])
			}
			s.considers()
			s.server.Invoke(t, p.ID, button)
			if e := s.node.end(t, a.Key); e.Decision.Verdict != want || e.View != "notification" {
				t.Errorf("ended as %+v", e)
			}
			s.at.none()
		})
	}
}

func TestClicksOnWhatJustCameUpAreNotMeant(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	a := s.node.add("scout", "ls")
	p := s.server.Wait(t, 1)
	s.server.Invoke(t, p.ID, actAllow)
	again := s.server.Wait(t, 2) // it comes again, with its buttons
	if buttons(again) != "allow deny review" || s.node.board.Get(a.Key) == nil {
		t.Fatalf("it offers %q", buttons(again))
	}
	s.server.Invoke(t, again.ID, actDeny)
	third := s.server.Wait(t, 3)
	s.considers()
	s.server.Invoke(t, third.ID, actDeny)
	if e := s.node.end(t, a.Key); e.Decision.Verdict != engine.Denied {
		t.Errorf("ended as %+v", e)
	}
}

func TestReviewOpensTheDialog(t *testing.T) {
	for _, action := range []string{actReview, "default"} {
		t.Run(action, func(t *testing.T) {
			s := open(t, notifytest.XfceCaps())
			other := s.node.add("scout", "ls")
			a := s.node.add("worker", "rm x")
			s.server.Wait(t, 1)
			p := s.server.Wait(t, 2)
			s.server.Emit(t, "ActivationToken", p.ID, "tok-9")
			s.server.Invoke(t, p.ID, action) // at once: opening is harmless
			w := s.at.next()
			w.shown(viewAsk, a.Key)
			if w.hello[1] != "tok-9" {
				t.Errorf("the window got the token %q", w.hello[1])
			}
			s.node.board.Withdraw(other.Key, "gone")
			s.node.add("third", "pwd")
			s.server.Wait(t, 3)
			if n := len(s.server.Posted()); n != 3 {
				t.Errorf("%d notifications: the reviewed ask was told again", n)
			}
		})
	}
}

func TestNotificationsGoWithTheirAsks(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	a, b := s.node.add("scout", "ls"), s.node.add("scout", "pwd")
	first, second := s.server.Wait(t, 1), s.server.Wait(t, 2)
	if err := s.node.board.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Approved, View: "terminal"}); err != nil {
		t.Fatal(err)
	}
	s.server.WaitClosed(t, first.ID)
	s.node.board.Withdraw(b.Key, "the child went")
	s.server.WaitClosed(t, second.ID)
	if n := len(s.server.Posted()); n != 2 {
		t.Errorf("%d notifications", n)
	}
	s.considers()
	s.server.Invoke(t, first.ID, actDeny) // still on its way from the screen
	time.Sleep(100 * time.Millisecond)
	if e := s.node.end(t, a.Key); e.Decision.Verdict != engine.Approved {
		t.Errorf("a late click changed the end to %+v", e)
	}
}

// A click that loses the race is a visible no-op, in its own place.
func TestALateClickIsTold(t *testing.T) {
	bus := notifytest.StartBus(t)
	server := notifytest.FakeDaemon(t, bus, "xfce4-notifyd", notifytest.XfceCaps())
	n := notify.New(t.Context(), notify.Config{AppName: "Nod", BusAddress: bus.Address})
	defer n.Close()
	nd := newNode()
	c := &clock{at: time.Now()}
	cfg := Config{Node: nd, Notifier: n, Now: c.now, Log: (&logged{}).logger()}
	cfg.timing = cfg.timing.orReal()
	p := newPopups(cfg, newWindows(cfg)) // driven by hand, so that the click comes between
	a := nd.add("scout", "ls")
	next := nd.add("scout", "rm -rf /")
	p.sync(t.Context())
	posted := server.Wait(t, 1)
	server.Wait(t, 2)
	c.pass(time.Second)
	server.Invoke(t, posted.ID, actAllow)
	var click notify.Event
	for click.Kind != notify.Invoked {
		select {
		case click = <-n.Events():
		case <-time.After(patience):
			t.Fatal("no click")
		}
	}
	if err := nd.board.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Denied, View: "terminal"}); err != nil {
		t.Fatal(err)
	}
	p.event(t.Context(), click)
	late := server.Wait(t, 3)
	if late.Title != "Too late: scout wants to run a command" || late.Body != "denied (terminal)" || buttons(late) != "" || late.Hints["urgency"].Value() != byte(0) || late.Expire <= 0 {
		t.Errorf("it says %+v", late)
	}
	p.sync(t.Context())
	if nd.board.Get(next.Key) == nil {
		t.Error("the click landed on the next ask")
	}
	// The same of a click on another content than is on the board.
	forged := click
	forged.Note.Key, forged.Note.Ref = noteKey+next.Key, "other"
	p.event(t.Context(), forged)
	if nd.board.Get(next.Key) == nil {
		t.Error("a click on another content decided")
	}
}

func TestAllowOnlyWhatIsSeenWhole(t *testing.T) {
	detail := "/etc/hostname"
	tests := []struct {
		name    string
		change  func(q *engine.Question)
		buttons string
		says    []string
	}{
		{"short", func(*engine.Question) {}, "allow deny review", []string{"ls"}},
		{"composite", func(q *engine.Question) {
			q.Evidence = []engine.Evidence{{Label: "full command", Text: "ls && rm -rf build"}}
		}, "allow deny review", []string{"ls", "full command: ls && rm -rf build"}},
		{"external", func(q *engine.Question) {
			q.Evidence = []engine.Evidence{{Label: "external path", Text: "/a/hostname", Detail: &detail}}
		}, "allow deny review", []string{"external path: /a/hostname", "external path, really: /etc/hostname"}},
		{"long", func(q *engine.Question) { q.Value = strings.Repeat("echo word; ", 200) + "rm -rf /" }, "review", []string{"echo word", "rm -rf /"}},
		{"long full command", func(q *engine.Question) {
			q.Evidence = []engine.Evidence{{Label: "full command", Text: strings.Repeat("echo word; ", 500)}}
		}, "review", []string{"ls"}},
		{"very long", func(q *engine.Question) { q.Value = strings.Repeat("x ", 500_000) }, "review", nil},
		{"many lines", func(q *engine.Question) { q.Value = strings.Repeat("\n", 200) + "rm -rf /" }, "review", nil},
		{"bidi", func(q *engine.Question) { q.Value = "ls \u202efdp" }, "review", []string{`ls \u202Efdp`}},
		{"letters of another alphabet", func(q *engine.Question) { q.Value = "g\u0456t push" }, "review", []string{`g\u0456t push`}},
		{"escape in the evidence", func(q *engine.Question) {
			q.Evidence = []engine.Evidence{{Label: "full command", Text: "ls\x1b[1K"}}
		}, "review", []string{`ls\x1B[1K`}},
		{"a name with a line break", func(q *engine.Question) { q.Principal.AgentName = "scout\nNod" }, "review", nil},
		{"a long name", func(q *engine.Question) { q.Principal.AgentName = strings.Repeat("scout", 20) }, "review", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, notifytest.PlainCaps())
			a := ask("scout", "ls")
			tt.change(a.Question)
			s.node.board.Add(a)
			p := s.server.Wait(t, 1)
			if buttons(p) != tt.buttons {
				t.Errorf("it offers %q, want %q, under %q", buttons(p), tt.buttons, p.Body)
			}
			for _, says := range tt.says {
				if !strings.Contains(p.Body, says) {
					t.Errorf("it says %q, without %q", p.Body, says)
				}
			}
			if strings.ContainsAny(p.Title, "\n\x1b") || strings.ContainsAny(p.Body, "\x1b\u202e") {
				t.Errorf("it says %q, %q", p.Title, p.Body)
			}
		})
	}
}

func TestABurstIsOneSummary(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	var asks []*board.Ask
	for range 4 {
		asks = append(asks, s.node.add("scout", fmt.Sprint("s", len(asks))))
	}
	for range 3 {
		asks = append(asks, s.node.add("worker", fmt.Sprint("w", len(asks))))
	}
	summary := func(n int, body string) notifytest.Posted {
		t.Helper()
		var p notifytest.Posted
		eventually(t, fmt.Sprintf("the summary of %d", n), func() bool {
			s.clock.pass(time.Second)
			s.node.change(func() {})
			all := s.server.Posted()
			i := slices.IndexFunc(all, func(p notifytest.Posted) bool { return p.Title == fmt.Sprintf("%d asks wait", n) && p.Body == body })
			if i >= 0 {
				p = all[i]
			}
			return i >= 0
		})
		return p
	}
	p := summary(7, "scout 4, worker 3")
	if buttons(p) != "review" {
		t.Errorf("it offers %q", buttons(p))
	}
	eventually(t, "the single ones to go", func() bool { return len(s.server.Live()) == 1 })

	// It changes its words in place.
	s.node.add("third\x1b", "t")
	q := summary(8, `scout 4, worker 3, third\x1B 1`)
	if q.Replaces != p.ID {
		t.Errorf("it replaces %d, not %d", q.Replaces, p.ID)
	}

	// Back to three: one each again.
	for _, a := range s.node.board.Pending()[3:] {
		s.node.board.Withdraw(a.Key, "gone")
	}
	s.server.WaitClosed(t, q.ID)
	eventually(t, "three of their own", func() bool { return len(s.server.Live()) == 3 })

	// A summary that was closed does not come again, but a new ask does.
	for i := range 5 {
		s.node.add("scout", fmt.Sprint("more", i))
	}
	var last notifytest.Posted
	eventually(t, "a summary", func() bool {
		s.clock.pass(time.Second)
		s.node.change(func() {})
		all := s.server.Posted()
		last = all[len(all)-1]
		return last.Title == "8 asks wait" && len(s.server.Live()) == 1
	})
	s.server.Dismiss(t, last.ID, 2)
	s.node.change(func() {})
	time.Sleep(100 * time.Millisecond)
	if live := s.server.Live(); len(live) != 0 {
		t.Errorf("after the summary was closed %v came", live)
	}
	s.node.add("new", "n")
	eventually(t, "the new one", func() bool {
		all := s.server.Posted()
		return strings.HasPrefix(all[len(all)-1].Title, "new wants") && len(s.server.Live()) == 1
	})
}

func TestTheSummaryOpensTheQueue(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	for i := range 5 {
		s.node.add("scout", fmt.Sprint(i))
	}
	var id uint32
	eventually(t, "the summary", func() bool {
		s.clock.pass(time.Second)
		s.node.change(func() {})
		for _, p := range s.server.Posted() {
			if p.Title == "5 asks wait" {
				id = p.ID
			}
		}
		return id != 0
	})
	s.server.Invoke(t, id, actReview)
	s.at.next().shown(viewAsk, s.node.board.Pending()[0].Key)
	eventually(t, "the summary to go", func() bool {
		s.node.change(func() {})
		return !slices.ContainsFunc(s.server.Posted()[1:], func(p notifytest.Posted) bool { return p.ID > id })
	})
}

func TestAFloodIsOneSummary(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	for i := range 2000 {
		s.node.add(fmt.Sprint("agent", i%9), fmt.Sprint(i))
	}
	eventually(t, "the summary of all", func() bool {
		s.clock.pass(time.Second)
		s.node.change(func() {})
		all := s.server.Posted()
		return len(all) > 0 && all[len(all)-1].Title == "2000 asks wait" && len(s.server.Live()) == 1
	})
	all := s.server.Posted()
	if last := all[len(all)-1]; !strings.HasSuffix(last.Body, "4 more agents") {
		t.Errorf("it says %q", last.Body)
	}
	for _, a := range s.node.board.Pending() {
		s.node.board.Withdraw(a.Key, "gone")
	}
	eventually(t, "an empty screen", func() bool { return len(s.server.Live()) == 0 })
}

func TestPauseKeepsQuiet(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	s.node.add("scout", "ls")
	p := s.server.Wait(t, 1)
	s.node.SetPaused(true)
	s.server.WaitClosed(t, p.ID)
	s.node.add("scout", "pwd")
	for i := range 5 {
		s.node.add("worker", fmt.Sprint(i))
	}
	time.Sleep(200 * time.Millisecond)
	if n := len(s.server.Posted()); n != 1 {
		t.Errorf("%d notifications while paused", n)
	}
	s.at.none()
	s.node.SetPaused(false)
	s.server.Wait(t, 2)
}

func TestWhatWasClosedDoesNotNag(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	a := s.node.add("scout", "ls")
	p := s.server.Wait(t, 1)
	s.server.Dismiss(t, p.ID, 2)
	s.node.add("worker", "pwd")
	second := s.server.Wait(t, 2)
	if !strings.HasPrefix(second.Title, "worker") {
		t.Errorf("it says %q", second.Title)
	}
	s.node.change(func() {})
	time.Sleep(100 * time.Millisecond)
	if n := len(s.server.Posted()); n != 2 {
		t.Errorf("%d notifications", n)
	}
	if s.node.board.Get(a.Key) == nil {
		t.Error("closing decided")
	}
	s.at.none()
}

func TestServersThatGo(t *testing.T) {
	s := open(t, notifytest.XfceCaps())
	a := s.node.add("scout", "ls")
	s.server.Wait(t, 1)
	s.considers()
	s.server.Stop()
	next := notifytest.FakeDaemon(t, s.bus, "xfce4-notifyd", notifytest.XfceCaps())
	p := next.Wait(t, 1)
	if buttons(p) != "allow deny review" {
		t.Errorf("it offers %q", buttons(p))
	}
	s.considers()
	next.Invoke(t, p.ID, actAllow)
	if e := s.node.end(t, a.Key); e.Decision.Verdict != engine.Approved {
		t.Errorf("ended as %+v", e)
	}
}

// Where there are no buttons the notification tells and the dialog asks, but
// an open window is left alone.
func TestWithoutButtonsTheDialogAsks(t *testing.T) {
	tests := []struct {
		name string
		caps []string
	}{{"a server without actions", []string{"body"}}, {"no server and no bus", nil}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tt.caps)
			a := s.node.add("scout", "ls")
			if s.server != nil {
				if p := s.server.Wait(t, 1); len(p.Actions) != 0 {
					t.Errorf("it offers %v", p.Actions)
				}
			}
			w := s.at.next()
			w.shown(viewAsk, a.Key)
			s.node.add("worker", "pwd")
			w.told("the second ask", func(d pipe.Down) bool { return d.Type == "state" && d.Total == 2 })
			time.Sleep(100 * time.Millisecond)
			w.says(pipe.Up{Type: "answer", Key: a.Key, Hash: a.Hash, Verdict: engine.Approved})
			w.told("a result, and not to show itself", func(d pipe.Down) bool {
				if d.Type == "show" {
					t.Errorf("an open window was raised: %+v", d)
				}
				return d.Type == "result"
			})
			s.node.end(t, a.Key)
			w.says(pipe.Up{Type: "hidden"})
			eventually(t, "the hiding", func() bool { return !s.popups.windows.isVisible() })
			c := s.node.add("third", "id")
			w.shown(viewAsk, c.Key)
		})
	}
}

func TestNoNotifierAtAll(t *testing.T) {
	n := newNode()
	w, at, _ := supervise(t, n, nil)
	p := newPopups(w.cfg, w)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); p.run(ctx) }()
	defer func() { cancel(); <-ended }()
	a := n.add("scout", "ls")
	at.next().shown(viewAsk, a.Key)
}
