package check

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/judge"
	"github.com/nod-agents/nod/engine/policy"
)

func checkCommand(env Env) *cobra.Command {
	var k judge.Check
	var many bool
	c := &cobra.Command{
		Use:   "check TOOL [VALUE]",
		Short: "Judge a tool call by the rules, ask nobody, and explain",
		Long: `Judge one tool call by the policy files as an agent's gate would, without asking anybody, and
explain which gate decided, by which rule, from which file.

VALUE is the command for bash, the path for a path tool, the target for mcp and the name for skill.
For other tools give the whole input with --input, as JSON.

Exit code: 0 allowed, 1 denied, 3 ask, 2 usage or configuration error.`,
		Example: `  nod check bash 'git push origin main'
  nod check read ~/.ssh/id_ed25519
  nod check --agent scout mcp exa:search
  nod check --input '{"path": "src/a.go", "content": ""}' write
  nod check --session-grant 'bash=git *' bash 'git fetch'`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case many && len(args) > 0:
				return exit.Usage("--batch reads its cases from stdin and takes no arguments")
			case !many && len(args) == 0:
				return exit.Usage("name the tool, as in: nod check bash 'ls -l'")
			case len(args) > 2:
				return exit.Usage("unexpected argument %q; quote the value if it has blanks", args[2])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if many {
				for _, f := range []string{"policy", "agent", "cwd", "input", "session-grant", "json"} {
					if c.Flags().Changed(f) {
						return exit.Usage("--batch takes no --%s: each case brings its own", f)
					}
				}
				return env.Batch()
			}
			return k.Run(env, args)
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if words := c.Flags().Args(); len(words) > 0 && words[0] != "" {
			// A command that was not put in quotes.
			return exit.Usage("%w; put the value in quotes, as in: nod check %s 'ls -l'", err, words[0])
		}
		return unknownFlag(c, err)
	})
	where(&k.Where, c)
	f := c.Flags()
	f.StringVar(&k.Input, "input", "", "the tool's whole input, as `JSON`; - reads it from stdin")
	f.StringArrayVar(&k.Grants, "session-grant", nil, "judge as if `SURFACE=PATTERN` had been granted for the session")
	f.BoolVar(&k.JSON, "json", false, "print one JSON object")
	f.BoolVar(&many, "batch", false, "judge the cases on stdin, one JSON object per line")
	return c
}

// unknownFlag names the flag that was likely meant.
func unknownFlag(c *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return exit.Usage("%w; see: %s --help", err, c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near, ok := policy.Nearest(name, names); ok {
		return exit.Usage("%w; did you mean --%s?", err, near)
	}
	return exit.Usage("%w; see: %s --help", err, c.CommandPath())
}
