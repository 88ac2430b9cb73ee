package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nod-agents/nod/engine/pattern"
)

// Layer is the rules of one policy file. Layers are handed to Compile from the
// lowest scope to the highest; two files of one scope are two layers.
type Layer struct {
	Origin   Origin
	File     string
	Sections []Section // in file order
	Broken   error     // the file exists but could not be read or validated
}

// Section is one surface key of a policy file with its rules in file order.
type Section struct {
	Surface string
	Text    bool // written as a bare action, so Rules is one `*`
	Rules   []Rule
	Pos     Position
}

// Options are the facts that patterns and lifetimes depend on.
type Options struct {
	Home    string // for `~`, `$HOME` and `${HOME}`; empty: they stay literal
	Cwd     string // the project, for relative patterns on path surfaces
	Flavour pattern.Flavour
	Now     time.Time // rules whose lifetime is over by then are left out
	Yolo    bool
}

// Ruleset is a node's policy, merged and ready to match. It is immutable and
// safe for concurrent use. Use Compile to make one.
type Ruleset struct {
	layers  []Layer
	opt     Options
	clamped bool // a file above the global scope is broken: every allow asks
	broken  bool // a global file is broken: the universal default is fail-closed
	expires time.Time

	mu    sync.Mutex // taken to add to tables
	named atomic.Pointer[map[string]*table]
	paths atomic.Pointer[map[string]*table] // surfaces asked for with Query.Path
}

// Compile merges layers, lowest scope first. It is cheap: rules are compiled
// for a surface when that surface is first asked for.
//
// A broken layer fails closed: a global one leaves everything asking that no
// rule of a higher scope decides, any other one turns every allow into ask.
func Compile(layers []Layer, opt Options) *Ruleset {
	r := &Ruleset{layers: layers, opt: opt}
	for _, l := range layers {
		if l.Broken != nil {
			if l.Origin == OriginGlobal {
				r.broken = true
			} else {
				r.clamped = true
			}
		}
		for _, s := range l.Sections {
			for i := range s.Rules {
				if u := s.Rules[i].Until; u.After(opt.Now) && (r.expires.IsZero() || u.Before(r.expires)) {
					r.expires = u
				}
			}
		}
	}
	return r
}

// Yolo reports whether every ask, floors too, is to become an allow.
func (r *Ruleset) Yolo() bool { return r.opt.Yolo }

// Clamped reports whether a broken file makes every allow an ask.
func (r *Ruleset) Clamped() bool { return r.clamped }

// Expires is the earliest instant at which the lifetime of a rule ends, so
// that the layers must be compiled again; zero if there is none.
func (r *Ruleset) Expires() time.Time { return r.expires }

// Options returns what the ruleset was compiled with.
func (r *Ruleset) Options() Options { return r.opt }

// Layers returns the layers the ruleset was compiled from. They must not be
// changed.
func (r *Ruleset) Layers() []Layer { return r.layers }

// Via says which spelling of a value a rule matched.
type Via uint8

// The spellings, see Query.
const (
	ViaValue Via = iota
	ViaStrict
	ViaWhole
)

// Query is one intent to be resolved.
type Query struct {
	Surface string
	// Path says that Values are paths though Surface is no path surface by
	// name: an extension tool with a path argument.
	Path bool
	// Values are the spellings that any rule may match.
	Values []string
	// Strict are further spellings, seen by deny and ask rules only.
	Strict []string
	// Whole are the texts of enclosing compounds, seen by deny and ask rules
	// only, a bare `*` excepted.
	Whole []string
	// Grants are the session grants in force; nil for none.
	Grants Grants
	// Granted are the spellings a grant must match; nil means Values. On a
	// path surface it is the canonical form: a grant is for a place.
	Granted []string
	// Work is what the decision that the query is for may still cost; nil: the
	// query is a decision of its own.
	Work *Work
}

// Grants is a view of session grants.
type Grants interface {
	// Find returns a grant on surface that matches any of values, or nil.
	// A grant on a bare path surface covers both of its directions. Hits are
	// not counted: see SessionRules.Used.
	Find(surface string, values []string) *SessionGrant
	// FindExact is Find among the grants without wildcards.
	FindExact(surface string, values []string) *SessionGrant
}

// Match is what the rules say of a query.
type Match struct {
	Action Action
	Origin Origin
	// Rule is the rule that decided, as written; nil for the built-in default.
	Rule *Rule
	// Pattern is the deciding pattern as written; empty for the built-in
	// default.
	Pattern string
	// Value is the spelling that was matched; the first of Values for the
	// built-in default.
	Value string
	Via   Via
	// Explicit is false if only the universal `*` or the built-in default
	// decided.
	Explicit bool
	// Surface is the surface judged: the directed name where a bare one was
	// asked for.
	Surface string
	// Grant is the session grant that turned ask into allow, or nil. Rule and
	// Pattern are then those of the ask, Origin is OriginSession.
	Grant *SessionGrant
	// Limited says that not every rule was held against the value, for that would
	// take too long. Action is then Ask, Pattern is PatternLimit, and neither a
	// grant, yolo nor a link may make an allow of it: a rule might deny.
	Limited bool
}

