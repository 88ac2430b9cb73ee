package terminal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

// childEnv makes the test binary a Nod in its terminal: it puts one ask on a
// board and writes how that ended to the file named there.
const childEnv = "NOD_TEST_TERMINAL"

func TestMain(m *testing.M) {
	if report := os.Getenv(childEnv); report != "" {
		os.Exit(child(report))
	}
	goleak.VerifyTestMain(m)
}

func child(report string) int {
	n := newNode()
	a, done := n.board.Add(ask("scout", "ls -la"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Node: n, In: os.Stdin, Out: os.Stdout, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}()
	write := func(s string) {
		_ = os.WriteFile(report+".new", []byte(s), 0o600)
		_ = os.Rename(report+".new", report)
	}
	select {
	case e := <-done:
		time.Sleep(50 * time.Millisecond)
		cancel()
		<-ended
		write(string(e.Decision.Verdict) + " " + e.Decision.Reason)
	case err := <-ended:
		write(fmt.Sprint("ended: ", err, " ", n.board.Get(a.Key) != nil))
	}
	cancel()
	return 0
}

// settle is how long a starved machine may take to tell two key presses apart.
const settle = 10 * quiet

const patience = 20 * time.Second

// node is what the terminal sees of a serving node.
type node struct {
	board *board.Board

	mu       sync.Mutex
	paused   bool
	problems []string
	watch    chan struct{}
}

func newNode() *node { return &node{board: board.New(time.Now), watch: make(chan struct{}, 1)} }

func (n *node) changed() {
	select {
	case n.watch <- struct{}{}:
	default:
	}
}
func (n *node) Board() *board.Board              { return n.board }
func (n *node) Grants() []pipe.Grant             { return nil }
func (n *node) Revoke(string) error              { return nil }
func (n *node) ClearGrants() int                 { return 0 }
func (n *node) Serving() []string                { return []string{"session \"desk\" in /agents"} }
func (n *node) Watch() (<-chan struct{}, func()) { return n.watch, func() {} }
func (n *node) LogPath() string                  { return "" }

func (n *node) Paused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

func (n *node) SetPaused(on bool) {
	n.mu.Lock()
	n.paused = on
	n.mu.Unlock()
	n.changed()
}

func (n *node) Problems() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.problems)
}

func (n *node) setProblems(p ...string) {
	n.mu.Lock()
	n.problems = p
	n.mu.Unlock()
	n.changed()
}

func ask(agent, value string) board.Ask {
	return board.Ask{Hash: "h" + value, Question: &engine.Question{
		ID: value, Tool: "bash", Surface: "bash", Kind: "bash", Value: value,
		Principal:  engine.Principal{SessionID: "session-of-" + agent, AgentName: agent},
		Suggestion: []engine.Grant{{Surface: "bash", Pattern: value + "*"}},
	}}
}

// openPTY returns both ends of a new terminal of 80 columns and rows lines.
func openPTY(t *testing.T, rows int) (master, slave *os.File) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatalf("opening a terminal: %v", err)
		}
	}
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	fail(err)
	fail(unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	fail(err)
	master = os.NewFile(uintptr(m), "ptmx") // non-blocking, so that Close ends a Read
	s, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	fail(err)
	slave = os.NewFile(uintptr(s), "pts")
	fail(unix.IoctlSetWinsize(s, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: 80}))
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

// person sits before a terminal in which Nod runs.
type person struct {
	t      *testing.T
	node   *node
	master *os.File
	slave  *os.File
	ended  chan error
	stop   context.CancelFunc

	mu    sync.Mutex
	now   time.Time
	seen  strings.Builder
	upTo  int // of seen was looked at
	fresh chan struct{}
}

func sit(t *testing.T, rows int, asks ...board.Ask) *person {
	t.Helper()
	p := &person{t: t, node: newNode(), ended: make(chan error, 1), now: noon, fresh: make(chan struct{}, 1)}
	for _, a := range asks {
		p.node.board.Add(a)
	}
	p.master, p.slave = openPTY(t, rows)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := p.master.Read(buf)
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			select {
			case p.fresh <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		p.ended <- Run(ctx, Config{Node: p.node, In: p.slave, Out: p.slave, Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.now
		}})
	}()
	t.Cleanup(func() {
		stop()
		p.end()
		p.master.Close()
		<-read
	})
	p.sees("Nod answers here")
	return p
}

