package forwarding

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

// The times of an Adopter.
const (
	// DefaultAdoptDelay is how long an old peer, which tells nobody that it
	// serves, gets to answer first.
	DefaultAdoptDelay = 3 * time.Second
	// DefaultAdoptIdle is how long an adopted inbox stays served without an ask.
	DefaultAdoptIdle = 10 * time.Minute

	// watchOver is the pause between two looks while an ask waits for another
	// process: should that one die, the child gives up after Grace.
	watchOver = time.Second
	// adoptSweep is the net under lost events.
	adoptSweep = time.Minute

	maxWards   = 64  // inboxes adopted at a time
	maxWatched = 512 // inboxes that are watched for asks
)

// Adopter serves the inboxes of an agent directory that nobody else serves: a
// child's ask lies in one, and the session's heartbeat is absent, dead or
// stale. It announces such a session at once, so that the child waits, and
// steps back the moment that another process announces it.
//
// A peer that is older than heartbeats may be serving a session without one.
// So where a session may be such a peer's, every ask waits Delay before it is
// decided, until one has been decided here: whatever the peer answered in that
// time is gone, and nothing is answered twice.
type Adopter struct {
	AgentDir string
	Mine     []string // sessions that this process serves anyway

	Delay time.Duration // before an ask is decided; 0: none
	Idle  time.Duration // 0 means DefaultAdoptIdle

	// Server is what the server of an adopted inbox is made of; its
	// directory, session and StepBack are set here.
	Server ServerConfig
	// Adopted, if set, is told when a session is taken over, and when it is
	// given back. It must not block.
	Adopted func(session string, on bool)

	spool   *spool // of no session: for the directories above
	watch   Watch  // nil while there are no events
	mine    map[string]bool
	wards   map[string]*ward     // by encoded session
	watched map[string]bool      // by encoded session
	foreign map[string]time.Time // by encoded session: when the newest ask came that waits for another process
	ended   chan end
	running sync.WaitGroup
}

// ward is one adopted inbox.
type ward struct {
	server *Server
	stop   context.CancelFunc
	busy   *atomic.Int64 // Unix ms of the last ask
}

// end is why a ward's server ended.
type end struct {
	name string
	err  error
}

// Run adopts until ctx ends, and then returns nil when every adopted inbox has
// been given back. It may be called once.
func (a *Adopter) Run(ctx context.Context) error {
	dir, err := filepath.Abs(a.AgentDir)
	if err != nil || a.AgentDir == "" {
		return fmt.Errorf("watching for inboxes that nobody serves: no agent directory: %w", err)
	}
	a.AgentDir = dir
	if a.Idle <= 0 {
		a.Idle = DefaultAdoptIdle
	}
	if a.Server.Clock.Now == nil {
		a.Server.Clock = heartbeat.SystemClock()
	}
	if a.Server.Timeout <= 0 {
		a.Server.Timeout = DefaultTimeout
	}
	a.spool = newSpool(a.Server.Files, a.AgentDir, "")
	a.mine, a.wards, a.watched, a.foreign = map[string]bool{}, map[string]*ward{}, map[string]bool{}, map[string]time.Time{}
	for _, id := range a.Mine {
		if id, err := heartbeat.CheckSession(id); err == nil {
			a.mine[heartbeat.Encode(id)] = true
		}
	}
	a.ended = make(chan end)
	defer func() {
		for _, w := range a.wards {
			w.stop()
		}
		a.running.Wait()
		a.unwatch()
	}()

	timer := time.NewTimer(0)
	defer timer.Stop()
	var due time.Time // when the timer fires
	for {
		var events <-chan fsnotify.Event
		var errs <-chan error
		if a.watch != nil {
			events, errs = a.watch.Events(), a.watch.Errors()
		}
		all := false
		select {
		case <-ctx.Done():
			return nil
		case e := <-a.ended:
			a.givenBack(ctx, e)
		case ev, ok := <-events:
			name, below := strings.CutPrefix(ev.Name, a.sessions()+string(filepath.Separator))
			switch {
			case !ok:
				a.unwatch()
				all = true
			case below:
				name, _, _ = strings.Cut(name, string(filepath.Separator))
				a.look(ctx, name)
			default: // the directory of all sessions itself
				all = true
			}
		case <-errs: // an overflow, or a watch that broke
			all = true
		case <-timer.C:
			all = true
		}
		if all {
			a.sweep(ctx)
		}
		if next := time.Now().Add(a.pause()); all || next.Before(due) {
			due = next
			timer.Reset(time.Until(due))
		}
	}
}

