package forwarding

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

// Decider decides one ask, however long that takes. It is called on a
// goroutine of its own for every ask and must be safe for concurrent use.
//
// ctx ends when the ask is withdrawn: the request's file went or changed, the
// child has waited as long as it does, or the server stops. context.Cause then
// is a *Withdrawn whose Why is one sentence for the human who looks at it;
// what Decide returns is not used any more.
//
// A Decider that shows the ask to a human records EventPrompted.
type Decider interface {
	Decide(ctx context.Context, in *Inbound) engine.Decision
}

// Inbound is one ask that arrived in an inbox.
type Inbound struct {
	Question  *engine.Question
	Request   *Request
	Hash      string // SHA-256 of the request file, in hex: an answer is bound to it
	AgentDir  string
	SessionID string // the session that serves it
}

// Attrs says in the review log's words whose ask this is.
func (in *Inbound) Attrs() []slog.Attr {
	return append(requestAttrs(in.Request), slog.String("agentDir", in.AgentDir))
}

func requestAttrs(r *Request) []slog.Attr {
	return []slog.Attr{
		slog.String("requestId", r.ID),
		slog.String("requesterAgentName", r.RequesterAgentName),
		slog.String("requesterSessionId", r.RequesterSessionID),
		slog.String("targetSessionId", r.TargetSessionID),
		slog.String("source", r.Source),
		slog.String("surface", deref(r.Surface)),
		slog.String("value", deref(r.Value)),
	}
}

// Withdrawn is the cause of an ask's end without an answer.
type Withdrawn struct {
	Why string // one sentence
}

// Error is Why.
func (w *Withdrawn) Error() string { return w.Why }

var (
	whyGone     = &Withdrawn{"The agent took the request back."}
	whyChanged  = &Withdrawn{"The request's file was changed while it waited, so it is not the one that was shown."}
	whyExpired  = &Withdrawn{"The agent waits no longer."}
	whyStopping = &Withdrawn{"Nod stops; the request waits for the next start."}
	whyServed   = &Withdrawn{"Another process serves this session now, and has the request."}
)

// ErrServed says that another living process serves the session.
var ErrServed = errors.New("the session is served by another process")

// ServerConfig is what a Server needs. AgentDir, SessionID and Decider are
// required.
type ServerConfig struct {
	AgentDir  string
	SessionID string
	Decider   Decider
	Beat      *heartbeat.Writer // shared by all servers of a process; nil means one of its own

	// Grant records the child's suggestion as the serving session's own, for
	// an ask approved for the whole session (record 0006). It is called once
	// per such approval, before the answer goes out. If it fails the child
	// still gets its plain approval.
	Grant func(in *Inbound) error

	// StepBack, if set, makes the server a stand-in: it ends with ErrServed
	// when another living process announces the session, and leaves the record
	// to it.
	StepBack func(by heartbeat.Record)

	// Ready, if set, is called once: the inbox is watched and the heartbeat
	// can be read.
	Ready func()

	// Problem, if set, is told what a user must mend for this inbox to work as
	// it should, as a sentence or two about one thing. An empty text means
	// that it is mended. It must not block.
	Problem func(about, text string)

	Timeout time.Duration   // the child's patience; 0 means DefaultTimeout
	Clock   heartbeat.Clock // zero means the machine's
	Files   Files           // nil means Disk
	Log     Log             // nil means none
}

// Server serves the inbox of one session: it reads requests, has each decided
// on its own goroutine, and writes the answers. What it has not answered when
// it ends, in whatever way, stays on disk for the next one.
type Server struct {
	cfg   ServerConfig
	err   error // of the configuration
	spool *spool
	watch *watch
	log   Log

	again chan struct{} // holds a token when a full look is wanted

	small, large *budget // bytes of asks held in memory
	readers      *budget // requests being read at once
	writers      *budget // answers being written at once

	asks sync.WaitGroup

	mu       sync.Mutex
	entries  map[string]*entry // by file name
	former   map[string]former // what was asked under a name, while a child may still wait for it
	reported map[string]string // why the file of that name was last refused
	problems map[string]*Problem
}

