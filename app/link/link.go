// Package link runs the link programs of a policy: judges that see an ask
// after the rules and before a human, and say allow, deny or defer.
//
// A link gets the facts of one ask as a JSON object on its standard input and
// writes its verdict as a JSON object to its standard output:
//
//	{"verdict": "allow|deny|defer", "reason": "…"}
//
// A link that is missing, fails, is slow or answers nonsense has not decided:
// Review returns an error and the walk goes on. A link may query the rules
// itself, with `nod check --json`.
package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/nod-agents/nod/app/oneshot"
	"github.com/nod-agents/nod/app/program"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
)

// ErrUnregistered means that authorizerChain names a link that no policy file
// defines.
var ErrUnregistered = errors.New("no link of this name is configured")

// DefaultParallel is how many link programs run at once.
const DefaultParallel = 16

// Config says how links run.
type Config struct {
	Log      *slog.Logger
	Environ  []string // "NAME=value"; nil: ours
	Dir      string   // the working directory; empty: ours
	Parallel int      // 0: DefaultParallel
}

// Runner runs link programs. It is safe for concurrent use.
type Runner struct {
	cfg   Config
	slots chan struct{}
}

// New returns a Runner.
func New(cfg Config) *Runner {
	if cfg.Parallel <= 0 {
		cfg.Parallel = DefaultParallel
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{cfg: cfg, slots: make(chan struct{}, cfg.Parallel)}
}

// Chain returns the links that s names, in its order. A name without a program
// is a link that fails with ErrUnregistered.
func (r *Runner) Chain(s policy.Settings) []engine.Link {
	chain := make([]engine.Link, 0, len(s.AuthorizerChain))
	for _, name := range s.AuthorizerChain {
		l, ok := s.Links[name]
		if !ok {
			chain = append(chain, missing(name))
			continue
		}
		chain = append(chain, &judge{runner: r, name: name, link: l})
	}
	return chain
}

// missing is a link that is named and not defined.
type missing string

func (m missing) Name() string { return string(m) }

func (m missing) Review(context.Context, *engine.Question) (engine.LinkVerdict, error) {
	return engine.LinkVerdict{}, ErrUnregistered
}

// judge is one link program.
type judge struct {
	runner *Runner
	name   string
	link   policy.Link
}

// Name is the link's name in the policy.
func (j *judge) Name() string { return j.name }

// Facts is what a link reads: the ask as --exec programs see it, and what else
// is known of it.
type Facts struct {
	program.Ask
	Link           string       `json:"link"` // its own name
	Kind           string       `json:"kind"`
	BoundaryValue  *string      `json:"boundaryValue"` // a path's canonical form
	CommandContext *string      `json:"commandContext"`
	Executes       *string      `json:"executes"` // the inner command of a wrapper
	Annotations    []annotation `json:"annotations"`
	FactsMissing   bool         `json:"factsMissing"` // an old child: value and surface are for display only
}

type annotation struct {
	Source string `json:"source"` // a model wrote this, not a person
	Text   string `json:"text"`
}

func describe(name string, q *engine.Question) Facts {
	f := Facts{Ask: program.Describe(q), Link: name, Kind: q.Kind, FactsMissing: q.Intent == nil, Annotations: []annotation{}}
	if q.Intent != nil {
		f.BoundaryValue = q.Intent.Boundary
	}
	if q.CommandContext != "" {
		f.CommandContext = &q.CommandContext
	}
	if q.ExecutedUnit != "" {
		f.Executes = &q.ExecutedUnit
	}
	for _, a := range q.Annotations {
		f.Annotations = append(f.Annotations, annotation(a))
	}
	return f
}

// Review runs the program once.
func (j *judge) Review(ctx context.Context, q *engine.Question) (engine.LinkVerdict, error) {
	start := time.Now()
	v, err := j.run(ctx, q)
	if err != nil {
		err = fmt.Errorf("link %s: %w", j.name, err)
		j.runner.cfg.Log.Warn("a link has not decided", "link", j.name, "ask", q.ID, "after", time.Since(start).Round(time.Millisecond), "why", err)
	}
	return v, err
}

func (j *judge) run(ctx context.Context, q *engine.Question) (engine.LinkVerdict, error) {
	timeout := j.link.Timeout()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took more than %s", timeout))
	defer cancel()
	select {
	case j.runner.slots <- struct{}{}:
		defer func() { <-j.runner.slots }()
	case <-ctx.Done():
		return engine.LinkVerdict{}, context.Cause(ctx)
	}
	out, err := oneshot.Program{Argv: j.link.Command, Dir: j.runner.cfg.Dir, Env: j.runner.cfg.Environ}.Run(ctx, describe(j.name, q))
	if err != nil {
		return engine.LinkVerdict{}, err
	}
	return parse(out)
}

// parse reads a verdict: one JSON object that says one of three words.
func parse(data []byte) (engine.LinkVerdict, error) {
	var a struct {
		Verdict *string `json:"verdict"`
		Reason  string  `json:"reason"`
	}
	if err := oneshot.Decode(data, &a); err != nil {
		return engine.LinkVerdict{}, err
	}
	if a.Verdict == nil {
		return engine.LinkVerdict{}, errors.New("its answer holds no verdict")
	}
	switch *a.Verdict {
	case "allow", "deny", "defer":
	default:
		return engine.LinkVerdict{}, fmt.Errorf("its verdict %q is none of allow, deny, defer", visible.Line(*a.Verdict, 40))
	}
	return engine.LinkVerdict{Say: *a.Verdict, Reason: cut(a.Reason, policy.MaxReason)}, nil
}

// cut keeps the first max characters.
func cut(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	return string([]rune(s)[:max])
}
