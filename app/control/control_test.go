//go:build unix

package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/control"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

// holdEnv makes the test binary another nod: it takes the agent directory named
// there, says so and waits.
const holdEnv = "NOD_TEST_HOLD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(holdEnv); spec != "" {
		dirs := strings.Split(spec, "\n")
		in, err := control.Listen(control.Place{RuntimeDir: dirs[0]}, dirs[1:], slog.New(slog.DiscardHandler))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_ = in.Serve(context.Background(), control.Service{Node: &node{board: board.New(time.Now)}, Frontend: "none"})
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const patience = 20 * time.Second

// node is a serving node with the parts that the socket speaks to.
type node struct {
	board *board.Board

	mu     sync.Mutex
	grants []pipe.Grant
	paused bool
}

func (n *node) Board() *board.Board { return n.board }
func (n *node) Grants() []pipe.Grant {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.grants)
}

func (n *node) Revoke(id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.grants, func(g pipe.Grant) bool { return g.ID == id })
	if i < 0 {
		return errors.New("there is no such grant")
	}
	n.grants = slices.Delete(n.grants, i, i+1)
	return nil
}

func (n *node) ClearGrants() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := len(n.grants)
	n.grants = nil
	return k
}

func (n *node) Paused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

func (n *node) SetPaused(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused = on
}
func (n *node) Problems() []string               { return []string{"mend this"} }
func (n *node) Serving() []string                { return []string{"session \"desk\" in /home/dev/.pi/agent"} }
func (n *node) Watch() (<-chan struct{}, func()) { return nil, func() {} }
func (n *node) LogPath() string                  { return "" }

// place is a runtime directory with a short path: sockets have short names.
func place(t *testing.T) control.Place {
	t.Helper()
	dir, err := os.MkdirTemp("", "nod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return control.Place{RuntimeDir: dir, StateDir: filepath.Join(dir, "state")}
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve holds agentDir and answers until the test ends.
func serve(t *testing.T, p control.Place, s control.Service, agentDirs ...string) {
	t.Helper()
	in, err := control.Listen(p, agentDirs, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- in.Serve(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve does not end")
		}
	})
}

func dial(t *testing.T, p control.Place, agentDir string) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), p, agentDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestVerbs(t *testing.T) {
	p, dir, ctx := place(t), t.TempDir(), t.Context()
	n := &node{board: board.New(time.Now), grants: []pipe.Grant{
		{ID: "1", Surface: "bash", Pattern: "ls *", Hits: 3}, {ID: "2", Surface: "read", Pattern: strings.Repeat("x", 200<<10)}, {ID: "3"}, {ID: "4"},
	}}
	a, _ := n.board.Add(board.Ask{Hash: "h", Question: &engine.Question{Value: "rm -rf /"}})
	shown := 0
	serve(t, p, control.Service{Node: n, Frontend: "desktop", Version: "1.2", Show: func() error { shown++; return nil }}, dir)
	c := dial(t, p, dir)

	s, err := c.Status(ctx)
	want := control.Status{PID: os.Getpid(), Version: "1.2", Frontend: "desktop", Serving: n.Serving(), Waiting: 1, Grants: 4, Problems: n.Problems()}
	if err != nil || fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("status %+v, %v", s, err)
	}
	if g, err := c.Grants(ctx); err != nil || !slices.Equal(g, n.grants) {
		t.Errorf("%d grants, %v", len(g), err)
	}
	if k, err := c.Revoke(ctx, "1", "9", "2"); k != 2 || err == nil || !strings.Contains(err.Error(), "9: there is no such grant") {
		t.Errorf("revoked %d, %v", k, err)
	}
	if _, err := c.Revoke(ctx); err == nil {
		t.Error("revoking nothing is no error")
	}
	if k, err := c.Clear(ctx); k != 2 || err != nil {
		t.Errorf("cleared %d, %v", k, err)
	}
	if err := c.Pause(ctx); err != nil || !n.Paused() {
		t.Errorf("pause: %v", err)
	}
	if err := c.Show(ctx); err != nil || shown != 1 {
		t.Errorf("show: %v, %d", err, shown)
	}
	if n.board.Get(a.Key) == nil {
		t.Error("the ask ended")
	}
}

