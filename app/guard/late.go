package guard

import (
	"slices"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
)

// Late makes the rules of a place once they are needed: for that all agents'
// settings are read, and links followed. Nil stands for no rules.
type Late func() *engine.Ruleset

// Decide is g.Decide with the rules of late for its guard.
//
// The call is first held against rules that deny all that any such rules can
// deny: every path that may be written, and the same commands. If they have
// nothing to say, the others would not either, so they need not be made. Else
// what was decided is thrown away, and the call decided by them.
func (late Late) Decide(g *gate.Gate, call gate.Call) *gate.Outcome {
	if late == nil {
		return g.Decide(call)
	}
	g.Guard = widest(g.Home, g.Cwd, g.Flavour)
	o := g.Decide(call)
	if !slices.ContainsFunc(o.Checks, func(c gate.Check) bool { return c.Limited || c.Reason == whyWidest }) {
		return o
	}
	g.Guard = late()
	return g.Decide(call)
}

// whyWidest marks the rules that stand for all. Nobody reads it.
const whyWidest = "\x00it may touch what Nod protects"
