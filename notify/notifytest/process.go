//go:build linux

package notifytest

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

// patience is how long anything here may take. It is never waited out in a test
// that passes.
const patience = 20 * time.Second

// Need makes sure that the tools are there. A name with a slash may be a glob.
// Without NOD_E2E=1 a missing tool skips the test, with it the test fails. It
// returns the paths.
func Need(t testing.TB, tools ...string) []string {
	t.Helper()
	var found, missing []string
	for _, tool := range tools {
		if strings.Contains(tool, "/") {
			if hits, _ := filepath.Glob(tool); len(hits) > 0 {
				found = append(found, hits[0])
				continue
			}
		} else if path, err := exec.LookPath(tool); err == nil {
			found = append(found, path)
			continue
		}
		missing = append(missing, tool)
	}
	if len(missing) > 0 {
		if os.Getenv("NOD_E2E") == "1" {
			t.Fatalf("NOD_E2E=1 and not installed: %s", strings.Join(missing, ", "))
		}
		t.Skipf("not installed: %s (NOD_E2E=1 makes this a failure)", strings.Join(missing, ", "))
	}
	return found
}

// EndToEnd skips the test unless NOD_E2E=1, and else makes sure of the tools.
func EndToEnd(t testing.TB, tools ...string) []string {
	t.Helper()
	if os.Getenv("NOD_E2E") != "1" {
		t.Skip("needs a whole desktop: runs with NOD_E2E=1")
	}
	return Need(t, tools...)
}

// Eventually waits until ok holds, and fails the test if it never does.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited %v for: %s", patience, what)
		}
	}
}

// Process is a program that ends with the test.
type Process struct {
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
}

// Start runs a program with just this environment. Its output is in the test's
// log if the test fails.
func Start(t testing.TB, env []string, path string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(path, args...), out: &output{}, done: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.start(t)
	return p
}

func (p *Process) start(t testing.TB) {
	t.Helper()
	// Its own process group, so that what it starts goes with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", p.cmd.Path, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(p.cmd.Path), p.out)
		}
	})
}

// Kill ends the program and what it started, at once, and returns when it has
// ended.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// Running reports whether it has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// output keeps the last of what a program says.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > 64<<10 {
		o.buf.Reset()
	}
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// run runs a tool to its end and returns what it printed.
func run(t testing.TB, env []string, name string, args ...string) string {
	t.Helper()
	out, err := try(env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func try(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
