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
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/ground"
)

// Process is what Nod takes from the process it runs in.
type Process = ground.Process

// Main runs the command that p names and returns the exit code.
func Main(p Process) int {
	return p.Guarded(func() int {
		n, err := locate(p)
		if err != nil {
			return exit.Report(p.Stderr, err)
		}
		root := n.root()
		root.SetArgs(p.Args)
		return exit.Report(p.Stderr, root.Execute())
	})
}

// End has the running Nod take back what was granted to a requester that is no
// more, and returns the exit code: the rest of a hook that was told of its end.
func End(p Process, agentDir, requester string) int {
	return p.Guarded(func() int {
		n, err := locate(p)
		if err != nil {
			return exit.Report(p.Stderr, err)
		}
		n.ended(context.Background(), agentDir, requester)
		return exit.Done
	})
}

// nod is what the commands share.
type nod struct{ *ground.Ground }

// locate finds the user's directories.
func locate(p Process) (*nod, error) {
	home := p.Getenv("HOME")
	if home == "" {
		u, err := user.Current()
		if err != nil {
			return nil, exit.WithHint(fmt.Errorf("finding your home directory: %w", err), "set HOME")
		}
		home = u.HomeDir
	}
	return &nod{ground.New(p, home)}, nil
}

// logger writes diagnostics for people to stderr.
func (n *nod) logger() *slog.Logger {
	level := slog.LevelWarn
	if n.Getenv("NOD_DEBUG") != "" {
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
	root.Flags().AddFlagSet(serve.Flags())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exit.WithHint(err, "see: "+c.CommandPath()+" --help")
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
				return exit.WithHint(errors.New("name the shell"), "as in: nod completion bash")
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
		var h *exit.Hinted
		if err == nil || errors.As(err, &h) {
			return err
		}
		return exit.WithHint(err, "see: "+c.CommandPath()+" --help")
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
		return exit.WithHint(err, "did you mean: "+c.CommandPath()+" "+near[0])
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
