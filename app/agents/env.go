package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/guard"
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
	// Guard says how to make the rules that no policy overrides; nil: none.
	Guard func(home, agentDir, project string) guard.Late
	// Executable is the absolute path of this program, which install writes.
	Executable func() (string, error)
}

// Setting is what a user sets for the hook of an agent.
type Setting struct {
	Mode     Mode
	Unserved Unserved
}

// Flags are what a hook's command line may set over the settings; install passes
// on the first two.
type Flags struct {
	Mode, Unserved string
	Timeout        time.Duration // how long the agent waits for its hook; 0: as long as it does by default
}

// Check reports a word that means nothing.
func (f *Flags) Check() error {
	switch Mode(f.Mode) {
	case "", Gated, Advising:
	default:
		return exit.Usage("--mode %s: the modes are gate and advise", f.Mode)
	}
	switch Unserved(f.Unserved) {
	case "", UnservedDeny, UnservedDefer:
	default:
		return exit.Usage("--unserved %s: it is deny or defer", f.Unserved)
	}
	return nil
}

// FindOr is Find, or the error of usage that names the agents.
func FindOr(name string) (Adapter, error) {
	a, ok := Find(name)
	if !ok {
		return nil, exit.Usage("%q is no agent that Nod knows: they are %s", name, strings.Join(Names(), ", "))
	}
	return a, nil
}

// Run is one run of the hook of a: the call on stdin, the answer on stdout. The
// event is what the command line names, if anything. An error ends the process
// with its code.
func (env Env) Run(ctx context.Context, a Adapter, event string, f Flags) error {
	if term.IsTerminal(int(env.Stdin.Fd())) {
		if _, ok := a.(installer); !ok {
			return exit.Usage("the hook JSON of %s is expected on stdin", a.Title())
		}
		return exit.Usage("the hook JSON of %s is expected on stdin; to put the hook in place: nod hook install %s", a.Title(), a.Name())
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	h := env.Hook(a, f.setting(env.Setting(a.Name())))
	h.Timeout = f.Timeout
	// While it waits it can be told to end; before, it is done sooner than it
	// could set that up.
	h.Waiting = sync.OnceFunc(func() {
		told, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		context.AfterFunc(told, func() { cancel(); stop() })
		// An agent that is gone reads no answer, so its ask must not stay with
		// the human.
		go whenUnread(ctx, env.Stdout, cancel)
	})
	r := h.Run(ctx, event, env.Stdin)
	if r.Stderr != "" {
		fmt.Fprintln(env.Stderr, r.Stderr)
	}
	if _, err := env.Stdout.Write(r.Stdout); err != nil {
		return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("writing the answer: %w", err)}
	}
	if r.Exit != 0 {
		return &exit.Error{Code: r.Exit}
	}
	return nil
}

// setting is s with what the flags say instead.
func (f *Flags) setting(s Setting) Setting {
	if f.Mode != "" {
		s.Mode = Mode(f.Mode)
	}
	if f.Unserved != "" {
		s.Unserved = Unserved(f.Unserved)
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
