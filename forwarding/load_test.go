package forwarding

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
)

// TestBurst writes 2,000 requests at once, half decided by rule, half waiting
// for a human. All of the first half are answered while the second waits;
// none is lost or asked or answered twice.
func TestBurst(t *testing.T) {
	const n = 2000
	dir := t.TempDir()
	h := newHuman()
	var decided atomic.Int64
	s := serve(t, dir, "desk", deciderFunc(func(ctx context.Context, in *Inbound) engine.Decision {
		if strings.HasPrefix(in.Request.ID, "rule-") {
			decided.Add(1)
			return approved
		}
		return h.Decide(ctx, in)
	})).ready()
	flood(t, dir, n)
	for i := 0; i < n; i += 2 {
		answerOf(t, dir, "desk", fmt.Sprintf("rule-%d", i))
	}
	if got := decided.Load(); got != n/2 {
		t.Errorf("%d decided by rule, want %d", got, n/2)
	}
	for i := 1; i < n; i += 2 {
		a := h.wait(t, fmt.Sprintf("human-%d", i))
		if i%4 == 1 {
			a.answer <- yes(byUser)
		} else {
			a.answer <- engine.Decision{Verdict: engine.Denied, By: byUser}
		}
	}
	for i := 1; i < n; i += 2 {
		id := fmt.Sprintf("human-%d", i)
		if r := answerOf(t, dir, "desk", id); r.Approved != (i%4 == 1) {
			t.Errorf("%s was answered %s", id, r.State)
		}
		if c := h.count(id); c != 1 {
			t.Errorf("%s was asked %d times", id, c)
		}
	}
	eventually(t, "all requests removed", func() bool {
		left, _ := os.ReadDir(filepath.Join(InboxDir(dir, "desk"), "requests"))
		return len(left) == 0 && s.Pending() == 0
	})
	if s.log.count(EventWarning) > 0 || s.log.count(EventAutoApproved) != n/2 || s.log.count(EventApproved)+s.log.count(EventDenied) != n/2 {
		t.Errorf("%d warnings, %d+%d+%d answers logged", s.log.count(EventWarning), s.log.count(EventAutoApproved), s.log.count(EventApproved), s.log.count(EventDenied))
	}
}

// flood writes n requests with eight hands, every other one for a human.
func flood(t testing.TB, dir string, n int) {
	var wg sync.WaitGroup
	for hand := range 8 {
		wg.Go(func() {
			for i := hand; i < n; i += 8 {
				id := fmt.Sprintf("rule-%d", i)
				if i%2 == 1 {
					id = fmt.Sprintf("human-%d", i)
				}
				drop(t, dir, bash(id, "desk", "git status"))
			}
		})
	}
	wg.Wait()
}

// TestTenThousandAsks wait at once, in bounded memory, and end with the server.
func TestTenThousandAsks(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 10,000 files")
	}
	n := 10_000
	if raced {
		n = 1000
	}
	dir := t.TempDir()
	var waiting atomic.Int64
	decide := deciderFunc(func(ctx context.Context, in *Inbound) engine.Decision {
		waiting.Add(1)
		defer waiting.Add(-1)
		<-ctx.Done()
		return engine.Decision{}
	})
	for i := range n {
		drop(t, dir, bash(fmt.Sprintf("r%d", i), "desk", "git status"))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := serve(t, dir, "desk", decide).ready()
	eventually(t, "all wait", func() bool { return waiting.Load() == int64(n) })
	for range 3 { // stacks shrink by half at each
		runtime.GC()
	}
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)
	t.Logf("%d asks hold %.1f MB (%.1f heap)", n, float64(held)/1e6, float64(after.HeapAlloc-before.HeapAlloc)/1e6)
	if !raced && held > 150e6 {
		t.Errorf("%d asks hold %d bytes", n, held)
	}
	s.stop()
	left, err := os.ReadDir(filepath.Join(InboxDir(dir, "desk"), "requests"))
	if err != nil || len(left) != n || waiting.Load() != 0 {
		t.Errorf("%d requests left for the next server, %d asks not ended, %v", len(left), waiting.Load(), err)
	}
}

// BenchmarkAnswer measures from the rename of a request that a rule decides to
// the response being readable, as the requester sees it, beside a serving node
// that polls its inbox every 250 ms as other implementations do. Asks come at
// moments that have nothing to do with when the last was answered.
func BenchmarkAnswer(b *testing.B) {
	measure := func(b *testing.B, dir string, pause time.Duration) {
		var all []time.Duration
		i := 0
		for b.Loop() {
			i++
			r := bash(fmt.Sprintf("r%d", i), "desk", "git status")
			path := responsePath(dir, "desk", r.ID)
			start := time.Now()
			drop(b, dir, r)
			for {
				if data, err := os.ReadFile(path); err == nil {
					if _, err := ParseResponse(data); err != nil {
						b.Fatal(err)
					}
					break
				}
				time.Sleep(100 * time.Microsecond)
			}
			all = append(all, time.Since(start))
			os.Remove(path)
			time.Sleep(3*time.Millisecond + rand.N(pause)) // an idle server, not a hot one
		}
		b.ReportMetric(float64(median(all).Microseconds())/1000, "ms-median")
	}
	b.Run("nod", func(b *testing.B) {
		dir := b.TempDir()
		serve(b, dir, "desk", always(approved)).ready()
		measure(b, dir, 10*time.Millisecond)
	})
	b.Run("poll-250ms", func(b *testing.B) {
		dir := b.TempDir()
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() { defer close(done); poller(ctx, dir) }()
		measure(b, dir, PollInterval)
		cancel()
		<-done
	})
}

// poller is a serving node that polls.
func poller(ctx context.Context, dir string) {
	requests, responses := filepath.Join(InboxDir(dir, "desk"), "requests"), filepath.Join(InboxDir(dir, "desk"), "responses")
	os.MkdirAll(responses, 0o700)
	for sleep(ctx, PollInterval) {
		files, _ := filepath.Glob(filepath.Join(requests, "*.json"))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			if _, err := ParseRequest(data); err != nil {
				continue
			}
			resp, _ := NewResponse(approved, "desk", time.Now()).Marshal()
			to := filepath.Join(responses, filepath.Base(f))
			if os.WriteFile(to+".tmp", resp, 0o600) == nil && os.Rename(to+".tmp", to) == nil {
				os.Remove(f)
			}
		}
	}
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// BenchmarkBurst measures 2,000 requests written at once, half decided by
// rule: how long until the last of those is answered.
func BenchmarkBurst(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		s := serve(b, dir, "desk", deciderFunc(func(ctx context.Context, in *Inbound) engine.Decision {
			if strings.HasPrefix(in.Request.ID, "rule-") {
				return approved
			}
			<-ctx.Done()
			return engine.Decision{}
		})).ready()
		b.StartTimer()
		flood(b, dir, 2000)
		for i := 0; i < 2000; i += 2 {
			answerOf(b, dir, "desk", fmt.Sprintf("rule-%d", i))
		}
		b.StopTimer()
		s.stop()
		b.StartTimer()
	}
}
