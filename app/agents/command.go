package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/trust"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/forwarding"
	"github.com/nod-agents/nod/heartbeat"
)

// Env is what the commands work with.
type Env struct {
	Stdin          *os.File
	Stdout, Stderr *os.File
	Environ        []string // the environment, for what is started
	Getenv         func(string) string
	Home           string // the user's home directory
	Cwd            string // the working directory, absolute
	GOOS           string // as runtime.GOOS
	Now            func() time.Time
	Dirs           policyfile.Dirs

	// Inboxes is the agent directory in which asks are forwarded.
	Inboxes func() string
	// Session gets the asks where the environment names no parent.
	Session func() string
	// Target, if set, gets them whatever the environment says.
	Target string
	// Setting is what the user has set for an agent's hook; its zero fields
	// mean the defaults.
	Setting func(agent string) Setting
	// Ended takes back what was granted to a requester that is no more.
	Ended func(ctx context.Context, requester string)
	// Guard makes the rules that no policy overrides; nil: none.
	Guard func(home, agentDir, project string) *engine.Ruleset
	// Executable is the absolute path of this program, which install writes.
	Executable func() (string, error)
}

// Setting is what a user sets for the hook of an agent.
type Setting struct {
	Mode     Mode
	Unserved Unserved
}

// ExitError ends a command with a code of its own. If Err is nil there is
// nothing to say beyond the code.
type ExitError struct {
	Code int
	Err  error
}

// Error is the message of Err, empty if there is none.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the process's exit code.
func (e *ExitError) ExitCode() int { return e.Code }

func usage(format string, args ...any) error {
	return &ExitError{Code: 2, Err: fmt.Errorf(format, args...)}
}

// flags are those of the hook that install passes on.
type flags struct {
	mode, unserved string
	timeout        time.Duration
}

func (f *flags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.mode, "mode", "", "`MODE`: with gate Nod decides each call, with advise it denies or is silent, and asks only where the agent would (default: from the settings, else gate)")
	c.Flags().StringVar(&f.unserved, "unserved", "", "`WHAT` becomes of an ask while no Nod runs: deny, or defer to the agent's own prompt (default: from the settings, else deny)")
}

func (f *flags) check() error {
	switch Mode(f.mode) {
	case "", Gated, Advising:
	default:
		return usage("--mode %s: the modes are gate and advise", f.mode)
	}
	switch Unserved(f.unserved) {
	case "", UnservedDeny, UnservedDefer:
	default:
		return usage("--unserved %s: it is deny or defer", f.unserved)
	}
	return nil
}

func find(name string) (Adapter, error) {
	a, ok := Find(name)
	if !ok {
		return nil, usage("%q is no agent that Nod knows: they are %s", name, strings.Join(Names(), ", "))
	}
	return a, nil
}

// Commands returns the hook command.
func Commands(env Env) []*cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "hook AGENT [EVENT]",
		Short: "Gate an agent's tool calls: what the agent itself runs",
		Long: `Gate one tool call of an agent: its hook JSON on stdin, the answer in that agent's own words on
stdout. Rules decide; where they ask, the running Nod asks you, and the hook holds until you answered.

The agents are ` + strings.Join(Names(), ", ") + `.
Put the hook in place with: nod hook install AGENT`,
		Example: `  nod hook install claude-code
  echo '{"tool": "bash", "input": {"command": "ls"}}' | nod hook generic`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usage("name the agent: nod hook AGENT [EVENT], or see: nod hook --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			a, err := find(args[0])
			if err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			event := ""
			if len(args) == 2 {
				event = args[1]
			}
			return env.gate(c.Context(), a, event, f)
		},
	}
	f.add(c)
	c.Flags().DurationVar(&f.timeout, "host-timeout", 0, "how long the agent waits for its hook (`TIME`, such as 60s), if not as long as it does by default")
	c.AddCommand(installCommand(env), uninstallCommand(env), statusCommand(env))
	return []*cobra.Command{c}
}

