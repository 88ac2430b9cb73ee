// Package ground is what every command of Nod stands on: the process it runs in,
// the user's directories, their settings, and the rooms put together from those.
// What decides about tool calls starts from here, so it links nothing that only
// other commands need.
package ground

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/guard"
	"github.com/nod-agents/nod/app/judge"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/settings"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
)

// Process is what Nod takes from the process it runs in.
type Process struct {
	Args    []string // without the program's name
	Stdin   *os.File
	Stdout  *os.File
	Stderr  *os.File
	Environ []string
}

// Getenv reads p's environment; the last setting of a name counts.
func (p *Process) Getenv(name string) string {
	for i := len(p.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(p.Environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Guarded runs a command and returns its exit code, which for one that panics is
// exit.Internal.
func (p *Process) Guarded(command func() int) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(p.Stderr, "nod: internal error: %v\n", r)
			if p.Getenv("NOD_DEBUG") != "" {
				panic(r)
			}
			code = exit.Internal
		}
	}()
	return command()
}

// Ground is a process in the home of its user.
type Ground struct {
	Process
	Home string
	Dirs policyfile.Dirs

	settings func() (settings.Settings, error) // Settings, read once
}

// New is p with its user's directories, which are found from home.
func New(p Process, home string) *Ground {
	g := &Ground{Process: p, Home: home, Dirs: policyfile.DirsFrom(p.Getenv, home, runtime.GOOS)}
	g.settings = sync.OnceValues(g.Settings)
	return g
}

// Settings reads the user's settings.
func (g *Ground) Settings() (settings.Settings, error) {
	path := settings.Path(g.Dirs.Config)
	set, err := settings.Read(path, settings.Place{Home: g.Home, AgentDir: g.Dirs.Agent})
	if err != nil {
		return set, err
	}
	for _, name := range slices.Sorted(maps.Keys(set.Hooks)) {
		if _, known := agents.Find(name); !known && name != "*" {
			return set, fmt.Errorf("%s: hooks: %q is no agent that Nod knows: they are *, %s", path, name, strings.Join(agents.Names(), ", "))
		}
	}
	return set, nil
}

// Guarding is what Nod protects for an agent at work in project, and the files
// on which that depends. agentDir is the one that policy is read from; it is
// empty for the user's.
func (g *Ground) Guarding(set *settings.Settings, agentDir, project string) (p guard.Places, looked []string) {
	p = guard.Places{Home: g.Home, Project: project, AgentDirs: append([]string{g.Dirs.Agent, agentDir}, set.AgentDirs...),
		Config: g.Dirs.Config, State: g.Dirs.State, Runtime: g.Getenv("XDG_RUNTIME_DIR"), Links: filepath.EvalSymlinks}
	if runtime.GOOS == "windows" {
		p.Flavour = pattern.Windows
	}
	p.Program, _ = os.Executable() // empty if it can't be found
	p.Hooks, looked = agents.Env{Home: g.Home, Getenv: g.Getenv, Dirs: g.Dirs}.HookFiles(project)
	return p, looked
}

// guard says how to make the rules by which Nod protects itself, for commands
// that judge a few calls, one after the other. Broken settings switch nothing
// off.
func (g *Ground) guard() func(home, agentDir, project string) guard.Late {
	type place struct{ home, agentDir, project string }
	var last place
	var rules *engine.Ruleset
	return func(home, agentDir, project string) guard.Late {
		s, err := g.settings()
		if err != nil {
			s = settings.Settings{}
		}
		if !s.SelfProtects() {
			return nil
		}
		return func() *engine.Ruleset {
			if at := (place{home, agentDir, project}); rules == nil || at != last {
				p, _ := g.Guarding(&s, agentDir, project)
				p.Home = home
				last, rules = at, guard.Rules(p)
			}
			return rules
		}
	}
}

// Judge is what the commands need that judge without asking anybody.
func (g *Ground) Judge() judge.Env {
	cwd, _ := os.Getwd() // empty: the commands that need it say so
	return judge.Env{
		Stdin: g.Stdin, Stdout: g.Stdout, Stderr: g.Stderr, Dirs: g.Dirs,
		Home: g.Home, Cwd: cwd, GOOS: runtime.GOOS, Now: time.Now,
		Guard: g.guard(),
	}
}

// Agents is what asking needs. ended is told of a requester that is no more, and
// of the agent directory in which it asked; nil: nobody is. The settings are read
// when they are needed, so that no other command does. Broken ones must not keep
// a hook from deciding: it goes by the defaults, which are the strict ones, and
// says so.
func (g *Ground) Agents(ended func(ctx context.Context, agentDir, requester string)) agents.Env {
	cwd, _ := os.Getwd() // empty: who needs it says so
	set := sync.OnceValue(func() *settings.Settings {
		s, err := g.settings()
		if err != nil {
			fmt.Fprintf(g.Stderr, "nod: %v\n", err)
			s = settings.Settings{Session: "desktop", AgentDirs: []string{g.Dirs.Agent}}
		}
		return &s
	})
	inboxes := func() string {
		if g.Getenv("PI_CODING_AGENT_DIR") != "" {
			return g.Dirs.Agent
		}
		return set().AgentDirs[0]
	}
	env := agents.Env{
		Stdin: g.Stdin, Stdout: g.Stdout, Stderr: g.Stderr, Environ: g.Environ, Getenv: g.Getenv,
		Home: g.Home, Cwd: cwd, GOOS: runtime.GOOS, Now: time.Now, Dirs: g.Dirs,
		Inboxes: inboxes,
		Session: func() string { return set().Session },
		Setting: func(agent string) agents.Setting {
			h := set().Hook(agent)
			return agents.Setting{Mode: agents.Mode(h.Mode), Unserved: agents.Unserved(h.Unserved)}
		},
		Guard: g.guard(),
		Executable: func() (string, error) {
			path, err := os.Executable()
			if err != nil {
				return "", err
			}
			return filepath.Abs(path)
		},
	}
	if ended != nil {
		env.Ended = func(ctx context.Context, requester string) { ended(ctx, inboxes(), requester) }
	}
	return env
}
