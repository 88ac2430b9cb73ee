package engine

import "slices"

// Step is one rule that matches a query, for explaining a decision.
type Step struct {
	Rule      *Rule // as written
	Action    Action
	Origin    Origin // after a clamp
	Value     string // the spelling that it matches
	Via       Via
	Universal bool // it stands under the universal `*`
	Wins      bool
}

// Trace lists every rule that matches q in the order they count, the last
// word last, and marks the one that Resolve goes by. Where looking at all would
// take too long it lists only some of them, the one that decides among them. It
// is for explaining, not for deciding.
func (r *Ruleset) Trace(q *Query) []Step {
	won := r.Resolve(&Query{Surface: q.Surface, Path: q.Path, Values: q.Values, Strict: q.Strict, Whole: q.Whole})
	return r.TraceTo(q, &won)
}

// TraceTo is Trace where the decision is known: won, which the spellings of q
// need not have come to all at once.
func (r *Ruleset) TraceTo(q *Query, won *Match) []Step {
	surfaces := []string{q.Surface}
	if read, write, ok := directions(q.Surface); ok {
		surfaces = []string{read, write}
	}
	var steps []Step
	seen := make(map[*Rule]bool)
	work := NewWork()
	for _, surface := range surfaces {
		t := r.table(surface, q.Path)
		in := input{values: q.Values, strict: q.Strict, whole: q.Whole}
		if t.path {
			in = in.folded(r.opt.Flavour)
		}
		var of [2][]Step // the universal ones and the others
		for n, s := range [...]*stack{&t.universal, &t.config} {
			look := func(e *entry, w *Work) {
				if value, via, ok := e.matches(&in, w); ok {
					seen[e.rule] = true
					of[n] = append(of[n], Step{
						Rule: e.rule, Action: e.action, Origin: e.origin, Value: value, Via: via,
						Universal: s == &t.universal, Wins: e.rule == won.Rule,
					})
				}
			}
			for _, e := range slices.Backward(s.merged.entries) {
				switch {
				case seen[e.rule]:
				case e.rule == won.Rule:
					look(&e, NewWork())
				case !work.out():
					look(&e, work)
				}
			}
			slices.Reverse(of[n])
			for i := range s.own {
				for _, e := range s.own[i].entries {
					if e.rule == won.Rule && !seen[e.rule] {
						look(&e, NewWork())
					}
				}
			}
		}
		steps = append(append(steps, of[0]...), of[1]...)
	}
	if won.Limited {
		steps = append(steps, Step{
			Rule:   &Rule{Surface: won.Surface, Pattern: PatternLimit, Action: Ask, Origin: OriginBuiltin},
			Action: Ask, Origin: OriginBuiltin, Value: won.Value, Wins: true,
		})
	}
	return steps
}

// matches reports which spelling of in e matches, if any.
func (e *entry) matches(in *input, w *Work) (string, Via, bool) {
	for _, v := range in.values {
		if e.matchWithin(v, w) {
			return v, ViaValue, true
		}
	}
	if e.rule.Action == Allow {
		return "", 0, false
	}
	for _, v := range in.strict {
		if e.matchWithin(v, w) {
			return v, ViaStrict, true
		}
	}
	if e.bare {
		return "", 0, false
	}
	for _, v := range in.whole {
		if e.matchWithin(v, w) {
			return v, ViaWhole, true
		}
	}
	return "", 0, false
}

// Rules lists the merged rules that apply to surface, in the order they count:
// the universal ones first, the last word last.
func (r *Ruleset) Rules(surface string) []Step {
	surfaces := []string{surface}
	if read, write, ok := directions(surface); ok {
		surfaces = []string{read, write}
	}
	var steps []Step
	seen := make(map[*Rule]bool)
	for _, name := range surfaces {
		t := r.table(name, false)
		for _, s := range []*stack{&t.universal, &t.config} {
			for i := range s.merged.entries {
				e := &s.merged.entries[i]
				if seen[e.rule] {
					continue
				}
				seen[e.rule] = true
				steps = append(steps, Step{Rule: e.rule, Action: e.action, Origin: e.origin, Universal: s == &t.universal})
			}
		}
	}
	return steps
}