// Nothing that an agent can say to the socket approves, denies or loosens.
func TestNothingApproves(t *testing.T) {
	p, dir := place(t), t.TempDir()
	n := &node{board: board.New(time.Now), paused: true}
	a, _ := n.board.Add(board.Ask{Hash: "h", Question: &engine.Question{Value: "rm -rf /", Suggestion: []engine.Grant{{Surface: "bash", Pattern: "*"}}}})
	serve(t, p, control.Service{Node: n}, dir)
	raw, err := net.Dial("unix", socketOf(t, p))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	lines := bufio.NewScanner(raw)
	for _, verb := range []string{"answer", "approve", "allow", "resume", "unpause", "grant", "decide", "quit", "", "show"} {
		for _, form := range []string{
			`{"verb":%q,"key":"1","hash":"h","verdict":"approved","on":false,"paused":false}`,
			`{"verb":%q,"type":"answer","ids":["1"]}`,
		} {
			fmt.Fprintf(raw, form+"\n", verb)
			if !lines.Scan() {
				t.Fatalf("%q ended the connection: %v", verb, lines.Err())
			}
			var r control.Response
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.OK || r.Error == "" {
				t.Errorf("%q was answered %s", verb, lines.Text())
			}
		}
	}
	if n.board.Get(a.Key) == nil || !n.Paused() || len(n.Grants()) != 0 {
		t.Error("something changed")
	}
}

func socketOf(t *testing.T, p control.Place) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(p.RuntimeDir, "nod", "*.sock"))
	if len(found) != 1 {
		t.Fatalf("sockets: %v", found)
	}
	return found[0]
}

// Nonsense, floods and silence cost only the client that sends them.
func TestBadClients(t *testing.T) {
	p, dir := place(t), t.TempDir()
	serve(t, p, control.Service{Node: &node{board: board.New(time.Now)}}, dir)
	path := socketOf(t, p)
	open := func() net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	silent := open()
	_ = silent
	nonsense := open()
	fmt.Fprint(nonsense, "GET / HTTP/1.1\r\n")
	if line, err := bufio.NewReader(nonsense).ReadString('\n'); err != nil || !strings.Contains(line, `"ok":false`) {
		t.Errorf("nonsense was answered %q, %v", line, err)
	}
	flood := open()
	if _, err := flood.Write([]byte(strings.Repeat("x", 80<<10))); err == nil {
		line, _ := bufio.NewReader(flood).ReadString('\n')
		if !strings.Contains(line, "too long") {
			t.Errorf("a flood was answered %q", line)
		}
	}
	for range 50 { // more than are served at once
		open()
	}
	// The silent ones keep nobody out.
	c, err := control.Dial(t.Context(), p, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err = c.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestModes(t *testing.T) {
	p, dir := place(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(p.RuntimeDir, "nod"), 0o755); err != nil { // too open already
		t.Fatal(err)
	}
	serve(t, p, control.Service{Node: &node{board: board.New(time.Now)}}, dir)
	for path, want := range map[string]os.FileMode{
		filepath.Join(p.RuntimeDir, "nod"):                    os.ModeDir | 0o700,
		socketOf(t, p):                                        os.ModeSocket | 0o600,
		strings.TrimSuffix(socketOf(t, p), ".sock") + ".lock": 0o600,
	} {
		fi, err := os.Lstat(path)
		if err != nil || fi.Mode() != want {
			t.Errorf("%s is %v, %v; want %v", path, fi.Mode(), err, want)
		}
	}
}

func TestOnePerAgentDirectory(t *testing.T) {
	p, a, b := place(t), t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(a, link); err != nil {
		t.Fatal(err)
	}
	first, err := control.Listen(p, []string{a, link, a + "/."}, quietLog()) // one directory, three names
	if err != nil {
		t.Fatal(err)
	}
	for _, dirs := range [][]string{{a}, {link}, {b, a}} {
		var running *control.RunningError
		if in, err := control.Listen(p, dirs, quietLog()); !errors.As(err, &running) || running.PID != os.Getpid() {
			t.Errorf("%v: %v, %v", dirs, in, err)
		}
	}
	second, err := control.Listen(p, []string{b}, quietLog()) // what failed above kept nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	third, err := control.Listen(p, []string{a}, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []*control.Instance{second, third} {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.RuntimeDir, "nod", "*.sock")); len(left) != 0 {
		t.Errorf("sockets left: %v", left)
	}
	if _, err := control.Dial(t.Context(), p, a); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("dialling nobody: %v", err)
	}
}

