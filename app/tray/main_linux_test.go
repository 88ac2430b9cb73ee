//go:build !headless

package tray

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

// What the environment makes of the test binary.
const (
	windowEnv   = "NOD_TEST_WINDOW"   // a window process, remote-controlled through the socket named there
	residentEnv = "NOD_TEST_RESIDENT" // a resident with a tray, remote-controlled through its standard streams
)

func TestMain(m *testing.M) {
	if at := os.Getenv(windowEnv); at != "" && len(os.Args) > 1 && os.Args[1] == "window" {
		playWindow(at)
		return
	}
	if os.Getenv(residentEnv) != "" {
		os.Exit(playResident())
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s", what)
		}
	}
}

// playWindow is a window process. What it is told goes to the socket, what
// comes from there it says; a line that begins with ! is for itself.
func playWindow(at string) {
	conn, err := net.Dial("unix", at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	fmt.Fprintln(conn, "pid", os.Getpid(), os.Getenv("XDG_ACTIVATION_TOKEN"), os.Getenv("NOD_TEST_PASSED"))
	stubborn, deaf := false, make(chan struct{})
	go func() {
		buf := bufio.NewReaderSize(os.Stdin, 1<<20)
		for {
			select {
			case <-deaf:
				select {}
			default:
			}
			line, err := buf.ReadString('\n')
			if err != nil {
				if stubborn {
					select {}
				}
				os.Exit(0)
			}
			fmt.Fprint(conn, line)
		}
	}()
	from := bufio.NewReader(conn)
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			os.Exit(0)
		}
		switch cmd := strings.Fields(line); cmd[0] {
		case "!exit":
			if len(cmd) > 2 {
				fmt.Fprintln(os.Stderr, strings.Join(cmd[2:], " "))
			}
			code := 0
			fmt.Sscan(cmd[1], &code)
			os.Exit(code)
		case "!half": // the rest of the line without its end
			fmt.Print(strings.TrimSpace(strings.TrimPrefix(line, "!half")))
		case "!kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "!stubborn":
			stubborn = true
			fmt.Fprintln(conn, "done")
		case "!deaf":
			close(deaf)
			fmt.Fprintln(conn, "done")
		default:
			fmt.Print(line)
		}
	}
}

// windowsAt is where window processes report to the test.
type windowsAt struct {
	t    testing.TB
	path string
	came chan *seat
}

// seat is one window process from the test's side.
type seat struct {
	t     testing.TB
	conn  net.Conn
	hello []string // pid, activation token, passed variable
	downs chan pipe.Down
	done  chan struct{} // one for each "done"
	ended chan struct{}
	state pipe.Down // the latest that was looked at
}

func listenForWindows(t testing.TB) *windowsAt {
	t.Helper()
	dir, err := os.MkdirTemp("", "win")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	w := &windowsAt{t: t, path: filepath.Join(dir, "s"), came: make(chan *seat, 64)}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			s := &seat{t: t, conn: conn, downs: make(chan pipe.Down, 4096), done: make(chan struct{}, 16), ended: make(chan struct{})}
			all.Go(func() { s.read(w.came) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
		os.RemoveAll(dir)
	})
	return w
}

func (s *seat) read(came chan<- *seat) {
	defer close(s.ended)
	r := bufio.NewReader(s.conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if rest, ok := strings.CutPrefix(line, "pid "); ok {
			s.hello = strings.Split(strings.TrimSuffix(rest, "\n"), " ")
			came <- s
			continue
		}
		if line == "done\n" {
			s.done <- struct{}{}
			continue
		}
		var d pipe.Down
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			s.t.Errorf("a window was told %q", line)
			return
		}
		s.downs <- d
	}
}

// argv starts such a window.
func (w *windowsAt) argv() []string { return []string{os.Args[0], "window"} }

func (w *windowsAt) env(more ...string) []string {
	return append(append(os.Environ(), windowEnv+"="+w.path, "NOD_TEST_PASSED=on", residentEnv+"="), more...)
}

// next waits for a window process to start, which says that it is ready.
func (w *windowsAt) next() *seat {
	w.t.Helper()
	s := w.nextUnready()
	s.says(pipe.Up{Type: "ready"})
	return s
}

