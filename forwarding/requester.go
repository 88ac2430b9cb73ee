package forwarding

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

// Requester is the courier: it carries an ask to the serving node and brings
// the answer back, exercising no judgment. It is the parent terminal of a
// node. The fields are not changed once it is in use; it is safe for
// concurrent use.
type Requester struct {
	Child Child // who forwards; Child.AgentDir is where the inboxes are

	// Target, if set, is the session to ask, whatever Child says.
	Target string

	// Relays marks a node that serves below and forwards above: its session
	// is added to the hops of what it passes on, and the originator stays the
	// principal.
	Relays bool

	// OneShot marks a child that remembers no grant, so that one for this
	// subagent only must be kept by the serving node.
	OneShot bool

	Timeout time.Duration   // forwardingTimeoutMs; 0 means DefaultTimeout
	Clock   heartbeat.Clock // zero means the machine's
	Files   Files           // nil means Disk
	Log     Log             // nil means none
}

// Answer is what came back.
type Answer struct {
	engine.Decision
	Target string // the session that was asked; empty if none could be
	Width  string // of a session grant: proven or both; empty without an answer
}

var _ engine.Terminal = (*Requester)(nil)

// Authorize asks the serving node. Whatever keeps an answer away is
// Unavailable with the reason, one sentence; the error is always nil.
func (r *Requester) Authorize(ctx context.Context, q *engine.Question) (engine.Decision, error) {
	return r.Ask(ctx, q).Decision, nil
}

// AskEach asks for every question in turn, as an ask that layers several
// surfaces needs, and stops at the first that is not approved: one answer
// never stands for another. It returns the answers it got, the last of which
// is the outcome of all.
func (r *Requester) AskEach(ctx context.Context, questions []*engine.Question) []Answer {
	var all []Answer
	for _, q := range questions {
		a := r.Ask(ctx, q)
		all = append(all, a)
		if !a.Verdict.Approves() {
			break
		}
	}
	return all
}

// Ask forwards q and waits for the answer, as long as the target serves and
// at most Timeout. When ctx ends the request is taken back.
func (r *Requester) Ask(ctx context.Context, q *engine.Question) Answer {
	target, err := r.target()
	if err != nil {
		return unavailable("", err.Error())
	}
	e, err := r.post(q, target)
	if err != nil {
		return unavailable(target, err.Error())
	}
	return e.wait(ctx)
}

func (r *Requester) target() (string, error) {
	if r.Target == "" {
		return r.Child.Target()
	}
	id, err := heartbeat.CheckSession(r.Target)
	if err != nil {
		return "", reasonf("The request cannot be forwarded: %v.", err)
	}
	if id == r.Child.SessionID {
		return "", reasonf("Session '%s' cannot forward a request to itself.", id)
	}
	return id, nil
}

func unavailable(target, why string) Answer {
	return Answer{Target: target, Decision: engine.Decision{Verdict: engine.Unavailable, Reason: why,
		By: engine.DecisionSource{Kind: engine.ByUnavailable, Reason: why}}}
}

// exchange is one request on its way.
type exchange struct {
	r     *Requester
	spool *spool
	watch *watch
	req   *Request
	name  string
	clock heartbeat.Clock
	log   Log
}

// post writes the request. The error is a sentence for the agent.
func (r *Requester) post(q *engine.Question, target string) (*exchange, error) {
	e := &exchange{r: r, clock: r.Clock, log: r.Log}
	if e.clock.Now == nil {
		e.clock = heartbeat.SystemClock()
	}
	if e.log == nil {
		e.log = noLog{}
	}
	agentDir, err := filepath.Abs(r.Child.AgentDir)
	if err != nil || r.Child.AgentDir == "" {
		return nil, reason("The request cannot be forwarded: no agent directory is known.")
	}
	now := e.clock.Now()
	sender := engine.Principal{SessionID: r.Child.SessionID, AgentName: q.Principal.AgentName}
	if r.Relays && q.Principal.SessionID != r.Child.SessionID {
		if loop := hopOf(q, r.Child.SessionID, target); loop != "" {
			return nil, reasonf("The request came through session '%s' before: the sessions forward in a circle.", loop)
		}
		relayed := *q
		relayed.Hops = append(append([]string(nil), q.Hops...), r.Child.SessionID)
		q = &relayed
	}
	e.req = NewRequest(strconv.FormatInt(now.UnixMilli(), 10)+"-"+strings.ToLower(rand.Text()[:12])+"-"+strconv.Itoa(os.Getpid()), q, sender, target, now)
	e.req.OneShot = r.OneShot
	e.name = e.req.ID + fileSuffix
	e.spool = newSpool(r.Files, agentDir, target)
	e.watch = newWatch(e.spool, responsesDir)
	data, err := e.req.Marshal()
	if err != nil {
		return nil, reasonf("The request cannot be forwarded: %v.", err)
	}
	// Another child may be clearing the empty directories away just now.
	for attempt := 0; ; attempt++ {
		var d Dir
		if d, err = e.spool.dir(responsesDir, true); err == nil {
			d.Close()
			err = e.spool.publish(requestsDir, e.name, data)
		}
		if err == nil || attempt == 20 || !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		e.spool.tidy()
		return nil, reasonf("The request could not be written for session '%s': %v.", target, err)
	}
	e.log.Record(EventRequestCreated, requestAttrs(e.req)...)
	return e, nil
}