// Two processes: the second is refused and told who the first is; when the
// first is killed its socket is known to be stale.
func TestTwoProcesses(t *testing.T) {
	p, dir := place(t), t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+p.RuntimeDir+"\n"+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	defer func() {
		if !killed {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the first says %q, %v", line, err)
	}
	var running *control.RunningError
	if _, err := control.Listen(p, []string{dir}, quietLog()); !errors.As(err, &running) || running.PID != cmd.Process.Pid {
		t.Fatalf("the second: %v", err)
	}
	c := dial(t, p, dir)
	if s, err := c.Status(t.Context()); err != nil || s.PID != cmd.Process.Pid {
		t.Errorf("status %+v, %v", s, err)
	}
	if err := c.Show(t.Context()); err == nil {
		t.Error("a nod without a window showed one")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	killed = true
	socketOf(t, p) // it left its socket
	if _, err := control.Dial(t.Context(), p, dir); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("dialling the dead: %v", err)
	}
	serve(t, p, control.Service{Node: &node{board: board.New(time.Now)}}, dir)
	if s, err := dial(t, p, dir).Status(t.Context()); err != nil || s.PID != os.Getpid() {
		t.Errorf("status %+v, %v", s, err)
	}
}

// What lies at the socket's place and is not ours to remove stays.
func TestNothingForeignIsRemoved(t *testing.T) {
	p, dir := place(t), t.TempDir()
	in, err := control.Listen(p, []string{dir}, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	path := socketOf(t, p)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		make func() error
	}{
		{"a file", func() error { return os.WriteFile(path, []byte("mine"), 0o600) }},
		{"a link", func() error { return os.Symlink(dir, path) }},
		{"a directory", func() error { return os.Mkdir(path, 0o700) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.make(); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(path)
			if in, err := control.Listen(p, []string{dir}, quietLog()); err == nil {
				in.Close()
				t.Error("it was taken")
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("it is gone: %v", err)
			}
			if _, err := control.Dial(t.Context(), p, dir); err == nil {
				t.Error("a client took it for nod")
			}
		})
	}
	t.Run("a listener without the lock", func(t *testing.T) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		if in, err := control.Listen(p, []string{dir}, quietLog()); err == nil {
			in.Close()
			t.Error("it was pushed aside")
		}
	})
	t.Run("at the end, another's socket of that name", func(t *testing.T) {
		in, err := control.Listen(p, []string{dir}, quietLog())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error("another's file was removed")
		}
	})
	t.Run("a link for a lock", func(t *testing.T) {
		lock := strings.TrimSuffix(path, ".sock") + ".lock"
		target := filepath.Join(dir, "precious")
		if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, lock); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(lock)
		if in, err := control.Listen(p, []string{dir}, quietLog()); err == nil {
			in.Close()
			t.Error("the link was followed")
		}
		if text, _ := os.ReadFile(target); string(text) != "precious" {
			t.Errorf("the file behind it reads %q", text)
		}
	})
}

func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	t.Run("no runtime directory: the state directory", func(t *testing.T) {
		p := place(t)
		p.RuntimeDir = filepath.Join(p.RuntimeDir, "missing")
		in, err := control.Listen(p, []string{dir}, quietLog())
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if found, _ := filepath.Glob(filepath.Join(p.StateDir, "run", "*.sock")); len(found) != 1 {
			t.Errorf("sockets: %v", found)
		}
	})
	t.Run("a link for a directory: the state directory", func(t *testing.T) {
		p := place(t)
		if err := os.Symlink(dir, filepath.Join(p.RuntimeDir, "nod")); err != nil {
			t.Fatal(err)
		}
		in, err := control.Listen(p, []string{dir}, quietLog())
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if found, _ := os.ReadDir(dir); len(found) != 0 {
			t.Errorf("the link was followed: %v", found)
		}
	})
	t.Run("none", func(t *testing.T) {
		if _, err := control.Listen(control.Place{}, []string{dir}, quietLog()); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a path too long for a socket", func(t *testing.T) {
		p := place(t)
		p.RuntimeDir = filepath.Join(p.RuntimeDir, strings.Repeat("d", 100))
		if err := os.Mkdir(p.RuntimeDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := control.Listen(p, []string{dir}, quietLog()); err == nil || !strings.Contains(err.Error(), "shorter") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an agent directory that is made later has the same place", func(t *testing.T) {
		p, parent := place(t), t.TempDir()
		late := filepath.Join(parent, "a", "b")
		in, err := control.Listen(p, []string{late}, quietLog())
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := os.MkdirAll(late, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := control.Listen(p, []string{late}, quietLog()); !errors.As(err, new(*control.RunningError)) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAClientGivesUpWithItsContext(t *testing.T) {
	p, dir := place(t), t.TempDir()
	stuck, free := make(chan struct{}), make(chan struct{})
	serve(t, p, control.Service{Node: &node{board: board.New(time.Now)}, Show: func() error { close(stuck); <-free; return nil }}, dir)
	defer close(free)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-stuck; cancel() }()
	if err := dial(t, p, dir).Show(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
