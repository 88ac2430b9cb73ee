package forwarding

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
)

// helper is what the test binary does when it is started as another process.
func helper(role string) int {
	dir := os.Getenv("FORWARDING_TEST_DIR")
	var mu sync.Mutex
	say := func(format string, a ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", a...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch role {
	case "serve": // asks go to stdout, "approve ID" comes on stdin
		h := newHuman()
		d := deciderFunc(func(ctx context.Context, in *Inbound) engine.Decision {
			if strings.HasPrefix(*in.Request.Value, "git ") {
				return approved
			}
			say("asked %s", in.Request.ID)
			return h.Decide(ctx, in)
		})
		go func() {
			for in := bufio.NewScanner(os.Stdin); in.Scan(); {
				if id, ok := strings.CutPrefix(in.Text(), "approve "); ok {
					a := h.see(id) // said to be asked a moment before it is
					for ; a == nil; a = h.see(id) {
						time.Sleep(time.Millisecond)
					}
					a.answer <- engine.Decision{Verdict: engine.Approved, By: byUser}
				}
			}
			cancel()
		}()
		err := NewServer(ServerConfig{AgentDir: dir, SessionID: "desk", Decider: d, Beat: newBeat(), Ready: func() { say("ready") }}).Run(ctx)
		if err != nil {
			say("error %v", err)
			return 1
		}
		return 0
	case "ask": // one ask, its outcome on stdout
		go func() {
			bufio.NewReader(os.Stdin).ReadString(0)
			cancel()
		}()
		r := &Requester{Child: Child{SessionID: "child-1", AgentDir: dir}, Target: "desk", Timeout: time.Minute}
		a := r.Ask(ctx, question(os.Getenv("FORWARDING_TEST_VALUE")))
		line, _ := json.Marshal(a)
		say("%s", line)
		return 0
	}
	return 2
}

// process is a running helper.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines chan string
	in    interface {
		Write([]byte) (int, error)
		Close() error
	}
	once sync.Once
}

func spawn(t testing.TB, role, dir, value string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FORWARDING_TEST_ROLE="+role, "FORWARDING_TEST_DIR="+dir, "FORWARDING_TEST_VALUE="+value)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, in: in, lines: make(chan string, 100)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	t.Cleanup(p.kill)
	return p
}

// line waits for a line that begins with prefix.
func (p *process) line(prefix string) string {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case l, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the process ended before %q", prefix)
			}
			if strings.HasPrefix(l, prefix) {
				return l
			}
		case <-timeout:
			p.t.Fatalf("never said %q", prefix)
		}
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.once.Do(func() {
		p.cmd.Process.Kill()
		for range p.lines {
		}
		p.cmd.Wait()
		p.in.Close()
	})
}

// end lets the process stop in order.
func (p *process) end() {
	p.once.Do(func() {
		p.in.Close()
		for range p.lines {
		}
		p.cmd.Wait()
	})
}

// question is an ask for a bash command.
func question(command string) *engine.Question {
	who := engine.Principal{SessionID: "child-1", AgentName: "scout"}
	return &engine.Question{
		Principal: who, Source: "tool_call", Tool: "bash", Surface: "bash", Value: command, Kind: "bash",
		Intent:     &engine.Intent{Surface: "bash", MatchValues: []string{command}, RequesterCwd: "/home/dev/proj", Principal: who},
		Suggestion: []engine.Grant{{Surface: "bash", Pattern: command + " *"}},
	}
}