// end waits for Run.
func (p *person) end() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(patience):
		p.t.Fatal("Run does not end")
		return nil
	}
}

func (p *person) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// sees waits until text was printed after what was seen before.
func (p *person) sees(text string) {
	p.t.Helper()
	limit := time.After(patience)
	for {
		p.mu.Lock()
		all := p.seen.String()
		i := strings.Index(all[p.upTo:], text)
		if i >= 0 {
			p.upTo += i + len(text)
		}
		upTo := p.upTo
		p.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-p.fresh:
		case <-limit:
			p.t.Fatalf("never saw %q, only\n%q", text, all[upTo:])
		}
	}
}

// considers lets the time pass in which keys are not meant.
func (p *person) considers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(dead)
}

// sends types or pastes bytes at once, and waits longer than a burst takes.
func (p *person) sends(bytes string) {
	p.t.Helper()
	if _, err := p.master.WriteString(bytes); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(settle)
}

func (p *person) ended1(n int) board.End {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if ended := p.node.board.Ended(); len(ended) >= n {
			return ended[n-1]
		}
		if time.Now().After(end) {
			p.t.Fatalf("no %d. end; the screen: %q", n, p.all())
		}
	}
}

func (p *person) undecided(n int) {
	p.t.Helper()
	if ended := p.node.board.Ended(); len(ended) != n {
		p.t.Fatalf("%d asks ended, want %d: %+v", len(ended), n, ended)
	}
}

func TestKeysAnswer(t *testing.T) {
	tests := []struct {
		name    string
		keys    []string
		sees    []string // after each key
		verdict engine.Verdict
		reason  string
		said    string
	}{
		{"y", []string{"y"}, nil, engine.Approved, "", "→ allowed once"},
		{"n", []string{"n"}, nil, engine.Denied, "", "→ denied"},
		{"s 1", []string{"s", "1"}, []string{"1 this subagent only  2 the whole session"}, engine.ApprovedForSession, "", "this subagent only"},
		{"s 2", []string{"s", "2"}, []string{"2 the whole session"}, engine.ApprovedForServingSession, "", "whole session"},
		{"s, back, n", []string{"s", "\x1b", "n"}, []string{"whole session", "y allow once"}, engine.Denied, "", "→ denied"},
		{"s, keys of no meaning, 1", []string{"s", "y", "\r", "3", "1"}, []string{"whole session", "\a", "\a", "\a"}, engine.ApprovedForSession, "", "subagent"},
		{"r", []string{"r", "n", "o", "\r"}, []string{"reason (Enter sends", "n", "no"}, engine.DeniedWithReason, "no", "→ denied: no"},
		{"r, mended", []string{"r", "x", "\x7f", "a", "\x15", "é", "\r"}, nil, engine.DeniedWithReason, "é", "é"},
		{"r with a paste of lines", []string{"r", "\x1b[200~use\nmake y\n\x1b[201~", "\r"}, []string{"reason", "use make y"}, engine.DeniedWithReason, "use make y", "use make y"},
		{"r with a burst that has enters", []string{"r", "a\rb\r", "\r"}, []string{"reason", "a b"}, engine.DeniedWithReason, "a b", "a b"},
		{"r, nothing, then n", []string{"r", "\r", "n"}, []string{"reason", "no reason typed"}, engine.Denied, "", "→ denied"},
		{"r, back, then y", []string{"r", "x", "\x1b", "y"}, []string{"reason", "x", "y allow once"}, engine.Approved, "", "allowed once"},
		{"help", []string{"?", "y"}, []string{"deny with a reason, which the agent reads"}, engine.Approved, "", "allowed once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, 30, ask("scout", "ls -la"))
			p.sees("scout wants to run a command")
			p.sees("│ ls -la")
			p.sees("y allow once")
			p.considers()
			for i, k := range tt.keys {
				p.sends(k)
				if i < len(tt.sees) {
					p.sees(tt.sees[i])
				}
			}
			e := p.ended1(1)
			if e.Decision.Verdict != tt.verdict || e.Decision.Reason != tt.reason || e.View != View {
				t.Errorf("ended as %+v", e)
			}
			p.sees(tt.said)
			p.sees("nothing waits")
		})
	}
}

