//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// beats reads the heartbeat again and again, until it is stopped: then it says
// how old the record was at most.
func (m *machine) beats() (stop func() time.Duration) {
	m.t.Helper()
	path := filepath.Join(m.spool("requests"), "..", "..", "..", "serving", session+".json")
	ended := make(chan struct{})
	var oldest time.Duration
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			var r struct{ UpdatedAt int64 }
			if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &r) == nil {
				oldest = max(oldest, time.Since(time.UnixMilli(r.UpdatedAt)))
			}
			select {
			case <-ended:
				return
			case <-tick.C:
			}
		}
	})
	return func() time.Duration {
		close(ended)
		wg.Wait()
		return oldest
	}
}

// TestAFloodHidesNobody: one agent asks ten thousand times, which is more than
// Nod takes into memory. Another agent's ask that comes after all those is
// named in the notification, stands in the menu, and can be answered in its
// dialog, while the flood waits.
func TestAFloodHidesNobody(t *testing.T) {
	m, h, d := watched(t)
	n := m.serve()
	const asks = 10_000
	staged, inbox := m.path("staged"), m.spool("requests")
	for _, dir := range []string{staged, inbox} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range asks {
		name := fmt.Sprintf("flood-%05d", i)
		if err := os.WriteFile(filepath.Join(staged, name), ask{id: name, command: fmt.Sprintf("ls %d%s", i, strings.Repeat(" x", 450))}.request(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	oldest := m.beats()
	for i := range asks {
		name := fmt.Sprintf("flood-%05d", i)
		if err := os.Rename(filepath.Join(staged, name), filepath.Join(inbox, name+".json")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a flood that fills its share", func() bool {
		var waiting int
		_, err := fmt.Sscanf(h.tooltip(), "Nod: %d asks wait", &waiting)
		return err == nil && waiting > asks/3
	})

	at := m.submit(ask{id: "other", agent: "worker", command: "make test"})
	h.awaitItem("worker: make test")
	t.Logf("in the menu after %v", time.Since(at).Round(time.Millisecond))
	eventually(t, "a notification that names the other agent", func() bool {
		all := d.Posted()
		last := all[len(all)-1]
		return strings.HasSuffix(last.Title, " asks wait") && strings.Contains(last.Body, "worker 1") && len(d.Live()) == 1
	})
	t.Logf("in the notification after %v", time.Since(at).Round(time.Millisecond))
	h.click("worker: make test")
	m.focus(m.window("worker"))
	m.screen.Screenshot(t, "dialog-flood")
	m.press(allowOnce)
	if r := m.collect("other"); !r.Approved || !sameJSON(t, string(r.DecidedBy), byHuman) {
		t.Errorf("the answer: %+v", r)
	}

	// And once the whole flood has been taken notice of.
	at = m.submit(ask{id: "third", agent: "planner", command: "make clean"})
	h.awaitItem("planner: make clean")
	t.Logf("the next agent's ask was in the menu after %v", time.Since(at).Round(time.Millisecond))
	at = time.Now()
	h.click("planner: make clean")
	m.focus(m.window("planner"))
	t.Logf("its dialog could be answered %v after the click", time.Since(at).Round(time.Millisecond))
	m.press(deny)
	if r := m.collect("third"); r.Approved {
		t.Errorf("the answer: %+v", r)
	}

	mb := memory(t, n.cmd.Process.Pid)
	t.Logf("the heartbeat was never older than %v; %.0f MB", oldest().Round(time.Millisecond), mb)
	if mb > 600 {
		t.Errorf("%.0f MB", mb)
	}
	if left, answers := len(m.spooled("requests")), len(m.spooled("responses")); left != asks || answers != 0 {
		t.Errorf("%d asks of the flood wait, and %d have an answer", left, answers)
	}
}
