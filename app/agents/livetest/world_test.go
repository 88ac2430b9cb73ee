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

// build makes the program once, as a desktop user would; NOD_BINARY names one
// that is there.
var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("NOD_BINARY"); path != "" {
		return path, nil
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nod")
	c := exec.Command("go", "build", "-tags", "gles", "-o", path, ".")
	c.Dir = filepath.Join("..", "..", "..")
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
	extra []string // further environment of the client

	shared string // a directory that all tests of this run share
}

func newWorld(t *testing.T, c *client, s script) *world {
	t.Helper()
	nod, err := build()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: the paths of sockets below it must be short.
	home, err := os.MkdirTemp("", "nod-agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	shared, err := scratch()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, c: c, shared: shared, home: home, proj: filepath.Join(home, "proj"), dir: where(t, c.dir), nod: nod, model: newModel(t, s)}
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
func (w *world) policy(text string) {
	if w.c.settings == "" {
		// Its asks carry no facts, so that rules decide them only if told to.
		text = strings.Replace(text, "{", `{"legacyRequests": "resolve", `, 1)
	}
	w.write(".config/nod/policy.jsonc", text)
}

func (w *world) env(more ...string) []string {
	return append([]string{"HOME=" + w.home, "PATH=" + w.path, "TMPDIR=" + filepath.Join(w.home, "tmp")}, more...)
}

// install puts the hook into the agent's settings, as a user would.
func (w *world) install(more ...string) {
	w.t.Helper()
	if w.c.settings == "" {
		return // it has no hook
	}
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
	text, err := os.ReadFile(filepath.Join(w.home, w.c.settings))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, want := range append([]string{w.c.waits}, w.c.events...) {
		if !strings.Contains(string(text), want) {
			w.t.Errorf("nod hook install has not written %s:\n%s", want, text)
		}
	}
	note(w.c, "the hook", "`"+strings.Join(w.c.events, "`, `")+"`, waited for 600 s")
}

// serve starts a Nod whose asks a program answers: with what stands in the file
// answer, or not at all.
func (w *world) serve(answer string, more ...string) {
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
	w.serveWith(nil, append([]string{"--frontend", "none", "--exec", script}, more...)...)
}

// serveWith starts nod serve and returns when it serves.
func (w *world) serveWith(env []string, args ...string) {
	w.t.Helper()
	c := exec.Command(w.nod, append([]string{"serve"}, args...)...)
	c.Env, c.Dir = w.env(env...), w.home
	stderr, err := c.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	var said strings.Builder // until ended
	go func() {
		defer close(ended)
		once := sync.OnceFunc(func() { close(ready) })
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
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
		w.t.Fatalf("nod serve ended: %s", said.String())
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
	return w.start()()
}

// start starts the agent. The function it returns waits for its end and returns
// what it wrote.
func (w *world) start() (done func() string) {
	w.t.Helper()
	program, args, env := w.c.run(w)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	c := exec.CommandContext(ctx, program, append(w.args, args...)...)
	c.Env, c.Dir = w.env(append(env, w.extra...)...), w.proj
	// What the agent leaves running must not outlive the test.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Cancel = kill
	c.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		cancel()
		w.t.Fatal(err)
	}
	var err error
	ended := make(chan struct{})
	go func() {
		err = c.Wait()
		_ = kill()
		close(ended)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return func() string {
		w.t.Helper()
		<-ended
		if ctx.Err() != nil {
			w.t.Fatalf("%s did not end: %v\n%s", w.c.title, err, out.String())
		}
		return out.String()
	}
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const patience = 2 * time.Minute // some agents take their time to start
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
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