// pause is how long nothing has to be looked at without an event.
func (a *Adopter) pause() time.Duration {
	pause := adoptSweep
	if len(a.wards) > 0 {
		pause = min(pause, a.Idle/4)
	}
	if len(a.watched) >= maxWatched || len(a.wards) >= maxWards {
		pause = min(pause, sweepInterval)
	}
	if a.watch == nil {
		return watchOver
	}
	now := a.Server.Clock.Now()
	for name, newest := range a.foreign {
		if now.Sub(newest) < a.Server.Timeout {
			return watchOver
		}
		delete(a.foreign, name)
	}
	return pause
}

func (a *Adopter) sessions() string { return filepath.Join(Root(a.AgentDir), "sessions") }

// sweep looks at every inbox, and gives back those that have been idle.
func (a *Adopter) sweep(ctx context.Context) {
	names, err := a.list()
	if err != nil {
		a.problem("inboxes", &Problem{File: a.sessions(), Reason: "cannot be read, so no inbox in it is adopted", Remedy: "check its owner, its mode and the free space", Err: err})
		a.unwatch()
		return
	}
	a.problem("inboxes", nil)
	for _, name := range names {
		a.look(ctx, name)
	}
	idle := a.Server.Clock.Now().Add(-a.Idle).UnixMilli()
	for _, w := range a.wards {
		if w.server.Pending() == 0 && w.busy.Load() < idle {
			w.stop()
		}
	}
}

// list arms the watch of the sessions' directory, and returns what is in it.
func (a *Adopter) list() ([]string, error) {
	path := a.sessions()
	if err := a.spool.files.MkdirAll(path); err != nil {
		return nil, err
	}
	dir, err := a.spool.files.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if a.watch == nil && !dir.Remote() {
		if a.watch, err = a.spool.files.Watch(); err != nil {
			a.watch = nil
			a.unwatchable(path, err)
		}
	}
	a.see(path)
	return dir.Names(maxNames)
}

// see adds a directory to the watch. One that is gone is no matter.
func (a *Adopter) see(path string) {
	if a.watch == nil {
		return
	}
	switch err := a.watch.Add(path); {
	case err == nil:
		a.problem("watch of inboxes", nil)
	case !errors.Is(err, fs.ErrNotExist):
		a.unwatchable(path, err)
		a.unwatch()
	}
}

func (a *Adopter) unwatchable(path string, err error) {
	a.problem("watch of inboxes", &Problem{File: path, Reason: "cannot be watched, so it is looked at once a second", Remedy: watchRemedy, Err: err})
}

func (a *Adopter) unwatch() {
	if a.watch != nil {
		_ = a.watch.Close()
	}
	a.watch = nil
	clear(a.watched)
}

// problem tells what must be mended, or with nil that it is.
func (a *Adopter) problem(about string, p *Problem) {
	if a.Server.Problem == nil {
		return
	}
	text := ""
	if p != nil {
		text = p.Text()
	}
	a.Server.Problem(about+" in "+a.AgentDir, text)
}