// entry is one file of the inbox that the server has taken notice of.
type entry struct {
	name   string
	seen   Info      // as of the first look; its identity fields are compared
	first  time.Time // when that was
	cancel context.CancelCauseFunc
	ctx    context.Context

	settled bool // refused or answered: nothing more will come of it
	hash    [sha256.Size]byte
	asked   bool
	done    identity      // of an answered request that could not be removed
	expiry  time.Duration // boot clock at which the child stops waiting; 0 if unknown
}

type former struct {
	hash  [sha256.Size]byte
	until time.Time
}

const (
	smallAsk    = 16 << 10 // bytes
	smallBudget = 32 << 20
	largeBudget = 32 << 20
	perAsk      = 1 << 10 // what an ask costs beside its bytes
	fairShare   = 3       // one requester gets three quarters of a budget, the next three quarters of the rest
	maxReaders  = 8
	maxWriters  = 16
	settleTime  = 500 * time.Millisecond // for a writer that does not rename
	retryFirst  = 100 * time.Millisecond
	retryLast   = 2 * time.Second
	expirySlack = time.Second // the child takes its request back itself, if it lives
	maxFormer   = 4096
)

// NewServer returns a server that does not run yet. What is wrong with cfg is
// told by Run.
func NewServer(cfg ServerConfig) *Server {
	id, err := heartbeat.CheckSession(cfg.SessionID)
	if err == nil && (cfg.AgentDir == "" || cfg.Decider == nil) {
		err = errors.New("an agent directory and a decider are needed")
	}
	if err == nil {
		cfg.SessionID = id
		cfg.AgentDir, err = filepath.Abs(cfg.AgentDir)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Clock.Now == nil {
		cfg.Clock = heartbeat.SystemClock()
	}
	if cfg.Log == nil {
		cfg.Log = noLog{}
	}
	if cfg.Beat == nil {
		cfg.Beat = heartbeat.NewWriter(cfg.Clock, nil, slog.New(slog.DiscardHandler))
	}
	sp := newSpool(cfg.Files, cfg.AgentDir, cfg.SessionID)
	return &Server{
		cfg: cfg, err: err, spool: sp, watch: newWatch(sp, requestsDir), log: cfg.Log,
		again: make(chan struct{}, 1),
		small: newShared(smallBudget, fairShare), large: newShared(largeBudget, fairShare), readers: newBudget(maxReaders), writers: newBudget(maxWriters),
		entries: map[string]*entry{}, former: map[string]former{}, reported: map[string]string{}, problems: map[string]*Problem{},
	}
}

// SessionID is the session that is served, trimmed.
func (s *Server) SessionID() string { return s.cfg.SessionID }

// AgentDir is the agent directory, absolute.
func (s *Server) AgentDir() string { return s.cfg.AgentDir }

// Pending is the number of requests that are being read or decided.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.entries {
		if !e.settled {
			n++
		}
	}
	return n
}