// hopOf returns the session that makes q's way a circle, or nothing.
func hopOf(q *engine.Question, self, target string) string {
	for _, h := range append([]string{q.Principal.SessionID}, q.Hops...) {
		if h == target || h == self {
			return h
		}
	}
	return ""
}

// wait waits for the response and clears up after itself.
func (e *exchange) wait(ctx context.Context) Answer {
	defer e.watch.close()
	timeout := e.r.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	var (
		start  = time.Now()
		looked = start
		absent time.Duration // how long the target was seen not to serve
		reader = heartbeat.Reader{Clock: e.clock}
		tick   = time.NewTicker(PollInterval)
	)
	defer tick.Stop()
	for {
		e.arm()
		if a, ok := e.collect(); ok {
			return a
		}
		now := time.Now()
		// A machine that stood still, or had no time for this process, had none
		// for the target either: one late look proves little.
		absent += min(now.Sub(looked), 2*PollInterval)
		looked = now
		if state, _ := reader.Read(ServingDir(e.spool.agentDir), e.spool.session); state == heartbeat.Alive {
			absent = 0
		}
		switch {
		case ctx.Err() != nil:
			return e.giveUp("", "The wait for an answer was broken off: "+context.Cause(ctx).Error()+".")
		case absent >= Grace:
			return e.giveUp(EventNoServingSession, fmt.Sprintf("Session '%s' is not serving forwarded permission requests.", e.spool.session))
		case now.Sub(start) >= timeout:
			return e.giveUp(EventResponseTimedOut, fmt.Sprintf("Session '%s' did not answer within %v.", e.spool.session, timeout))
		}
		select {
		case <-ctx.Done():
		case <-e.watch.wake:
			e.watch.take()
		case <-tick.C:
		}
	}
}

// arm has the response's arrival told at once; where that fails the ticker
// finds it.
func (e *exchange) arm() {
	dir, err := e.spool.dir(responsesDir, false)
	if err != nil {
		return
	}
	defer dir.Close()
	_, _ = e.watch.arm(dir)
}

// collect reads the response if it is there, and removes both files.
func (e *exchange) collect() (Answer, bool) {
	dir, err := e.spool.dir(responsesDir, false)
	if err != nil {
		return Answer{}, false
	}
	defer dir.Close()
	data, _, err := e.spool.read(dir, responsesDir, e.name)
	var a Answer
	var p *Problem
	switch {
	case errors.Is(err, errUnsettled):
		return a, false
	case errors.As(err, &p):
		a = unavailable(e.spool.session, fmt.Sprintf("The response of session '%s' cannot be used: it %s.", e.spool.session, p.Reason))
	case err != nil:
		return a, false // not there, or not readable just now
	default:
		resp, err := ParseResponse(data)
		if err != nil {
			a = unavailable(e.spool.session, fmt.Sprintf("The response of session '%s' is unreadable: %v.", e.spool.session, err))
			break
		}
		a = Answer{Decision: resp.Decision(), Target: e.spool.session, Width: resp.GrantWidth}
	}
	_ = dir.Remove(e.name) // of a link the link, whatever it points to
	e.takeBack()
	e.spool.tidy()
	e.log.Record(EventResponseReceived, append(requestAttrs(e.req), slog.String("state", string(a.Verdict)),
		slog.Any("decidedBy", encodeSource(&a.By, 0)), slog.String("reason", a.Reason))...)
	return a, true
}

// giveUp takes the request back. An answer that came at the last moment still
// counts: the serving node has acted on it.
func (e *exchange) giveUp(event, why string) Answer {
	e.takeBack()
	if a, ok := e.collect(); ok {
		return a
	}
	e.spool.tidy()
	if event != "" {
		e.log.Record(event, append(requestAttrs(e.req), slog.String("reason", why))...)
	}
	return unavailable(e.spool.session, why)
}

// takeBack removes the request, if the serving node has not yet.
func (e *exchange) takeBack() {
	for range 5 {
		dir, err := e.spool.dir(requestsDir, false)
		if err == nil {
			err = dir.Remove(e.name)
			dir.Close()
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		// A left request would ask a human for nothing.
		time.Sleep(retryFirst / 4)
	}
}
