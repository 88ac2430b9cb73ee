// Package hooks holds the commands around agents' hooks: hook, and below it
// install, uninstall and status.
package hooks

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/exit"
)

// Command returns the hook command.
func Command(env agents.Env) *cobra.Command {
	var f agents.Flags
	c := &cobra.Command{
		Use:   "hook AGENT [EVENT]",
		Short: "Gate an agent's tool calls: what the agent itself runs",
		Long: `Gate one tool call of an agent: its hook JSON on stdin, the answer in that agent's own words on
stdout. Rules decide; where they ask, the running Nod asks you, and the hook holds until you answered.

The agents are ` + strings.Join(agents.Names(), ", ") + `.
Put the hook in place with: nod hook install AGENT`,
		Example: `  nod hook install claude-code
  echo '{"tool": "bash", "input": {"command": "ls"}}' | nod hook generic`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return exit.Usage("name the agent: nod hook AGENT [EVENT], or see: nod hook --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			a, err := agents.FindOr(args[0])
			if err != nil {
				return err
			}
			if err := f.Check(); err != nil {
				return err
			}
			event := ""
			if len(args) == 2 {
				event = args[1]
			}
			return env.Run(c.Context(), a, event, f)
		},
	}
	passedOn(&f, c)
	c.Flags().DurationVar(&f.Timeout, "host-timeout", 0, "how long the agent waits for its hook (`TIME`, such as 60s), if not as long as it does by default")
	c.AddCommand(install(env), uninstall(env), status(env))
	return c
}

// passedOn adds the flags that install passes on to the hook.
func passedOn(f *agents.Flags, c *cobra.Command) {
	c.Flags().StringVar(&f.Mode, "mode", "", "`MODE`: with gate Nod decides each call, with advise it denies or is silent, and asks only where the agent would (default: from the settings, else gate)")
	c.Flags().StringVar(&f.Unserved, "unserved", "", "`WHAT` becomes of an ask while no Nod runs: deny, or defer to the agent's own prompt (default: from the settings, else deny)")
}

// where adds the flag that says whose settings are meant.
func where(w *agents.Where, c *cobra.Command) {
	c.Flags().BoolVar(&w.Project, "project", false, "the settings of the project in the working directory, instead of yours")
}

func install(env agents.Env) *cobra.Command {
	var w agents.Where
	var f agents.Flags
	var trusted bool
	c := &cobra.Command{
		Use:   "install AGENT",
		Short: "Put the hook into an agent's settings",
		Long: `Put the hook into an agent's settings. Everything else in the file stays as it is, comments and
order included; a copy of it is kept. Run again, it changes nothing, or brings the hook up to date.`,
		Example: "  nod hook install claude-code\n  nod hook install codex --trust\n  nod hook install gemini --project --mode advise",
		Args:    oneAgent,
		RunE: func(c *cobra.Command, args []string) error {
			return env.Install(c.Context(), args[0], w, f, trusted)
		},
	}
	where(&w, c)
	passedOn(&f, c)
	c.Flags().BoolVar(&trusted, "trust", false, "tell the agent that you trust the hook, where it asks (codex)")
	return c
}

func uninstall(env agents.Env) *cobra.Command {
	var w agents.Where
	c := &cobra.Command{
		Use:   "uninstall AGENT",
		Short: "Take the hook out of an agent's settings",
		Long: `Take the hook out of an agent's settings. If nobody changed the file since install put the hook
there, it is afterwards what it was before, byte for byte; else only the hook is taken out.`,
		Args: oneAgent,
		RunE: func(_ *cobra.Command, args []string) error { return env.Uninstall(args[0], w) },
	}
	where(&w, c)
	return c
}

func status(env agents.Env) *cobra.Command {
	var w agents.Where
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [AGENT]",
		Short: "Say which agents have the hook",
		Long:  "Say which agents have the hook in their settings, whether it is up to date, and what keeps it from being run.\n\nExit code: 0 if everything named is in place, 1 if not.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usage("name one agent, or none for all")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return env.Status(args, w, asJSON)
		},
	}
	where(&w, c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per agent")
	return c
}

func oneAgent(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usage("name one agent: %s", strings.Join(agents.Names(), ", "))
	}
	return nil
}
