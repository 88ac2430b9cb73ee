//go:build linux

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that must happen. A test that passes
// never waits it out.
const patience = 30 * time.Second

// eventually waits until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for: %s", patience, what)
		}
	}
}

// never makes sure that ok does not come to hold for a while.
func never(t testing.TB, what string, while time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if ok() {
			t.Fatalf("it happened: %s", what)
		}
	}
}

// text is what a process has said so far.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *text) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *text) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// process is a program that a test runs. It has ended when the test has.
type process struct {
	t        testing.TB
	name     string
	cmd      *exec.Cmd
	out, err *text
	done     chan struct{}
}

// start runs a program in dir with just this environment.
func start(t testing.TB, dir string, env []string, path string, args ...string) *process {
	t.Helper()
	return startIn(t, dir, env, &syscall.SysProcAttr{}, path, args...)
}

// startIn is start with what else the system should do for the program.
func startIn(t testing.TB, dir string, env []string, attr *syscall.SysProcAttr, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: filepath.Base(path), cmd: exec.Command(path, args...), out: &text{}, err: &text{}, done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append([]string{runMark}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	// Its own group, so that what it starts ends with it.
	p.cmd.SysProcAttr = attr
	attr.Setpgid = true
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s said:\n%s%s", p.name, strings.Join(args, " "), p.out, p.err)
		}
	})
	return p
}

// running reports whether it has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends it a signal.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signalling %s: %v", p.name, err)
	}
}

// kill ends it and its group at once, if it has not ended.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// wait waits for its end and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(2 * patience):
		p.t.Fatalf("%s did not end within %v; it said:\n%s%s", p.name, 2*patience, p.out, p.err)
		return -1
	}
}
