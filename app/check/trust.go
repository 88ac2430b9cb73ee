package check

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/judge"
	"github.com/nod-agents/nod/app/trust"
)

func trustCommand(env Env) *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a project bring rules of its own",
		Long: `Let the policy files of a project count: .pi/extensions/pi-permission-system/config.json,
.nod/policy.jsonc and .pi/agents in DIR (default: the working directory).

Such files can allow what your own rules ask about, so read them first.`,
		Example: "  nod trust\n  nod trust ~/src/app\n  nod trust --list",
		Args:    atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store := trust.Open(env.Dirs.State)
			if list {
				if len(args) > 0 {
					return exit.Usage("--list takes no directory")
				}
				projects, err := store.List()
				if err != nil {
					return &exit.Error{Code: exit.Misused, Err: err}
				}
				for _, p := range projects {
					fmt.Fprintln(env.Stdout, p.Path)
				}
				return nil
			}
			path, added, err := store.Add(directory(env, args), env.Now())
			if err != nil {
				return &exit.Error{Code: exit.Misused, Err: err}
			}
			if added {
				fmt.Fprintln(env.Stdout, "trusted", path)
			} else {
				fmt.Fprintln(env.Stdout, "already trusted", path)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&list, "list", false, "list the trusted projects")
	return c
}

func untrustCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use:     "untrust [DIR]",
		Short:   "Stop a project's own rules from counting",
		Example: "  nod untrust",
		Args:    atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store := trust.Open(env.Dirs.State)
			path, removed, err := store.Remove(directory(env, args))
			if err != nil {
				return &exit.Error{Code: exit.Misused, Err: err}
			}
			if removed {
				fmt.Fprintln(env.Stdout, "no longer trusted", path)
			} else {
				fmt.Fprintln(env.Stdout, "was not trusted", path)
			}
			return nil
		},
	}
}

func directory(env Env, args []string) string {
	if len(args) == 0 {
		return env.Cwd
	}
	return judge.Absolute(env.Cwd, args[0])
}

// atMost refuses further arguments with exit code 2.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return exit.Usage("unexpected argument %q", args[n])
		}
		return nil
	}
}
