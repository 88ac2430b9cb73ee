package engine

import (
	"strings"

	"github.com/nod-agents/nod/engine/pattern"
)

// table is the policy as one surface sees it.
type table struct {
	surface   string
	path      bool
	read      *table // of a bare path name: its two directions, and nothing else
	write     *table
	config    stack
	baseline  []entry // MCP operations that any mcp allow frees
	universal stack
	fallback  Origin // of the built-in default
	restricts bool   // see Ruleset.Restricts
}

// stack is one ordered list, merged from layers, with each layer's own list.
type stack struct {
	merged index
	own    []index // by layer rank; nil if the merged list is one layer's own
}

// entry is a rule made ready for one surface.
type entry struct {
	rule   *Rule
	action Action // after a clamp
	origin Origin // after a clamp
	bare   bool   // its pattern is nothing but stars
	text   bool   // written as a bare action
	rank   int    // of the layer it comes from
	key    string // the surface key, a bare path key made directed
	pat    pattern.Pattern
	// outside, if set, is a directory at or below which nothing matches: the
	// pattern was written relative to the project and climbs out of it.
	outside string
	alt     *pattern.Pattern // the climbing pattern as written, for deny and ask
}

func (e *entry) match(v string) bool {
	if e.pat.Match(v) && (e.outside == "" || !within(v, e.outside)) {
		return true
	}
	return e.alt != nil && e.alt.Match(v)
}

// matchWithin is match with what it costs taken from w.
func (e *entry) matchWithin(v string, w *Work) bool {
	if e.pat.MatchWithin(v, &w.left) && (e.outside == "" || !within(v, e.outside)) {
		return true
	}
	return e.alt != nil && !w.out() && e.alt.MatchWithin(v, &w.left)
}

// within reports whether path is dir or below it, by their text.
func within(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/' || strings.HasSuffix(dir, "/"))
}

// input is the spellings of one query.
type input struct {
	values, strict, whole []string
}

// bytes is how long the spellings are in all.
func (in *input) bytes() int {
	n := 0
	for _, list := range [...][]string{in.values, in.strict, in.whole} {
		for _, v := range list {
			n += len(v)
		}
	}
	return n
}

// folded is in with every spelling folded.
func (in input) folded(f pattern.Flavour) input {
	return input{values: foldAll(in.values, f), strict: foldAll(in.strict, f), whole: foldAll(in.whole, f)}
}

func foldAll(list []string, f pattern.Flavour) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f.Fold(s)
	}
	return out
}

// hit is an entry that matched.
type hit struct {
	entry   *entry
	value   string
	via     Via
	limited bool // not every entry was looked at
}

// last finds the last entry of x that in matches.
func (x *index) last(in *input, sel selection, w *Work) hit {
	best := -1
	h := hit{}
	for _, v := range in.values {
		if i := x.find(v, sel, best, w, nil); i > best {
			best, h.value, h.via = i, v, ViaValue
		}
	}
	for _, v := range in.strict {
		if i := x.find(v, sel|noAllow, best, w, nil); i > best {
			best, h.value, h.via = i, v, ViaStrict
		}
	}
	for _, v := range in.whole {
		if i := x.find(v, sel|noAllow|noBare, best, w, nil); i > best {
			best, h.value, h.via = i, v, ViaWhole
		}
	}
	if best >= 0 {
		h.entry = &x.entries[best]
	}
	h.limited = w.out()
	return h
}

// denies reports whether h is a deny, which counts though not every entry was
// looked at.
func (h *hit) denies() bool { return h.entry != nil && h.entry.action == Deny }

// decide finds the winner of the merged list and holds it against its own
// layer's file order and against what each higher layer says last; the
// strictest counts. A higher layer's bare `*` does not count against a winner
// that is more than that: restating the catch-all does not undo the exceptions
// below it.
func (s *stack) decide(in *input, sel selection, work *Work) hit {
	w := s.merged.last(in, sel, work)
	if w.entry == nil || s.own == nil || w.denies() || w.limited {
		return w
	}
	won, limited := w, false
	for rank := won.entry.rank; rank < len(s.own); rank++ {
		h := s.own[rank].last(in, sel, work)
		limited = limited || h.limited
		if h.entry == nil || rank > won.entry.rank && h.entry.bare && !won.entry.bare {
			continue
		}
		if h.entry.action.Stricter(w.entry.action) {
			w = h
		}
	}
	w.limited = limited
	return w
}

// resolve decides in. The spellings that only deny and ask rules see never
// soften what the values alone get: a later ask for one of them does not lift
// an earlier deny.
func (t *table) resolve(in *input, w *Work) Match {
	if len(in.strict) == 0 && len(in.whole) == 0 {
		return t.settle(in, w)
	}
	m := t.settle(&input{values: in.values}, w)
	if m.Action == Deny {
		return m
	}
	if all := t.settle(in, w); !m.Action.Stricter(all.Action) && (!m.Limited || all.Action == Deny) {
		return all
	}
	return m
}

