// Package gate judges one tool call: it derives the facts, runs the call's
// checks in their order, and gives the strictest of them with everything a
// person must know to understand it. It also judges an ask that a child has
// forwarded, by the facts that the child fixed (Serve).
package gate

import (
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/access"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/shell"
)

// Gate is what a tool call is judged by. It must not be changed while it is
// used; Decide is safe for concurrent use.
type Gate struct {
	Rules  *engine.Ruleset
	Guard  *engine.Ruleset   // what it denies is denied, whatever Rules and Grants say; nil: none
	Grants engine.Grants     // session grants in force; nil: none
	Files  access.FileSystem // nil: the paths are of another machine, nothing is looked up
	Shell  *shell.Reader     // nil: one is made for each call

	Home    string // the user's home directory, absolute
	Cwd     string // the project, absolute
	Flavour pattern.Flavour

	AgentDir            string   // read-only tools may read it
	InfrastructureReads []string // further directories or patterns they may read, as configured
	ShellTools          map[string]ShellTool
	Servers             []string // names of the configured MCP servers
	Skills              []Skill
}

// ShellTool says where a tool keeps its shell command.
type ShellTool struct {
	Command string // the argument that holds the command
	Workdir string // the argument that holds the working directory; empty: none
}

// Skill is a skill that the agent knows.
type Skill struct {
	Name     string
	Location string // its file, absolute
}

// Call is one tool call.
type Call struct {
	Tool  string
	Input any // as decoded from JSON: map[string]any for an object
	// Workdir is where a bash call runs, if not in the gate's Cwd: agents keep
	// it beside the call.
	Workdir string
}

// Check is the result of one gate for one thing: a unit of a command, the
// paths of a call, a target.
type Check struct {
	Gate    string // path, external_directory, bash, mcp, skill or the tool's name
	Surface string // the surface judged; on the path family the directed one where the direction is known
	Action  engine.Action
	Value   string // as written
	Pattern string // as written; a floor's name; empty for the built-in default
	Origin  engine.Origin
	Reason  string

	Rule  *engine.Rule // nil for a floor and for the built-in default
	Grant *engine.SessionGrant
	// Why says in words why the check asks where no rule does: a floor's reason.
	Why string
	// Limited says that not all rules were held against it: see
	// engine.Match.Limited.
	Limited bool
	// Matched is the spelling that the rule matched.
	Matched string

	Context  string // of a unit: where it was found
	Executes string // of a unit: what it runs
	Unit     int    // index into Outcome.Program.Units, -1 for none

	// Paths are the paths that the check is about, each with what the rules say
	// of it.
	Paths []PathCheck
	// Suggestion is what "for this session" would grant; nil if nothing would
	// be narrow enough.
	Suggestion []engine.Grant
	// Intent is the check as a forwarded ask carries it.
	Intent Intent
	// settled says that granting an earlier ask answers this one as well.
	settled bool
	typed   bool // a skill typed by the user: no grant counts
}

// Intent is the facts of one check, for a forwarded ask.
type Intent struct {
	Surface     string
	MatchValues []string
	Boundary    string // canonical; empty: none
}

// PathCheck is one path of a check.
type PathCheck struct {
	Typed   string // as written
	Facts   access.Path
	Surface string
	Match   engine.Match
}

// Outcome is what a gate says of a call.
type Outcome struct {
	Action engine.Action
	// Decisive is the check that decided: the strictest, the first of equals.
	// Where everything is allowed it is the first of the tool's own surface. Nil
	// if there was nothing to judge.
	Decisive *Check
	Checks   []Check        // in the order of the gates
	Program  *shell.Program // of a shell command
	Command  string         // the whole command, as typed
	Workdir  string         // where it runs, if it names a directory
	Yolo     bool           // an ask became an allow
}

// Asks are the asks that would come one after the other, if each were granted.
// A call that is denied or allowed has none.
func (o *Outcome) Asks() []*Check {
	if o.Action != engine.Ask {
		return nil
	}
	var list []*Check
	for i := range o.Checks {
		if c := &o.Checks[i]; c.Action == engine.Ask && !c.settled {
			list = append(list, c)
		}
	}
	return list
}

