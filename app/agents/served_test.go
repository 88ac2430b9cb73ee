package agents

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/node"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
)

const patience = 30 * time.Second

// serve starts a serving node for the desk's home. Asks wait on its board.
func (d *desk) serve() *node.Node {
	d.t.Helper()
	t := d.t
	inbox := node.Inbox{AgentDir: filepath.Join(d.home, ".pi", "agent"), SessionID: "desktop"}
	n := node.New(node.Config{
		Inboxes: []node.Inbox{inbox}, ConfigDir: filepath.Join(d.home, ".config", "nod"), Home: d.home, Files: policyfile.Disk{}, Human: true,
		Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	ready := make(chan struct{})
	s := forwarding.NewServer(forwarding.ServerConfig{AgentDir: inbox.AgentDir, SessionID: inbox.SessionID, Decider: n, Ready: func() { close(ready) }})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the inbox is not served")
	}
	return n
}

// pending waits until count asks are on the board.
func pending(t testing.TB, n *node.Node, count int) []*board.Ask {
	t.Helper()
	changes, stop := n.Board().Watch()
	defer stop()
	limit := time.After(patience)
	for {
		if list := n.Board().Pending(); len(list) == count {
			return list
		}
		select {
		case <-changes:
		case <-limit:
			t.Fatalf("%d asks wait, want %d", len(n.Board().Pending()), count)
		}
	}
}

func answer(t testing.TB, n *node.Node, a *board.Ask, v engine.Verdict, reason string) {
	t.Helper()
	if err := n.Board().Answer(a.Key, a.Hash, board.Answer{Verdict: v, Reason: reason, View: "test"}); err != nil {
		t.Fatal(err)
	}
}

// running is a hook that waits for its answer.
type running struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
	done     chan struct{}
}

func (d *desk) start(stdin string, args ...string) *running {
	d.t.Helper()
	r := &running{cmd: exec.Command(filepath.Join(d.home, "the bin", "nod"), args...), done: make(chan struct{})}
	r.cmd.Env, r.cmd.Dir, r.cmd.Stdin = d.env, d.proj, strings.NewReader(stdin)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
	if err := r.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait()
	}()
	d.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
	})
	return r
}

func (r *running) end(t testing.TB) (string, int) {
	t.Helper()
	select {
	case <-r.done:
		return r.out.String(), r.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("the hook does not end; so far %q, %q", r.out.String(), r.err.String())
	}
	return "", 0
}

func served(t testing.TB) (*desk, *node.Node) {
	d := newDesk(t)
	d.write(".config/nod/policy.jsonc", `{"permission": {"*": "ask"}}`)
	return d, d.serve()
}

// TestHookHolds plays the asks of a hook that is a process, against a serving
// node: what the human is shown, and what the agent is told.
func TestHookHolds(t *testing.T) {
	d, n := served(t)
	call := func(session, sub, command string) string {
		return string(bytes.Replace(claude("Bash", `{"command":"`+command+`"}`), []byte(`"session_id":"s"`), []byte(`"session_id":"`+session+`","agent_id":"`+sub+`","agent_type":"scout"`), 1))
	}

	h := d.start(call("s1", "", "touch a && make b"), "hook", "claude-code")
	a := pending(t, n, 1)[0]
	q := a.Question
	if q.Principal != (engine.Principal{SessionID: "s1", AgentName: "claude-code"}) || q.Value != "touch a" || !q.Line || q.RequesterCwd != "/home/dev/proj" {
		t.Errorf("%+v", q)
	}
	if !slices.ContainsFunc(q.Evidence, func(e engine.Evidence) bool {
		return e.Label == "full command" && e.Text == "touch a && make b"
	}) {
		t.Errorf("evidence %+v", q.Evidence)
	}
	answer(t, n, a, engine.DeniedWithReason, "use <make> a & b")
	if out, code := h.end(t); code != 0 || !strings.Contains(out, `"permissionDecisionReason":"use <make> a & b"`) {
		t.Errorf("%d, %s", code, out)
	}

	// For this subagent only: kept here, silent for it, and for nobody else.
	h = d.start(call("s1", "a1", "touch a && make b"), "hook", "claude-code")
	answer(t, n, pending(t, n, 1)[0], engine.ApprovedForSession, "")
	if out, _ := h.end(t); !strings.Contains(out, `"permissionDecision":"allow"`) {
		t.Error(out)
	}
	for _, command := range []string{"touch c", "make d && touch e"} {
		if out, _, _ := d.nod(call("s1", "a1", command), "hook", "claude-code"); !strings.Contains(out, `"permissionDecision":"allow"`) {
			t.Errorf("%s: %s", command, out)
		}
	}
	h = d.start(call("s1", "a2", "touch c"), "hook", "claude-code")
	answer(t, n, pending(t, n, 1)[0], engine.Denied, "")
	if out, _ := h.end(t); !strings.Contains(out, "The user denied this Bash call.") {
		t.Error(out)
	}
	if g := n.Grants(); len(g) != 2 || g[0].Requester != "a1" || g[0].Agent != "scout" {
		t.Errorf("grants %+v", g)
	}

	// A grant for one part of a line leaves the rest to be asked.
	h = d.start(call("s1", "a1", "touch f && rm g"), "hook", "claude-code")
	a = pending(t, n, 1)[0]
	answer(t, n, a, engine.Denied, "")
	h.end(t)

	// Each file of a patch is an ask of its own.
	patch := `{"session_id":"s2","cwd":"` + d.proj + `","hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a/x.go\n@@\n*** Update File: b/y.go\n@@\n*** End Patch"}}`
	h = d.start(patch, "hook", "codex")
	for _, want := range []string{"a/x.go", "b/y.go"} {
		a = pending(t, n, 1)[0]
		if a.Value != want || a.Tool != "edit" {
			t.Errorf("asked about %s with %s", a.Value, a.Tool)
		}
		answer(t, n, a, engine.Approved, "")
		if want == "a/x.go" {
			waitFor(t, func() bool { l := n.Board().Pending(); return len(l) == 1 && l[0].Value == "b/y.go" })
		}
	}
	if out, code := h.end(t); out != "" || code != 0 {
		t.Errorf("codex: %d, %q", code, out)
	}
}