// None of these may answer, however the bytes come.
func TestWhatNeverAnswers(t *testing.T) {
	for name, bytes := range map[string]string{
		"enter": "\r", "space": " ", "line feed": "\n", "null": "\x00", "escape": "\x1b",
		"a paste":                  "\x1b[200~y\x1b[201~",
		"a paste with an answer":   "\x1b[200~curl x | sh\ny\n\x1b[201~",
		"a paste without brackets": "echo y\n", "the key twice": "yy", "the key and enter": "y\r", "no and enter": "n\n",
		"alt-y": "\x1by", "capital": "Y", "an arrow then y": "\x1b[Ay", "y from another alphabet": "у",
		"y then a paste": "y\x1b[200~x\x1b[201~", "1": "1", "2": "2", "half a paste": "\x1b[200~y",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, 30, ask("scout", "rm -rf /"))
			p.sees("y allow once")
			p.considers()
			p.sends(bytes)
			time.Sleep(settle)
			p.undecided(0)
			if name == "half a paste" {
				p.sends("y") // belongs to it
				p.undecided(0)
				p.sends("\x1b[201~")
			}
			p.sends("n") // and the terminal still listens
			if e := p.ended1(1); e.Decision.Verdict != engine.Denied {
				t.Errorf("ended as %+v", e)
			}
		})
	}
}

func TestKeysAreDeadAtFirst(t *testing.T) {
	p := sit(t, 30, ask("scout", "one"), ask("scout", "two"))
	p.sees("│ one")
	p.sends("y")
	p.undecided(0)
	p.considers()
	p.sends("y")
	p.ended1(1)
	p.sees("│ two")
	p.sends("y") // was meant for the first
	p.sends("y")
	p.undecided(1)
	p.considers()
	p.sends("n")
	if e := p.ended1(2); e.Decision.Verdict != engine.Denied || e.Ask.Value != "two" {
		t.Errorf("ended as %+v", e)
	}
}

func TestAnsweredElsewhere(t *testing.T) {
	p := sit(t, 30, ask("scout", "one"), ask("worker", "two"))
	p.sees("(1 of 2)")
	p.sees("│ one")
	p.considers()
	p.sends("r")
	p.sees("reason")
	p.sends("b")
	pending := p.node.board.Pending()
	if err := p.node.board.Answer(pending[0].Key, pending[0].Hash, board.Answer{Verdict: engine.Approved, View: "notification"}); err != nil {
		t.Fatal(err)
	}
	p.sees("\x1b[9mscout wants to run a command\x1b[0m → allowed once (notification)")
	p.sees("worker wants")
	p.sees("│ two")
	p.sends("y") // typed on into the reason
	p.sends("\r")
	p.undecided(1)
	p.node.board.Withdraw(pending[1].Key, "the agent went away")
	p.sees("→ withdrawn: the agent went away")
	p.sees("nothing waits")
}

func TestSeveralAgents(t *testing.T) {
	p := sit(t, 30, ask("scout", "s1"), ask("scout", "s2"), ask("worker", "w1"))
	p.sees("(1 of 3)")
	p.sees("│ s1")
	p.considers()
	p.sends("l")
	p.sees("→ later")
	p.sees("│ w1") // the other agent's before the first one's second
	p.considers()
	p.sends("y")
	p.sees("│ s2")
	p.considers()
	p.sends("n")
	p.sees("1 ask waits, put off: l looks at them again")
	p.node.board.Add(ask("late", "l1")) // comes up over those put off
	p.sees("│ l1")
	p.considers()
	p.sends("y")
	p.sees("put off")
	p.sends("l")
	p.sees("│ s1")
	p.considers()
	p.sends("y")
	p.ended1(4)
	p.sees("nothing waits")
}

func TestAnAskWithoutASession(t *testing.T) {
	a := ask("scout", "ls")
	a.Suggestion = nil
	p := sit(t, 30, a)
	p.sees("y allow once  n deny")
	p.considers()
	p.sends("s")
	p.sees("named nothing that could be allowed")
	p.undecided(0)
}

