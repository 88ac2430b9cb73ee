package forwarding

import (
	"context"
	"sync"
)

// budget bounds what many goroutines hold at once. Waiters are served in the
// order in which they came.
type budget struct {
	mu      sync.Mutex
	free    int64
	size    int64
	waiting []*waiter
}

type waiter struct {
	n     int64
	ready chan struct{}
}

func newBudget(size int64) *budget { return &budget{free: size, size: size} }

// acquire takes n, waiting until it is free, and reports whether it did: it
// did not if ctx ended first. More than the whole counts as the whole.
func (b *budget) acquire(ctx context.Context, n int64) bool {
	n = min(n, b.size)
	b.mu.Lock()
	if len(b.waiting) == 0 && b.free >= n {
		b.free -= n
		b.mu.Unlock()
		return true
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return true
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // both at once: give it back
		b.free += w.n
	default:
		for i, o := range b.waiting {
			if o == w {
				b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
				break
			}
		}
	}
	b.serve()
	return false
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += min(n, b.size)
	b.serve()
}

func (b *budget) serve() {
	for len(b.waiting) > 0 && b.free >= b.waiting[0].n {
		b.free -= b.waiting[0].n
		close(b.waiting[0].ready)
		b.waiting = b.waiting[1:]
	}
}
