// Package board holds the asks that wait for a human, in memory. Every front
// end is a view of it: the tray, the notifications, a window, a terminal. An
// ask is resolved once; whoever comes second is told how it ended.
package board

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nod-agents/nod/engine"
)

// Ask is one pending question as a view shows it. It is immutable: views may
// keep the pointer.
type Ask struct {
	*engine.Question

	Key      string    // names the ask on this board, for one run of the program
	Hash     string    // of the content that was judged; an answer must name it
	AgentDir string    // whose inbox it came from; empty for asks raised in process
	Adopted  bool      // the inbox belongs to a session that nobody else serves
	Since    time.Time // when it came onto the board
	Notes    []string  // what the serving node wants said beside it, one sentence each

	seq uint64
}

// Answer is what a human, or a program in their place, decided.
type Answer struct {
	Verdict engine.Verdict // any but Unavailable
	Reason  string         // with DeniedWithReason
	View    string         // where it was given: notification, dialog, terminal, exec, tray
}

// End says how an ask left the board.
type End struct {
	Key       string
	Withdrawn bool            // nobody answered: the child went, or its file changed
	Why       string          // with Withdrawn: one sentence
	Decision  engine.Decision // otherwise
	View      string          // the view that answered; "rules" if a rule did after all, "parent" if the session above did
	At        time.Time
	Ask       *Ask
}

// Errors of Board.Answer. Each means that nothing was decided by this call.
var (
	ErrGone    = errors.New("this ask is no longer waiting")
	ErrChanged = errors.New("this ask is not the one that was shown")
	ErrScope   = errors.New("this ask has no session scope to grant") // record 0006: only an ask that suggests a pattern has
)

// LateError is an ErrGone that knows how the ask ended.
type LateError struct{ End End }

// Error says in one sentence how the ask ended before.
func (e *LateError) Error() string {
	if e.End.Withdrawn {
		return "too late: " + e.End.Why
	}
	how := "denied"
	switch v := e.End.Decision.Verdict; {
	case v.Approves():
		how = "approved"
	case v == engine.Unavailable:
		how = "given up"
	}
	return fmt.Sprintf("too late: already %s (%s)", how, e.End.View)
}

// Unwrap makes errors.Is(err, ErrGone) hold.
func (e *LateError) Unwrap() error { return ErrGone }

// How many ends a board keeps to answer late clicks with, and how many bytes
// their texts may hold in all: an ask can be as large as a request file.
const (
	remembered      = 256
	rememberedBytes = 4 << 20
)

// Board is safe for concurrent use. Its lock is held only for map work, never
// while a view or a human thinks.
type Board struct {
	now func() time.Time

	mu      sync.Mutex
	seq     uint64
	pending map[string]*pending
	ended   []End // oldest first, at most remembered
	bytes   int   // of the texts in ended
	watch   map[chan struct{}]struct{}
}

type pending struct {
	ask  *Ask
	done chan End
}

// New returns an empty board. now is the clock of Ask.Since and End.At.
func New(now func() time.Time) *Board {
	return &Board{now: now, pending: map[string]*pending{}, watch: map[chan struct{}]struct{}{}}
}

// Add puts a on the board and returns its key and the channel that its one End
// arrives on. Key, Since and order are set here.
func (b *Board) Add(a Ask) (*Ask, <-chan End) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	a.seq, a.Key, a.Since = b.seq, strconv.FormatUint(b.seq, 10), b.now()
	p := &pending{ask: &a, done: make(chan End, 1)}
	b.pending[a.Key] = p
	b.changed()
	return p.ask, p.done
}

// Answer ends the ask with a human's answer. The error wraps ErrGone,
// ErrChanged or ErrScope, or is about the answer itself; with any of them
// nothing was decided. A denial is DeniedWithReason exactly if it has a reason.
func (b *Board) Answer(key, hash string, a Answer) error {
	switch a.Verdict {
	case engine.Approved, engine.ApprovedForSession, engine.ApprovedForServingSession, engine.Denied, engine.DeniedWithReason:
	default:
		return fmt.Errorf("answering ask %s: %q is no answer", key, a.Verdict)
	}
	switch {
	case a.Verdict.Approves():
		a.Reason = ""
	case strings.TrimSpace(a.Reason) == "":
		a.Verdict, a.Reason = engine.Denied, ""
	default:
		a.Verdict = engine.DeniedWithReason
	}
	d := engine.Decision{Verdict: a.Verdict, Reason: a.Reason, By: engine.DecisionSource{Kind: engine.ByUser, Via: "dialog"}}
	return b.end(key, hash, End{Decision: d, View: a.View})
}

