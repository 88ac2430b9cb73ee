// Package judge judges a tool call by the policy files without asking anybody,
// and explains: what nod check does once its arguments are read. What is linked
// in here starts before every decision, so no room above it is.
package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/guard"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/trust"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
)

// Env is what the commands work with.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Dirs           policyfile.Dirs
	Home           string // the user's home directory
	Cwd            string // the working directory, absolute
	GOOS           string // as runtime.GOOS
	Now            func() time.Time
	// Guard says how to make the rules that no policy overrides; nil: none.
	Guard func(home, agentDir, project string) guard.Late
}

// Where says whose policy is meant.
type Where struct {
	Policy string // a file instead of the global ones; empty: those
	Agent  string // judge as the agent of this name
	Cwd    string // the project's directory; empty: the working directory
}

// Places resolves them. An unreadable trust store leaves the project
// untrusted and is told on stderr.
func (w *Where) Places(env Env) (policy.Places, error) {
	p := policy.Places{AgentDir: env.Dirs.Agent, ConfigDir: env.Dirs.Config, Agent: w.Agent, Home: env.Home, Project: env.Cwd}
	if w.Cwd != "" {
		p.Project = Absolute(env.Cwd, w.Cwd)
		if !isDir(p.Project) {
			return p, exit.Usage("--cwd %s: not a directory", w.Cwd)
		}
	}
	if w.Policy != "" {
		p.Global = Absolute(env.Cwd, w.Policy)
		if _, err := os.Stat(p.Global); errors.Is(err, fs.ErrNotExist) {
			return p, exit.Usage("--policy %s: there is no such file", w.Policy)
		}
	}
	trusted, err := trust.Open(env.Dirs.State).Trusted(p.Project)
	if err != nil {
		fmt.Fprintln(env.Stderr, "nod:", err)
	}
	p.Trusted = trusted
	return p, nil
}

// Check is one call of nod check.
type Check struct {
	Where
	Input  string   // the tool's whole input; - reads it from stdin; empty: the value says it
	Grants []string // as if granted for the session: SURFACE=PATTERN
	JSON   bool     // print one JSON object
}

// Run judges the call of args, a tool and perhaps a value. A decision other than
// allow is an error of its code.
func (c *Check) Run(env Env, args []string) error {
	k, err := c.call(env, args)
	if err != nil {
		return err
	}
	env.Tell(k.Policy, k.Cwd)
	if env.Guard != nil && k.Guard == nil {
		fmt.Fprintln(env.Stderr, "nod: self-protection is off (selfProtection in settings.jsonc)")
	}
	v := decide(k)
	if c.JSON {
		if err := WriteJSON(env.Stdout, single{answer: v.answer(), Rule: v.rule()}); err != nil {
			return err
		}
	} else if _, err := io.WriteString(env.Stdout, v.explain(k)); err != nil {
		return err
	}
	switch v.Action {
	case engine.Allow:
		return nil
	case engine.Deny:
		return &exit.Error{Code: exit.Denied}
	}
	return &exit.Error{Code: exit.Asks}
}