// What did not fit on the screen is approved only after it was seen.
func TestALongAskIsSeenWhole(t *testing.T) {
	var long []string
	for i := range 60 {
		long = append(long, fmt.Sprint("echo line ", i))
	}
	a := ask("scout", strings.Join(long, "\n"))
	a.Suggestion[0].Pattern = "echo *"
	p := sit(t, 20, a)
	p.sees("more lines, v shows them")
	p.sees("n deny  r reason")
	p.considers()
	p.sends("y")
	p.sees("v views it whole")
	p.sends("s")
	p.sees("v views it whole")
	p.sends("v")
	p.sees("lines 1 to 18 of")
	p.sends("y")
	p.sends("q") // not seen to its end
	p.sees("n deny")
	p.considers()
	p.sends("y")
	p.sees("v views it whole")
	p.undecided(0)
	p.sends("v")
	p.sees("lines 1 to 18 of")
	p.sends(" ")
	p.sees("lines 19 to 36 of")
	p.sends("b")
	p.sees("lines 1 to 18 of")
	for _, at := range []string{"19 to 36", "37 to 54", "55 to"} {
		p.sends(" ")
		p.sees("lines " + at)
	}
	if !strings.Contains(p.all(), "│ echo line 31") {
		t.Error("the middle was not shown")
	}
	p.sends(" ")
	p.sees("y allow once")
	p.sends("y") // the question just came back
	p.undecided(0)
	p.considers()
	p.sends("y")
	p.ended1(1)
}

func TestPauseAndProblems(t *testing.T) {
	p := sit(t, 30)
	p.sees("serving session \"desk\" in /agents")
	p.sees("nothing waits")
	p.node.setProblems("the policy file is broken\x1b[2J: mend it")
	p.sees("! \x1b[0mthe policy file is broken\\x1B[2J: mend it")
	p.sends("p")
	p.sees("paused: p goes on")
	p.node.board.Add(ask("scout", "ls"))
	p.sees("paused, 1 ask waits: p goes on")
	if strings.Contains(p.all(), "│ ls") {
		t.Error("an ask came up while paused")
	}
	p.sends("p")
	p.sees("│ ls")
	p.considers()
	p.sends("y")
	p.ended1(1)
}

// Nothing that an agent wrote reaches the terminal as a command to it.
func TestNoEscapeOfAnAgentGetsThrough(t *testing.T) {
	evil := "\x1b]0;owned\a\x1b[2J\x1b[31m\u009b2J\x1b[?2004l\r\x08y\u202e"
	a := ask("scout"+evil, "ls"+evil)
	q := a.Question
	q.RequesterCwd, q.Pattern, q.Tool, q.Surface = evil, evil, evil, evil
	q.Evidence = []engine.Evidence{{Label: evil, Text: evil, Detail: &evil}}
	q.Annotations = []engine.Annotation{{Source: evil, Text: evil}}
	q.Suggestion = []engine.Grant{{Surface: evil, Pattern: evil}}
	q.Hops = []string{evil}
	a.Notes = []string{evil}
	p := sit(t, 60, a)
	p.sees("y allow once")
	p.considers()
	p.sends("v")
	p.sees("q done")
	p.sends("q")
	p.sees("y allow once")
	p.considers()
	p.sends("l")
	p.sees("later")
	p.node.board.Withdraw(p.node.board.Pending()[0].Key, evil)
	p.sees("nothing waits")
	p.stop()
	p.end()
	p.sees("\x1b[?2004l") // ours, at the end
	out := p.all()
	for _, ours := range []string{"\x1b[?2004h", "\x1b[?2004l", "\x1b[1m", "\x1b[9m", "\x1b[33m", "\x1b[0m", "\r\x1b[K", "\r\n", "\a"} {
		out = strings.ReplaceAll(out, ours, "")
	}
	if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && (r < 0x20 || r >= 0x7f && r < 0xa0) || r == 0x202e }); i >= 0 {
		t.Errorf("%q reached the terminal", out[i:min(i+40, len(out))])
	}
	if strings.Count(p.all(), "\x1b[?2004l") != 1 {
		t.Error("the agent switched bracketed paste off")
	}
}

