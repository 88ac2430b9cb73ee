//go:build !headless

package tray

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// The views of a window process.
const (
	viewAsk = "ask"
	viewNod = "nod"
)

const (
	stateAsks  = 50      // asks in one state at most
	stateBytes = 8 << 20 // of JSON in one state, about; one ask can be more
	stateEnded = 50      // ends in one state at most
	stateEvery = 50 * time.Millisecond

	restarts = 4 // deaths of a window within crashSpan that are given another try
	maxWhy   = 4 << 10
)

const crashSpan = time.Minute

// windows supervises the one window process: starts it when there is something
// to show, keeps it up to date, starts it again when it died with a window
// open, and ends it when it has shown nothing for a while. All that matters is
// on the board, so a window that dies loses nothing.
type windows struct {
	cfg Config

	mu      sync.Mutex
	wanted  *wish
	visible bool   // a window is open, or about to be
	trouble string // why there is no window although one is wanted
	wake    chan struct{}
	changed chan struct{} // trouble changed
	all     sync.WaitGroup
}

// wish is a view that somebody wants to see.
type wish struct {
	view, key string
	token     string // lets the window come to the front, where the desktop asks for one
	focus     bool   // the human asked for it, so it may take the keyboard
}

func newWindows(c Config) *windows {
	return &windows{cfg: c, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
}

// show brings a view to the front, because the human asked for it.
func (w *windows) show(view, key, token string) {
	w.want(wish{view, key, token, true})
}

// volunteer shows a view that nobody asked for: it must not take the keyboard.
func (w *windows) volunteer(view string) {
	w.want(wish{view: view})
}

func (w *windows) want(v wish) {
	w.mu.Lock()
	w.wanted, w.visible = &v, true
	w.mu.Unlock()
	poke(w.wake)
}

// offer shows the ask if no window is open: one that is has it in its queue,
// and must not come to the front for it.
func (w *windows) offer(key string) {
	w.mu.Lock()
	open := w.visible
	if !open {
		w.wanted, w.visible = &wish{view: viewAsk, key: key}, true
	}
	w.mu.Unlock()
	if !open {
		poke(w.wake)
	}
}

// problem is one sentence if windows do not work, else empty.
func (w *windows) problem() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble
}

func (w *windows) setProblem(why string) {
	w.mu.Lock()
	old := w.trouble
	w.trouble = why
	w.mu.Unlock()
	if old != why {
		poke(w.changed)
	}
}

func (w *windows) take() *wish {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.wanted
	w.wanted = nil
	return v
}

func (w *windows) isVisible() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.visible
}

// hidden notes that the last window closed, unless one was asked for since.
func (w *windows) hidden() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visible = w.wanted != nil
}

