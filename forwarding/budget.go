package forwarding

import (
	"context"
	"sync"
)

// budget bounds what many goroutines hold at once, and shares it among holders
// by name, so that who wants much does not keep others out: what is free goes
// to the waiting holder that has least, and nobody takes so much that nothing
// is left for the next one to come. Each holder's waiters are served in the
// order in which they came.
type budget struct {
	mu    sync.Mutex
	free  int64
	size  int64
	share int64 // a holder that has something may have that many times what stays free; 0: everything

	holders map[string]*holder // those that have or want something
	waiting int                // claims that are not met
	seq     uint64
}

type holder struct {
	held    int64
	waiting []*waiter
}

type waiter struct {
	b     *budget
	name  string
	n     int64
	seq   uint64
	ready chan struct{} // closed when it has n
}

// newBudget is a budget for which holders do not differ.
func newBudget(size int64) *budget { return newShared(size, 0) }

// newShared is a budget of which one holder by itself gets share/(share+1).
func newShared(size, share int64) *budget {
	return &budget{free: size, size: size, share: share, holders: map[string]*holder{}}
}

// acquire takes n, waiting until it is free, and reports whether it did: it
// did not if ctx ended first. More than the whole counts as the whole.
func (b *budget) acquire(ctx context.Context, n int64) bool { return b.claim("", n).wait(ctx) }

// release gives back what acquire took.
func (b *budget) release(n int64) { b.giveBack("", n) }

// claim asks for n on behalf of name. More than the whole counts as the whole.
// The waiter must be waited for.
func (b *budget) claim(name string, n int64) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.holders[name]
	if h == nil {
		h = &holder{}
		b.holders[name] = h
	}
	b.seq++
	w := &waiter{b: b, name: name, n: min(n, b.size), seq: b.seq, ready: make(chan struct{})}
	if b.waiting == 0 && b.allows(h, w.n) {
		b.grant(h, w)
		return w
	}
	h.waiting = append(h.waiting, w)
	b.waiting++
	b.serve()
	return w
}

// granted reports whether the claim is met already.
func (w *waiter) granted() bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// wait waits until the claim is met and reports whether it was: it was not if
// ctx ended first.
func (w *waiter) wait(ctx context.Context) bool {
	select {
	case <-w.ready:
		return true
	case <-ctx.Done():
	}
	b := w.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.granted() { // both at once
		b.put(w.name, w.n)
	} else {
		h := b.holders[w.name]
		for i, o := range h.waiting {
			if o == w {
				h.waiting = append(h.waiting[:i], h.waiting[i+1:]...)
				b.waiting--
				break
			}
		}
		b.put(w.name, 0)
	}
	b.serve()
	return false
}

// release gives back what a claim that was met holds.
func (w *waiter) release() { w.b.giveBack(w.name, w.n) }

func (b *budget) giveBack(name string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(name, min(n, b.size))
	b.serve()
}

// put takes n from a holder, and forgets one that is no more. b.mu is held.
func (b *budget) put(name string, n int64) {
	h := b.holders[name]
	b.free += n
	if h.held -= n; h.held == 0 && len(h.waiting) == 0 {
		delete(b.holders, name)
	}
}

// allows reports whether h may have n more now. b.mu is held.
func (b *budget) allows(h *holder, n int64) bool {
	left := b.free - n
	return left >= 0 && (b.share == 0 || h.held == 0 || h.held+n <= b.share*left)
}

// grant meets the claim of h. b.mu is held.
func (b *budget) grant(h *holder, w *waiter) {
	h.held += w.n
	b.free -= w.n
	close(w.ready)
}

// serve meets claims, that of the holder who has least first. One that must
// wait holds up those of holders who have as much or more: what becomes free
// is kept for it. b.mu is held.
func (b *budget) serve() {
	for b.waiting > 0 {
		var next *holder
		for _, h := range b.holders {
			if len(h.waiting) > 0 && (next == nil || h.held < next.held || h.held == next.held && h.waiting[0].seq < next.waiting[0].seq) {
				next = h
			}
		}
		w := next.waiting[0]
		if !b.allows(next, w.n) {
			return
		}
		next.waiting = next.waiting[1:]
		b.waiting--
		b.grant(next, w)
	}
}