func TestTheTerminalIsGivenBack(t *testing.T) {
	for _, how := range []string{"the end", "the terminal's end"} {
		t.Run(how, func(t *testing.T) {
			p := sit(t, 30, ask("scout", "ls"))
			p.sees("y allow once")
			now, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
			if err != nil || now.Lflag&(unix.ICANON|unix.ECHO) != 0 || now.Lflag&unix.ISIG == 0 || now.Oflag&unix.OPOST == 0 {
				t.Fatalf("%v: %+v", err, now)
			}
			if how == "the terminal's end" {
				p.master.Close()
				if err := p.end(); err == nil {
					t.Error("its end is no error")
				}
				return
			}
			p.stop()
			if err := p.end(); err != nil {
				t.Error(err)
			}
			p.sees("\x1b[?2004l")
			now, err = unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
			if err != nil || now.Lflag&(unix.ICANON|unix.ECHO) != unix.ICANON|unix.ECHO || now.Iflag&unix.ICRNL == 0 {
				t.Errorf("%v: %+v", err, now)
			}
			p.undecided(0)
		})
	}
}

func TestNoTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	_, slave := openPTY(t, 24)
	for _, c := range []Config{{In: null, Out: slave}, {In: slave, Out: null}} {
		c.Node, c.Now = newNode(), time.Now
		if err := Run(t.Context(), c); !errors.Is(err, ErrNoTerminal) {
			t.Errorf("got %v", err)
		}
	}
}

// A stop by ^Z gives the terminal to the shell and takes it back after.
func TestSuspend(t *testing.T) {
	master, slave := openPTY(t, 30)
	report := filepath.Join(t.TempDir(), "report")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+report)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(waited) }()
	defer func() { _ = cmd.Process.Kill(); <-waited }()
	p := &person{t: t, master: master, slave: slave, fresh: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			select {
			case p.fresh <- struct{}{}:
			default:
			}
		}
	}()
	defer func() { master.Close(); <-read }()
	canonical := func() bool {
		now, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		return err == nil && now.Lflag&unix.ICANON != 0
	}
	state := func() string {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		return rest[:min(1, len(rest))]
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waited for %s; the screen: %q", what, p.all())
			}
		}
	}
	p.sees("│ ls -la")
	p.sees("y allow once")
	for range 2 {
		p.sends("\x1a") // the terminal makes it a SIGTSTP
		eventually("the stop", func() bool { return state() == "T" })
		if !canonical() {
			t.Error("stopped with the terminal in its hands")
		}
		p.sees("\x1b[?2004l")
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		p.sees("\x1b[?2004h")
		p.sees("│ ls -la")
		p.sees("y allow once")
		if canonical() {
			t.Error("went on without taking the terminal back")
		}
	}
	time.Sleep(dead + 100*time.Millisecond)
	p.sends("y")
	eventually("the report", func() bool { _, err := os.Stat(report); return err == nil })
	if text, _ := os.ReadFile(report); string(text) != "approved " {
		t.Errorf("it reports %q", text)
	}
	eventually("the terminal", canonical)
}

// In a real terminal emulator: what is pasted into it does not answer.
func TestInTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		if os.Getenv("NOD_E2E") == "1" {
			t.Fatal("needs tmux")
		}
		t.Skip("needs tmux")
	}
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, report := filepath.Join(dir, "s"), filepath.Join(dir, "report")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-S", socket, "-f", os.DevNull}, args...)...)
		cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "TERM=xterm-256color")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("new-session", "-d", "-x", "90", "-y", "30", "-e", childEnv+"="+report, os.Args[0]+"; sleep 600")
	defer run("kill-server")
	sees := func(text string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			screen := run("capture-pane", "-p")
			if strings.Contains(screen, text) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("never saw %q on\n%s", text, screen)
			}
		}
	}
	sees("│ ls -la")
	sees("n deny")
	time.Sleep(dead + 100*time.Millisecond)
	run("set-buffer", "y")
	run("paste-buffer", "-p") // in brackets, since the program asked for them
	sees("several keys at once are no answer")
	run("set-buffer", "yes\n")
	run("paste-buffer") // without
	time.Sleep(10 * quiet)
	run("send-keys", "Enter")
	time.Sleep(settle)
	if _, err := os.Stat(report); err == nil {
		t.Fatal("a paste answered")
	}
	if dir := os.Getenv("NOD_ARTIFACTS"); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "terminal.txt"), []byte(run("capture-pane", "-p")), 0o600)
	}
	run("send-keys", "r")
	sees("reason (Enter sends")
	run("send-keys", "-l", "use make")
	sees("Esc back): use make")
	run("send-keys", "Enter")
	sees("→ denied: use make")
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(report); err == nil {
			if string(text) != "denied_with_reason use make" {
				t.Errorf("it reports %q", text)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("no report")
		}
	}
}