// Run serves until ctx ends, and then returns nil; every ask is withdrawn
// before it returns. It returns an error that wraps ErrServed, at once or
// later, if another living process serves the session; one that only stands in
// is no hindrance. A directory that cannot
// be used is a problem and is tried again, not an error. Run may be called once.
func (s *Server) Run(ctx context.Context) error {
	if s.err != nil {
		return fmt.Errorf("serving session %q: %w", s.cfg.SessionID, s.err)
	}
	reader := heartbeat.Reader{Clock: s.cfg.Clock}
	if state, rec := reader.Read(ServingDir(s.cfg.AgentDir), s.cfg.SessionID); state == heartbeat.Alive && rec.PID != os.Getpid() && (!rec.StandIn || s.cfg.StepBack != nil) {
		return fmt.Errorf("serving session %q: %w (pid %d)", s.cfg.SessionID, ErrServed, rec.PID)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer s.watch.close()

	var beat *heartbeat.Announcement
	timer := time.NewTimer(0)
	defer timer.Stop()
	var nextReap time.Time
	for {
		names, all := []string(nil), false
		select {
		case <-ctx.Done():
			if c := context.Cause(ctx); errors.Is(c, ErrServed) {
				s.shutDown(beat, c.Error(), whyServed)
				return fmt.Errorf("serving session %q: %w", s.cfg.SessionID, c)
			}
			s.shutDown(beat, "stopped", whyStopping)
			return nil
		case <-s.watch.wake:
			names, all = s.watch.take()
		case <-s.again:
			all = true
		case <-timer.C:
			all = true
		}
		events, ok := s.look(ctx, names, all)
		if ok && beat == nil {
			beat = s.announce(stop)
		}
		if all && beat != nil {
			s.health(beat)
		}
		if now := s.cfg.Clock.Now(); all && ok && !now.Before(nextReap) {
			nextReap = now.Add(time.Minute)
			s.reap(now)
		}
		if all || !ok {
			switch {
			case events && ok && beat != nil:
				timer.Reset(sweepInterval)
			default:
				timer.Reset(PollInterval)
			}
		}
	}
}

// announce starts the heartbeat; it is nil if that failed.
func (s *Server) announce(stop context.CancelCauseFunc) *heartbeat.Announcement {
	var yield func(heartbeat.Record)
	if s.cfg.StepBack != nil {
		yield = func(by heartbeat.Record) {
			stop(fmt.Errorf("%w (pid %d)", ErrServed, by.PID))
			s.cfg.StepBack(by)
		}
	}
	dir := ServingDir(s.cfg.AgentDir)
	beat, err := s.cfg.Beat.Announce(dir, s.cfg.SessionID, yield)
	if err != nil {
		s.problem("heartbeat", &Problem{File: dir, Reason: "takes no heartbeat, so agents do not know that this session is served",
			Remedy: "check the directory's owner and mode, and the free space", Err: err})
		return nil
	}
	s.solved("heartbeat")
	s.log.Record(EventServingStarted, slog.String("targetSessionId", s.cfg.SessionID), slog.String("agentDir", s.cfg.AgentDir))
	if s.cfg.Ready != nil {
		s.cfg.Ready()
	}
	return beat
}

// health tells when children may not see that the session is served, or may see
// another process serve it.
func (s *Server) health(beat *heartbeat.Announcement) {
	file := filepath.Join(ServingDir(s.cfg.AgentDir), heartbeat.Encode(s.cfg.SessionID)+fileSuffix)
	err, rival := beat.Err(), beat.Rival()
	switch {
	case err != nil:
		s.problem("heartbeat", &Problem{File: file, Reason: "cannot be refreshed, so agents take this session for gone",
			Remedy: "remove what lies there, check the directory's owner and mode, and the free space", Err: err})
	case rival != 0:
		s.problem("heartbeat", &Problem{File: file, Reason: fmt.Sprintf("is written by process %d as well, which says that it serves this session", rival),
			Remedy: "stop one of the two"})
	default:
		s.solved("heartbeat")
	}
}

func (s *Server) shutDown(beat *heartbeat.Announcement, why string, withdrawn *Withdrawn) {
	if beat != nil {
		if err := beat.Withdraw(); err != nil {
			s.log.Record(EventError, slog.String("file", ServingDir(s.cfg.AgentDir)), slog.String("reason", err.Error()))
		}
	}
	s.mu.Lock()
	for _, e := range s.entries {
		e.cancel(withdrawn)
	}
	s.mu.Unlock()
	s.asks.Wait()
	s.spool.tidy()
	if beat != nil {
		s.log.Record(EventServingStopped, slog.String("targetSessionId", s.cfg.SessionID), slog.String("agentDir", s.cfg.AgentDir), slog.String("reason", why))
	}
}

// look compares the inbox, or the given names of it, with what is known.
// events tells whether changes will be told; ok whether the inbox could be read.
func (s *Server) look(ctx context.Context, names []string, all bool) (events, ok bool) {
	dir, err := s.spool.dir(requestsDir, true)
	if err != nil {
		s.inboxProblem(err)
		return false, false
	}
	defer dir.Close()
	events, err = s.watch.arm(dir)
	if err != nil {
		s.problem("watch", &Problem{File: s.spool.path(requestsDir), Reason: "cannot be watched, so it is looked at four times a second", Remedy: watchRemedy, Err: err})
	} else {
		s.solved("watch")
	}
	if all {
		list, err := dir.Names(maxNames)
		if err != nil {
			s.inboxProblem(err)
			return events, false
		}
		list = slices.DeleteFunc(list, func(n string) bool { return !strings.HasSuffix(n, fileSuffix) })
		slices.Sort(list)
		names = list
		s.mu.Lock()
		for n := range s.entries {
			if _, found := slices.BinarySearch(list, n); !found {
				names = append(names, n) // gone, or beyond the limit; Stat tells
			}
		}
		s.mu.Unlock()
		s.expire()
	}
	for _, name := range names {
		if err := s.lookAt(ctx, dir, name); err != nil {
			s.inboxProblem(err)
			return events, false
		}
	}
	s.solved("inbox")
	return events, true
}

// inboxProblem tells that the inbox cannot be read. One that is missing was
// cleaned up by a child this moment, and the next look makes it anew.
func (s *Server) inboxProblem(err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	p := &Problem{File: s.spool.path(requestsDir), Reason: "cannot be read", Remedy: "check its owner, its mode and the free space", Err: err}
	var known *Problem
	if errors.As(err, &known) {
		p = known
	}
	s.problem("inbox", p)
}

// lookAt compares one file with what is known of it.
func (s *Server) lookAt(ctx context.Context, dir Dir, name string) error {
	in, err := dir.Stat(name)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if gone {
		if e != nil {
			s.forget(e, whyGone)
		}
		delete(s.reported, name)
		return nil
	}
	if e != nil {
		if sameIdentity(e.seen, in) {
			if e.done != (identity{}) {
				_ = dir.Remove(name) // answered; removing it failed before
			}
			return nil
		}
		s.forget(e, whyChanged)
	}
	e = &entry{name: name, seen: in, first: time.Now()}
	// Not a child of ctx: an ask ends with a cause of its own.
	e.ctx, e.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.entries[name] = e
	s.asks.Add(1)
	go s.serve(e)
	return nil
}

func sameIdentity(a, b Info) bool {
	return a.Dev == b.Dev && a.Inode == b.Inode && a.Size == b.Size && a.MTime.Equal(b.MTime)
}

// forget takes e off the books and withdraws its ask. s.mu is held.
func (s *Server) forget(e *entry, why *Withdrawn) {
	if s.entries[e.name] == e {
		delete(s.entries, e.name)
	}
	if e.asked && !e.settled {
		s.remember(e)
	}
	e.cancel(why)
}

// remember keeps what was asked under e's name for as long as its child may
// wait: another request of that name is then not that child's. s.mu is held.
func (s *Server) remember(e *entry) {
	now := s.cfg.Clock.Now()
	if len(s.former) >= maxFormer {
		for n, f := range s.former {
			if now.After(f.until) || len(s.former) >= maxFormer {
				delete(s.former, n)
			}
		}
	}
	s.former[e.name] = former{e.hash, now.Add(s.cfg.Timeout)}
}

// expire withdraws what timers cannot be trusted with: they stand still while
// the machine is suspended.
func (s *Server) expire() {
	if s.cfg.Clock.Boot == nil {
		return
	}
	now := s.cfg.Clock.Boot()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.expiry > 0 && now > e.expiry {
			e.cancel(whyExpired)
		}
	}
	for n, f := range s.former {
		if s.cfg.Clock.Now().After(f.until) {
			delete(s.former, n)
		}
	}
}

