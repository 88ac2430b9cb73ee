//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// These tests print what they measure. What they assert is far from it, so
// that a slow machine does not fail them, but a loop that spins or an answer
// that waits for a poll does.

// memory is the resident memory of a process, in MB.
func memory(t testing.TB, pid int) float64 {
	t.Helper()
	return procField(t, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:") / 1024
}

// wakeUps is how often the threads of a process went to sleep and were woken,
// and how often its second thread did: that is the monitor of Go's runtime,
// which naps for some microseconds at a time while any other thread works.
func wakeUps(t testing.TB, pid int) (work, monitor float64) {
	t.Helper()
	dirs, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // sorted as text
	if err != nil {
		t.Fatal(err)
	}
	var threads []int
	for _, d := range dirs {
		tid, err := strconv.Atoi(d.Name())
		if err != nil {
			t.Fatal(err)
		}
		threads = append(threads, tid)
	}
	slices.Sort(threads)
	for i, tid := range threads {
		n := procField(t, fmt.Sprintf("/proc/%d/task/%d/status", pid, tid), "voluntary_ctxt_switches:")
		if i == 1 {
			monitor = n
		} else {
			work += n
		}
	}
	return work, monitor
}

func procField(t testing.TB, file, name string) float64 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		return 0 // a thread that ended
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				t.Fatalf("%s in %s: %v", name, file, err)
			}
			return n
		}
	}
	t.Fatalf("no %s in %s", name, file)
	return 0
}

// A resident Nod that nobody needs costs next to nothing.
func TestIdleCost(t *testing.T) {
	m, h := desktop(t)
	n := m.serve()
	h.awaitTooltip("nothing waits")
	pid := n.cmd.Process.Pid
	measure := func(when string) (mb, perSecond float64) {
		time.Sleep(6 * time.Second) // until memory was given back
		const span = 20 * time.Second
		work, monitor := wakeUps(t, pid)
		time.Sleep(span)
		mb = memory(t, pid)
		work2, monitor2 := wakeUps(t, pid)
		perSecond = (work2 - work) / span.Seconds()
		t.Logf("idle, %s: %.1f MB resident, %.2f wake-ups a second, and %.2f naps of the runtime's monitor",
			when, mb, perSecond, (monitor2-monitor)/span.Seconds())
		return mb, perSecond
	}
	if mb, rate := measure("just started"); mb > 30 || rate > 10 {
		t.Errorf("too much: %.1f MB, %.2f wake-ups a second", mb, rate)
	}
	// Having asked and been answered does not change that.
	for i := range 3 {
		id := fmt.Sprint("ask-", i)
		m.submit(ask{id: id, command: "make test"})
		m.ready()
		m.screen.ClickNotificationButton(t, buttonAllow, buttonCount)
		m.collect(id)
		h.awaitTooltip("nothing waits")
	}
	if mb, rate := measure("after three asks"); mb > 30 || rate > 10 {
		t.Errorf("too much: %.1f MB, %.2f wake-ups a second", mb, rate)
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// tap is a way to the session bus that notes when a call of Notify passes. The
// server that is played reads such a call, and the picture in it, byte by byte,
// and would be measured as well.
type tap struct {
	mu     sync.Mutex
	notify time.Time
}

// tapBus has what is started on m from now on reach the bus through a tap.
func tapBus(t testing.TB, m *machine) *tap {
	t.Helper()
	path := m.path("run/tapped")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			bus, err := net.Dial("unix", strings.TrimPrefix(m.bus.Address, "unix:path="))
			if err != nil {
				_ = client.Close()
				continue
			}
			all.Go(func() {
				_, _ = io.Copy(io.MultiWriter(p, bus), client)
				_ = bus.Close()
			})
			all.Go(func() {
				_, _ = io.Copy(client, bus)
				_ = client.Close()
			})
		}
	})
	t.Cleanup(func() { // after Nod has ended, and its connections with it
		_ = l.Close()
		all.Wait()
	})
	m.extra = append(m.extra, "DBUS_SESSION_BUS_ADDRESS=unix:path="+path)
	return p
}

// Write sees what Nod sends.
func (p *tap) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("\x06\x00\x00\x00Notify\x00")) {
		p.mu.Lock()
		p.notify = time.Now()
		p.mu.Unlock()
	}
	return len(b), nil
}

func (p *tap) lastNotify() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notify
}

