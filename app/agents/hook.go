package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/nod-agents/nod/engine"
)

// maxInput is the most bytes of a hook's stdin that are judged.
const maxInput = 16 << 20

// Mode says what part Nod takes.
type Mode string

// The modes. Under Gated Nod decides each call. Under Advising it denies or is
// silent, and asks only where the agent itself asks, so that the agent's own
// rules allow or ask as they would without it.
const (
	Gated    Mode = "gate"
	Advising Mode = "advise"
)

// Unserved says what becomes of an ask where no node serves.
type Unserved string

// What to do then: deny, or leave it to the agent's own prompt.
const (
	UnservedDeny  Unserved = "deny"
	UnservedDefer Unserved = "defer"
)

// Hook decides an agent's calls.
type Hook struct {
	Adapter Adapter
	Gate    Gate
	// Parent gets the asks: it is the way to the serving node. It must wait for
	// an answer as long as its context lives and the node serves.
	Parent func(c *Call) engine.Terminal

	Mode     Mode
	Unserved Unserved
	// Timeout is how long the agent waits for the hook; 0 means its default.
	Timeout time.Duration
	Getenv  func(string) string
	Getwd   func() (string, error)
	Now     func() time.Time
	// Ended, if set, is told of a session or subagent that has ended, by the id
	// that its asks bore: what was granted to it ends too.
	Ended func(ctx context.Context, requester string)
	// Ancestors are the command lines of the processes that started the hook,
	// the nearest first; nil: they are not known.
	Ancestors func() [][]string
	// Waiting, if set, is called each time the hook is about to wait: for more
	// of its call, or for a human. Up to then it takes no longer than judging.
	Waiting func()
}

// Deadline is when a hook must have answered that the agent waits for so long:
// a tenth before, at least 2 s and at most 10 s.
func Deadline(timeout time.Duration) time.Duration {
	return timeout - min(max(timeout/10, 2*time.Second), 10*time.Second)
}

// Run is one run of the hook: it reads a call, decides it, and says how the
// process ends. It never fails: whatever goes wrong is a denial, or no opinion
// where there is nothing to decide.
func (h *Hook) Run(ctx context.Context, event string, stdin io.Reader) (r Reply) {
	var call *Call
	defer func() {
		if p := recover(); p != nil {
			r = h.deny(call, fmt.Sprintf("Nod failed while it judged this call, so it was denied: %v", p))
		}
	}()
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = h.Adapter.Timeout()
	}
	patience := Deadline(timeout)
	started := h.Now()

	data, err := h.readAll(ctx, stdin, patience)
	if err == nil {
		call, err = h.Adapter.Parse(event, data, h.Getenv)
	}
	if err == nil {
		err = h.place(call)
	}
	switch {
	case errors.Is(err, ErrNoCall):
		if e, ok := h.Adapter.(ender); ok && h.Ended != nil {
			if id := e.ended(event, data); id != "" {
				ctx, cancel := context.WithTimeoutCause(ctx, patience-h.Now().Sub(started), errLate)
				defer cancel()
				h.Ended(ctx, id)
				return Reply{}
			}
		}
		return Reply{Stderr: oneLine("nod: " + err.Error() + ": no opinion")}
	case err != nil:
		return blocked("Nod can't judge this call, so it was denied: " + err.Error())
	}
	o := h.Decide(ctx, call, patience-h.Now().Sub(started))
	if y, ok := h.Adapter.(interface{ yields([][]string) bool }); ok && o.Say == Allow && h.Ancestors != nil && y.yields(h.Ancestors()) {
		o = Outcome{}
	}
	return h.Adapter.Answer(call, o)
}

// ender is an agent that tells when a session or a subagent has ended.
type ender interface {
	// ended is the id of what ended, empty if nothing did.
	ended(event string, data []byte) string
}

// deny answers for a call of which c is what could be read.
func (h *Hook) deny(c *Call, reason string) Reply {
	return h.Adapter.Answer(c, Outcome{Say: Deny, Reason: reason})
}

var errLate = errors.New("nobody answered in time")

