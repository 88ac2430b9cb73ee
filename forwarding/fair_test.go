package forwarding

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/nod-agents/nod/engine"
)

// TestAFloodLeavesRoom: one agent asks for more than fits into memory, small
// asks or large ones. Another's ask that comes after all of those is decided
// at once, and nothing of the flood is lost.
func TestAFloodLeavesRoom(t *testing.T) {
	for name, c := range map[string]struct{ n, size int }{
		"small": {3000, 12 << 10},
		"large": {60, 700 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := newHuman()
			s := serve(t, dir, "desk", h).ready()
			ask := func(id, agent string) {
				r := bash(id, "desk", "")
				r.RequesterAgentName, r.RequesterSessionID = agent, "session of "+agent
				r.Intent.Principal = engine.Principal{SessionID: r.RequesterSessionID, AgentName: agent}
				text := strings.Repeat("x", c.size)
				r.Value = &text // the one long text
				drop(t, dir, r)
			}
			for i := range c.n {
				ask(fmt.Sprintf("flood-%d", i), "scout")
			}
			pool := s.small
			if c.size > smallAsk {
				pool = s.large
			}
			stuck := func() bool {
				pool.mu.Lock()
				defer pool.mu.Unlock()
				return pool.waiting > 0
			}
			eventually(t, "a flood that fills its share", stuck)
			for _, agent := range []string{"worker", "planner"} {
				ask(agent, agent)
				h.wait(t, agent)
				if !stuck() {
					t.Error("the flood had come to its end, so this shows nothing")
				}
				h.see(agent).answer <- yes(byUser)
				answerOf(t, dir, "desk", agent)
			}
			for i := range c.n {
				id := fmt.Sprintf("flood-%d", i)
				eventually(t, "the flood goes on", func() bool {
					// Files are met in no order: whatever is asked makes room.
					h.mu.Lock()
					defer h.mu.Unlock()
					for other, a := range h.asks {
						if other != "worker" && other != "planner" {
							a.answer <- yes(byUser)
							delete(h.asks, other)
						}
					}
					return h.counts[id] > 0
				})
			}
			eventually(t, "an empty inbox", func() bool { return s.Pending() == 0 })
			for i := range c.n {
				id := fmt.Sprintf("flood-%d", i)
				if answerOf(t, dir, "desk", id); h.count(id) != 1 {
					t.Errorf("%s was asked %d times", id, h.count(id))
				}
			}
			if n := s.log.count(EventWarning) + s.log.count(EventWithdrawn); n > 0 {
				t.Errorf("%d warnings", n)
			}
		})
	}
}

// TestBudgetShares: however much one wants, the next to come has room, and so
// has the one after that.
func TestBudgetShares(t *testing.T) {
	b := newShared(1000, 3)
	held := map[string]int64{}
	for _, name := range []string{"a", "b", "c", "d"} {
		for w := b.claim(name, 1); ; w = b.claim(name, 1) {
			if !w.granted() {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				w.wait(ctx)
				break
			}
			held[name]++
		}
	}
	for name, want := range map[string]int64{"a": 750, "b": 187, "c": 47, "d": 12} {
		if held[name] != want {
			t.Errorf("%s has %d, want %d", name, held[name], want)
		}
	}

	// What becomes free goes to who has least, not to who has waited longest.
	more, less := b.claim("a", 1), b.claim("e", 100)
	if more.granted() || less.granted() {
		t.Fatal("there was room")
	}
	for range 200 {
		b.giveBack("a", 1)
	}
	if !less.granted() {
		t.Error("who has nothing waits")
	}
	if more.granted() {
		t.Error("who has most was served before there was enough")
	}
}

// TestBudgetKeepsCount: whatever is claimed, given up and given back, no more
// is out than there is, and everything comes back.
func TestBudgetKeepsCount(t *testing.T) {
	for _, share := range []int64{0, 1, 3} {
		b := newShared(1000, share)
		var out int64
		var mu sync.Mutex
		var wg sync.WaitGroup
		for hand := range 16 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(share), uint64(hand)))
				for range 500 {
					n := 1 + r.Int64N(1+r.Int64N(1200))
					ctx, cancel := context.WithCancel(t.Context())
					w := b.claim(fmt.Sprint(r.IntN(5)), n)
					if r.IntN(3) == 0 {
						go cancel()
					}
					if w.wait(ctx) {
						mu.Lock()
						if out += w.n; out > 1000 {
							t.Errorf("%d are out", out)
						}
						mu.Unlock()
						mu.Lock()
						out -= w.n
						mu.Unlock()
						w.release()
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if b.free != 1000 || len(b.holders) != 0 || b.waiting != 0 {
			t.Errorf("share %d: %d free of 1000, %d holders, %d waiting", share, b.free, len(b.holders), b.waiting)
		}
	}
}
