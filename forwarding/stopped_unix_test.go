//go:build unix

package forwarding

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

// TestAMachineThatStoodStill stops both sides until the heartbeat is stale, as
// a machine does that is out of memory or is moved to another host. The child,
// which goes on first, does not take that for a server that has gone.
func TestAMachineThatStoodStill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := spawn(t, "serve", dir, "")
	srv.line("ready")
	asker := spawn(t, "ask", dir, "touch x")
	id := strings.TrimPrefix(srv.line("asked "), "asked ")
	send := func(p *process, s syscall.Signal) { must(t, p.cmd.Process.Signal(s)) }
	send(asker, syscall.SIGSTOP)
	send(srv, syscall.SIGSTOP)
	reader := heartbeat.Reader{Clock: heartbeat.SystemClock()}
	eventually(t, "a stale heartbeat", func() bool {
		state, _ := reader.Read(ServingDir(dir), "desk")
		return state == heartbeat.Stale
	})
	send(asker, syscall.SIGCONT)
	time.Sleep(2 * PollInterval) // it looks, and sees that
	send(srv, syscall.SIGCONT)
	fmt.Fprintf(srv.in, "approve %s\n", id)
	var a Answer
	if err := json.Unmarshal([]byte(asker.line("{")), &a); err != nil || a.Verdict != engine.Approved {
		t.Errorf("got %+v, %v", a, err)
	}
}