// call puts the arguments of `nod check` together.
func (c *Check) call(env Env, args []string) (*call, error) {
	places, err := c.Places(env)
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
	for _, g := range c.Grants {
		surface, pat, ok := strings.Cut(g, "=")
		if !ok || surface == "" || pattern.Check(pat) != nil {
			return nil, exit.Usage("--session-grant %q: write SURFACE=PATTERN, as in 'bash=git *'", g)
		}
		k.Grants = append(k.Grants, engine.Grant{Surface: surface, Pattern: pat})
	}
	data := []byte(c.Input)
	switch {
	case c.Input != "" && len(args) == 2:
		return nil, exit.Usage("give VALUE or --input, not both")
	case c.Input == "-":
		if data, err = io.ReadAll(io.LimitReader(env.Stdin, 64<<20)); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
	case c.Input == "" && len(args) < 2:
		if needsValue(k.Tool) {
			return nil, exit.Usage("nothing says what to judge: add VALUE or --input, as in: nod check bash 'ls -l'")
		}
		k.Input = inputFor(k, "", false)
		return k, nil
	case c.Input == "":
		k.Input = inputFor(k, args[1], true)
		return k, nil
	}
	if !json.Valid(data) {
		return nil, exit.Usage("--input is not valid JSON")
	}
	k.Input = parsed(data)
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
func inputFor(k *call, value string, given bool) map[string]any {
	fields := map[string]any{}
	value = string([]rune(value)) // as JSON would carry it: in UTF-8
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
	return fields
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Absolute is path, taken to be below base where it is relative.
func Absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// Tell prints what is wrong in policy files, once per file, and that an
// untrusted project was not read.
func (env Env) Tell(p *policy.Policy, project string) {
	for i := range p.Files {
		f := &p.Files[i]
		if f.Err == nil {
			continue
		}
		fmt.Fprintln(env.Stderr, f.Err)
		what := "every allow asks until this is mended"
		if f.Origin == engine.OriginGlobal {
			what = "everything asks that is not denied, or decided by a project's or an agent's file"
		}
		fmt.Fprintf(env.Stderr, "nod: %s is broken: %s\n", f.Name, what)
	}
	if p.Untrusted {
		fmt.Fprintf(env.Stderr, "nod: %s has policy files of its own; they count after `nod trust %s`\n", project, project)
	}
}

// single is the answer of `nod check --json`: a batch answer with the deciding
// rule's place.
type single struct {
	answer
	Rule *Explained `json:"rule"`
}

// MarshalJSON leaves out the id, which only a batch has.
func (s single) MarshalJSON() ([]byte, error) {
	a := s.answer
	type fields answer
	return json.Marshal(struct {
		fields
		ID   *struct{}  `json:"id,omitempty"`
		Rule *Explained `json:"rule"`
	}{fields: fields(a), Rule: s.Rule})
}

func (v verdict) rule() *Explained {
	if v.Decisive == nil || v.Decisive.Rule == nil {
		return nil
	}
	e := RuleLine(engine.Step{Rule: v.Decisive.Rule, Action: v.Decisive.Action, Origin: v.Decisive.Origin}, false)
	return &e
}

// Explained is one line of `policy explain --json` and of a check's matches.
type Explained struct {
	Surface   string  `json:"surface"`
	Pattern   string  `json:"pattern"`
	Action    string  `json:"action"`
	Origin    string  `json:"origin"`
	File      string  `json:"file"`
	Line      int     `json:"line"`
	Reason    *string `json:"reason"`
	Universal bool    `json:"universal"`
	Decides   *bool   `json:"decides,omitempty"`
}

// RuleLine is a step as scripts read it, with whether it decides if matched.
func RuleLine(s engine.Step, matched bool) Explained {
	e := Explained{
		Surface: s.Rule.Surface, Pattern: s.Rule.Pattern, Action: s.Action.String(), Origin: string(s.Origin),
		File: s.Rule.Pos.File, Line: s.Rule.Pos.Line, Universal: s.Universal,
	}
	if s.Rule.Reason != "" {
		e.Reason = &s.Rule.Reason
	}
	if matched {
		e.Decides = &s.Wins
	}
	return e
}

// Describe is a step as people read it, marked if matched and it decides.
func Describe(s engine.Step, matched bool, home string) string {
	var b strings.Builder
	if matched {
		b.WriteString(map[bool]string{true: "→ ", false: "  "}[s.Wins])
	}
	fmt.Fprintf(&b, "%-5s  %s", s.Action, visible.Line(s.Rule.Pattern, 0))
	if s.Rule.Surface != "" {
		fmt.Fprintf(&b, "  on %s", visible.Line(s.Rule.Surface, 0))
	}
	if s.Action != s.Rule.Action {
		fmt.Fprintf(&b, "  (written as %s; a policy file is broken)", s.Rule.Action)
	}
	b.WriteString("  ")
	b.WriteString(ruleAt(s.Rule, home))
	if s.Rule.Reason != "" {
		fmt.Fprintf(&b, "  %q", visible.Line(s.Rule.Reason, 0))
	}
	return b.String()
}

// ruleAt says where a rule stands, for a person.
func ruleAt(r *engine.Rule, home string) string {
	if r.Pos.File == "" {
		return string(r.Origin)
	}
	return fmt.Sprintf("%s, %s:%d", r.Origin, visible.Line(short(r.Pos.File, home), 0), r.Pos.Line)
}

// short writes the home directory as ~.
func short(path, home string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok && home != "" {
		return "~/" + rest
	}
	return path
}

// WriteJSON writes v on a line of its own, without escaping for HTML, and with
// nothing that a terminal obeys.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(visible.JSONWriter(w))
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