// readAll reads stdin to its end, for at most patience. What is too large is read
// all the same, so that the agent can finish writing it.
func (h *Hook) readAll(ctx context.Context, stdin io.Reader, patience time.Duration) ([]byte, error) {
	// Most agents have written the call by now, and nothing has to wait.
	data, more, err := readReady(stdin, maxInput+1)
	if !more {
		if err != nil {
			return nil, fmt.Errorf("reading the call: %w", err)
		}
		return data, nil
	}
	h.wait()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		rest, err := io.ReadAll(io.LimitReader(stdin, maxInput+1-int64(len(data))))
		data = append(data, rest...)
		if err == nil && len(data) > maxInput {
			_, err = io.Copy(io.Discard, stdin)
			if err == nil {
				err = fmt.Errorf("it is larger than %d MiB", maxInput>>20)
			}
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return nil, fmt.Errorf("reading the call: %w", err)
		}
		return data, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("reading the call: %w", context.Cause(ctx))
	}
}

func (h *Hook) wait() {
	if h.Waiting != nil {
		h.Waiting()
	}
}

// place makes sure that it is known where the call happens.
func (h *Hook) place(c *Call) error {
	if c.Cwd == "" {
		dir, err := h.Getwd()
		if err != nil {
			return fmt.Errorf("it is not known where it happens: %w", err)
		}
		c.Cwd = dir
	}
	if !filepath.IsAbs(c.Cwd) {
		return fmt.Errorf("cwd %q is not absolute", c.Cwd)
	}
	c.Cwd = filepath.Clean(c.Cwd)
	if name := h.Getenv("PI_SUBAGENT_CHILD_AGENT"); name != "" && c.Principal.AgentName == h.Adapter.Name() {
		c.Principal.AgentName = name // as nod run --agent says
	}
	if c.Root == "" {
		// The hosts that know a project besides the working directory say so
		// in the environment.
		for _, name := range []string{"CLAUDE_PROJECT_DIR", "COPILOT_PROJECT_DIR", "CRUSH_PROJECT_DIR"} {
			if dir := h.Getenv(name); filepath.IsAbs(dir) {
				c.Root = dir
				break
			}
		}
	}
	return nil
}

// Decide brings a call to its end: by rules, else by asking the serving node,
// for at most patience.
func (h *Hook) Decide(ctx context.Context, c *Call, patience time.Duration) Outcome {
	ruling := h.Gate.Judge(c)
	switch {
	case ruling.Action == engine.Deny:
		return Outcome{Say: Deny, Reason: ruling.Reason}
	case ruling.Action == engine.Allow:
		if h.Mode == Advising || c.Inner || c.Waits {
			return Outcome{}
		}
		return Outcome{Say: Allow}
	case h.Mode == Advising && !c.Asks:
		return Outcome{}
	}
	if len(ruling.Questions) == 0 {
		return missing("Nod must ask about this call but found nothing to ask, so it was denied.")
	}
	if ruling.Patience > 0 {
		patience = min(patience, ruling.Patience)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	h.wait()
	parent := h.Parent(c)
	for _, q := range ruling.Questions {
		d, err := parent.Authorize(ctx, q)
		switch {
		case err != nil:
			return missing("Nod could not ask, so this was denied: " + err.Error())
		case d.Verdict.Approves():
			continue
		case d.Verdict != engine.Unavailable:
			return Outcome{Say: Deny, Reason: refused(c, d)}
		case errors.Is(context.Cause(ctx), errLate):
			// Never left to the agent's own prompt: somebody may still answer.
			return missing(fmt.Sprintf("Nobody answered within %s, so this was denied. Ask the user before you try it again.", patience.Round(time.Second)))
		case ctx.Err() != nil:
			return missing("The wait for an answer was broken off, so this was denied.")
		case h.Unserved == UnservedDefer:
			return Outcome{Unavailable: true}
		default:
			return missing("Nobody could be asked, so this was denied: " + d.Reason)
		}
	}
	if c.Waits && !c.Asks {
		return Outcome{}
	}
	return Outcome{Say: Allow}
}

func missing(reason string) Outcome { return Outcome{Say: Deny, Reason: reason, Unavailable: true} }

// refused is what the model reads of a denial: its reason word for word.
func refused(c *Call, d engine.Decision) string {
	if d.Reason != "" {
		return d.Reason
	}
	if source := innermost(&d.By); source.Kind == engine.ByUser {
		return fmt.Sprintf("The user denied this %s call.", c.Tool)
	}
	return fmt.Sprintf("This %s call was denied by Nod.", c.Tool)
}

// innermost is what decided at the end of the way.
func innermost(s *engine.DecisionSource) *engine.DecisionSource {
	for s.Kind == engine.ByForwarded && s.Decision != nil {
		s = s.Decision
	}
	return s
}