// Decide ends the ask with a decision that a rule or grant made after all.
func (b *Board) Decide(key, hash string, d engine.Decision) error {
	return b.end(key, hash, End{Decision: d, View: "rules"})
}

// Relay ends the ask with the answer of the session above. A scope that this
// ask does not offer counts for this ask only.
func (b *Board) Relay(key, hash string, d engine.Decision) error {
	e := End{Decision: d, View: "parent"}
	err := b.end(key, hash, e)
	if errors.Is(err, ErrScope) {
		e.Decision.Verdict = engine.Approved
		err = b.end(key, hash, e)
	}
	return err
}

// GiveUp ends the ask as unavailable: the view that says so was the only one
// there is, and it could not get an answer. why is one sentence.
func (b *Board) GiveUp(key, hash, view, why string) error {
	d := engine.Decision{Verdict: engine.Unavailable, Reason: why, By: engine.DecisionSource{Kind: engine.ByUnavailable, Reason: why}}
	return b.end(key, hash, End{Decision: d, View: view})
}

// Withdraw takes the ask off the board undecided. why is one sentence for the
// human who still looks at it. It reports whether the ask was pending.
func (b *Board) Withdraw(key, why string) bool {
	return b.end(key, "", End{Withdrawn: true, Why: why}) == nil
}

func (b *Board) end(key, hash string, e End) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.pending[key]
	if !ok {
		for _, past := range slices.Backward(b.ended) {
			if past.Key == key {
				return &LateError{End: past}
			}
		}
		return ErrGone
	}
	if !e.Withdrawn && p.ask.Hash != hash {
		return ErrChanged
	}
	if v := e.Decision.Verdict; len(p.ask.Suggestion) == 0 && (v == engine.ApprovedForSession || v == engine.ApprovedForServingSession) {
		return ErrScope
	}
	delete(b.pending, key)
	e.Key, e.At, e.Ask = key, b.now(), p.ask
	b.remember(e)
	p.done <- e
	b.changed()
	return nil
}

func (b *Board) remember(e End) {
	b.ended = append(b.ended, e)
	b.bytes += e.Ask.size()
	for len(b.ended) > remembered || b.bytes > rememberedBytes && len(b.ended) > 1 {
		b.bytes -= b.ended[0].Ask.size()
		b.ended = slices.Delete(b.ended, 0, 1)
	}
}

// size is about how many bytes the texts of an ask hold.
func (a *Ask) size() int {
	if a.Question == nil {
		return 0
	}
	n := len(a.Value) + len(a.Message)
	for _, e := range a.Evidence {
		n += len(e.Text)
		if e.Detail != nil {
			n += len(*e.Detail)
		}
	}
	for _, t := range a.Annotations {
		n += len(t.Text)
	}
	if a.Intent != nil {
		for _, v := range a.Intent.MatchValues {
			n += len(v)
		}
	}
	return n
}

// Get returns the pending ask of that key, or nil.
func (b *Board) Get(key string) *Ask {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pending[key]; p != nil {
		return p.ask
	}
	return nil
}

// Len is the number of pending asks.
func (b *Board) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending)
}

// Ended returns how recent asks ended, oldest first.
func (b *Board) Ended() []End {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ended)
}

// Pending returns the waiting asks in the order a human should meet them:
// each requester's oldest first, then each one's second, and so on, so that
// one agent's flood does not hide another's ask. Which of its asks is the oldest
// a requester says itself: those of a burst are read in no certain order. It
// gains nothing over another by lying.
func (b *Board) Pending() []*Ask {
	b.mu.Lock()
	asks := make([]*Ask, 0, len(b.pending))
	for _, p := range b.pending {
		asks = append(asks, p.ask)
	}
	b.mu.Unlock()
	slices.SortFunc(asks, func(x, y *Ask) int {
		return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.seq, y.seq))
	})
	nth := map[engine.Principal]int{}
	round := make(map[*Ask]int, len(asks))
	for _, a := range asks {
		round[a] = nth[a.Principal]
		nth[a.Principal]++
	}
	slices.SortFunc(asks, func(x, y *Ask) int {
		return cmp.Or(cmp.Compare(round[x], round[y]), cmp.Compare(x.seq, y.seq))
	})
	return asks
}

// Watch returns a channel that becomes readable after every change, several
// changes counting as one, and a function that ends the watch. A view reads
// Pending after each receive and compares with what it shows.
func (b *Board) Watch() (changes <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watch, c)
	}
}

func (b *Board) changed() {
	for c := range b.watch {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