func (t *table) settle(in *input, w *Work) Match {
	if h := t.config.decide(in, 0, w); h.entry != nil || h.limited {
		return h.match(in, true)
	}
	for _, v := range in.values {
		if m, ok := t.free(v); ok {
			return m
		}
	}
	return t.otherwise(in, w)
}

func (t *table) resolveGroups(groups [][]string, w *Work) Match {
	for _, g := range groups {
		in := input{values: g}
		if h := t.config.decide(&in, noBare, w); h.entry != nil || h.limited {
			return h.match(&in, true)
		}
	}
	if len(groups) == 0 {
		return t.otherwise(&input{}, w)
	}
	first := input{values: groups[0]}
	if h := t.config.decide(&first, 0, w); h.entry != nil || h.limited {
		return h.match(&first, true)
	}
	for _, g := range groups {
		for _, v := range g {
			if m, ok := t.free(v); ok {
				return m
			}
		}
	}
	for _, g := range groups {
		in := input{values: g}
		if h := t.universal.decide(&in, noBare, w); h.entry != nil || h.limited {
			return h.match(&in, false)
		}
	}
	return t.otherwise(&first, w)
}

// free answers an MCP operation of the baseline.
func (t *table) free(v string) (Match, bool) {
	for i := range t.baseline {
		if e := &t.baseline[i]; e.rule.Pattern == v {
			h := hit{entry: e, value: v}
			return h.match(nil, true), true
		}
	}
	return Match{}, false
}

// otherwise is the universal `*`, else the built-in ask.
func (t *table) otherwise(in *input, w *Work) Match {
	if h := t.universal.decide(in, 0, w); h.entry != nil || h.limited {
		return h.match(in, false)
	}
	return Match{Action: Ask, Origin: t.fallback}
}

// match is h as an answer. Where not every entry was looked at, only a deny
// stands: the rest might deny.
func (h *hit) match(in *input, explicit bool) Match {
	if h.limited && !h.denies() {
		m := Match{Action: Ask, Origin: OriginBuiltin, Pattern: PatternLimit, Explicit: true, Limited: true}
		if len(in.values) > 0 {
			m.Value = in.values[0]
		}
		return m
	}
	e := h.entry
	return Match{
		Action: e.action, Origin: e.origin, Rule: e.rule, Pattern: e.rule.Pattern,
		Value: h.value, Via: h.via, Explicit: explicit,
	}
}

// baselineOperations are the MCP operations that look and do not act.
var baselineOperations = [...]string{"mcp_status", "mcp_list", "mcp_search", "mcp_describe", "mcp_connect"}

func (r *Ruleset) build(surface string, path bool) *table {
	t := &table{surface: surface, path: path, fallback: OriginBuiltin}
	if r.broken {
		t.fallback = OriginFailClosed
	}
	config := make([][]block, len(r.layers))
	universal := make([][]block, len(r.layers))
	for rank := range r.layers {
		l := &r.layers[rank]
		for i := range l.Sections {
			s := &l.Sections[i]
			switch {
			case pattern.IsBare(s.Surface):
				universal[rank] = append(universal[rank], r.block(s, "*", rank, path, true))
			case surfaceMatches(s.Surface, surface):
				key := s.Surface
				if key == bareName(surface) && key != "" {
					key = surface
				}
				config[rank] = append(config[rank], r.block(s, key, rank, path, false))
			}
		}
	}
	t.config = newStack(config)
	t.universal = newStack(universal)
	t.restricts = t.config.any(func(e *entry) bool { return e.action != Allow }) ||
		t.universal.any(func(e *entry) bool { return e.action != Allow && !e.bare })
	if surface == SurfaceMCP {
		for i := range t.config.merged.entries {
			if t.config.merged.entries[i].rule.Action == Allow {
				t.baseline = r.baseline()
				break
			}
		}
	}
	return t
}

// any reports whether which holds for an entry of s.
func (s *stack) any(which func(*entry) bool) bool {
	for i := range s.merged.entries {
		if which(&s.merged.entries[i]) {
			return true
		}
	}
	for i := range s.own {
		for j := range s.own[i].entries {
			if which(&s.own[i].entries[j]) {
				return true
			}
		}
	}
	return false
}

// surfaceMatches reports whether rules under key apply to surface. A key that
// matches a bare path name applies to both of its directions.
func surfaceMatches(key, surface string) bool {
	if key == surface {
		return true
	}
	bare := bareName(surface)
	if bare != "" && key == bare {
		return true
	}
	if pattern.IsLiteral(key) {
		return false
	}
	p := pattern.Compile(key, pattern.Posix)
	return p.Match(surface) || bare != "" && p.Match(bare)
}

func (r *Ruleset) baseline() []entry {
	list := make([]entry, 0, len(baselineOperations))
	for _, op := range baselineOperations {
		e := entry{rule: &Rule{Surface: SurfaceMCP, Pattern: op, Action: Allow, Origin: OriginBaseline}, action: Allow, origin: OriginBaseline}
		r.clamp(&e)
		list = append(list, e)
	}
	return list
}