// poke makes c readable.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run supervises until ctx ends. quit ends the whole program.
func (w *windows) run(ctx context.Context, quit func()) {
	boardNews, unwatchBoard := w.cfg.Node.Board().Watch()
	defer unwatchBoard()
	nodeNews, unwatchNode := w.cfg.Node.Watch()
	defer unwatchNode()

	var (
		c       *window
		last    *wish       // what the window shows, to show it again
		deaths  []time.Time // within crashSpan
		stale   bool        // the window has not heard of the latest change
		pause   <-chan time.Time
		restart <-chan time.Time
		limit   <-chan time.Time // of an idle or starting window
		ups     <-chan pipe.Up
		gone    <-chan struct{}
	)
	start := func() {
		restart = nil
		token := ""
		if last != nil {
			token = last.token
		}
		var err error
		if c, err = w.launch(token); err != nil {
			w.cfg.Log.Error("starting a window", "error", err)
			w.setProblem("No window can be opened: " + visible.Line(err.Error(), 200))
			c = nil
			w.hidden()
			return
		}
		ups, gone = c.ups, c.gone
		limit = time.After(w.cfg.timing.start)
		c.send(w.state(last))
		if last != nil {
			c.send(pipe.Down{Type: "show", View: last.view, Key: last.key, Focus: last.focus})
			last.focus = false // not again, should it have to be started anew
		}
	}
	defer w.all.Wait()
	forget := func() { c, ups, gone, limit, stale = nil, nil, nil, nil, false }
	defer func() {
		if c != nil {
			c.end(w.cfg.timing.stop)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-boardNews:
			stale = true
		case <-nodeNews:
			stale = true
		case <-pause:
			pause = nil
		case <-w.wake:
			want := w.take()
			if want == nil {
				break
			}
			last = want
			if c == nil {
				start() // a restart that waits is overtaken
				break
			}
			limit = nil
			if !c.ready {
				limit = time.After(w.cfg.timing.start)
			}
			c.send(w.state(last))
			c.send(pipe.Down{Type: "show", View: want.view, Key: want.key, Focus: want.focus})
			want.focus = false
			stale = false
		case <-restart:
			if restart = nil; c == nil && w.isVisible() {
				start()
			}
		case u := <-ups:
			switch u.Type {
			case "ready":
				c.ready = true
				if limit = nil; !w.isVisible() {
					limit = time.After(w.cfg.timing.idle)
				}
				w.setProblem("")
			case "hidden":
				if w.hidden(); !w.isVisible() {
					limit = time.After(w.cfg.timing.idle)
				}
			case "quit":
				quit()
			default:
				w.handle(c, u)
			}
		case <-limit:
			limit = nil
			if c.ready {
				c.end(w.cfg.timing.stop) // idle
				forget()
				break
			}
			c.fail("it did not get ready in time")
		case <-gone:
			why, crashed := c.why()
			forget()
			if !crashed || !w.isVisible() {
				if crashed {
					w.cfg.Log.Warn("an idle window died", "why", why)
				}
				w.hidden()
				if w.isVisible() { // asked for while it ended
					poke(w.wake)
				}
				break
			}
			now := w.cfg.Now()
			deaths = append(slices.DeleteFunc(deaths, func(t time.Time) bool { return now.Sub(t) > crashSpan }), now)
			w.cfg.Log.Warn("a window died", "why", why, "deaths", len(deaths))
			if len(deaths) > restarts {
				deaths = nil
				w.setProblem("The window keeps dying (" + visible.Line(why, 200) + "). Answer in the notifications, or stop Nod and run: nod serve --frontend terminal")
				w.mu.Lock()
				w.visible = false
				w.mu.Unlock()
				break
			}
			restart = time.After(w.cfg.timing.again << (len(deaths) - 1))
		}
		if stale && c != nil && pause == nil {
			c.send(w.state(last))
			stale = false
			pause = time.After(stateEvery)
		}
	}
}

// handle does what a window's user wants.
func (w *windows) handle(c *window, u pipe.Up) {
	n := w.cfg.Node
	reply := pipe.Down{Type: "result", Key: u.Key, OK: true}
	switch u.Type {
	case "answer":
		err := n.Board().Answer(u.Key, u.Hash, board.Answer{Verdict: u.Verdict, Reason: u.Reason, View: "dialog"})
		var late *board.LateError
		switch {
		case errors.As(err, &late):
			reply.OK, reply.Message = false, "Too late: "+desk.How(late.End)
		case err != nil:
			reply.OK, reply.Message = false, visible.Line(err.Error(), 200)
			w.cfg.Log.Warn("a window's answer decided nothing", "ask", u.Key, "error", err)
		default:
			reply.Message = desk.How(board.End{Decision: engine.Decision{Verdict: u.Verdict, Reason: u.Reason}})
		}
	case "revoke":
		if err := n.Revoke(u.Grant); err != nil {
			reply.OK, reply.Message = false, visible.Line(err.Error(), 200)
		}
	case "clear":
		n.ClearGrants()
	case "pause":
		n.SetPaused(u.On)
	case "openlog":
		w.all.Go(func() {
			if err := openFile(n.LogPath(), w.cfg.Env); err != nil {
				reply.OK, reply.Message = false, visible.Line(err.Error(), 300)
			}
			c.send(reply)
		})
		return
	default:
		w.cfg.Log.Warn("a window said something unknown", "type", visible.Line(u.Type, 40))
		return
	}
	c.send(reply)
}

