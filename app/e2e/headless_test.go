//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// script puts an executable into the home directory.
func (m *machine) script(name, body string) string {
	m.t.Helper()
	path := m.write(name, "#!/bin/sh\n"+body)
	if err := os.Chmod(path, 0o700); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func TestNeitherDisplayNorTerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	code, _, errs := m.run("serve")
	if code != 2 || !strings.Contains(errs, "--frontend none") {
		t.Errorf("nod serve ended with %d: %s", code, errs)
	}
	if code, _, errs = m.run("serve", "--frontend", "desktop"); code != 2 || !strings.Contains(errs, "DISPLAY") {
		t.Errorf("nod serve --frontend desktop ended with %d: %s", code, errs)
	}
}

func TestWithNobodyToAsk(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.serve("--frontend", "none", "--policy", m.policy(`{"legacyRequests": "resolve", "permission": {"bash": {"*": "ask", "touch *": "allow"}}}`))
	c := m.child("scout", bash("touch made"), bash("rm made"))
	got := c.finish()
	if len(got) != 2 || got[0] != ran || strings.Contains(got[1], ran) || !c.made("made") {
		t.Errorf("the model saw %q", got)
	}
	denied := m.awaitLog("forwarded_permission.denied", 1)
	var by struct{ Kind, Reason string }
	if err := json.Unmarshal(denied[0].DecidedBy, &by); err != nil || by.Kind != "unavailable" || by.Reason == "" {
		t.Errorf("decided by %s", denied[0].DecidedBy)
	}
	m.clean()
}

func TestAProgramAnswers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	program := m.script("decide.sh", `cat >"$HOME/ask-$$.json"
case $(cat "$HOME/ask-$$.json") in
*'touch made'*) echo '{"decision": "approved"}' ;;
*'rm made'*) echo '{"decision": "denied_with_reason", "denialReason": "Keep it: it is the only copy."}' ;;
*) echo nonsense ;;
esac
`)
	m.serve("--frontend", "none", "--exec", program)
	c := m.child("scout", bash("touch made"), bash("rm made"), bash("make test"))
	got := c.finish()
	if len(got) != 3 || got[0] != ran || !strings.Contains(got[1], "Keep it: it is the only copy.") || strings.Contains(got[2], ran) || !c.made("made") {
		t.Errorf("the model saw %q", got)
	}
	m.decided("forwarded_permission.approved", "approved", byHuman)
	asks, err := filepath.Glob(m.path("ask-*.json"))
	if err != nil || len(asks) < 3 {
		t.Fatalf("the program was asked %d times: %v", len(asks), err)
	}
	var fields map[string]any
	data, err := os.ReadFile(asks[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatalf("the program was given no JSON: %v: %s", err, data)
	}
	for _, name := range []string{"id", "sessionId", "createdAt", "agentName", "requesterSessionId", "requesterCwd", "surface", "tool", "value",
		"matchValues", "matchedPattern", "source", "evidence", "suggestion"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("the ask lacks %q: %s", name, data)
		}
	}
	m.clean()
}

// tmux is a terminal in which nod serve runs.
type tmux struct {
	m      *machine
	socket string
}

// terminal serves in a terminal.
func (m *machine) terminal() *tmux {
	m.t.Helper()
	x := &tmux{m: m, socket: m.path("run/tmux")}
	x.do("-f", "/dev/null", "new-session", "-d", "-s", "nod", "-x", "100", "-y", "30", "-c", m.path("proj"),
		"trap : INT; "+program(m.t)+" serve --frontend terminal; echo ended with $?; cat")
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("the terminal shows:\n%s", x.screen())
		}
		_ = x.command("kill-server").Run()
	})
	return x
}

func (x *tmux) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...)
	cmd.Env = append([]string{runMark, "TERM=xterm-256color", "SHELL=/bin/sh"}, x.m.env()...)
	return cmd
}

func (x *tmux) do(args ...string) string {
	x.m.t.Helper()
	out, err := x.command(args...).CombinedOutput()
	if err != nil {
		x.m.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// screen is what can be read in it.
func (x *tmux) screen() string { return x.do("capture-pane", "-p", "-t", "nod") }

// await waits until it shows some text.
func (x *tmux) await(text string) {
	x.m.t.Helper()
	eventually(x.m.t, fmt.Sprintf("%q in the terminal", text), func() bool { return strings.Contains(x.screen(), text) })
}

// keys presses keys, one after the other, as a person does.
func (x *tmux) keys(keys ...string) {
	x.m.t.Helper()
	for _, k := range keys {
		x.do("send-keys", "-t", "nod", k)
		time.Sleep(60 * time.Millisecond)
	}
}

func TestInATerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "tmux")
	x := m.terminal()
	x.await("serving session")
	c := m.child("scout", bash("touch made"), bash("rm made"))
	x.await("touch made")
	time.Sleep(alive)
	x.keys("Enter") // decides nothing
	never(t, "Enter answered", 500*time.Millisecond, func() bool { return len(m.spooled("requests")) == 0 })
	x.keys("y")
	x.await("rm made")
	time.Sleep(alive)
	x.keys("r", "n", "o", "t", "Space", "y", "e", "t", "Enter")
	got := c.finish()
	if len(got) != 2 || got[0] != ran || !strings.Contains(got[1], "not yet") || !c.made("made") {
		t.Errorf("the model saw %q", got)
	}

	// For the whole session, by s and 2.
	m.submit(ask{id: "one", command: "make test"})
	x.await("make test")
	time.Sleep(alive)
	x.keys("s")
	x.await("whole session")
	time.Sleep(alive)
	x.keys("2")
	if r := m.collect("one"); r.State != "approved" {
		t.Errorf("the answer: %+v", r)
	}
	m.submit(ask{id: "two", agent: "worker", command: "make test"})
	if r := m.collect("two"); r.State != "approved" {
		t.Errorf("by the grant: %+v", r)
	}
	var by []string
	for _, e := range m.log() {
		if e.DecidedBy != nil {
			by = append(by, string(e.DecidedBy))
		}
	}
	if len(by) != 4 || slices.ContainsFunc(by[:3], func(s string) bool { return !sameJSON(t, s, byHuman) }) || !strings.Contains(by[3], "session_approval") {
		t.Errorf("decided by %q", by)
	}
	x.keys("C-c")
	x.await("ended with 0")
}

func TestDemo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	code, out, errs := m.run("demo")
	if code != 0 {
		t.Errorf("nod demo ended with %d:\n%s%s", code, out, errs)
	}
	t.Logf("nod demo said:\n%s%s", out, errs)
}
