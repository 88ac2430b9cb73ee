package check

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
)

func checkCommand(env Env) *cobra.Command {
	var w where
	var input string
	var grants []string
	var asJSON, many bool
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
				return usage("--batch reads its cases from stdin and takes no arguments")
			case !many && len(args) == 0:
				return usage("name the tool, as in: nod check bash 'ls -l'")
			case len(args) > 2:
				return usage("unexpected argument %q; quote the value if it has blanks", args[2])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if many {
				for _, f := range []string{"policy", "agent", "cwd", "input", "session-grant", "json"} {
					if c.Flags().Changed(f) {
						return usage("--batch takes no --%s: each case brings its own", f)
					}
				}
				return batch(env)
			}
			k, err := w.call(env, args, input, grants)
			if err != nil {
				return err
			}
			tell(env, k.Policy, k.Cwd)
			if env.Guard != nil && k.Guard == nil {
				fmt.Fprintln(env.Stderr, "nod: self-protection is off (selfProtection in settings.jsonc)")
			}
			v := decide(k)
			if asJSON {
				a := v.answer()
				if err := writeJSON(env.Stdout, single{answer: a, Rule: v.rule()}); err != nil {
					return err
				}
			} else if _, err := io.WriteString(env.Stdout, v.explain(k)); err != nil {
				return err
			}
			switch v.Action {
			case engine.Allow:
				return nil
			case engine.Deny:
				return &ExitError{Code: exitDeny}
			}
			return &ExitError{Code: exitAsk}
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if words := c.Flags().Args(); len(words) > 0 && words[0] != "" {
			// A command that was not put in quotes.
			return usage("%w; put the value in quotes, as in: nod check %s 'ls -l'", err, words[0])
		}
		return unknownFlag(c, err)
	})
	w.flags(c)
	f := c.Flags()
	f.StringVar(&input, "input", "", "the tool's whole input, as `JSON`; - reads it from stdin")
	f.StringArrayVar(&grants, "session-grant", nil, "judge as if `SURFACE=PATTERN` had been granted for the session")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	f.BoolVar(&many, "batch", false, "judge the cases on stdin, one JSON object per line")
	return c
}

// unknownFlag names the flag that was likely meant.
func unknownFlag(c *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return usage("%w; see: %s --help", err, c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near, ok := policy.Nearest(name, names); ok {
		return usage("%w; did you mean --%s?", err, near)
	}
	return usage("%w; see: %s --help", err, c.CommandPath())
}

// single is the answer of `nod check --json`: a batch answer with the deciding
// rule's place.
type single struct {
	answer
	Rule *explained `json:"rule"`
}

// MarshalJSON leaves out the id, which only a batch has.
func (s single) MarshalJSON() ([]byte, error) {
	a := s.answer
	type fields answer
	return json.Marshal(struct {
		fields
		ID   *struct{}  `json:"id,omitempty"`
		Rule *explained `json:"rule"`
	}{fields: fields(a), Rule: s.Rule})
}

func (v verdict) rule() *explained {
	if v.Decisive == nil || v.Decisive.Rule == nil {
		return nil
	}
	e := ruleLine(engine.Step{Rule: v.Decisive.Rule, Action: v.Decisive.Action, Origin: v.Decisive.Origin}, false)
	return &e
}

// call puts the arguments of `nod check` together.
func (w *where) call(env Env, args []string, input string, grants []string) (*call, error) {
	places, err := w.places(env)
	if err != nil {
		return nil, err
	}
	k := &call{Tool: args[0], Cwd: places.Project, Home: env.Home, AgentDir: places.AgentDir}
	if env.GOOS == "windows" {
		k.Flavour = pattern.Windows
	}
	k.Policy, k.Rules = policy.NewLoader(policyfile.Disk{}, false).Rules(places, engine.Options{Home: env.Home, Cwd: k.Cwd, Flavour: k.Flavour, Now: env.Now()})
	if env.Guard != nil {
		k.Guard = env.Guard(k.Home, k.AgentDir, k.Cwd)
	}
	for _, g := range grants {
		surface, pat, ok := strings.Cut(g, "=")
		if !ok || surface == "" || pattern.Check(pat) != nil {
			return nil, usage("--session-grant %q: write SURFACE=PATTERN, as in 'bash=git *'", g)
		}
		k.Grants = append(k.Grants, engine.Grant{Surface: surface, Pattern: pat})
	}
	switch {
	case input != "" && len(args) == 2:
		return nil, usage("give VALUE or --input, not both")
	case input == "-":
		data, err := io.ReadAll(io.LimitReader(env.Stdin, 64<<20))
		if err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
		k.Input = data
	case input != "":
		k.Input = json.RawMessage(input)
	default:
		value := ""
		if len(args) == 2 {
			value = args[1]
		} else if needsValue(k.Tool) {
			return nil, usage("nothing says what to judge: add VALUE or --input, as in: nod check bash 'ls -l'")
		}
		k.Input = inputFor(k, value, len(args) == 2)
	}
	if !json.Valid(k.Input) {
		return nil, usage("--input is not valid JSON")
	}
	return k, nil
}

// needsValue reports whether a call of tool without an input means nothing.
func needsValue(tool string) bool {
	switch tool {
	case engine.SurfaceBash, engine.SurfaceSkill, "read", "write", "edit":
		return true
	}
	return false
}

// inputFor is the tool input that VALUE stands for.
func inputFor(k *call, value string, given bool) json.RawMessage {
	fields := map[string]string{}
	if t, ok := k.Policy.Settings.ShellTools[k.Tool]; ok {
		fields[t.CommandArgument] = value
	} else if given {
		switch k.Tool {
		case engine.SurfaceBash:
			fields["command"] = value
		case engine.SurfaceMCP:
			switch value {
			case "mcp_status", "mcp", "":
			case "mcp_list":
				fields["server"] = "*"
			default:
				fields["tool"] = value
			}
		case engine.SurfaceSkill:
			fields["name"] = value
		default:
			fields["path"] = value
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
