package forwarding

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
)

// crashes is how many kills a crash loop has; FORWARDING_CRASHES says more.
func crashes(t *testing.T, usual int) int {
	if n, err := strconv.Atoi(os.Getenv("FORWARDING_CRASHES")); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 5
	}
	return usual
}

// TestServerCrashLoop kills the serving node with -9 at random moments of an
// exchange and starts another. Every ask is answered, or at last unavailable;
// none is lost, and nothing is left over.
func TestServerCrashLoop(t *testing.T) {
	dir := t.TempDir()
	got := make(chan Answer, 1000)
	asked := 0
	for range crashes(t, 25) {
		srv := spawn(t, "serve", dir, "")
		for range 4 {
			asked++
			go func() { got <- child(dir).Ask(t.Context(), question("git status")) }()
		}
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		srv.kill()
	}
	last := spawn(t, "serve", dir, "")
	last.line("ready")
	approvals := 0
	for range asked {
		select {
		case a := <-got:
			switch {
			case a.Verdict == engine.Approved:
				approvals++
			case a.Verdict != engine.Unavailable || !strings.Contains(a.Reason, "is not serving"):
				t.Errorf("got %+v", a)
			}
		case <-time.After(patience):
			t.Fatal("an ask never ended")
		}
	}
	t.Logf("%d asks, %d approved", asked, approvals)
	if approvals == 0 {
		t.Error("not one ask was answered")
	}
	eventually(t, "no request or response is left", func() bool { return len(jsonFiles(dir)) == 0 })
	last.end()
	if left, _ := os.ReadDir(ServingDir(dir)); len(left) > 0 && strings.HasSuffix(left[0].Name(), ".json") {
		t.Errorf("heartbeats left: %v", left)
	}
}

// TestChildCrashLoop kills children at random moments. What they leave is
// answered or withdrawn, never both, and gone once they would have given up.
func TestChildCrashLoop(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, "desk", always(yes(byUser)), func(c *ServerConfig) { c.Timeout = time.Second }).ready()
	ended := 0
	for range crashes(t, 25) {
		c := spawn(t, "ask", dir, "git status")
		select {
		case line := <-c.lines:
			var a Answer
			if err := json.Unmarshal([]byte(line), &a); err != nil || a.Verdict != engine.Approved {
				t.Errorf("got %s, %v", line, err)
			}
			ended++
		case <-time.After(time.Duration(rand.IntN(150)) * time.Millisecond):
		}
		c.kill()
	}
	t.Logf("%d children got their answer", ended)
	eventually(t, "no request is left", func() bool {
		for _, f := range jsonFiles(dir) {
			if strings.Contains(f, "requests") {
				return false
			}
		}
		return s.Pending() == 0
	})
	if n := s.log.count(EventWarning) + s.log.count(EventError); n > 0 {
		t.Errorf("logged\n%s", s.log)
	}
}

func jsonFiles(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(InboxDir(dir, "desk"), "*", "*.json"))
	return files
}