// reap removes the leavings of the dead: temporary files, responses that
// nobody has collected, and refused requests whose child is long gone.
func (s *Server) reap(now time.Time) {
	_ = s.spool.reap(requestsDir, now, s.keep(), func(name string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		e := s.entries[name]
		return e == nil || e.settled
	})
	_ = s.spool.reap(responsesDir, now, s.keep(), func(string) bool { return true })
}

// keep is how old a file must be for its child to be gone for certain.
func (s *Server) keep() time.Duration { return s.cfg.Timeout + time.Minute }

// lookAgain asks for a full look at the inbox.
func (s *Server) lookAgain() {
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// settle notes that nothing more comes of e.
func (s *Server) settle(e *entry) {
	s.mu.Lock()
	e.settled = true
	s.mu.Unlock()
	e.cancel(nil)
}

// serve takes one request from its file to its answer.
func (s *Server) serve(e *entry) {
	defer s.asks.Done()
	in, id, room := s.admit(e)
	if in == nil {
		return
	}
	defer room.release()
	d := s.decide(e.ctx, in)
	if e.ctx.Err() != nil {
		s.withdrawn(e, in, id)
		return
	}
	s.answer(e, in, id, d)
}

// refusal is why a file is no ask. remove tells that the convention has it
// removed.
type refusal struct {
	reason, remedy string
	remove         bool
}

// room claims what an ask holds in memory while it waits, in its requester's
// name: a flood of one agent's asks fills its share, and leaves the rest of
// itself on the disk.
func (s *Server) room(in *Inbound, id identity) *waiter {
	pool := s.small
	if id.size > smallAsk {
		pool = s.large
	}
	// A name can be as long as its request.
	who := sha256.Sum256([]byte(in.Question.Principal.SessionID + "\x00" + in.Question.Principal.AgentName))
	return pool.claim(string(who[:]), id.size+perAsk)
}

// admit reads and checks the request until it is one, and there is room for
// it, or it is none. It returns nil if nothing is to be decided; else the room
// is the caller's to give back.
func (s *Server) admit(e *entry) (in *Inbound, id identity, room *waiter) {
	in, id, room = s.read(e)
	if in != nil && s.bind(e, in, id) {
		return in, id, room
	}
	if room != nil {
		room.release()
	}
	return nil, id, nil
}

// read is admit without what binds the ask to its file. It may return a room
// without an ask.
func (s *Server) read(e *entry) (in *Inbound, id identity, room *waiter) {
	pause := retryFirst
	var unsettled time.Duration
	var size int64 // that room is for
	defer s.solved("read:" + e.name)
	for {
		var no *refusal
		var err error
		in, id, no, err = s.readRequest(e)
		switch {
		case e.ctx.Err() != nil:
			return nil, id, room
		case err == nil && no == nil:
			if in == nil {
				return nil, id, room // answered before
			}
			if room != nil && id.size <= size {
				return in, id, room
			}
			if room != nil {
				room.release() // it grew while it waited
			}
			if room, size = s.room(in, id), id.size; room.granted() {
				return in, id, room
			}
			in = nil // it waits on the disk, and is read again then
			if !room.wait(e.ctx) {
				return nil, id, nil
			}
			continue
		case no != nil:
			s.refuse(e, id, *no)
			return nil, id, room
		case errors.Is(err, fs.ErrNotExist):
			s.mu.Lock()
			s.forget(e, whyGone)
			s.mu.Unlock()
			return nil, id, room
		case errors.Is(err, errUnsettled) && unsettled >= settleTime:
			var p *Problem
			if errors.As(err, &p) {
				s.refuse(e, id, refusal{reason: p.Reason, remedy: p.Remedy})
				return nil, id, room
			}
		case errors.Is(err, errUnsettled):
			unsettled += pause
		default:
			p := &Problem{File: filepath.Join(s.spool.path(requestsDir), e.name), Reason: "cannot be read now; it is tried again", Remedy: "check the disk", Err: err}
			var known *Problem
			if errors.As(err, &known) {
				if known.File == p.File {
					s.refuse(e, id, refusal{reason: known.Error(), remedy: known.Remedy})
					return nil, id, room
				}
				p = known
			}
			s.problem("read:"+e.name, p)
			pause = min(2*pause, retryLast)
		}
		if !sleep(e.ctx, pause) {
			return nil, id, room
		}
	}
}

// readRequest reads the file once. in and no are both nil when the request has
// its answer already.
func (s *Server) readRequest(e *entry) (in *Inbound, id identity, no *refusal, err error) {
	if !s.readers.acquire(e.ctx, 1) {
		return nil, id, nil, context.Cause(e.ctx)
	}
	defer s.readers.release(1)
	dir, err := s.spool.dir(requestsDir, false)
	if err != nil {
		return nil, id, nil, err
	}
	defer dir.Close()
	stem := strings.TrimSuffix(e.name, fileSuffix)
	if err := CheckID(stem); err != nil {
		return nil, id, &refusal{reason: "its name can be no request's: the id " + err.Error(), remedy: "remove the file"}, nil
	}
	data, id, err := s.spool.read(dir, requestsDir, e.name)
	if err != nil {
		return nil, id, nil, err
	}
	req, err := ParseRequest(data)
	if err != nil {
		var bad *InvalidError
		if errors.As(err, &bad) && bad.Syntax() && time.Since(e.first) < settleTime {
			return nil, id, nil, fmt.Errorf("%w: %w", errUnsettled, err)
		}
		return nil, id, &refusal{reason: err.Error(), remedy: "the agent that wrote it must be mended; its ask is not shown", remove: true}, nil
	}
	switch {
	case req.ID != stem:
		return nil, id, &refusal{reason: fmt.Sprintf("the id inside is %.80q, which is not the file's name", req.ID), remedy: "remove the file"}, nil
	case strings.TrimSpace(req.TargetSessionID) != s.cfg.SessionID:
		return nil, id, &refusal{reason: fmt.Sprintf("it is meant for session %.80q and lies in the inbox of %q", req.TargetSessionID, s.cfg.SessionID),
			remedy: "the agent must write into the inbox of the session it names", remove: true}, nil
	}
	switch there, err := s.answered(e.name); {
	case err != nil:
		return nil, id, nil, err
	case there:
		// The answer waits to be collected: a server that was killed between
		// the two steps wrote it, or another one, or anybody.
		s.log.Record(EventWithdrawn, append(requestAttrs(req), slog.String("file", filepath.Join(s.spool.path(responsesDir), e.name)),
			slog.String("reason", "A response was there before the request was read; nothing was decided here."))...)
		s.done(e, id)
		return nil, id, nil, nil
	}
	if age := req.Age(s.cfg.Clock.Now()); age >= s.cfg.Timeout {
		if err := s.spool.remove(requestsDir, e.name, id); err != nil {
			return nil, id, nil, err
		}
		s.log.Record(EventWithdrawn, append(requestAttrs(req), slog.String("reason", whyExpired.Why))...)
		s.done(e, id)
		return nil, id, nil, nil
	}
	return &Inbound{Question: req.Question(s.cfg.Timeout), Request: req, Hash: hex.EncodeToString(id.hash[:]),
		AgentDir: s.cfg.AgentDir, SessionID: s.cfg.SessionID}, id, nil, nil
}

// answered reports whether a response of that name is there, whatever it is.
// It makes the directory if it is missing: an ask that could never be answered
// is not shown.
func (s *Server) answered(name string) (bool, error) {
	dir, err := s.spool.dir(responsesDir, true)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	_, err = dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// bind ties the ask to its file and its child's patience. It reports false if
// the name stood for another ask that its child may still be waiting for.
func (s *Server) bind(e *entry, in *Inbound, id identity) bool {
	left := s.cfg.Timeout - in.Request.Age(s.cfg.Clock.Now()) + expirySlack
	s.mu.Lock()
	if !id.sameFile(e.seen) {
		// It changed between the look and the reading, before anything was asked.
		e.seen.Dev, e.seen.Inode, e.seen.Size, e.seen.MTime = id.dev, id.inode, id.size, id.mtime
	}
	e.hash, e.asked = id.hash, true
	if s.cfg.Clock.Boot != nil {
		if b := s.cfg.Clock.Boot(); b > 0 {
			e.expiry = b + left
		}
	}
	f, was := s.former[e.name]
	if was && f.hash == id.hash {
		delete(s.former, e.name)
	}
	s.mu.Unlock()
	if was && f.hash != id.hash {
		s.refuse(e, id, refusal{reason: "another request of the same id was shown before, and its agent may still wait for that answer", remedy: "remove the file"})
		return false
	}
	timer := time.AfterFunc(left, func() { e.cancel(whyExpired) })
	context.AfterFunc(e.ctx, func() { timer.Stop() })
	return true
}

// refuse reports a file once, and removes it if the convention says so. One
// that is written over and over is reported once for each reason.
func (s *Server) refuse(e *entry, id identity, no refusal) {
	path := filepath.Join(s.spool.path(requestsDir), e.name)
	if in := e.seen; in.Mode.IsRegular() && in.Mine && s.cfg.Clock.Now().Sub(in.MTime) > s.keep() {
		no.remove = true // whoever wrote it has long given up
		id = identity{dev: in.Dev, inode: in.Inode, size: in.Size, mtime: in.MTime}
	}
	s.mu.Lock()
	news := s.reported[e.name] != no.reason
	s.reported[e.name] = no.reason
	s.mu.Unlock()
	if news {
		s.log.Record(EventWarning, slog.String("requestId", strings.TrimSuffix(e.name, fileSuffix)), slog.String("targetSessionId", s.cfg.SessionID),
			slog.String("file", path), slog.String("reason", no.reason), slog.String("remedy", no.remedy), slog.Bool("removed", no.remove))
	}
	if no.remove {
		if err := s.spool.remove(requestsDir, e.name, id); err == nil {
			s.mu.Lock()
			e.settled = true
			s.forget(e, whyGone)
			delete(s.reported, e.name)
			s.mu.Unlock()
			return
		}
		s.mu.Lock()
		e.done = id
		s.mu.Unlock()
	}
	s.settle(e)
}

// done notes that e has its answer, and removes its request.
func (s *Server) done(e *entry, id identity) {
	err := s.spool.remove(requestsDir, e.name, id)
	s.mu.Lock()
	e.settled = true
	if err == nil {
		s.forget(e, whyGone)
	} else {
		e.done = id // tried again at every full look
	}
	s.mu.Unlock()
	e.cancel(nil)
}

func (s *Server) decide(ctx context.Context, in *Inbound) (d engine.Decision) {
	defer func() {
		if r := recover(); r != nil {
			reason := fmt.Sprintf("the gate failed: %v", r)
			s.log.Record(EventError, append(in.Attrs(), slog.String("reason", reason))...)
			d = engine.Decision{Verdict: engine.Denied, Reason: reason, By: engine.DecisionSource{Kind: engine.ByGateError, Reason: reason}}
		}
	}()
	if slices.Contains(in.Request.Hops, s.cfg.SessionID) {
		reason := fmt.Sprintf("The request came through session '%s' before: the sessions forward in a circle.", s.cfg.SessionID)
		return engine.Decision{Verdict: engine.Unavailable, Reason: reason, By: engine.DecisionSource{Kind: engine.ByUnavailable, Reason: reason}}
	}
	return s.cfg.Decider.Decide(ctx, in)
}

// withdrawn logs the end of an ask that got no answer, and removes the request
// of a child that waits no longer.
func (s *Server) withdrawn(e *entry, in *Inbound, id identity) {
	why := whyStopping
	errors.As(context.Cause(e.ctx), &why)
	s.log.Record(EventWithdrawn, append(in.Attrs(), slog.String("reason", why.Why))...)
	if why == whyExpired {
		s.done(e, id)
	}
}

// answer writes the decision, trying until it is written or the child is gone.
func (s *Server) answer(e *entry, in *Inbound, id identity, d engine.Decision) {
	granted := d.Verdict != engine.ApprovedForServingSession || len(in.Request.Grants) == 0
	resp := NewResponse(d, s.cfg.SessionID, s.cfg.Clock.Now())
	data, err := resp.Marshal()
	if err != nil {
		// Only a reason can be that long; the answer stands without it.
		resp = NewResponse(engine.Decision{Verdict: d.Verdict}, s.cfg.SessionID, s.cfg.Clock.Now())
		resp.DecidedBy = nil
		if data, err = resp.Marshal(); err != nil {
			s.log.Record(EventError, append(in.Attrs(), slog.String("reason", err.Error()))...)
			s.settle(e)
			return
		}
	}
	key := "answer:" + e.name
	defer s.solved(key)
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		last := e.ctx.Err() != nil
		err := s.publish(e, in, id, data, &granted)
		var why *Withdrawn
		switch {
		case err == nil:
			s.record(in, d)
			s.done(e, id)
			return
		case errors.Is(err, errAnswered) && s.wrote(e.name, data):
			// The rename was reported as failed and was done after all.
			s.record(in, d)
			s.done(e, id)
			return
		case errors.Is(err, errAnswered):
			s.log.Record(EventWarning, append(in.Attrs(), slog.String("file", filepath.Join(s.spool.path(responsesDir), e.name)),
				slog.String("reason", "another response is there already; this decision was not written"), slog.String("remedy", "let one program serve a session"))...)
			s.done(e, id)
			return
		case errors.As(err, &why):
			s.mu.Lock()
			s.forget(e, why)
			s.mu.Unlock()
			s.lookAgain() // a changed file is a new matter
			s.log.Record(EventWithdrawn, append(in.Attrs(), slog.String("reason", why.Why))...)
			return
		}
		if last {
			s.withdrawn(e, in, id)
			return
		}
		p := &Problem{File: filepath.Join(s.spool.path(responsesDir), e.name), Reason: "cannot be written; the decision is kept and tried again until the agent is gone",
			Remedy: "free some space, or mend the directory", Err: err}
		var known *Problem
		if errors.As(err, &known) {
			p = known
		}
		s.problem(key, p)
		sleep(e.ctx, pause)
	}
}

// publish writes the answer once, if the request is still the one judged.
func (s *Server) publish(e *entry, in *Inbound, id identity, data []byte, granted *bool) error {
	s.writers.acquire(context.Background(), 1)
	defer s.writers.release(1)
	dir, err := s.spool.dir(requestsDir, false)
	if err == nil {
		defer dir.Close()
		var now identity
		_, now, err = s.spool.read(dir, requestsDir, e.name)
		if err == nil && now != id {
			return whyChanged
		}
	}
	var p *Problem
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return whyGone
	case errors.As(err, &p) && p.File == filepath.Join(s.spool.path(requestsDir), e.name):
		return whyChanged
	case errors.Is(err, errUnsettled):
		return whyChanged
	case err != nil:
		return err
	}
	if !*granted {
		*granted = true
		s.grant(in)
	}
	return s.spool.publish(responsesDir, e.name, data)
}