// Evidence is what a forwarded ask for c must carry beside its value: the whole
// command where the value is a part of it, the working directory and each
// outside path in both forms.
func (o *Outcome) Evidence(c *Check, cwd string) []engine.Evidence {
	var list []engine.Evidence
	switch c.Gate {
	case engine.SurfaceExternalDirectory:
		list = append(list, engine.Evidence{Label: "working directory", Text: cwd})
		if o.Program == nil {
			break
		}
		for i := range c.Paths {
			f := &c.Paths[i].Facts
			e := engine.Evidence{Label: "external path", Text: f.Absolute}
			if e.Text == "" {
				e.Text = f.Typed
			}
			if f.Boundary != "" && f.Boundary != e.Text {
				detail := f.Boundary
				e.Detail = &detail
			}
			list = append(list, e)
		}
	default:
		if o.Program != nil && strings.TrimSpace(o.Command) != c.Value {
			list = append(list, engine.Evidence{Label: "full command", Text: o.Command})
		}
	}
	return list
}

// run is one call being judged.
type run struct {
	*Gate
	place  access.Place
	reader *shell.Reader
	out    *Outcome
	input  map[string]any
	work   engine.Work
}

// Decide judges a call.
func (g *Gate) Decide(c Call) *Outcome {
	r := &run{Gate: g, reader: g.Shell, out: &Outcome{}, work: *engine.NewWork()}
	r.place.Reset(g.Files, g.Home, g.Cwd, g.Flavour)
	if r.reader == nil {
		r.reader = &shell.Reader{}
	}
	r.input, _ = c.Input.(map[string]any)
	tool := strings.TrimSpace(c.Tool)
	switch {
	case tool == engine.SurfaceBash:
		r.bash(tool, r.text("command"), c.Workdir)
	case g.isShellTool(tool):
		s := g.ShellTools[tool]
		r.bash(tool, r.text(s.Command), r.text(s.Workdir))
	case tool == engine.SurfaceMCP:
		r.mcp()
	case tool == engine.SurfaceSkill:
		r.skill()
	default:
		r.tool(tool)
	}
	r.out.settle(g.Rules.Yolo())
	return r.out
}

func (g *Gate) isShellTool(tool string) bool {
	_, ok := g.ShellTools[tool]
	return ok
}

// text is a string argument of the call, empty if it is none.
func (r *run) text(name string) string {
	if name == "" {
		return ""
	}
	s, _ := r.input[name].(string)
	return s
}

// settle finds the decisive check.
func (o *Outcome) settle(yolo bool) {
	o.Action = engine.Allow
	for i := range o.Checks {
		if c := &o.Checks[i]; o.Decisive == nil && c.own() {
			o.Decisive = c
		}
	}
	for i := range o.Checks {
		c := &o.Checks[i]
		if c.Action.Stricter(o.Action) {
			o.Action, o.Decisive = c.Action, c
		}
	}
	if yolo && o.Action == engine.Ask && !o.limited() {
		o.Action, o.Yolo = engine.Allow, true
		o.Decisive.Origin = engine.OriginYolo
	}
}

// limited reports whether a check was not held against every rule.
func (o *Outcome) limited() bool {
	for i := range o.Checks {
		if o.Checks[i].Limited {
			return true
		}
	}
	return false
}

// own reports whether c is of the tool's own surface.
func (c *Check) own() bool {
	return c.Gate != engine.SurfacePath && c.Gate != engine.SurfaceExternalDirectory
}

// whyLimited is why a check asks that not all rules were held against.
const whyLimited = "holding it against all the rules would take too long"

// from fills a check with what the rules said.
func (c *Check) from(m *engine.Match) {
	c.Action, c.Origin, c.Pattern, c.Reason, c.Rule, c.Grant = m.Action, m.Origin, m.Pattern, m.Reason(), m.Rule, m.Grant
	c.Matched = m.Value
	if m.Limited {
		c.Limited, c.Why = true, whyLimited
	}
	if c.Surface == "" {
		c.Surface = m.Surface
	}
	if m.Grant != nil {
		c.Pattern = m.Grant.Pattern
		c.Reason = ""
	}
}

func (r *run) add(c Check) {
	if c.Limited {
		c.Suggestion = nil // nothing answers it but a person
	}
	r.out.Checks = append(r.out.Checks, c)
}
