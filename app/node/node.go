// Package node is the serving node: it decides forwarded asks by one walk (its
// own rules, its links, then a human), keeps the grants of the sessions it
// serves, and tells every front end what waits.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/link"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/reviewlog"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/engine/shell"
	"github.com/nod-agents/nod/forwarding"
)

// Config says what a node serves and judges by.
type Config struct {
	Inboxes   []Inbox
	ConfigDir string // of Nod's own policy; empty: none
	Global    string // replaces the files of the global policy scope; empty: none
	Project   string // the project whose policy counts, if Trusted
	Trusted   bool
	Home      string
	Files     policy.Files

	// Human says that somebody or some program watches the board. Without one
	// an ask is unavailable at once.
	Human bool
	// Parent, if set, is asked what this node's rules leave open. Where a human
	// watches the board too, the first answer counts.
	Parent *Parent
	// Guard, if set, makes the rules that no policy overrides, and names the
	// files that they depend on.
	Guard func(inbox Inbox) (*engine.Ruleset, []string)
	// Links makes the authorizer chain of a policy; nil means none.
	Links func(policy.Settings) []engine.Link

	Now    func() time.Time
	Review *reviewlog.Log
	Log    *slog.Logger
}

// Parent is the session above a node that relays.
type Parent struct {
	SessionID string
	// Terminal asks it on behalf of an inbox. It reports every way in which no
	// answer came as Unavailable.
	Terminal func(Inbox) engine.Terminal
}

// Inbox is one session in one agent directory.
type Inbox struct {
	AgentDir  string
	SessionID string
}

// String says which session is served where.
func (i Inbox) String() string { return fmt.Sprintf("session %q in %s", i.SessionID, i.AgentDir) }

// Node is safe for concurrent use. It satisfies desk.Node and
// forwarding.Decider.
type Node struct {
	cfg    Config
	board  *board.Board
	grants *engine.SessionRules
	rules  *rules
	shell  shell.Reader

	mu       sync.Mutex
	paused   bool
	problems map[string]string
	serving  map[Inbox]bool // true: adopted
	watch    map[chan struct{}]struct{}
}

// New returns a node that has not decided anything yet.
func New(cfg Config) *Node {
	n := &Node{
		cfg:      cfg,
		board:    board.New(cfg.Now),
		problems: map[string]string{},
		serving:  map[Inbox]bool{},
		watch:    map[chan struct{}]struct{}{},
	}
	n.grants = engine.NewSessionRules(cfg.Now, engine.Options{Home: cfg.Home, Cwd: cfg.Project})
	n.rules = newRules(cfg)
	return n
}

// Decide is the walk of one forwarded ask. It returns when the ask is decided
// or ctx ends, which withdraws it.
func (n *Node) Decide(ctx context.Context, in *forwarding.Inbound) engine.Decision {
	q := n.offer(in.Question)
	inbox := Inbox{in.AgentDir, q.SessionID}
	w := engine.Walk{
		Rules:    judge{n, inbox},
		Terminal: onBoard{n, in},
		Reviewed: n.reviewed,
	}
	if !n.cfg.Human && n.cfg.Parent == nil {
		w.Terminal = engine.Denying("Nobody is there to answer: Nod runs without a front end.")
	}
	if n.cfg.Links != nil {
		w.Links = n.cfg.Links(n.rules.of(inbox, q.Principal.AgentName).policy.Settings)
	}
	d := w.Decide(ctx, q)
	switch {
	case len(d.Used) > 0:
		n.grants.Used(d.Used...)
		n.changed()
	case d.Verdict == engine.ApprovedForServingSession:
		n.record(inbox, q, "")
		d.Verdict = engine.Approved
	case d.Verdict == engine.ApprovedForSession && in.Request != nil && in.Request.OneShot:
		// A hook is gone before the next call, so the subagent's grant is kept
		// here. It hears of it all the same: the response is the standard one.
		n.record(inbox, q, q.Principal.SessionID)
	}
	return d
}

// onBoard asks whoever watches the board, and the session above.
type onBoard struct {
	node *Node
	in   *forwarding.Inbound
}

// Authorize puts q on the board and waits for its end. Thousands may wait here,
// so what needs much of the stack is done elsewhere.
func (b onBoard) Authorize(ctx context.Context, q *engine.Question) (engine.Decision, error) {
	n := b.node
	a, done := n.show(b.in, q)
	if n.cfg.Parent != nil {
		defer n.relay(ctx, a)()
	}
	select {
	case end := <-done:
		return end.Decision, nil
	case <-ctx.Done():
		return n.withdraw(ctx, a, done)
	}
}

