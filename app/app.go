// Package app is where Nod is put together: its commands, its settings and
// the wiring of its rooms. No Fyne here.
//
// # Output
//
// Results go to stdout, diagnostics to stderr, one clear line each, with what
// to do about it. With --json a result is one JSON object, or one per line.
// Text that came from an agent is made visible before a terminal gets it.
//
// # Exit codes
//
// 0 done or allowed, 1 denied, 2 usage or configuration error, 3 ask (check
// only), 4 approval unavailable, 70 internal error.
package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/settings"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitDenied      = 1
	exitUsage       = 2
	exitAsk         = 3
	exitUnavailable = 4
	exitInternal    = 70
)

// Process is what Nod takes from the process it runs in.
type Process struct {
	Args    []string // without the program's name
	Stdin   *os.File
	Stdout  *os.File
	Stderr  *os.File
	Environ []string
}

// getenv reads p's environment; the last setting of a name counts.
func (p *Process) getenv(name string) string {
	for i := len(p.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(p.Environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// exitError ends the program with its code. A nil err has been reported.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// hinted is an error with what to do about it.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

func withHint(err error, hint string) error { return &hinted{err, hint} }

// Main runs the command that p names and returns the exit code.
func Main(p Process) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(p.Stderr, "nod: internal error: %v\n", r)
			if p.getenv("NOD_DEBUG") != "" {
				panic(r)
			}
			code = exitInternal
		}
	}()
	n := &nod{Process: p}
	if err := n.locate(); err != nil {
		fmt.Fprintf(p.Stderr, "nod: %v\n", err)
		return exitUsage
	}
	root := n.root()
	root.SetArgs(p.Args)
	return n.report(root.Execute())
}

// report prints err and says which code ends the program.
func (n *nod) report(err error) int {
	if err == nil {
		return exitDone
	}
	var exit *exitError
	var coded interface{ ExitCode() int }
	code := exitUsage
	switch {
	case errors.As(err, &exit):
		if code = exit.code; exit.err == nil {
			return code
		}
	case errors.As(err, &coded):
		if code = coded.ExitCode(); err.Error() == "" {
			return code
		}
	}
	fmt.Fprintf(n.Stderr, "nod: %v\n", err)
	var h *hinted
	if errors.As(err, &h) {
		fmt.Fprintf(n.Stderr, "nod: hint: %s\n", h.hint)
	}
	return code
}

// nod is what the commands share.
type nod struct {
	Process
	home string
	dirs policyfile.Dirs
}

// locate finds the user's directories.
func (n *nod) locate() error {
	n.home = n.getenv("HOME")
	if n.home == "" {
		u, err := user.Current()
		if err != nil {
			return withHint(fmt.Errorf("finding your home directory: %w", err), "set HOME")
		}
		n.home = u.HomeDir
	}
	n.dirs = policyfile.DirsFrom(n.getenv, n.home, runtime.GOOS)
	return nil
}

// settings reads the user's settings.
func (n *nod) settings() (settings.Settings, error) {
	path := settings.Path(n.dirs.Config)
	set, err := settings.Read(path, settings.Place{Home: n.home, AgentDir: n.dirs.Agent})
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

// logger writes diagnostics for people to stderr.
func (n *nod) logger() *slog.Logger {
	level := slog.LevelWarn
	if n.getenv("NOD_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(n.Stderr, &slog.HandlerOptions{Level: level}))
}

func (n *nod) root() *cobra.Command {
	serve := n.serveCommand()
	root := &cobra.Command{
		Use:   "nod",
		Short: "Nod answers the permission asks of AI coding agents",
		Long: `Nod answers the permission asks of AI coding agents.

Without a command it serves: it sits in the tray (or in this terminal, where
there is no display), decides by your rules, and asks you about the rest.`,
		Args:          noArgs,
		RunE:          serve.RunE,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(n.Stdin)
	root.SetOut(n.Stdout)
	root.SetErr(n.Stderr)
	root.SetVersionTemplate("nod {{.Version}}\n")
	root.Flags().AddFlagSet(serve.Flags())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return withHint(err, "see: "+c.CommandPath()+" --help")
	})
	root.AddCommand(serve, n.statusCommand(), n.grantsCommand(), n.logCommand(), n.doctorCommand(), n.demoCommand())
	root.AddCommand(n.checkCommands()...)
	root.AddCommand(n.windowCommands()...)
	root.AddCommand(n.hookCommands()...)
	root.AddCommand(n.askCommand(), n.runCommand(), n.envCommand())
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Print a script that completes Nod's commands in your shell"
			c.RunE = func(*cobra.Command, []string) error {
				return withHint(errors.New("name the shell"), "as in: nod completion bash")
			}
		}
	}
	strict(root)
	return root
}

// strict has c and all commands below it refuse arguments that they do not
// take, and say where it is told what they do take.
func strict(c *cobra.Command) {
	if c.Args == nil {
		c.Args = noArgs
	}
	takes := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		err := takes(c, args)
		var h *hinted
		if err == nil || errors.As(err, &h) {
			return err
		}
		return withHint(err, "see: "+c.CommandPath()+" --help")
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// noArgs is for a command that takes none, or only the names of commands below
// it.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasAvailableSubCommands() {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	err := fmt.Errorf("unknown command %q", args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return withHint(err, "did you mean: "+c.CommandPath()+" "+near[0])
	}
	return err
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Tell about a command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return about.ValidateArgs(rest)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// printJSON writes v as one line.
func printJSON(w io.Writer, v any) error {
	return newEncoder(w).Encode(v)
}