// state is all that a window draws. The ask that it shows is among the asks
// even if the queue before it is long.
func (w *windows) state(shown *wish) pipe.Down {
	n := w.cfg.Node
	d := pipe.Down{
		Type: "state", Grants: n.Grants(), Paused: n.Paused(), Serving: n.Serving(),
		Problems: append(slices.Clone(n.Problems()), nonEmpty(w.problem())...),
	}
	pending := n.Board().Pending()
	d.Total = len(pending)
	keep := pending[:min(stateAsks, len(pending))]
	shownAt := -1
	if shown != nil && shown.key != "" {
		shownAt = slices.IndexFunc(pending, func(a *board.Ask) bool { return a.Key == shown.key })
	}
	if shownAt >= len(keep) {
		keep = append(slices.Clone(keep[:stateAsks-1]), pending[shownAt])
	}
	room := stateBytes
	if shownAt >= 0 {
		room -= textSize(pending[shownAt])
	}
	for i, a := range keep {
		if shownAt < 0 || a != pending[shownAt] {
			size := textSize(a)
			if size > room && (i > 0 || shownAt >= 0) {
				continue // Total tells that there is more
			}
			room -= size
		}
		d.Asks = append(d.Asks, pipe.Ask{
			Key: a.Key, Hash: a.Hash, AgentDir: a.AgentDir, Adopted: a.Adopted,
			Since: a.Since, Notes: a.Notes, Question: a.Question,
		})
	}
	ended := n.Board().Ended()
	for _, e := range slices.Backward(ended[max(0, len(ended)-stateEnded):]) {
		d.Ended = append(d.Ended, pipe.Ended{Key: e.Key, Title: desk.Title(e.Ask.Question), How: desk.How(e), At: e.At})
	}
	return d
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// textSize is about how many bytes of JSON an ask takes.
func textSize(a *board.Ask) int {
	n := 1 << 10
	add := func(texts ...string) {
		for _, s := range texts {
			n += len(s)
			for i := 0; i < len(s); i++ {
				if c := s[i]; c < 0x20 || c == '<' || c == '>' || c == '&' {
					n += 5 // written as \u003c and the like
				}
			}
		}
	}
	q := a.Question
	add(q.Value, q.Message, q.Pattern, q.ExecutedUnit, q.RequesterCwd)
	for _, e := range q.Evidence {
		add(e.Label, e.Text)
		if e.Detail != nil {
			add(*e.Detail)
		}
	}
	for _, t := range q.Annotations {
		add(t.Source, t.Text)
	}
	for _, g := range q.Suggestion {
		add(g.Surface, g.Pattern)
	}
	if q.Intent != nil {
		add(q.Intent.MatchValues...)
		add(q.Intent.RequesterCwd)
	}
	add(a.Notes...)
	return n
}

// window is one window process.
type window struct {
	cmd   *exec.Cmd
	stdin *os.File
	ups   chan pipe.Up
	gone  chan struct{} // closed when the process has been waited for
	ready bool

	mu    sync.Mutex
	state *pipe.Down  // the latest, not yet sent
	queue []pipe.Down // what goes after it
	wake  chan struct{}
	fault string // why we ended it
	told  bool   // we asked it to end
	err   error  // of the process
	tail  tail   // of what it complained
}

// launch starts the process. Only what it alone inherits leads to it.
func (w *windows) launch(token string) (*window, error) {
	argv := w.cfg.Window
	inW, inR, err := downChannel()
	if err != nil {
		return nil, fmt.Errorf("opening a channel to the window: %w", err)
	}
	outR, outW, err := upChannel()
	if err != nil {
		inR.Close()
		inW.Close()
		return nil, fmt.Errorf("opening a channel from the window: %w", err)
	}
	c := &window{
		cmd: exec.Command(argv[0], argv[1:]...), stdin: inW,
		ups: make(chan pipe.Up), gone: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	c.cmd.Env = slices.Clip(w.cfg.Env)
	if token != "" {
		c.cmd.Env = append(c.cmd.Env, "XDG_ACTIVATION_TOKEN="+token, "DESKTOP_STARTUP_ID="+token)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, &c.tail
	c.cmd.WaitDelay = time.Second
	ownGroup(c.cmd)
	err = c.cmd.Start()
	inR.Close()
	outW.Close()
	if err != nil {
		inW.Close()
		outR.Close()
		return nil, fmt.Errorf("starting the window: %w", err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		err := pipe.Read(outR, func(u pipe.Up) {
			select {
			case c.ups <- u:
			case <-c.gone:
			}
		})
		if err != nil {
			c.fail("it said something unreadable: " + err.Error())
		}
	}()
	go c.write(w.cfg.timing.write)
	go func() {
		err := c.cmd.Wait()
		// A grandchild may hold the other end: what was said is read, then no more.
		_ = outR.SetReadDeadline(time.Now().Add(time.Second))
		<-read
		outR.Close()
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.gone)
	}()
	return c, nil
}

// send queues d. A state replaces one that was not sent yet.
func (c *window) send(d pipe.Down) {
	c.mu.Lock()
	if d.Type == "state" {
		c.state = &d
	} else {
		c.queue = append(c.queue, d)
	}
	c.mu.Unlock()
	poke(c.wake)
}

// write sends what is queued until the process is gone.
func (c *window) write(limit time.Duration) {
	defer c.stdin.Close()
	out := pipe.NewWriter(c.stdin)
	for {
		select {
		case <-c.gone:
			return
		case <-c.wake:
		}
		for {
			c.mu.Lock()
			var d pipe.Down
			switch {
			case c.state != nil:
				d, c.state = *c.state, nil
			case len(c.queue) > 0:
				d, c.queue = c.queue[0], c.queue[1:]
			}
			c.mu.Unlock()
			if d.Type == "" {
				break
			}
			_ = c.stdin.SetWriteDeadline(time.Now().Add(limit))
			if err := out.Write(d); err != nil {
				c.fail("it does not read what it is told: " + err.Error())
				return
			}
			if d.Type == "quit" {
				return // closes its input: the end, for whatever it is
			}
		}
	}
}

// fail kills the process; why is what its death will be put down to.
func (c *window) fail(why string) {
	c.mu.Lock()
	if c.fault == "" && !c.told {
		c.fault = why
	}
	c.mu.Unlock()
	c.kill()
}

func (c *window) kill() {
	select {
	case <-c.gone:
		return // its number may be another's by now
	default:
	}
	if err := killGroup(c.cmd); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = c.cmd.Process.Kill()
	}
}

// end asks the process to go and kills it if it has not after limit.
func (c *window) end(limit time.Duration) {
	c.mu.Lock()
	c.told, c.state = true, nil
	c.mu.Unlock()
	c.send(pipe.Down{Type: "quit"})
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		select {
		case <-c.gone:
			return
		case <-c.ups: // nobody listens any more
		case <-t.C:
			c.kill()
		}
	}
}

// why says how the process ended, and whether it died. Ending by itself with
// status 0 is how a window process closes.
func (c *window) why() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fault != "":
		return c.fault, true
	case c.err == nil || errors.Is(c.err, exec.ErrWaitDelay) && c.cmd.ProcessState.Success():
		return "", false
	}
	why := c.err.Error()
	if t := c.tail.last(); t != "" {
		why += ": " + t
	}
	return why, !c.told
}

// tail keeps the end of what a process complains.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - maxWhy; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// last is the line that most likely says why: the one that begins a panic, or
// the last.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(string(bytes.TrimSpace(t.b)), "\n")
	for _, l := range lines {
		if strings.HasPrefix(l, "panic:") || strings.HasPrefix(l, "fatal error:") {
			return l
		}
	}
	return lines[len(lines)-1]
}
