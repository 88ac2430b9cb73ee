//go:build linux

package livetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := scratch(); err == nil {
		_ = os.RemoveAll(dir)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "nod-agents") })

// build makes the program once; NOD_BINARY names one that is there.
var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("NOD_BINARY"); path != "" {
		return path, nil
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nod")
	c := exec.Command("go", "build", "-tags", "headless", "-o", path, ".")
	c.Dir, c.Env = filepath.Join("..", "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building nod: %w\n%s", err, out)
	}
	return path, nil
})

// world is a home with an agent in it, a model, and perhaps a serving Nod.
type world struct {
	t     *testing.T
	c     *client
	home  string
	proj  string
	dir   string // node_modules of the client
	path  string // PATH
	nod   string
	model *model
	args  []string // further arguments of the client, before its own
}

func newWorld(t *testing.T, c *client, s script) *world {
	t.Helper()
	nod, err := build()
	if err != nil {
		t.Fatal(err)
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, c: c, home: home, proj: filepath.Join(home, "proj"), dir: where(t, c.dir), nod: nod, model: newModel(t, s)}
	w.path = nodeBin(t) + ":/usr/local/bin:/usr/bin:/bin"
	for _, dir := range []string{w.proj, filepath.Join(home, "tmp"), filepath.Join(home, ".config", "opencode")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.prepare(w)
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// policy is Nod's, in this home.
func (w *world) policy(text string) { w.write(".config/nod/policy.jsonc", text) }

func (w *world) env(more ...string) []string {
	return append([]string{"HOME=" + w.home, "PATH=" + w.path, "TMPDIR=" + filepath.Join(w.home, "tmp")}, more...)
}

// install puts the hook into the agent's settings, as a user would.
func (w *world) install(more ...string) {
	w.t.Helper()
	args := append([]string{"hook", "install", w.c.name}, w.c.install...)
	c := exec.Command(w.nod, append(args, more...)...)
	c.Env, c.Dir = w.env(), w.proj
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("nod hook install: %v\n%s", err, out)
	}
	c = exec.Command(w.nod, "hook", "status", w.c.name)
	c.Env, c.Dir = w.env(), w.proj
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), " installed ") || slices.Contains(w.c.install, "--trust") && strings.Contains(string(out), "trusted") {
		w.t.Errorf("nod hook status: %v\n%s", err, out)
	}
}

// serve starts a Nod whose asks a program answers: with what stands in the file
// answer, or not at all.
func (w *world) serve(answer string) {
	w.t.Helper()
	w.write("answer", answer)
	w.write("answer.sh", `#!/bin/sh
cd "$(dirname "$0")" || exit 1
ask=$(cat)
printf '%s\n' "$ask" >>asks
case $(cat answer) in
kill) # the hook: its process id ends the request's
	id=$(printf %s "$ask" | sed 's/^{"id":"\([^"]*\)".*/\1/')
	kill -9 "${id##*-}"
	exec sleep 60 ;;
wait) exec sleep 60 ;;
*) exec cat answer ;;
esac
`)
	script := filepath.Join(w.home, "answer.sh")
	if err := os.Chmod(script, 0o755); err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command(w.nod, "serve", "--frontend", "none", "--exec", script)
	c.Env, c.Dir = w.env(), w.home
	stderr, err := c.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		once := sync.OnceFunc(func() { close(ready) })
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "serving ") {
				once()
			}
		}
		_ = c.Wait()
	}()
	w.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = c.Process.Kill()
			<-ended
			w.t.Error("nod serve had to be killed")
		}
	})
	select {
	case <-ready:
	case <-ended:
		w.t.Fatal("nod serve ended")
	case <-time.After(20 * time.Second):
		w.t.Fatal("nod serve is not ready")
	}
}

// ask is what the answering program was given.
type ask struct {
	AgentName          string `json:"agentName"`
	RequesterSessionID string `json:"requesterSessionId"`
	Tool               string `json:"tool"`
	Surface            string `json:"surface"`
	Value              string `json:"value"`
	Evidence           []struct{ Label, Text string }
}

func (w *world) asks() []ask {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, "asks"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var all []ask
	for line := range bytes.Lines(data) {
		var a ask
		if err := json.Unmarshal(line, &a); err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, a)
	}
	return all
}

// play runs the agent to its end and returns what it wrote.
func (w *world) play() string {
	w.t.Helper()
	program, args, env := w.c.run(w)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, append(w.args, args...)...)
	c.Env, c.Dir = w.env(env...), w.proj
	// What the agent leaves running must not outlive the test.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	if ctx.Err() != nil {
		w.t.Fatalf("%s did not end: %v\n%s", w.c.title, err, out.String())
	}
	return out.String()
}

// made reports which of the files are there.
func (w *world) made(names ...string) []string {
	var there []string
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(w.proj, n)); err == nil {
			there = append(there, n)
		}
	}
	return there
}