// From the rename of a request to the answer of a rule, and to the Notify call
// of an ask.
func TestLatency(t *testing.T) {
	m, _, d := watched(t)
	line := tapBus(t, m)
	m.serve("--policy", m.policy(`{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`))
	const rounds = 200
	var ruled, asked []time.Duration
	for i := range rounds {
		id := fmt.Sprint("rule-", i)
		at := m.submit(ask{id: id, command: "make test"})
		path := filepath.Join(m.spool("responses"), id+".json")
		for limit := at.Add(patience); ; {
			if _, err := os.Stat(path); err == nil {
				ruled = append(ruled, time.Since(at))
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("no answer to %s", id)
			}
			time.Sleep(100 * time.Microsecond)
		}
		m.collect(id)
	}
	for i := range 20 {
		id := fmt.Sprint("ask-", i)
		at := m.submit(ask{id: id, command: "ls"})
		note := d.Wait(t, i+1)
		asked = append(asked, line.lastNotify().Sub(at))
		m.remove("requests", id+".json") // it is taken back
		d.WaitClosed(t, note.ID)
	}
	toAnswer, toNotify := median(ruled), median(asked)
	t.Logf("rename of a request to its answer by rule: median %v, of 100 the 95th %v", toAnswer, ruled[len(ruled)*95/100])
	t.Logf("rename of a request to the Notify call: median %v, slowest %v", toNotify, asked[len(asked)-1])
	t.Attr("to-answer", toAnswer.String())
	t.Attr("to-notify", toNotify.String())
	if toAnswer > 100*time.Millisecond || toNotify > 200*time.Millisecond {
		t.Errorf("too slow: %v to an answer, %v to a notification", toAnswer, toNotify)
	}
}

// Two thousand requests at once, half of which a rule decides.
func TestTwoThousandRequests(t *testing.T) {
	m, h, d := watched(t)
	n := m.serve("--policy", m.policy(`{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`))
	h.awaitTooltip("nothing waits")
	const half = 1000
	peak := 0.0
	began := time.Now()
	for i := range half {
		m.submit(ask{id: fmt.Sprintf("rule-%04d", i), agent: fmt.Sprint("agent", i%7), command: "make test"})
		m.submit(ask{id: fmt.Sprintf("human-%04d", i), agent: fmt.Sprint("agent", i%7), command: fmt.Sprint("ls ", i)})
	}
	written := time.Now()
	eventually(t, "every answer by rule", func() bool {
		peak = max(peak, memory(t, n.cmd.Process.Pid))
		return len(m.spooled("responses")) >= half
	})
	done := time.Now()
	t.Logf("2,000 requests written in %v; the 1,000 decided by rule were answered %v after the first, %v after the last of them was written",
		written.Sub(began).Round(time.Millisecond), done.Sub(began).Round(time.Millisecond), done.Sub(written).Round(time.Millisecond))
	if late := done.Sub(written); late > 15*time.Second {
		t.Errorf("too slow: %v", late)
	}
	h.awaitTooltip(fmt.Sprint(half, " asks wait"))
	eventually(t, "one summary", func() bool {
		posted := d.Posted()
		return len(d.Live()) == 1 && strings.Contains(posted[len(posted)-1].Title, fmt.Sprint(half, " asks wait"))
	})
	t.Logf("notifications sent: %d, on screen: %d", len(d.Posted()), len(d.Live()))
	if sent := len(d.Posted()); sent > 30 {
		t.Errorf("%d notifications were sent", sent)
	}

	names := m.spooled("responses")
	for _, name := range names {
		if !strings.HasPrefix(name, "rule-") {
			t.Errorf("nobody decided %s", name)
		}
	}
	if len(names) != half || len(m.spooled("requests")) != half {
		t.Errorf("%d responses and %d requests, not %d each", len(names), len(m.spooled("requests")), half)
	}
	m.awaitLog("forwarded_permission.auto_approved", half)
	m.awaitLog("forwarded_permission.prompted", half)
	peak = max(peak, memory(t, n.cmd.Process.Pid))
	t.Logf("resident memory at most %.1f MB", peak)
	if peak > 200 {
		t.Errorf("%.1f MB", peak)
	}

	// The rest waits for a human, and a rule that comes later settles it.
	m.policy(`{"permission": {"bash": {"*": "ask", "make *": "allow", "ls *": "deny"}}}`)
	eventually(t, "every answer", func() bool { return len(m.spooled("responses")) == 2*half })
	m.awaitLog("forwarded_permission.auto_denied", half)
	h.awaitTooltip("nothing waits")
	eventually(t, "no notification", func() bool { return len(d.Live()) == 0 })
}