// gate is one run of the hook.
func (env Env) gate(ctx context.Context, a Adapter, event string, f flags) error {
	if term.IsTerminal(int(env.Stdin.Fd())) {
		if _, ok := a.(installer); !ok {
			return usage("the hook JSON of %s is expected on stdin", a.Title())
		}
		return usage("the hook JSON of %s is expected on stdin; to put the hook in place: nod hook install %s", a.Title(), a.Name())
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// An agent that is gone reads no answer, so its ask must not stay with the
	// human.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go whenUnread(ctx, env.Stdout, cancel)

	h := env.Hook(a, f.setting(env.Setting(a.Name())))
	h.Timeout = f.timeout
	r := h.Run(ctx, event, env.Stdin)
	if r.Stderr != "" {
		fmt.Fprintln(env.Stderr, r.Stderr)
	}
	if _, err := env.Stdout.Write(r.Stdout); err != nil {
		return &ExitError{Code: 2, Err: fmt.Errorf("writing the answer: %w", err)}
	}
	if r.Exit != 0 {
		return &ExitError{Code: r.Exit}
	}
	return nil
}

// setting is s with what the flags say instead.
func (f *flags) setting(s Setting) Setting {
	if f.mode != "" {
		s.Mode = Mode(f.mode)
	}
	if f.unserved != "" {
		s.Unserved = Unserved(f.unserved)
	}
	if s.Mode == "" {
		s.Mode = Gated
	}
	if s.Unserved == "" {
		s.Unserved = UnservedDeny
	}
	return s
}

// Hook is the hook of a, decided by the policy files and asking the serving
// node.
func (env Env) Hook(a Adapter, s Setting) *Hook {
	return &Hook{
		Adapter: a, Gate: env.Rules(), Parent: env.Parent, Mode: s.Mode, Unserved: s.Unserved,
		Getenv: env.Getenv, Now: env.Now, Ancestors: ancestors, Ended: env.Ended, Getwd: func() (string, error) {
			if env.Cwd == "" {
				return "", errors.New("the working directory can't be found")
			}
			return env.Cwd, nil
		},
	}
}

// Rules are the rules of the policy files.
func (env Env) Rules() *Rules {
	store := trust.Open(env.Dirs.State)
	return &Rules{
		Loader: policy.NewLoader(policyfile.Disk{}, false), AgentDir: env.Dirs.Agent, ConfigDir: env.Dirs.Config, Home: env.Home, Now: env.Now, Guard: env.Guard,
		Trusted: func(project string) bool {
			ok, err := store.Trusted(project)
			if err != nil {
				fmt.Fprintln(env.Stderr, oneLine("nod: "+err.Error()))
			}
			return ok
		},
		Told: func(_ string, p *policy.Policy) {
			for i := range p.Files {
				if err := p.Files[i].Err; err != nil {
					fmt.Fprintln(env.Stderr, oneLine("nod: a policy file is broken, so what it would decide asks: "+err.Error()))
				}
			}
		},
	}
}

// Parent is the way to the serving node.
func (env Env) Parent(c *Call) engine.Terminal {
	return &forwarding.Requester{
		Child:  forwarding.Child{SessionID: c.Principal.SessionID, Env: env.Getenv, AgentDir: env.Inboxes()},
		Target: env.ParentSession(),
		// The hook remembers nothing, and its context says how long it waits.
		OneShot: true, Timeout: 24 * time.Hour,
	}
}

// ParentSession is where asks go: the parent session that the environment
// names, else the configured one.
func (env Env) ParentSession() string {
	if env.Target != "" {
		return env.Target
	}
	for _, name := range []string{forwarding.EnvRouterParent, forwarding.EnvParentSession} {
		if id, err := heartbeat.CheckSession(env.Getenv(name)); err == nil {
			return id
		}
	}
	return env.Session()
}