// wrote reports whether the response that is there is the one this server
// meant to write.
func (s *Server) wrote(name string, data []byte) bool {
	dir, err := s.spool.dir(responsesDir, false)
	if err != nil {
		return false
	}
	defer dir.Close()
	there, _, err := s.spool.read(dir, responsesDir, name)
	return err == nil && bytes.Equal(there, data)
}

func (s *Server) grant(in *Inbound) {
	if s.cfg.Grant == nil {
		return
	}
	if err := s.cfg.Grant(in); err != nil {
		s.log.Record(EventError, append(in.Attrs(), slog.String("reason", "the grant for the whole session could not be recorded, so only this ask is approved: "+err.Error()))...)
		return
	}
	list := make([]string, 0, len(in.Request.Grants))
	for _, g := range in.Request.Grants {
		list = append(list, g.Surface+" "+g.Pattern)
	}
	s.log.Record(EventSessionRecorded, append(in.Attrs(), slog.Any("grants", list))...)
}

// record logs how the ask ended.
func (s *Server) record(in *Inbound, d engine.Decision) {
	auto := false
	switch d.By.Kind {
	case engine.ByRule, engine.BySessionApproval, engine.ByYolo, engine.ByInfrastructureRead:
		auto = true
	}
	event := EventDenied
	switch {
	case d.Verdict.Approves() && auto:
		event = EventAutoApproved
	case d.Verdict.Approves():
		event = EventApproved
	case auto:
		event = EventAutoDenied
	}
	attrs := append(in.Attrs(), slog.String("state", string(d.Verdict)), slog.Any("decidedBy", encodeSource(&d.By, 0)))
	if d.Reason != "" {
		attrs = append(attrs, slog.String("denialReason", d.Reason))
	}
	s.log.Record(event, attrs...)
}

// problem notes what a user must mend. It is told and logged when it is new.
func (s *Server) problem(key string, p *Problem) {
	s.mu.Lock()
	old := s.problems[key]
	s.problems[key] = p
	s.mu.Unlock()
	if old != nil && old.File == p.File && old.Reason == p.Reason {
		return
	}
	attrs := []slog.Attr{slog.String("targetSessionId", s.cfg.SessionID), slog.String("file", p.File), slog.String("reason", p.Reason), slog.String("remedy", p.Remedy)}
	if p.Err != nil {
		attrs = append(attrs, slog.String("error", p.Err.Error()))
	}
	s.log.Record(EventError, attrs...)
	if s.cfg.Problem != nil {
		s.cfg.Problem(s.about(key), p.Text())
	}
}

// solved notes that nothing is wrong with key any more.
func (s *Server) solved(key string) {
	s.mu.Lock()
	_, was := s.problems[key]
	delete(s.problems, key)
	s.mu.Unlock()
	if was && s.cfg.Problem != nil {
		s.cfg.Problem(s.about(key), "")
	}
}

// about tells one server's things from another's.
func (s *Server) about(key string) string {
	return key + " of session " + s.cfg.SessionID + " in " + s.cfg.AgentDir
}

// sleep waits, and reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
