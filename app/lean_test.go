package app

import (
	"context"
	"testing"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
)

type always engine.Verdict

func (v always) Decide(context.Context, *forwarding.Inbound) engine.Decision {
	return engine.Decision{Verdict: engine.Verdict(v)}
}

// Decisions go through, and every hundredth is told of, also where nobody
// listens.
func TestTally(t *testing.T) {
	d := newTally(always(engine.Approved))
	decide := func(times int) {
		for range times {
			if got := d.Decide(t.Context(), nil); got.Verdict != engine.Approved {
				t.Fatalf("decided %+v", got)
			}
		}
	}
	told := func() int {
		n := len(d.stirred)
		for range n {
			<-d.stirred
		}
		return n
	}
	for _, c := range []struct{ times, told int }{{99, 0}, {1, 1}, {99, 0}, {501, 1}, {100, 1}} {
		decide(c.times)
		if got := told(); got != c.told {
			t.Errorf("%d decisions more: told %d times, not %d", c.times, got, c.told)
		}
	}
}
