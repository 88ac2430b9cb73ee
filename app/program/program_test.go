//go:build unix

package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/nod-agents/nod/app/program"
	"github.com/nod-agents/nod/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for a loaded machine; nothing is measured by it.
const patience = 20 * time.Second

func ask(id string) board.Ask {
	return board.Ask{Hash: "h" + id, Question: &engine.Question{
		ID: id, SessionID: "desk", Tool: "bash", Surface: "bash", Value: "ls " + id, Source: "tool_call",
		Principal:  engine.Principal{SessionID: "child", AgentName: "scout"},
		Suggestion: []engine.Grant{{Surface: "bash", Pattern: "ls *"}},
	}}
}

func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answer")
	// A program started meanwhile would inherit the open file and keep this
	// one from being run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

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

// start runs the front end and returns its board; it ends with the test.
func start(t *testing.T, c program.Config) (*board.Board, *logged) {
	t.Helper()
	log := &logged{}
	b := board.New(time.Now)
	c.Board, c.Now, c.Log = b, time.Now, slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- program.Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run does not end")
		}
	})
	return b, log
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited for %s", what)
		panic("unreachable")
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		name    string
		script  string
		verdict engine.Verdict
		reason  string
	}{
		{"approved", `echo '{"decision":"approved"}'`, engine.Approved, ""},
		{"subagent", `echo '{"decision":"approved_for_session"}'`, engine.ApprovedForSession, ""},
		{"session", `echo '{"decision":"approved_for_serving_session","other":1}'`, engine.ApprovedForServingSession, ""},
		{"denied", `printf '{"decision":"denied"}'`, engine.Denied, ""},
		{"reason", `echo '{"decision":"denied_with_reason","denialReason":"use make"}'`, engine.DeniedWithReason, "use make"},
		{"by the ask it reads", `read -r line; case $line in *'"value":"ls x"'*) echo '{"decision":"approved"}';; *) echo '{"decision":"denied"}';; esac`, engine.Approved, ""},
		{"complaining", `echo noise >&2; echo '{"decision":"approved"}'`, engine.Approved, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, _ := start(t, program.Config{Program: script(t, tt.script)})
			_, done := b.Add(ask("x"))
			e := wait(t, "an answer", done)
			if e.Decision.Verdict != tt.verdict || e.Decision.Reason != tt.reason || e.View != program.View {
				t.Errorf("ended as %+v", e)
			}
		})
	}
}

// What is no answer decides nothing: the ask waits on where somebody else can
// answer, and ends as unavailable, never as denied, where nobody can.
func TestWhatIsNoAnswer(t *testing.T) {
	tests := []struct{ name, script, why string }{
		{"fails", `echo '{"decision":"approved"}'; echo broken >&2; exit 3`, "exit status 3: broken"},
		{"says nothing", `exit 0`, "no JSON object"},
		{"nonsense", `echo yes`, "no JSON object"},
		{"a list", `echo '["approved"]'`, "no JSON object"},
		{"another word", `echo '{"decision":"allow"}'`, "none of"},
		{"unavailable is no decision", `echo '{"decision":"unavailable"}'`, "none of"},
		{"no decision", `echo '{}'`, "none of"},
		{"two answers", `echo '{"decision":"approved"}{"decision":"denied"}'`, "followed by"},
		{"contradiction", `echo '{"decision":"approved","denialReason":"no"}'`, "contradicts"},
		{"endless", `while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done`, "took more"},
		{"flood", `i=0; while [ $i -lt 3000 ]; do echo '{"decision":"approved"}                        '; i=$((i+1)); done`, "longer than"},
		{"hangs", `sleep 600`, "took more"},
		{"killed", `kill -9 $$`, "killed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			limit := patience
			if strings.Contains(tt.why, "took more") {
				limit = 300 * time.Millisecond
			}
			b, _ := start(t, program.Config{Program: script(t, tt.script), Alone: true, Timeout: limit})
			_, done := b.Add(ask("x"))
			e := wait(t, "the end", done)
			if e.Decision.Verdict != engine.Unavailable || !strings.Contains(e.Decision.Reason, tt.why) {
				t.Errorf("ended as %+v, want unavailable because %q", e.Decision, tt.why)
			}
		})
	}
	t.Run("waits on for others", func(t *testing.T) {
		t.Parallel()
		b, log := start(t, program.Config{Program: script(t, `exit 1`)})
		a, done := b.Add(ask("x"))
		eventually(t, "the log", func() bool { return strings.Contains(log.String(), "has not decided") })
		if b.Get(a.Key) == nil {
			t.Fatal("it was decided")
		}
		b.Add(ask("y")) // a change must not have the first put to the program again
		eventually(t, "the second", func() bool { return strings.Count(log.String(), "has not decided") >= 2 })
		if err := b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Approved, View: "terminal"}); err != nil {
			t.Fatal(err)
		}
		wait(t, "the human's answer", done)
		if n := strings.Count(log.String(), "ask=x"); n != 1 {
			t.Errorf("put to the program %d times", n)
		}
	})
	t.Run("a scope that nobody suggested", func(t *testing.T) {
		t.Parallel()
		b, _ := start(t, program.Config{Program: script(t, `echo '{"decision":"approved_for_serving_session"}'`), Alone: true})
		a := ask("x")
		a.Suggestion = nil
		_, done := b.Add(a)
		if e := wait(t, "the end", done); e.Decision.Verdict != engine.Unavailable {
			t.Errorf("ended as %+v", e.Decision)
		}
	})
}