// withdraw takes a, which nobody may answer any more, off the board, unless it
// has been answered already.
func (n *Node) withdraw(ctx context.Context, a *board.Ask, done <-chan board.End) (engine.Decision, error) {
	if n.board.Withdraw(a.Key, context.Cause(ctx).Error()) {
		return engine.Decision{}, fmt.Errorf("withdrawn: %w", context.Cause(ctx))
	}
	return (<-done).Decision, nil
}

// show puts q on the board.
func (n *Node) show(in *forwarding.Inbound, q *engine.Question) (*board.Ask, <-chan board.End) {
	q = n.reason(in, q)
	a, done := n.board.Add(board.Ask{Question: q, Hash: in.Hash, AgentDir: in.AgentDir, Adopted: n.adopted(Inbox{in.AgentDir, q.SessionID}), Notes: n.notes(in, q)})
	if n.cfg.Human {
		n.event("forwarded_permission.prompted", q, slog.String("surface", q.Surface), slog.String("tool", q.Tool), slog.String("value", q.Value))
	}
	// A grant or a rule that came while the ask was on its way to the board.
	n.settle(a)
	return a, done
}

// reason puts the rule of this node that asks into what the human sees; the
// child's own stays where none of ours spoke.
func (n *Node) reason(in *forwarding.Inbound, q *engine.Question) *engine.Question {
	by := judge{n, Inbox{in.AgentDir, q.SessionID}}.Judge(q).By
	if by.Kind != engine.ByRule || by.Pattern == "" {
		return q
	}
	ours := *q
	ours.Pattern = by.Pattern
	return &ours
}

// relay asks the session above for a, which is on the board, and returns what
// ends that. The request above goes when the ask has ended here.
func (n *Node) relay(ctx context.Context, a *board.Ask) (end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		d, err := n.cfg.Parent.Terminal(Inbox{a.AgentDir, a.SessionID}).Authorize(ctx, a.Question)
		switch {
		case ctx.Err() != nil && d.Verdict == engine.Unavailable:
			return // it has ended here
		case err != nil:
			err = n.board.GiveUp(a.Key, a.Hash, "parent", err.Error())
		case d.Verdict != engine.Unavailable:
			err = n.board.Relay(a.Key, a.Hash, d)
		case n.cfg.Human:
			n.cfg.Log.Warn("the session above did not answer; the ask waits here", "session", n.cfg.Parent.SessionID, "reason", d.Reason)
		default:
			err = n.board.GiveUp(a.Key, a.Hash, "parent", d.Reason)
		}
		if err != nil && !errors.Is(err, board.ErrGone) {
			n.cfg.Log.Warn("the answer of the session above could not be used", "session", n.cfg.Parent.SessionID, "error", err)
		}
	})
	return func() {
		cancel(errEnded)
		wg.Wait()
	}
}

// errEnded is why an ask is taken back from the session above.
var errEnded = errors.New("the ask has ended below")

// notes are what a human should know beside the ask.
func (n *Node) notes(in *forwarding.Inbound, q *engine.Question) []string {
	var notes []string
	if len(q.Suggestion) < len(in.Question.Suggestion) {
		notes = append(notes, "The agent also proposed a session grant that does not fit this ask; it is not offered.")
	}
	if n.cfg.Parent != nil {
		notes = append(notes, fmt.Sprintf("Session %q is asked as well; the first answer counts.", n.cfg.Parent.SessionID))
	}
	return notes
}

// Rejudge holds every waiting ask against the rules and grants as they are
// now; those that they decide leave the board.
func (n *Node) Rejudge() {
	for _, a := range n.board.Pending() {
		n.settle(a)
	}
}

func (n *Node) settle(a *board.Ask) {
	j := judge{n, Inbox{a.AgentDir, a.SessionID}}.Judge(a.Question)
	d, ok := j.Decision()
	if !ok {
		return
	}
	if err := n.board.Decide(a.Key, a.Hash, d); err != nil && !errors.Is(err, board.ErrGone) {
		n.cfg.Log.Warn("a rule could not settle a waiting ask", "error", err)
	}
}