// clamp fails e closed where a broken file demands it.
func (r *Ruleset) clamp(e *entry) {
	if e.action == Allow && (r.clamped || r.broken && e.rule.Origin == OriginGlobal) {
		e.action, e.origin = Ask, OriginFailClosed
	}
}

// block is one section, made ready for one surface.
type block struct {
	key     string
	text    bool
	entries []entry
}

func (r *Ruleset) block(s *Section, key string, rank int, path, universal bool) block {
	b := block{key: key, text: s.Text, entries: make([]entry, 0, len(s.Rules))}
	for i := range s.Rules {
		rule := &s.Rules[i]
		if !rule.Until.IsZero() && !rule.Until.After(r.opt.Now) {
			continue
		}
		if universal && !s.Text && rule.Action == Allow {
			continue // a map under the universal key never allows
		}
		if !path && pattern.IsGlob(rule.Pattern) {
			continue // a glob is for paths only
		}
		e := entry{rule: rule, action: rule.Action, origin: rule.Origin, bare: pattern.IsBare(rule.Pattern), text: s.Text, rank: rank, key: key}
		r.clamp(&e)
		r.compile(&e, path)
		b.entries = append(b.entries, e)
	}
	return b
}

// compile makes e's pattern ready.
func (r *Ruleset) compile(e *entry, path bool) {
	text := pattern.ExpandHome(e.rule.Pattern, r.opt.Home)
	if !path {
		e.pat = pattern.Compile(text, pattern.Posix)
		return
	}
	n := normalPattern(e.rule.Pattern, r.opt)
	e.pat = pattern.Compile(place(n.text), r.opt.Flavour)
	if n.climbs != "" {
		e.outside = strings.TrimSuffix(r.opt.Flavour.Fold(r.opt.Cwd), "/")
		if e.action != Allow {
			alt := pattern.Compile(place(n.climbs), r.opt.Flavour)
			e.alt = &alt
		}
	}
}

// newStack merges the blocks of the layers, lowest first.
func newStack(layers [][]block) stack {
	var only []block
	n := 0
	for _, blocks := range layers {
		if len(blocks) > 0 {
			n++
			only = blocks
		}
	}
	if n <= 1 {
		return stack{merged: newIndex(flat(only))}
	}
	m := merger{at: map[string]int{}}
	s := stack{own: make([]index, len(layers))}
	for rank, blocks := range layers {
		if len(blocks) == 0 {
			continue
		}
		m.add(blocks)
		s.own[rank] = newIndex(flat(blocks))
	}
	s.merged = newIndex(flat(m.blocks))
	return s
}

func flat(blocks []block) []entry {
	n := 0
	for i := range blocks {
		n += len(blocks[i].entries)
	}
	list := make([]entry, 0, n)
	for i := range blocks {
		list = append(list, blocks[i].entries...)
	}
	return list
}

// merger unites layers by surface key.
type merger struct {
	blocks []block
	at     map[string]int // by key: the place in blocks
}

// add puts the blocks of a higher layer on top: a bare action replaces, a map
// unites; a restated pattern keeps its place and new ones go to the end. A map
// over a bare action keeps a deny or ask as its first `*` and drops an allow.
func (m *merger) add(blocks []block) {
	seen := map[string]bool{} // keys that this layer has already written
	for _, b := range blocks {
		at, known := m.at[b.key]
		again := seen[b.key]
		seen[b.key] = true
		if !known {
			m.at[b.key] = len(m.blocks)
			m.blocks = append(m.blocks, block{key: b.key, text: b.text, entries: append([]entry(nil), b.entries...)})
			continue
		}
		low := &m.blocks[at]
		if b.text {
			low.text, low.entries = true, append([]entry(nil), b.entries...)
			continue
		}
		if low.text && !again {
			kept := low.entries[:0:0]
			for _, e := range low.entries {
				if e.rule.Action != Allow {
					kept = append(kept, e)
				}
			}
			low.entries = kept
		}
		low.text = false
		low.unite(b.entries, again)
	}
}

// unite adds entries to a block; with move, restated patterns go to the end.
func (b *block) unite(entries []entry, move bool) {
	place := make(map[string]int, len(b.entries))
	for i := range b.entries {
		place[b.entries[i].rule.Pattern] = i
	}
	gone := map[int]bool{}
	for _, e := range entries {
		i, ok := place[e.rule.Pattern]
		switch {
		case ok && !move:
			b.entries[i] = e
			continue
		case ok:
			gone[i] = true
		}
		place[e.rule.Pattern] = len(b.entries)
		b.entries = append(b.entries, e)
	}
	if len(gone) > 0 {
		kept := b.entries[:0:0]
		for i := range b.entries {
			if !gone[i] {
				kept = append(kept, b.entries[i])
			}
		}
		b.entries = kept
	}
}