func TestTheChildsDeadlineCounts(t *testing.T) {
	b, _ := start(t, program.Config{Program: script(t, `sleep 600`), Alone: true})
	a := ask("x")
	a.Deadline = time.Now().Add(200 * time.Millisecond)
	_, done := b.Add(a)
	if e := wait(t, "the end", done); e.Decision.Verdict != engine.Unavailable {
		t.Errorf("ended as %+v", e.Decision)
	}
}

func TestNoProgram(t *testing.T) {
	err := program.Run(context.Background(), program.Config{Board: board.New(time.Now), Program: filepath.Join(t.TempDir(), "none"), Now: time.Now})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A program that thinks holds up no other ask, least of all another agent's,
// and no more run than may.
func TestParallel(t *testing.T) {
	dir := t.TempDir()
	body := fmt.Sprintf(`read -r line
case $line in *'"id":"slow'*) touch %[1]s/started.$$; while [ ! -e %[1]s/go ]; do sleep 0.02; done;; esac
echo '{"decision":"approved"}'`, dir)
	b, _ := start(t, program.Config{Program: script(t, body), Parallel: 4})
	var slow []<-chan board.End
	for i := range 2 {
		_, done := b.Add(ask(fmt.Sprint("slow", i)))
		slow = append(slow, done)
	}
	_, fast := b.Add(ask("fast"))
	wait(t, "the fast one", fast)
	for i := range 4 {
		_, done := b.Add(ask(fmt.Sprint("slow", i+2)))
		slow = append(slow, done)
	}
	started := func() int {
		names, _ := filepath.Glob(filepath.Join(dir, "started.*"))
		return len(names)
	}
	eventually(t, "three to run", func() bool { return started() == 3 })
	time.Sleep(100 * time.Millisecond) // would be enough for a fourth
	if n := started(); n != 3 {
		t.Errorf("%d run at once for one agent", n)
	}
	other := func(name, id string) <-chan board.End {
		a := ask(id)
		a.Principal.AgentName = name
		_, done := b.Add(a)
		return done
	}
	wait(t, "another agent's", other("worker", "quick"))
	slow = append(slow, other("worker", "slow6"))
	eventually(t, "a fourth to run", func() bool { return started() == 4 })
	slow = append(slow, other("planner", "slow7"))
	time.Sleep(100 * time.Millisecond)
	if n := started(); n != 4 {
		t.Errorf("%d run at once", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, done := range slow {
		wait(t, "a slow one", done)
	}
	if n := started(); n != 8 {
		t.Errorf("%d were run", n)
	}
}

// The whole group goes when the ask does, and what it says then counts no more.
func TestWithdrawalKillsTheGroup(t *testing.T) {
	for _, how := range []string{"withdrawn", "answered elsewhere", "the end of the front end"} {
		t.Run(how, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			log := &logged{}
			b := board.New(time.Now)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- program.Run(ctx, program.Config{Board: b, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)), Alone: true,
					Program: script(t, fmt.Sprintf(`sleep 600 & echo $! $$ > %[1]s.new; mv %[1]s.new %[1]s; wait; echo '{"decision":"approved"}'`, pids))})
			}()
			a, done := b.Add(ask("x"))
			var child, shell int
			eventually(t, "the program", func() bool {
				text, err := os.ReadFile(pids)
				if err != nil {
					return false
				}
				_, err = fmt.Sscan(string(text), &child, &shell)
				return err == nil
			})
			switch how {
			case "withdrawn":
				b.Withdraw(a.Key, "gone")
				wait(t, "the end", done)
			case "answered elsewhere":
				if err := b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Denied, View: "dialog"}); err != nil {
					t.Fatal(err)
				}
				wait(t, "the end", done)
			default:
				cancel()
			}
			for _, pid := range []int{child, shell} {
				eventually(t, fmt.Sprintf("process %d to be gone", pid), func() bool {
					if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
						return true
					}
					stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // an orphan may lie unburied
					return err == nil && strings.Contains(string(stat), ") Z ")
				})
			}
			cancel()
			if err := wait(t, "Run", ended); err != nil {
				t.Error(err)
			}
			if how == "the end of the front end" {
				if b.Get(a.Key) == nil {
					t.Error("the ask ended with the front end")
				}
			}
			if strings.Contains(log.String(), "not decided") {
				t.Errorf("complained: %s", log)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	detail := "/etc/hostname"
	q := engine.Question{
		ID: "r1", SessionID: "desk", CreatedAt: time.UnixMilli(1795979153781), Tool: "bash", Surface: "external_directory",
		Value: "cat <x>", Pattern: "cat *", Source: "tool_call", RequesterCwd: "/home/dev",
		Principal:   engine.Principal{SessionID: "child", AgentName: "scout"},
		Intent:      &engine.Intent{MatchValues: []string{"/a", "a"}},
		Evidence:    []engine.Evidence{{Label: "external path", Text: "/a", Detail: &detail}, {Label: "full command", Text: "cat x; rm y"}},
		Suggestion:  []engine.Grant{{Surface: "external_directory", Pattern: "/a/*"}},
		Annotations: []engine.Annotation{{Source: "model", Text: "trust me"}},
	}
	tests := []struct {
		name string
		q    engine.Question
		want string
	}{
		{"full", q, `{"id":"r1","sessionId":"desk","createdAt":1795979153781,"agentName":"scout","requesterSessionId":"child","requesterCwd":"/home/dev","surface":"external_directory","tool":"bash","value":"cat \u003cx\u003e","matchValues":["/a","a"],"matchedPattern":"cat *","source":"tool_call","evidence":[{"label":"external path","text":"/a","detail":"/etc/hostname"},{"label":"full command","text":"cat x; rm y"}],"suggestion":{"grants":[{"surface":"external_directory","pattern":"/a/*"}]}}`},
		{"bare", engine.Question{ID: "r2", Message: "run ls && rm x"}, `{"id":"r2","sessionId":"","createdAt":0,"agentName":"","requesterSessionId":"","requesterCwd":"","surface":"","tool":"","value":"","matchValues":[],"matchedPattern":null,"source":"","evidence":[{"label":"message","text":"run ls \u0026\u0026 rm x"}],"suggestion":null}`},
	}
	sentence := "Agent 'scout' requested bash command 'ls'. Allow this command?"
	older := func(kind string, generation int, message string) engine.Question {
		return engine.Question{Kind: kind, Generation: generation, Message: message, Value: "ls", Principal: engine.Principal{AgentName: "scout"}}
	}
	for name, c := range map[string]struct {
		q    engine.Question
		said bool
	}{
		"a payload says it in facts":       {older("bash", 3, "runs ls (full command: 'ls; rm x')"), false},
		"a sentence that says it no more":  {older("", 1, sentence), false},
		"a sentence with the full command": {older("", 1, "Agent 'scout' requested bash command 'ls' (full command: 'ls; rm x'). Allow this command?"), true},
	} {
		if got := program.Describe(&c.q).Evidence; (len(got) == 1) != c.said {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, tt := range tests {
		got, err := json.Marshal(program.Describe(&tt.q))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{`{"decision":"approved"}`, `{"decision":"denied","denialReason":"x"}`, `{}`, `[]`, `{"decision":"approved"} x`, "\x00", `{"decision":"approved","decision":"denied"}`} {
		f.Add([]byte(s))
	}
	known := []engine.Verdict{engine.Approved, engine.ApprovedForSession, engine.ApprovedForServingSession, engine.Denied, engine.DeniedWithReason}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := program.ParseAnswer(data)
		if err != nil {
			if a != (board.Answer{}) {
				t.Errorf("an error and an answer: %+v", a)
			}
			return
		}
		if !slices.Contains(known, a.Verdict) || a.Verdict.Approves() && a.Reason != "" {
			t.Errorf("%q gave %+v", data, a)
		}
		if a.Verdict.Approves() && !strings.Contains(string(data), "approved") && !strings.Contains(string(data), `\u`) {
			t.Errorf("%q approves", data)
		}
	})
}
