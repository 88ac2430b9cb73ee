package node

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
)

// rules holds the compiled policy of every (inbox, agent) that asked. A policy
// is compiled again when one of its files changed, or the lifetime of one of
// its rules ended; every judgment checks that first, so that no decision is
// made by rules that are no longer written.
type rules struct {
	cfg    Config
	loader *policy.Loader

	mu  sync.Mutex
	all map[role]*compiled
}

// role is whose policy it is.
type role struct {
	agentDir string
	agent    string
}

type compiled struct {
	policy *policy.Policy
	rules  *engine.Ruleset
	guard  *engine.Ruleset // nil: none
	files  []fileState
}

type fileState struct {
	name string
	id   policy.Identity
	err  string
}

// cacheLimit bounds how many agents' policies are kept: agents choose their
// names themselves.
const cacheLimit = 256

func newRules(cfg Config) *rules {
	return &rules{cfg: cfg, loader: policy.NewLoader(cfg.Files, true), all: map[role]*compiled{}}
}

// of returns the policy that judges an agent's asks in an inbox.
func (r *rules) of(inbox Inbox, agent string) *compiled {
	if agent == "unknown" {
		agent = ""
	}
	key := role{inbox.AgentDir, agent}
	r.mu.Lock()
	c := r.all[key]
	r.mu.Unlock()
	now := r.cfg.Now()
	if c != nil && c.fresh(r.cfg.Files, now) {
		return c
	}
	c = r.load(inbox, agent, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= cacheLimit {
		clear(r.all)
	}
	r.all[key] = c
	return c
}

// load compiles the policy as it is now. The files are looked at before they are
// read for good: one that changes meanwhile is then read again at the next
// judgment, and never taken for what was read of it before.
func (r *rules) load(inbox Inbox, agent string, now time.Time) *compiled {
	places := policy.Places{
		AgentDir: inbox.AgentDir, ConfigDir: r.cfg.ConfigDir, Global: r.cfg.Global,
		Project: r.cfg.Project, Trusted: r.cfg.Trusted, Agent: agent, Home: r.cfg.Home,
	}
	c := &compiled{}
	read := func() (names []string) {
		c.policy = r.loader.Load(places)
		names = c.policy.Names()
		if r.cfg.Guard != nil {
			var looked []string
			c.guard, looked = r.cfg.Guard(inbox)
			names = append(names, looked...)
		}
		return names
	}
	// What is read names the files, and those may change as well; after some
	// turns the policy is good for this judgment alone.
	names := read()
	for turn := 0; ; turn++ {
		c.files = c.files[:0]
		for _, name := range names {
			c.files = append(c.files, stateOf(r.cfg.Files, name))
		}
		again := read()
		if slices.Equal(names, again) {
			break
		}
		if names = again; turn == 8 {
			c.files = append(c.files, fileState{err: "unsettled"})
			break
		}
	}
	c.rules = c.policy.Ruleset(engine.Options{Home: r.cfg.Home, Cwd: r.cfg.Project, Now: now})
	return c
}

func stateOf(files policy.Files, name string) fileState {
	id, err := files.Identify(name)
	s := fileState{name: name, id: id}
	if err != nil {
		s.err = err.Error()
	}
	return s
}

func (c *compiled) fresh(files policy.Files, now time.Time) bool {
	if end := c.rules.Expires(); !end.IsZero() && !now.Before(end) {
		return false
	}
	return !slices.ContainsFunc(c.files, func(f fileState) bool { return stateOf(files, f.name) != f })
}

// judge is a node's recorded authority for one inbox. It implements
// engine.Rules.
type judge struct {
	node  *Node
	inbox Inbox
}

// Judge holds q against the policy of its principal and the session's grants.
func (j judge) Judge(q *engine.Question) engine.Judgment {
	c := j.node.rules.of(j.inbox, q.Principal.AgentName)
	return gate.Serve(q, gate.Served{
		Rules:         c.rules,
		Guard:         c.guard,
		Grants:        j.node.grants.View(engine.Scope{SessionID: j.inbox.SessionID, Requester: q.Principal.SessionID}),
		Shell:         &j.node.shell,
		ResolveLegacy: c.policy.Settings.ResolveLegacyRequests,
	})
}

// PolicyNames are the files that the rules in use depend on.
func (n *Node) PolicyNames() []string {
	n.rules.mu.Lock()
	defer n.rules.mu.Unlock()
	var names []string
	for _, c := range n.rules.all {
		for _, f := range c.files {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckPolicy reads the policy of every inbox and keeps what is wrong in it
// among the problems.
func (n *Node) CheckPolicy() {
	wrong := map[string]string{}
	for _, inbox := range n.cfg.Inboxes {
		p := n.rules.of(inbox, "").policy
		for i := range p.Files {
			f := &p.Files[i]
			switch {
			case f.Err == nil:
				wrong[f.Name] = ""
			case f.Stale:
				wrong[f.Name] = fmt.Sprintf("A policy file has errors; its last good state counts until it is mended: %v", f.Err)
			default:
				wrong[f.Name] = fmt.Sprintf("A policy file has errors, so every allow becomes an ask: %v", f.Err)
			}
		}
	}
	for name, text := range wrong {
		n.Problem("policy "+name, text)
	}
}

// FieldWidth is the longest field of the review log in characters, from the
// policy of that inbox; zero if none says.
func (n *Node) FieldWidth(inbox Inbox) int {
	return n.rules.of(inbox, "").policy.Settings.ReviewLogFieldMaxWidth
}

// Timeout is how long a child of that inbox waits, from the policy; zero if
// none says.
func (n *Node) Timeout(inbox Inbox) time.Duration {
	return n.rules.of(inbox, "").policy.Settings.ForwardingTimeout
}
