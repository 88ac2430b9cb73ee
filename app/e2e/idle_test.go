//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpuTime is the processor time that the threads of a process have had.
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	var sum time.Duration
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// TestIdleBeforeAndAfter measures what a serving Nod costs while nobody needs
// it: after its start, and after 10,000 asks that rules decided. Its figures
// are for docs/performance.md; it runs with NOD_BENCH set, for two minutes.
func TestIdleBeforeAndAfter(t *testing.T) {
	if os.Getenv("NOD_BENCH") == "" {
		t.Skip("set NOD_BENCH=1 to measure")
	}
	const span = 25 * time.Second
	idle := func(t *testing.T, pid int, when string) (mb float64) {
		time.Sleep(8 * time.Second) // until memory was given back
		work, monitor := wakeUps(t, pid)
		busy := cpuTime(t, pid)
		time.Sleep(span)
		busy = cpuTime(t, pid) - busy
		work2, monitor2 := wakeUps(t, pid)
		mb = memory(t, pid)
		t.Attr(when+"-mb", fmt.Sprintf("%.1f", mb))
		t.Attr(when+"-anon", fmt.Sprintf("%.1f", procField(t, fmt.Sprintf("/proc/%d/status", pid), "RssAnon:")/1024))
		t.Attr(when+"-wakeups", fmt.Sprintf("%.2f", (work2-work)/span.Seconds()))
		t.Attr(when+"-naps", fmt.Sprintf("%.2f", (monitor2-monitor)/span.Seconds()))
		t.Attr(when+"-cpu", fmt.Sprintf("%.3f", 100*busy.Seconds()/span.Seconds()))
		return mb
	}
	run := func(t *testing.T, m *machine, args ...string) {
		n := m.serve(append(args, "--policy", m.policy(`{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`))...)
		pid := n.cmd.Process.Pid
		idle(t, pid, "started")
		count := 0
		answer := func(asks int) {
			const batch = 200
			for end := count + asks; count < end; count += batch {
				for i := range batch {
					m.submit(ask{id: fmt.Sprint("ask-", count+i), agent: fmt.Sprint("agent", i%7), command: "make test"})
				}
				for i := range batch {
					if r := m.collect(fmt.Sprint("ask-", count+i)); r.State != "approved" {
						t.Fatalf("ask-%d: %+v", count+i, r)
					}
				}
			}
		}
		answer(1000) // what answering needs is in memory
		before := idle(t, pid, "warm")
		answer(10_000)
		after := idle(t, pid, "asked")
		if after > before+8 {
			t.Errorf("10,000 asks leave %.1f MB more: %.1f, after %.1f", after-before, after, before)
		}
	}
	t.Run("desktop", func(t *testing.T) {
		t.Parallel()
		m, _ := desktop(t)
		run(t, m)
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		run(t, newMachine(t), "--frontend", "none")
	})
}
