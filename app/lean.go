package app

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
)

// calmFor is how long nothing may have happened on the board before memory is
// given back.
const calmFor = 5 * time.Second

// tally is a decider that stirs at every hundredth decision. What rules decide
// never gets to the board, but leaves garbage all the same.
type tally struct {
	forwarding.Decider
	count   atomic.Int64
	stirred chan struct{} // of capacity 1
}

func newTally(d forwarding.Decider) *tally {
	return &tally{Decider: d, stirred: make(chan struct{}, 1)}
}

// stir says that something was done which leaves memory behind.
func (t *tally) stir() {
	select {
	case t.stirred <- struct{}{}:
	default:
	}
}

// Decide decides as the decider does.
func (t *tally) Decide(ctx context.Context, in *forwarding.Inbound) engine.Decision {
	d := t.Decider.Decide(ctx, in)
	if t.count.Add(1)%100 == 0 {
		t.stir()
	}
	return d
}

// stayLean gives memory back when the start is over, and whenever the board has
// been calm after it had changed or something else stirred, even where asks still
// wait. In between it sleeps: it sets a timer only after a change.
func stayLean(ctx context.Context, b *board.Board, stirred <-chan struct{}) {
	changes, stop := b.Watch()
	defer stop()
	calm := time.NewTimer(calmFor)
	defer calm.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			calm.Reset(calmFor)
		case <-stirred:
			calm.Reset(calmFor)
		case <-calm.C:
			debug.FreeOSMemory()
			unmapUnused()
		}
	}
}
