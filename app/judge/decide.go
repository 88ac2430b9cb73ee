package judge

import (
	"encoding/json"

	"github.com/nod-agents/nod/app/disk"
	"github.com/nod-agents/nod/app/guard"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/engine/shell"
)

// call is one tool call with all it is judged by.
type call struct {
	Tool     string
	Input    any // of the tool, as JSON is read
	Cwd      string
	Home     string
	AgentDir string
	Flavour  pattern.Flavour
	Foreign  bool // the paths are of another machine: nothing is looked up
	Servers  []string
	Skills   []skill
	Grants   []engine.Grant
	Policy   *policy.Policy
	Rules    *engine.Ruleset
	Guard    guard.Late
	Reader   *shell.Reader
}

// verdict is what a call got.
type verdict struct {
	*gate.Outcome
	gate *gate.Gate
}

func decide(k *call) verdict {
	g := &gate.Gate{
		Rules: k.Rules, Shell: k.Reader, Home: k.Home, Cwd: k.Cwd, Flavour: k.Flavour,
		AgentDir: k.AgentDir, InfrastructureReads: k.Policy.Settings.InfrastructureReadPaths, Servers: k.Servers,
	}
	if !k.Foreign {
		g.Files = disk.Files{}
	}
	if len(k.Grants) > 0 {
		g.Grants = engine.FixedGrants(k.Grants, k.Rules.Options())
	}
	if tools := k.Policy.Settings.ShellTools; len(tools) > 0 {
		g.ShellTools = make(map[string]gate.ShellTool, len(tools))
		for name, t := range tools {
			g.ShellTools[name] = gate.ShellTool{Command: t.CommandArgument, Workdir: t.WorkdirArgument}
		}
	}
	for _, s := range k.Skills {
		g.Skills = append(g.Skills, gate.Skill{Name: s.Name, Location: s.Location})
	}
	return verdict{k.Guard.Decide(g, gate.Call{Tool: k.Tool, Input: k.Input}), g}
}

// parsed is a tool input of which it is known that it is JSON, or nil.
func parsed(data json.RawMessage) (input any) {
	if len(data) > 0 {
		_ = json.Unmarshal(data, &input)
	}
	return input
}

// answer is the verdict as scripts read it.
func (v verdict) answer() answer {
	a := answer{Decision: v.Action.String(), Asks: []ask{}}
	if c := v.Decisive; c != nil {
		a.Surface, a.Value = &c.Gate, &c.Value
		origin := string(c.Origin)
		a.Origin = &origin
		a.Pattern, a.Reason = text(c.Pattern), text(c.Reason)
		a.Context, a.Executes = text(c.Context), text(c.Executes)
		if len(c.Suggestion) > 0 && v.Action != engine.Allow {
			a.Suggestion = &suggestion{Grants: c.Suggestion}
		}
	}
	for _, c := range v.Asks() {
		a.Asks = append(a.Asks, ask{Surface: c.Gate, Value: c.Value, Pattern: text(c.Pattern), Decision: c.Action.String()})
	}
	return a
}

// text is nil for the empty string.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