// reviewed logs what one link said.
func (n *Node) reviewed(q *engine.Question, name string, v engine.LinkVerdict, err error) {
	attrs := []slog.Attr{slog.String("link", name), slog.String("verdict", v.Say)}
	if v.Reason != "" {
		attrs = append(attrs, slog.String("reason", v.Reason))
	}
	event := "authorizer_chain_resolved"
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
		if errors.Is(err, link.ErrUnregistered) {
			event = "authorizer_chain_unregistered_link"
		}
	}
	n.event(event, q, attrs...)
}

func (n *Node) event(name string, q *engine.Question, attrs ...slog.Attr) {
	n.cfg.Review.Record(name, append([]slog.Attr{
		slog.String("requestId", q.ID),
		slog.String("requesterAgentName", q.Principal.AgentName),
		slog.String("requesterSessionId", q.Principal.SessionID),
		slog.String("targetSessionId", q.SessionID),
	}, attrs...)...)
}

// Board holds the asks that wait.
func (n *Node) Board() *board.Board { return n.board }

// Grants are the session grants in force, oldest first.
func (n *Node) Grants() []pipe.Grant {
	var list []pipe.Grant
	for _, g := range n.grants.List() {
		list = append(list, pipe.Grant{
			ID: g.ID, SessionID: g.Scope.SessionID, Requester: g.Scope.Requester, Agent: g.AgentName,
			Surface: g.Surface, Pattern: g.Pattern, Since: g.Since, Until: g.Until, Hits: int(g.Hits()), LastUse: g.LastUse(),
		})
	}
	return list
}

// Revoke takes one grant back.
func (n *Node) Revoke(id string) error {
	if len(n.grants.Revoke(id)) == 0 {
		return errors.New("there is no such grant")
	}
	n.cfg.Review.Record("session_grant.revoked", slog.String("grantId", id))
	n.changed()
	return nil
}

// ClearGrants takes all grants back and says how many there were.
func (n *Node) ClearGrants() int {
	count := len(n.grants.Clear())
	n.cfg.Review.Record("session_grant.cleared", slog.Int("count", count))
	n.changed()
	return count
}

// Paused reports whether asks wait without anything popping up.
func (n *Node) Paused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

// SetPaused starts or ends a pause.
func (n *Node) SetPaused(on bool) {
	n.mu.Lock()
	was := n.paused
	n.paused = on
	n.mu.Unlock()
	if was != on {
		n.changed()
	}
}

// Problem says what the user must mend about one thing; an empty text says
// that it is mended.
func (n *Node) Problem(about, text string) {
	n.mu.Lock()
	was := n.problems[about]
	if text == "" {
		delete(n.problems, about)
	} else {
		n.problems[about] = text
	}
	n.mu.Unlock()
	if was != text {
		if text != "" {
			n.cfg.Log.Warn(text, "about", about)
		}
		n.changed()
	}
}

// Problems are what the user must mend, one sentence each.
func (n *Node) Problems() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	texts := make([]string, 0, len(n.problems))
	for _, t := range n.problems {
		texts = append(texts, t)
	}
	slices.Sort(texts)
	return texts
}

// Serves says that inbox is being served, or no longer is.
func (n *Node) Serves(inbox Inbox, on bool) {
	n.mu.Lock()
	if on {
		n.serving[inbox] = false
	} else {
		delete(n.serving, inbox)
	}
	n.mu.Unlock()
	n.changed()
}

// Adopts says that inbox is being served because nobody else serves it, or no
// longer is.
func (n *Node) Adopts(inbox Inbox, on bool) {
	n.mu.Lock()
	if on {
		n.serving[inbox] = true
	} else {
		delete(n.serving, inbox)
	}
	n.mu.Unlock()
	n.changed()
}

func (n *Node) adopted(inbox Inbox) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.serving[inbox]
}

// Serving names the inboxes that are served.
func (n *Node) Serving() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := make([]string, 0, len(n.serving))
	for i, adopted := range n.serving {
		line := i.String()
		if adopted {
			line += ", adopted"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// LogPath is the review log's file.
func (n *Node) LogPath() string { return n.cfg.Review.Path() }

// Watch returns a channel that becomes readable after grants, pause, problems
// or what is served changed, and a function that ends the watch.
func (n *Node) Watch() (changes <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watch[c] = struct{}{}
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watch, c)
	}
}

func (n *Node) changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.watch {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
