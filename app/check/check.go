// Package check holds the commands that judge a tool call without asking
// anybody, and those that look after policy files: check, policy, trust and
// untrust.
package check

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/trust"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
)

// Env is what the commands work with.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Home           string // the user's home directory
	Cwd            string // the working directory, absolute
	GOOS           string // as runtime.GOOS
	Now            func() time.Time
	// Guard makes the rules that no policy overrides; nil: none.
	Guard func(home, agentDir, project string) *engine.Ruleset
}

// Exit codes of the commands.
const (
	exitDeny  = 1
	exitUsage = 2
	exitAsk   = 3
)

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
	return &ExitError{Code: exitUsage, Err: fmt.Errorf(format, args...)}
}

// Commands returns check, policy, trust and untrust.
func Commands(env Env) []*cobra.Command {
	return []*cobra.Command{checkCommand(env), policyCommand(env), trustCommand(env), untrustCommand(env)}
}

// where are the flags that say whose policy is meant.
type where struct {
	policy, agent, cwd string
}

func (w *where) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.policy, "policy", "", "use this `FILE` instead of the global policy files")
	f.StringVar(&w.agent, "agent", "", "judge as the agent of this `NAME`")
	f.StringVar(&w.cwd, "cwd", "", "the project's directory `DIR` (default: the working directory)")
}

// places resolves the flags. An unreadable trust store leaves the project
// untrusted and is told on stderr.
func (w *where) places(env Env) (policy.Places, error) {
	dirs := policyfile.DirsFrom(env.Getenv, env.Home, env.GOOS)
	p := policy.Places{AgentDir: dirs.Agent, ConfigDir: dirs.Config, Agent: w.agent, Home: env.Home, Project: env.Cwd}
	if w.cwd != "" {
		p.Project = absolute(env.Cwd, w.cwd)
		if !isDir(p.Project) {
			return p, usage("--cwd %s: not a directory", w.cwd)
		}
	}
	if w.policy != "" {
		p.Global = absolute(env.Cwd, w.policy)
		if _, err := os.Stat(p.Global); errors.Is(err, fs.ErrNotExist) {
			return p, usage("--policy %s: there is no such file", w.policy)
		}
	}
	trusted, err := trust.Open(dirs.State).Trusted(p.Project)
	if err != nil {
		fmt.Fprintln(env.Stderr, "nod:", err)
	}
	p.Trusted = trusted
	return p, nil
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// tell prints what is wrong in policy files, once per file, and that an
// untrusted project was not read.
func tell(env Env, p *policy.Policy, project string) {
	for i := range p.Files {
		f := &p.Files[i]
		if f.Err == nil {
			continue
		}
		fmt.Fprintln(env.Stderr, f.Err)
		what := "every allow asks until this is mended"
		if f.Origin == engine.OriginGlobal {
			what = "everything asks that no other file decides"
		}
		fmt.Fprintf(env.Stderr, "nod: %s is broken: %s\n", f.Name, what)
	}
	if p.Untrusted {
		fmt.Fprintf(env.Stderr, "nod: %s has policy files of its own; they count after `nod trust %s`\n", project, project)
	}
}
