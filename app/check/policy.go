package check

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/disk"
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/judge"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/assets"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
)

func policyCommand(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Check, explain and find policy files",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			if near, ok := policy.Nearest(args[0], names); ok {
				return exit.Usage("unknown command %q for %q; did you mean %q?", args[0], c.CommandPath(), near)
			}
			return exit.Usage("unknown command %q for %q; there are check, explain, schema and paths", args[0], c.CommandPath())
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return exit.Usage("say what to do: check, explain, schema or paths")
		},
	}
	c.AddCommand(policyCheck(env), policyExplain(env), policySchema(env), policyPaths(env))
	return c
}

// finding is one line of `policy check --json`.
type finding struct {
	Level   string `json:"level"` // error or warning
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Key     string `json:"key"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

func policyCheck(env Env) *cobra.Command {
	var w judge.Where
	var asJSON, peer bool
	c := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Say what is wrong or doubtful in the policy files",
		Long: `Read the policy files and tell every error with its file, line, column, key and remedy,
then what is valid but likely not meant: rules that never count, a permissive default that covers
every shell command, allow rules wider than they look, and examples that another rule decides.

With FILEs, only those are read. Exit code: 0 without errors, 2 with.`,
		Example: "  nod policy check\n  nod policy check .nod/policy.jsonc",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			p, opt, err := load(env, &w, args, peer)
			if err != nil {
				return err
			}
			found := findings(p, opt)
			bad := false
			for _, f := range found {
				bad = bad || f.Level == "error"
				if asJSON {
					judge.WriteJSON(env.Stdout, f)
					continue
				}
				e := policy.Error{Pos: engine.Position{File: f.File, Line: f.Line, Column: f.Column}, Key: f.Key, Problem: f.Problem, Remedy: f.Remedy}
				if f.Line == 0 {
					e.Pos = engine.Position{}
				}
				fmt.Fprintf(env.Stdout, "%s: %s\n", f.Level, visible.Line(e.Error(), 0))
			}
			if p.Untrusted {
				fmt.Fprintln(env.Stderr, "nod: the project's own policy files were not read: it is not trusted")
			}
			if bad {
				return &exit.Error{Code: exit.Misused}
			}
			if !asJSON && len(found) == 0 {
				fmt.Fprintln(env.Stdout, "nothing wrong in", countFiles(p))
			}
			return nil
		},
	}
	c.SetFlagErrorFunc(unknownFlag)
	where(&w, c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per finding")
	c.Flags().BoolVar(&peer, "peer", false, "hold FILEs to what the agent's own permission package understands")
	return c
}

func countFiles(p *policy.Policy) string {
	n := 0
	for i := range p.Files {
		if p.Files[i].Exists {
			n++
		}
	}
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// load reads the policy of w, or only the given files.
func load(env Env, w *judge.Where, files []string, peer bool) (*policy.Policy, engine.Options, error) {
	opt := engine.Options{Home: env.Home, Cwd: env.Cwd, Now: env.Now()}
	if env.GOOS == "windows" {
		opt.Flavour = pattern.Windows
	}
	places, err := w.Places(env)
	if err != nil {
		return nil, opt, err
	}
	opt.Cwd = places.Project
	if len(files) == 0 {
		return policy.NewLoader(policyfile.Disk{}, false).Load(places), opt, nil
	}
	out := &policy.Policy{}
	for _, name := range files {
		name = judge.Absolute(env.Cwd, name)
		data, err := (policyfile.Disk{}).Read(name)
		if err != nil {
			return nil, opt, &exit.Error{Code: exit.Misused, Err: fmt.Errorf("reading %s: %w", name, err)}
		}
		dialect := policy.Nod
		if peer || strings.HasSuffix(name, "config.json") {
			dialect = policy.Peer
		}
		layer, _, warnings, err := policy.Parse(name, data, dialect, env.Home)
		out.Layers = append(out.Layers, layer)
		out.Files = append(out.Files, policy.Status{Name: name, Origin: engine.OriginGlobal, Exists: true, Err: err, Warnings: warnings})
	}
	return out, opt, nil
}

func findings(p *policy.Policy, opt engine.Options) []finding {
	var out []finding
	add := func(level string, e *policy.Error) {
		out = append(out, finding{Level: level, File: e.Pos.File, Line: e.Pos.Line, Column: e.Pos.Column, Key: e.Key, Problem: e.Problem, Remedy: e.Remedy})
	}
	for i := range p.Files {
		f := &p.Files[i]
		switch err := f.Err.(type) {
		case nil:
		case policy.Errors:
			for _, e := range err {
				add("error", e)
			}
		default:
			out = append(out, finding{Level: "error", File: f.Name, Problem: err.Error()})
		}
	}
	for _, e := range p.Lint(opt) {
		add("warning", e)
	}
	return out
}

func policyExplain(env Env) *cobra.Command {
	var w judge.Where
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain SURFACE [VALUE]",
		Short: "List the merged rules of a surface, and which of them VALUE meets",
		Long: `List every rule that applies to SURFACE (bash, path, read, mcp, a tool's name, …) in the order
they count, merged from all policy files: the last match wins. With VALUE, only the rules that match it,
the deciding one marked: a path is looked up in all its forms, links followed, and an MCP target by all
its names. What stands under "*" is no rule for path, path_read and path_write, so it is left out there.

This looks at the rules of one surface; nod check judges a whole tool call.`,
		Example: "  nod policy explain bash\n  nod policy explain bash 'git push'\n  nod policy explain path_read ~/.ssh/id_rsa",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return exit.Usage("explain takes a surface and at most one value")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			p, opt, err := load(env, &w, nil, false)
			if err != nil {
				return err
			}
			env.Tell(p, opt.Cwd)
			g := gate.Gate{Rules: p.Ruleset(opt), Files: disk.Files{}, Home: env.Home, Cwd: opt.Cwd, Flavour: opt.Flavour}
			var steps []engine.Step
			if len(args) == 1 {
				steps = g.Applying(args[0])
			} else {
				steps = g.Explain(args[0], args[1])
			}
			for _, s := range steps {
				if asJSON {
					judge.WriteJSON(env.Stdout, judge.RuleLine(s, len(args) == 2))
				} else {
					fmt.Fprintln(env.Stdout, judge.Describe(s, len(args) == 2, env.Home))
				}
			}
			if !asJSON && !slices.ContainsFunc(steps, func(s engine.Step) bool { return s.Wins }) && (len(args) == 2 || len(steps) == 0) {
				fmt.Fprintln(env.Stdout, otherwise(args[0]))
			}
			return nil
		},
	}
	c.SetFlagErrorFunc(unknownFlag)
	where(&w, c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per rule")
	return c
}

// otherwise says what becomes of a value that no rule matches.
func otherwise(surface string) string {
	switch surface {
	case engine.SurfacePath, engine.SurfacePathRead, engine.SurfacePathWrite:
		return "no rule matches: " + surface + " decides nothing, what the other surfaces say counts"
	}
	return "no rule matches: ask, the built-in default"
}

func policySchema(env Env) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of policy files",
		Example: "  nod policy schema > policy.schema.json",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if out != "" {
				if err := os.WriteFile(judge.Absolute(env.Cwd, out), assets.PolicySchema(), 0o644); err != nil {
					return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("writing the schema: %w", err)}
				}
				return nil
			}
			_, err := env.Stdout.Write(assets.PolicySchema())
			return err
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "write to this `FILE`")
	return c
}

func policyPaths(env Env) *cobra.Command {
	var w judge.Where
	var asJSON bool
	c := &cobra.Command{
		Use:   "paths",
		Short: "List the policy files, lowest scope first, and what became of each",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			p, _, err := load(env, &w, nil, false)
			if err != nil {
				return err
			}
			places, err := w.Places(env)
			if err != nil {
				return err
			}
			rows := make([]pathRow, 0, len(p.Files)+3)
			for i := range p.Files {
				f := &p.Files[i]
				row := pathRow{Scope: string(f.Origin), File: f.Name, State: "read"}
				switch {
				case f.Err != nil:
					row.State = "broken"
				case !f.Exists:
					row.State = "absent"
				}
				rows = append(rows, row)
			}
			if !places.Trusted {
				places.Trusted = true
				all := policy.NewLoader(policyfile.Disk{}, false).Load(places)
				for i := range all.Files {
					f := &all.Files[i]
					if f.Origin != engine.OriginProject && f.Origin != engine.OriginProjectAgent {
						continue
					}
					row := pathRow{Scope: string(f.Origin), File: f.Name, State: "absent"}
					if f.Exists {
						row.State = "untrusted"
					}
					rows = append(rows, row)
				}
			}
			for _, r := range rows {
				if asJSON {
					judge.WriteJSON(env.Stdout, r)
				} else {
					fmt.Fprintf(env.Stdout, "%-13s  %-9s  %s\n", r.Scope, r.State, r.File)
				}
			}
			return nil
		},
	}
	c.SetFlagErrorFunc(unknownFlag)
	where(&w, c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per file")
	return c
}

// pathRow is one line of `policy paths --json`.
type pathRow struct {
	Scope string `json:"scope"`
	File  string `json:"file"`
	State string `json:"state"` // read, absent, broken or untrusted
}
