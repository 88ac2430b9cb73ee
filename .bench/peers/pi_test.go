package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// piProcess is a node that runs pi.mjs.
type piProcess struct {
	mu    sync.Mutex
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	loads map[int]bool
}

// pi is the one that all tests share: it takes seconds to start. Nil without an
// error if it is not installed.
var pi = sync.OnceValues(func() (*piProcess, error) {
	node, modules := os.Getenv("NOD_BENCH_NODE"), os.Getenv("NOD_BENCH_PI")
	if node == "" || modules == "" {
		return nil, nil
	}
	script, err := filepath.Abs("pi.mjs")
	if err != nil {
		return nil, err
	}
	p := &piProcess{cmd: exec.Command(node, script, modules), loads: map[int]bool{}}
	p.cmd.Stderr = os.Stderr
	p.cmd.WaitDelay = 10 * time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting node: %w", err)
	}
	return p, nil
})

func endPi() error {
	p, err := pi()
	if p == nil || err != nil {
		return err
	}
	if err := p.in.Close(); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

// installedPi skips what needs pi's engine where it is not installed.
func installedPi(tb testing.TB) *piProcess {
	tb.Helper()
	p, err := pi()
	if err != nil {
		tb.Fatal(err)
	}
	if p == nil {
		tb.Skip("pi's engine is not installed: see the Makefile's bench")
	}
	return p
}

// do has node do one thing.
func (p *piProcess) do(tb testing.TB, command map[string]any, answer any) {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(command)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		tb.Fatal(err)
	}
	if line, err = p.out.ReadBytes('\n'); err != nil {
		tb.Fatalf("node is gone: %v", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		tb.Fatalf("%v: %s", err, line)
	}
}

// load gives it rules, and returns what it says to the questions.
func (p *piProcess) load(tb testing.TB, list []rule, questions []question) []answer {
	tb.Helper()
	var got struct{ Answers []answer }
	p.do(tb, map[string]any{
		"load": fmt.Sprint(len(list)), "config": json.RawMessage(permission(tb, list)), "questions": questions, "early": early,
	}, &got)
	return got.Answers
}

// loaded gives it rules once.
func (p *piProcess) loaded(tb testing.TB, list []rule) {
	if !p.loads[len(list)] {
		p.load(tb, list, mix(list))
		p.loads[len(list)] = true
	}
}

// call has it judge a whole bash call so many times, which it must allow, and
// returns node's processor time in ns.
func (p *piProcess) call(tb testing.TB, command string, count int) float64 {
	tb.Helper()
	var got struct {
		CPU     float64
		Allowed bool
	}
	p.do(tb, map[string]any{"call": command, "run": count}, &got)
	if !got.Allowed {
		tb.Fatalf("pi's engine does not allow %s", command)
	}
	return got.CPU
}

// measurePi has node run b.N turns of so many decisions, and reports node's
// processor time.
func measurePi(b *testing.B, decisions int, run func(count int) (cpu float64)) {
	b.Helper()
	all := b.N * decisions
	b.ReportMetric(run(all)/float64(all), "cpu-ns/decision")
}
