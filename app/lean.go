package app

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/nod-agents/nod/app/board"
)

// calmFor is how long nothing may have happened on the board before memory is
// given back.
const calmFor = 5 * time.Second

// stayLean gives memory back when the start is over, and whenever the board has
// been empty and calm after it had something on it. In between it sleeps: it
// sets a timer only after a change.
func stayLean(ctx context.Context, b *board.Board) {
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
		case <-calm.C:
			if b.Len() == 0 {
				debug.FreeOSMemory()
				unmapUnused()
			}
		}
	}
}