// Reason returns the deciding rule's reason, empty if it has none.
func (m *Match) Reason() string {
	if m.Rule == nil {
		return ""
	}
	return m.Rule.Reason
}

// Resolve decides q: the last rule that matches wins, over the universal `*`,
// the MCP baseline and the config rules in order; a session grant then turns an
// ask into an allow. It does not apply yolo, which also answers floors: see
// Yolo. It allocates nothing once q's surface was asked for before.
func (r *Ruleset) Resolve(q *Query) Match {
	w := q.Work
	if w == nil {
		w = NewWork()
	}
	t := r.table(q.Surface, q.Path)
	if t.read == nil {
		return r.resolve(q, t, w)
	}
	a, b := r.resolve(q, t.read, w), r.resolve(q, t.write, w)
	if b.Action.Stricter(a.Action) || a.Action == b.Action && (!a.Explicit && b.Explicit || b.Limited && !a.Limited) {
		return b
	}
	return a
}

func (r *Ruleset) resolve(q *Query, t *table, w *Work) Match {
	in := input{values: q.Values, strict: q.Strict, whole: q.Whole}
	n := 0
	if !t.path { // there may be very many paths, and they are short
		n = in.bytes()
	}
	w.begin(n)
	if t.path && r.opt.Flavour == pattern.Windows {
		in = in.folded(r.opt.Flavour)
	}
	m := t.resolve(&in, w)
	m.Surface = t.surface
	if m.Rule == nil && len(q.Values) > 0 {
		m.Value = q.Values[0]
	}
	if q.Grants != nil && m.Action == Ask && !m.Limited {
		granted := q.Granted
		if granted == nil {
			granted = q.Values
		}
		if m.Via == ViaWhole {
			// The ask is for the whole line, so a grant for one unit of it
			// does not answer, though its stars may reach over the rest.
			if g := find(q.Grants, t.surface, q.Whole, true, w); g != nil {
				m.Action, m.Origin, m.Grant = Allow, OriginSession, g
			}
			return m
		}
		m.grant(q.Grants, granted, w)
	}
	return m
}

// Restricts reports whether a rule on surface, or one under the universal key
// for more than everything, asks or denies: whether it matters which of several
// values is meant.
func (r *Ruleset) Restricts(surface string) bool {
	t := r.table(surface, false)
	if t.read != nil {
		return t.read.restricts || t.write.restricts
	}
	return t.restricts
}

// ResolveGroups decides an intent whose targets fall into groups, the most
// specific first, as MCP targets do: the last match within the first group that
// a rule matches decides, and a bare `*` only if nothing else matched. It draws
// on the work of its decision, w; nil: the intent is all of it.
func (r *Ruleset) ResolveGroups(surface string, groups [][]string, grants Grants, w *Work) Match {
	if w == nil {
		w = NewWork()
	}
	n := 0
	for _, g := range groups {
		in := input{values: g}
		n += in.bytes()
	}
	w.begin(n)
	t := r.table(surface, false)
	m := t.resolveGroups(groups, w)
	m.Surface = surface
	if m.Value == "" {
		for _, g := range groups {
			if len(g) > 0 {
				m.Value = g[0]
				break
			}
		}
	}
	if grants != nil && !m.Limited {
		for i := 0; i < len(groups) && m.Action == Ask; i++ {
			m.grant(grants, groups[i], w)
		}
	}
	return m
}

func (m *Match) grant(grants Grants, values []string, w *Work) {
	if g := find(grants, m.Surface, values, false, w); g != nil {
		m.Action, m.Origin, m.Grant = Allow, OriginSession, g
	}
}

// find is Find or FindExact, for what w still gives.
func find(grants Grants, surface string, values []string, exact bool, w *Work) *SessionGrant {
	v, ok := grants.(*GrantView)
	switch {
	case ok:
		return v.find(surface, values, exact, w)
	case exact:
		return grants.FindExact(surface, values)
	}
	return grants.Find(surface, values)
}

// tableLimit bounds the surfaces that are kept compiled, so that made-up tool
// names cannot fill memory.
const tableLimit = 512

func (r *Ruleset) table(surface string, path bool) *table {
	at := &r.named
	if path {
		at = &r.paths
	}
	if m := at.Load(); m != nil {
		if t := (*m)[surface]; t != nil {
			return t
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[string]*table)
	if old := at.Load(); old != nil {
		if t := (*old)[surface]; t != nil {
			return t
		}
		if len(*old) >= tableLimit {
			return r.newTable(surface, path)
		}
		for k, v := range *old {
			next[k] = v
		}
	}
	t := r.newTable(surface, path)
	next[surface] = t
	at.Store(&next)
	return t
}

// newTable compiles what a surface needs: two tables for a bare path name.
func (r *Ruleset) newTable(surface string, path bool) *table {
	if read, write, ok := directions(surface); ok {
		return &table{surface: surface, path: true, read: r.build(read, true), write: r.build(write, true)}
	}
	return r.build(surface, path || IsPathSurface(surface))
}
