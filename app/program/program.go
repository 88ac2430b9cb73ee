// Package program answers asks by running a program in the human's place: the
// ask as JSON on its standard input, its answer as JSON on its standard output.
//
// A program that fails, times out or answers nonsense has not decided: the ask
// waits on for the other front ends or, where there is none, ends as
// unavailable. It never ends as denied for that.
package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/oneshot"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// View is the name under which the board records answers of a program.
const View = "exec"

// The defaults of Config.
const (
	DefaultParallel = 16
	DefaultTimeout  = 10 * time.Minute
)

// Config says what to run.
type Config struct {
	Board   *board.Board
	Program string   // as found in Env's PATH or a path; run without arguments
	Dir     string   // its working directory; empty: ours
	Env     []string // its environment, "NAME=value"; nil: ours

	// Alone: no other front end can answer, so an ask that the program does
	// not decide ends as unavailable.
	Alone bool

	Parallel int           // how many run at once, most of them for one agent; 0: DefaultParallel
	Timeout  time.Duration // for one ask, shortened by the child's own deadline; 0: DefaultTimeout
	Now      func() time.Time
	Log      *slog.Logger
}

// Run answers what comes onto the board until ctx ends; every program that
// still runs then is killed. Each ask is put to the program once. It fails
// only if the program cannot be found at the start.
func Run(ctx context.Context, c Config) error {
	if c.Parallel <= 0 {
		c.Parallel = DefaultParallel
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if _, err := exec.LookPath(c.Program); err != nil {
		return fmt.Errorf("finding the program that answers: %w", err)
	}
	changes, stop := c.Board.Watch()
	defer stop()

	var all sync.WaitGroup
	defer all.Wait()
	running := map[string]context.CancelFunc{}
	of := map[engine.Principal]int{} // how many run for each agent
	defer func() {
		for _, cancel := range running {
			cancel()
		}
	}()
	finished := make(chan *board.Ask)
	asked := map[string]bool{} // put to the program, and still on the board or running
	for {
		pending := c.Board.Pending()
		here := make(map[string]bool, len(pending))
		for _, a := range pending {
			here[a.Key] = true
		}
		for key := range asked {
			if cancel := running[key]; !here[key] && cancel != nil {
				cancel() // answered elsewhere or withdrawn
			} else if !here[key] {
				delete(asked, key)
			}
		}
		for _, a := range pending {
			if len(running) >= c.Parallel {
				break
			}
			if asked[a.Key] || !fair(of[a.Principal], c.Parallel-len(running)) {
				continue
			}
			asked[a.Key] = true
			of[a.Principal]++
			one, cancel := context.WithCancel(ctx)
			running[a.Key] = cancel
			all.Go(func() {
				c.decide(one, a)
				select {
				case finished <- a:
				case <-ctx.Done():
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case a := <-finished:
			running[a.Key]()
			delete(running, a.Key)
			if of[a.Principal]--; of[a.Principal] == 0 {
				delete(of, a.Principal)
			}
		}
	}
}

// fair reports whether one more program may run for an agent that has so many,
// when so many could be started. One agent by itself gets three of four, and
// the next three of four of the rest: slow answers to the one do not hold up
// those to the other.
func fair(has, free int) bool { return free > 0 && (has == 0 || has+1 <= 3*(free-1)) }

// decide puts a to the program and its answer to the board.
func (c *Config) decide(ctx context.Context, a *board.Ask) {
	answer, err := c.ask(ctx, a)
	if err == nil {
		err = c.Board.Answer(a.Key, a.Hash, answer)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, board.ErrGone) {
		return
	}
	c.Log.Warn("the program has not decided", "program", c.Program, "ask", a.ID, "why", err)
	if !c.Alone {
		return
	}
	why := "the program that answers has not decided: " + visible.Line(err.Error(), 200)
	if err := c.Board.GiveUp(a.Key, a.Hash, View, why); err != nil && !errors.Is(err, board.ErrGone) {
		c.Log.Error("giving up an ask", "ask", a.ID, "error", err)
	}
}

// ask runs the program once.
func (c *Config) ask(ctx context.Context, a *board.Ask) (board.Answer, error) {
	timeout := c.Timeout
	if !a.Deadline.IsZero() {
		timeout = min(timeout, a.Deadline.Sub(c.Now()))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took more than %s", timeout.Round(time.Millisecond)))
	defer cancel()

	out, err := oneshot.Program{Argv: []string{c.Program}, Dir: c.Dir, Env: c.Env}.Run(ctx, Describe(a.Question))
	if err != nil {
		return board.Answer{}, err
	}
	return ParseAnswer(out)
}

// Answer is what the program writes.
type Answer struct {
	Decision     engine.Verdict `json:"decision"`
	DenialReason string         `json:"denialReason"`
}

// maxReason is the longest reason sent to a child, in bytes.
const maxReason = 4 << 10

// ParseAnswer reads a program's answer: one JSON object whose decision is one
// of the five words. Anything else is an error and decides nothing.
func ParseAnswer(data []byte) (board.Answer, error) {
	var a Answer
	if err := oneshot.Decode(data, &a); err != nil {
		return board.Answer{}, err
	}
	switch a.Decision {
	case engine.Approved, engine.ApprovedForSession, engine.ApprovedForServingSession:
		if a.DenialReason != "" {
			return board.Answer{}, fmt.Errorf("its answer contradicts itself: %s with a denialReason", a.Decision)
		}
	case engine.Denied, engine.DeniedWithReason:
		if len(a.DenialReason) > maxReason {
			return board.Answer{}, fmt.Errorf("its denialReason is longer than %d bytes", maxReason)
		}
	default:
		return board.Answer{}, fmt.Errorf("its decision %q is none of approved, approved_for_session, approved_for_serving_session, denied, denied_with_reason", visible.Line(string(a.Decision), 60))
	}
	return board.Answer{Verdict: a.Decision, Reason: a.DenialReason, View: View}, nil
}
