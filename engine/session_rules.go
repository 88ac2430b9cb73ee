package engine

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nod-agents/nod/engine/pattern"
)

// ErrForeignGrant means that a grant does not match the ask it was made for.
var ErrForeignGrant = errors.New("the grant does not match its own ask")

// Scope says for whom a session grant counts.
type Scope struct {
	SessionID string // the served session
	Requester string // the child's session id; empty: the whole served session
}

// covers reports whether a grant of scope s counts for an ask of scope ask.
func (s Scope) covers(ask Scope) bool {
	return s.SessionID == ask.SessionID && (s.Requester == "" || s.Requester == ask.Requester)
}

// SessionGrant is a grant in force. Its fields do not change; Hits and LastUse
// count its uses.
type SessionGrant struct {
	ID        string
	Scope     Scope
	Surface   string
	Pattern   string // as written
	AgentName string // for display
	Since     time.Time
	Until     time.Time // the grant counts before this instant only; zero: as long as the session

	rule entry
	hits atomic.Int64
	last atomic.Int64 // Unix ns; 0: never
}

// Hits is how often the grant answered an ask.
func (g *SessionGrant) Hits() int64 { return g.hits.Load() }

// LastUse is when the grant last answered an ask; zero if it never has.
func (g *SessionGrant) LastUse() time.Time {
	if ns := g.last.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// Exact reports whether the grant's pattern has no wildcard, so that it covers
// one value only.
func (g *SessionGrant) Exact() bool { return pattern.IsLiteral(g.Pattern) }

// covers reports whether g answers an ask on surface, whose bare name is bare,
// for any of values.
func (g *SessionGrant) covers(surface, bare string, values []string, f pattern.Flavour) bool {
	if g.Surface != surface && (g.Surface != bare || bare == "") {
		return false
	}
	fold := f == pattern.Windows && IsPathSurface(surface)
	for _, v := range values {
		if fold {
			v = f.Fold(v)
		}
		if g.rule.match(v) {
			return true
		}
	}
	return false
}

// SessionRules holds the grants of running sessions. It is safe for concurrent
// use; readers take no lock. A grant turns an ask into an allow and never beats
// a deny: that is Ruleset.Resolve's part.
type SessionRules struct {
	now func() time.Time
	opt Options

	mu   sync.Mutex // taken to change what is in force
	next int
	held atomic.Pointer[grantList]
}

// grantList is what is in force at one time.
type grantList struct {
	all []*SessionGrant // oldest first

	once      sync.Once // for bySurface, which only long lists need
	bySurface map[string]*grantIndex
}

// grantIndex is the grants on one surface. Their order is turned round: an index
// finds the last entry, and the oldest grant is wanted.
type grantIndex struct {
	index
	places []int // by entry: the grant's place in the list
}

// few is how many grants are looked at one by one.
const few = 16

// on returns the grants on a surface, nil if there are none.
func (l *grantList) on(surface string) *grantIndex {
	l.once.Do(func() {
		l.bySurface = map[string]*grantIndex{}
		for i := len(l.all) - 1; i >= 0; i-- {
			g := l.all[i]
			x := l.bySurface[g.Surface]
			if x == nil {
				x = &grantIndex{}
				l.bySurface[g.Surface] = x
			}
			x.entries = append(x.entries, g.rule)
			x.places = append(x.places, i)
		}
		for _, x := range l.bySurface {
			x.index = newIndex(x.entries)
		}
	})
	return l.bySurface[surface]
}

// grantFilter says which entries of a grantIndex count for an ask.
type grantFilter struct {
	view   *GrantView
	list   *grantList
	places []int
	exact  bool
	now    time.Time // zero: not yet looked at
}

func (f *grantFilter) accepts(i int32) bool { return f.counts(f.list.all[f.places[i]]) }

// counts reports whether a grant on the right surface counts.
func (f *grantFilter) counts(g *SessionGrant) bool {
	if !g.Scope.covers(f.view.scope) || f.exact && !g.Exact() {
		return false
	}
	if g.Until.IsZero() {
		return true
	}
	if f.now.IsZero() {
		f.now = f.view.rules.now()
	}
	return g.Until.After(f.now)
}

// NewSessionRules returns an empty SessionRules. Of opt, Home, Cwd and Flavour
// count; now is the clock that lifetimes are held against.
func NewSessionRules(now func() time.Time, opt Options) *SessionRules {
	s := &SessionRules{now: now, opt: opt}
	s.held.Store(&grantList{})
	return s
}

// NewGrant is a grant to be recorded.
type NewGrant struct {
	Grant
	Scope     Scope
	AgentName string
	Until     time.Time // zero: as long as the session
	// Asked is the ask that the grant is for: it must be on the grant's
	// surface, and one of Values must match.
	Asked Asked
}

// Asked is the surface and the spellings of an ask.
type Asked struct {
	Surface string
	Values  []string
}

// Record puts a grant in force and returns it. It refuses, with ErrForeignGrant,
// one that would not have answered its own ask. An equal grant that is already
// in force is returned instead, with the longer of both lifetimes.
func (s *SessionRules) Record(n NewGrant) (*SessionGrant, error) {
	if n.Surface == "" || n.Scope.SessionID == "" {
		return nil, errors.New("a grant needs a surface and a session")
	}
	if err := pattern.Check(n.Pattern); err != nil {
		return nil, fmt.Errorf("recording a grant: %w", err)
	}
	g := s.compile(n.Surface, n.Pattern)
	if !s.answers(g, n.Asked) {
		return nil, fmt.Errorf("recording %q on %s: %w", n.Pattern, n.Surface, ErrForeignGrant)
	}
	now := s.now()
	if !n.Until.IsZero() && !n.Until.After(now) {
		return nil, errors.New("a grant must end in the future")
	}
	g.Scope, g.AgentName, g.Since, g.Until = n.Scope, n.AgentName, now, n.Until

	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.alive(now)
	for i, old := range list {
		if old.Surface != g.Surface || old.Pattern != g.Pattern || old.Scope != g.Scope {
			continue
		}
		if old.Until.IsZero() || !g.Until.IsZero() && !g.Until.After(old.Until) {
			return old, nil
		}
		g.ID, g.Since = old.ID, old.Since
		g.hits.Store(old.hits.Load())
		g.last.Store(old.last.Load())
		list[i] = g
		s.held.Store(&grantList{all: list})
		return g, nil
	}
	s.next++
	g.ID = "g" + strconv.Itoa(s.next)
	list = append(list, g)
	s.held.Store(&grantList{all: list})
	return g, nil
}

// answers reports whether g answers an ask on its own surface. A directed grant
// may answer one half of an ask on the bare name.
func (s *SessionRules) answers(g *SessionGrant, a Asked) bool {
	surface := a.Surface
	if b := bareName(g.Surface); b != "" && b == surface {
		surface = g.Surface
	}
	return g.covers(surface, bareName(surface), a.Values, s.opt.Flavour)
}

func (s *SessionRules) compile(surface, text string) *SessionGrant {
	e := entry{rule: &Rule{Surface: surface, Pattern: text, Action: Allow}, action: Allow}
	r := Ruleset{opt: s.opt}
	r.compile(&e, IsPathSurface(surface))
	return &SessionGrant{Surface: surface, Pattern: text, rule: e}
}

// alive is a copy of the list without what has ended.
func (s *SessionRules) alive(now time.Time) []*SessionGrant {
	list := make([]*SessionGrant, 0, len(s.held.Load().all)+1)
	for _, g := range s.held.Load().all {
		if g.Until.IsZero() || g.Until.After(now) {
			list = append(list, g)
		}
	}
	return list
}

// View returns the grants that count for asks of scope. It is a live view: what
// is recorded or revoked later shows in it.
func (s *SessionRules) View(scope Scope) *GrantView { return &GrantView{rules: s, scope: scope} }

// GrantView is SessionRules as one requester sees it. It implements Grants.
type GrantView struct {
	rules *SessionRules
	scope Scope
}

// Find returns the oldest grant in force that covers the ask, or nil.
func (v *GrantView) Find(surface string, values []string) *SessionGrant {
	return v.find(surface, values, false, NewWork())
}

// FindExact is Find among the grants without wildcards: the ones that may
// answer a floor.
func (v *GrantView) FindExact(surface string, values []string) *SessionGrant {
	return v.find(surface, values, true, NewWork())
}

// find looks for a grant as far as w lasts. What is not found is no grant, and
// the ask stands.
func (v *GrantView) find(surface string, values []string, exact bool, w *Work) *SessionGrant {
	if v == nil {
		return nil
	}
	list := v.rules.held.Load()
	if len(list.all) == 0 {
		return nil
	}
	bare, flavour := bareName(surface), v.rules.opt.Flavour
	only := grantFilter{view: v, list: list, exact: exact}
	if len(list.all) <= few {
		for _, g := range list.all {
			if g.covers(surface, bare, values, flavour) && only.counts(g) {
				return g
			}
		}
		return nil
	}
	if flavour == pattern.Windows && IsPathSurface(surface) {
		values = foldAll(values, flavour)
	}
	oldest := len(list.all)
	for _, on := range [...]string{surface, bare} {
		x := list.on(on)
		if x == nil || on == "" {
			continue
		}
		only.places = x.places
		best := -1
		for _, value := range values {
			best = x.find(value, 0, best, w, &only)
		}
		if best >= 0 {
			oldest = min(oldest, x.places[best])
		}
	}
	if oldest == len(list.all) {
		return nil
	}
	return list.all[oldest]
}

// Used counts one answer given by each of grants.
func (s *SessionRules) Used(grants ...*SessionGrant) {
	now := s.now().UnixNano()
	for _, g := range grants {
		if g != nil {
			g.hits.Add(1)
			g.last.Store(now)
		}
	}
}

// List returns the grants in force, oldest first.
func (s *SessionRules) List() []*SessionGrant {
	list := s.alive(s.now())
	sort.SliceStable(list, func(a, b int) bool { return list[a].Since.Before(list[b].Since) })
	return list
}

// Revoke ends the grants with the given ids and returns those it ended.
func (s *SessionRules) Revoke(ids ...string) []*SessionGrant {
	return s.drop(func(g *SessionGrant) bool { return slices.Contains(ids, g.ID) })
}

// Clear ends every grant and returns those it ended.
func (s *SessionRules) Clear() []*SessionGrant {
	return s.drop(func(*SessionGrant) bool { return true })
}

// EndSession ends every grant of a served session, as when it closes.
func (s *SessionRules) EndSession(id string) []*SessionGrant {
	return s.drop(func(g *SessionGrant) bool { return g.Scope.SessionID == id })
}

func (s *SessionRules) drop(which func(*SessionGrant) bool) []*SessionGrant {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.alive(s.now())
	kept := make([]*SessionGrant, 0, len(list))
	var gone []*SessionGrant
	for _, g := range list {
		if which(g) {
			gone = append(gone, g)
		} else {
			kept = append(kept, g)
		}
	}
	s.held.Store(&grantList{all: kept})
	return gone
}

// Next is the earliest instant at which a grant ends; zero if none does.
func (s *SessionRules) Next() time.Time {
	var next time.Time
	for _, g := range s.alive(s.now()) {
		if !g.Until.IsZero() && (next.IsZero() || g.Until.Before(next)) {
			next = g.Until
		}
	}
	return next
}

// FixedGrants is a fixed list of grants without scope or lifetime, for judging
// a call as if they had been given. An invalid one covers nothing. Of opt,
// Home, Cwd and Flavour count.
func FixedGrants(list []Grant, opt Options) Grants {
	s := NewSessionRules(func() time.Time { return opt.Now }, opt)
	fixed := make([]*SessionGrant, 0, len(list))
	for _, g := range list {
		if g.Surface == "" || pattern.Check(g.Pattern) != nil {
			continue
		}
		fixed = append(fixed, s.compile(g.Surface, g.Pattern))
	}
	s.held.Store(&grantList{all: fixed})
	return s.View(Scope{})
}