func waitFor(t testing.TB, what func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !what(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came true")
		}
	}
}

// TestHookThatIsBrokenOff takes its ask back: when its agent tells it to end,
// and when the agent is gone and reads no answer.
func TestHookThatIsBrokenOff(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals, no way to tell that a pipe is not read")
	}
	d, n := served(t)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		h := d.start(string(claude("Bash", `{"command":"touch a"}`)), "hook", "claude-code")
		pending(t, n, 1)
		if err := h.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if out, code := h.end(t); code != 0 || !strings.Contains(out, "broken off") {
			t.Errorf("%v: %d, %s", sig, code, out)
		}
		pending(t, n, 0)
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(d.home, "the bin", "nod"), "hook", "claude-code")
	c.Env, c.Dir, c.Stdin, c.Stdout = d.env, d.proj, bytes.NewReader(claude("Bash", `{"command":"touch a"}`)), w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	pending(t, n, 1)
	r.Close() // as when the agent ends
	pending(t, n, 0)
	_ = c.Wait()
	if left := requests(t, d); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// TestEnvironmentStaysUnwritten holds that what agents hand their hooks in the
// environment, tokens among it, is in nothing that a hook writes or asks.
func TestEnvironmentStaysUnwritten(t *testing.T) {
	const secret = "tok-5f1c0e"
	d, n := served(t)
	d.env = append(d.env, "CLAUDE_CODE_MESSAGING_TOKEN="+secret, "ANTHROPIC_API_KEY="+secret, "SOME_VARIABLE="+secret)
	h := d.start(string(claude("Bash", `{"command":"touch a"}`)), "hook", "claude-code")
	a := pending(t, n, 1)[0]
	looked := 0
	clean := func() {
		t.Helper()
		err := filepath.WalkDir(d.home, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || e.Name() == "nod" {
				return nil // what goes meanwhile is no matter
			}
			data, err := os.ReadFile(path)
			if err == nil && bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s has it", path)
			}
			looked++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	clean() // the request lies there now
	if looked < 2 {
		t.Errorf("looked at %d files only", looked)
	}
	answer(t, n, a, engine.Denied, "")
	out, _ := h.end(t)
	clean()
	if strings.Contains(out+h.err.String(), secret) {
		t.Errorf("the hook says it: %s%s", out, &h.err)
	}
}

func requests(t testing.TB, d *desk) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(d.home, ".pi/agent/sessions/permission-forwarding/sessions/*/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// BenchmarkHookProcess is one rule-decided call, from the start of the hook's
// process to its end. The program is the test's own, which links about as much
// as nod without its desktop.
func BenchmarkHookProcess(b *testing.B) {
	d := newDesk(b)
	d.write(".config/nod/policy.jsonc", testPolicy)
	times := make([]time.Duration, 0, 1024)
	for b.Loop() {
		start := time.Now()
		out, stderr, _ := d.nod(string(claude("Bash", `{"command":"git status && ls"}`)), "hook", "claude-code")
		times = append(times, time.Since(start))
		if !strings.Contains(out, "allow") {
			b.Fatal(out, stderr)
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms/median")
}

// BenchmarkAnswer is the time from a human's answer to the end of the hook,
// when the agent has it.
func BenchmarkAnswer(b *testing.B) {
	d := newDesk(b)
	d.write(".config/nod/policy.jsonc", `{"permission": {"*": "ask"}}`)
	n := d.serve()
	times := make([]time.Duration, 0, 1024)
	for b.Loop() {
		h := d.start(string(claude("Bash", `{"command":"touch a"}`)), "hook", "claude-code")
		a := pending(b, n, 1)[0]
		start := time.Now()
		answer(b, n, a, engine.Approved, "")
		h.end(b)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms/median")
}