func (w *windowsAt) nextUnready() *seat {
	w.t.Helper()
	select {
	case s := <-w.came:
		return s
	case <-time.After(patience):
		w.t.Fatal("no window came")
		return nil
	}
}

// none fails the test if a window started.
func (w *windowsAt) none() {
	w.t.Helper()
	select {
	case s := <-w.came:
		w.t.Fatalf("a window came: %v", s.hello)
	case <-time.After(300 * time.Millisecond):
	}
}

func (s *seat) says(u pipe.Up) {
	s.t.Helper()
	if err := pipe.NewWriter(s.conn).Write(u); err != nil {
		s.t.Fatal(err)
	}
}

func (s *seat) does(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.conn, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// told waits for a message that fits; others are passed over. A state stays in
// force until the next.
func (s *seat) told(what string, fits func(pipe.Down) bool) pipe.Down {
	s.t.Helper()
	if s.state.Type != "" && fits(s.state) {
		return s.state
	}
	limit := time.After(patience)
	var last pipe.Down
	for {
		select {
		case d := <-s.downs:
			if d.Type == "state" {
				s.state = d
			}
			if fits(d) {
				return d
			}
			last = d
		case <-limit:
			s.t.Fatalf("the window was never told %s; last %+v", what, last)
		}
	}
}

func (s *seat) shown(view, key string) {
	s.t.Helper()
	s.told("to show "+view+" "+key, func(d pipe.Down) bool { return d.Type == "show" && d.View == view && d.Key == key })
}

func (s *seat) result() pipe.Down {
	s.t.Helper()
	return s.told("a result", func(d pipe.Down) bool { return d.Type == "result" })
}

func (s *seat) gone() {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatal("the window does not go")
	}
}

// node is what the desktop sees of a serving node.
type node struct {
	board *board.Board

	mu       sync.Mutex
	grants   []pipe.Grant
	paused   bool
	problems []string
	log      string
	watches  map[chan struct{}]bool
}

func newNode() *node { return &node{board: board.New(time.Now), watches: map[chan struct{}]bool{}} }

func (n *node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	for c := range n.watches {
		poke(c)
	}
}

func (n *node) Board() *board.Board { return n.board }
func (n *node) Serving() []string   { return []string{"session \"desk\" in /agents"} }

func (n *node) LogPath() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log
}

func (n *node) Grants() []pipe.Grant {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.grants)
}

func (n *node) Problems() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.problems)
}

func (n *node) Paused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

func (n *node) SetPaused(on bool) { n.change(func() { n.paused = on }) }

func (n *node) Revoke(id string) error {
	err := errors.New("there is no such grant")
	n.change(func() {
		if i := slices.IndexFunc(n.grants, func(g pipe.Grant) bool { return g.ID == id }); i >= 0 {
			n.grants, err = slices.Delete(n.grants, i, i+1), nil
		}
	})
	return err
}

func (n *node) ClearGrants() (count int) {
	n.change(func() { count, n.grants = len(n.grants), nil })
	return count
}

func (n *node) Watch() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watches[c] = true
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watches, c)
	}
}

func ask(agent, value string) board.Ask {
	return board.Ask{Hash: "hash-" + value, Question: &engine.Question{
		ID: value, Tool: "bash", Surface: "bash", Kind: "bash", Value: value, RequesterCwd: "/home/dev",
		Principal:  engine.Principal{SessionID: "session-of-" + agent, AgentName: agent},
		Intent:     &engine.Intent{Surface: "bash", MatchValues: []string{value}},
		Suggestion: []engine.Grant{{Surface: "bash", Pattern: value + "*"}},
	}}
}

// add puts an ask on the node's board.
func (n *node) add(agent, value string) *board.Ask {
	a, _ := n.board.Add(ask(agent, value))
	return a
}

// end is how the ask of that key ended.
func (n *node) end(t testing.TB, key string) (end board.End) {
	t.Helper()
	eventually(t, "ask "+key+" to end", func() bool {
		i := slices.IndexFunc(n.board.Ended(), func(e board.End) bool { return e.Key == key })
		if i >= 0 {
			end = n.board.Ended()[i]
		}
		return i >= 0
	})
	return end
}

// logged keeps what was logged.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