// look adopts the inbox of that name if an ask waits in it for nobody.
func (a *Adopter) look(ctx context.Context, name string) {
	if a.mine[name] || a.wards[name] != nil {
		return
	}
	delete(a.foreign, name)
	id, err := heartbeat.Decode(name)
	if err != nil {
		return
	}
	if trimmed, err := heartbeat.CheckSession(id); err != nil || trimmed != id {
		return
	}
	s := newSpool(a.Server.Files, a.AgentDir, id)
	in, err := s.inbox(false)
	if err != nil {
		delete(a.watched, name) // gone, or nothing that a server would take
		return
	}
	in.Close()
	if a.watched[name] || len(a.watched) < maxWatched {
		a.watched[name] = true
		a.see(filepath.Dir(s.path(requestsDir)))
		a.see(s.path(requestsDir))
	}
	newest := a.waiting(s)
	if newest.IsZero() {
		return
	}
	state, rec := (heartbeat.Reader{Clock: a.Server.Clock}).Read(ServingDir(a.AgentDir), id)
	switch {
	case state == heartbeat.Alive:
		a.foreign[name] = newest
	case len(a.wards) >= maxWards:
		a.problem("adopting", &Problem{File: a.sessions(), Reason: fmt.Sprintf("holds more than %d inboxes that nobody serves; the others are left alone", maxWards), Remedy: "find out what writes them"})
	default:
		// A record that a peer wrote proves that the session's server is no
		// older than heartbeats. One of a stand-in proves nothing.
		delay := a.Delay
		if state != heartbeat.Absent && !rec.StandIn {
			delay = 0
		}
		a.adopt(ctx, name, id, delay)
	}
}

// waiting is when the newest ask in an inbox came that may still be answered;
// zero if none is there.
func (a *Adopter) waiting(s *spool) (newest time.Time) {
	dir, err := s.dir(requestsDir, false)
	if err != nil {
		return newest
	}
	defer dir.Close()
	names, err := dir.Names(maxNames)
	if err != nil {
		return newest
	}
	answers, err := s.dir(responsesDir, false)
	if err == nil {
		defer answers.Close()
	}
	oldest := a.Server.Clock.Now().Add(-a.Server.Timeout)
	for _, n := range names {
		stem, ok := strings.CutSuffix(n, fileSuffix)
		if !ok || CheckID(stem) != nil {
			continue
		}
		in, err := dir.Stat(n)
		if err != nil || !in.Mode.IsRegular() || !in.Mine || in.MTime.Before(oldest) || !in.MTime.After(newest) {
			continue
		}
		if answers != nil {
			if _, err := answers.Stat(n); err == nil {
				continue // answered; its child has to collect it
			}
		}
		newest = in.MTime
	}
	return newest
}

func (a *Adopter) adopt(ctx context.Context, name, id string, delay time.Duration) {
	cfg := a.Server
	w := &ward{busy: &atomic.Int64{}}
	w.busy.Store(cfg.Clock.Now().UnixMilli())
	cfg.AgentDir, cfg.SessionID = a.AgentDir, id
	cfg.Decider = &standIn{Decider: a.Server.Decider, delay: delay, now: cfg.Clock.Now, busy: w.busy}
	cfg.StepBack = func(heartbeat.Record) {} // Run says so
	if a.Adopted != nil {
		a.Adopted(id, true)
	}
	w.server = NewServer(cfg)
	if a.watch != nil { // the server watches for itself
		_ = a.watch.Remove(w.server.spool.path(requestsDir))
		_ = a.watch.Remove(filepath.Dir(w.server.spool.path(requestsDir)))
	}
	serving, stop := context.WithCancel(ctx)
	w.stop = stop
	a.wards[name] = w
	a.running.Go(func() {
		err := w.server.Run(serving)
		w.stop()
		if a.Adopted != nil {
			a.Adopted(id, false)
		}
		select {
		case a.ended <- end{name, err}:
		case <-ctx.Done():
		}
	})
}

// givenBack takes an inbox off the books whose server has ended.
func (a *Adopter) givenBack(ctx context.Context, e end) {
	delete(a.wards, e.name)
	a.problem("adopting", nil)
	if e.err == nil || errors.Is(e.err, ErrServed) {
		a.look(ctx, e.name) // an ask may have come between
	}
}

// standIn is the Decider of an adopted inbox.
type standIn struct {
	Decider
	delay  time.Duration
	now    func() time.Time
	busy   *atomic.Int64
	proven atomic.Bool // an ask was decided here: nobody else serves
}

// Decide waits until an old peer would have answered. What ends the wait is
// the request's end.
func (d *standIn) Decide(ctx context.Context, in *Inbound) engine.Decision {
	defer func() { d.busy.Store(d.now().UnixMilli()) }()
	if d.delay > 0 && !d.proven.Load() && !sleep(ctx, d.delay) {
		return engine.Decision{}
	}
	out := d.Decider.Decide(ctx, in)
	if ctx.Err() == nil {
		d.proven.Store(true)
	}
	return out
}
