package agents

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/disk"
	"github.com/nod-agents/nod/app/guard"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/policy"
)

// Gate judges a call by rules, without asking anybody.
type Gate interface {
	Judge(c *Call) Ruling
}

// Ruling is what the rules say of a call.
type Ruling struct {
	Action engine.Action
	Reason string // of a denial, for the model
	// Questions are the asks of the call, in the order in which they must be
	// approved. Each is a request of its own: no answer stands for another. To
	// ask without a question is to deny.
	Questions []*engine.Question
	// Patience is how long the policy lets an ask wait; 0: as long as it may.
	Patience time.Duration
}

// Rules is the Gate of the engine. It is safe for concurrent use.
type Rules struct {
	Loader    *policy.Loader
	AgentDir  string // the agents' own, where policy is read
	ConfigDir string // Nod's
	Home      string
	Now       func() time.Time
	// Trusted says whether a project may bring rules of its own.
	Trusted func(project string) bool
	// Guard, if set, says how to make the rules that no policy overrides.
	Guard func(home, agentDir, project string) guard.Late
	// Told, if set, gets each policy that is used: what is wrong in its files
	// is for people.
	Told func(project string, p *policy.Policy)
}

var _ Gate = (*Rules)(nil)

// Judge decides every use of the call. The strictest counts, and the first of
// equals is the one that is told.
func (r *Rules) Judge(c *Call) Ruling {
	project := c.Project()
	places := policy.Places{AgentDir: r.AgentDir, ConfigDir: r.ConfigDir, Project: project, Agent: c.Principal.AgentName, Home: r.Home, Trusted: r.Trusted(project)}
	p, rules := r.Loader.Rules(places, engine.Options{Home: r.Home, Cwd: project, Now: r.Now()})
	if r.Told != nil {
		r.Told(project, p)
	}
	g := &gate.Gate{
		Rules: rules, Files: disk.Files{}, Home: r.Home, Cwd: project,
		AgentDir: r.AgentDir, InfrastructureReads: p.Settings.InfrastructureReadPaths, ShellTools: map[string]gate.ShellTool{},
	}
	for name, t := range p.Settings.ShellTools {
		g.ShellTools[name] = gate.ShellTool{Command: t.CommandArgument, Workdir: t.WorkdirArgument}
	}
	var late guard.Late
	if r.Guard != nil {
		late = r.Guard(r.Home, r.AgentDir, project)
	}
	out := Ruling{Action: engine.Allow, Patience: p.Settings.ForwardingTimeout}
	for _, u := range c.Uses {
		o := late.Decide(g, r.call(c, u))
		if c.Inner && !names(o) {
			continue
		}
		switch o.Action {
		case engine.Deny:
			// The first denial is the one to tell.
			return Ruling{Action: engine.Deny, Reason: o.Refusal(u.Tool)}
		case engine.Ask:
			list := r.questions(c, u, o)
			if len(list) == 0 {
				return Ruling{Action: engine.Ask}
			}
			out.Action = engine.Ask
			out.Questions = append(out.Questions, list...)
		}
	}
	return out
}

// call is a use as the engine takes it. Paths that are relative mean the place
// where the use runs, which need not be the project's directory.
func (r *Rules) call(c *Call, u Use) gate.Call {
	dir := c.Cwd
	if u.Dir != "" {
		if dir = expand(u.Dir, r.Home); !filepath.IsAbs(dir) {
			dir = filepath.Join(c.Cwd, dir)
		}
	}
	call := gate.Call{Tool: u.Tool, Input: map[string]any(u.Input)}
	if dir != c.Project() {
		call.Workdir = dir
	}
	if path, ok := u.Input["path"].(string); ok && call.Workdir != "" && relative(path) {
		in := make(map[string]any, len(u.Input))
		for k, v := range u.Input {
			in[k] = v
		}
		in["path"] = strings.TrimSuffix(dir, "/") + "/" + path // not cleaned: `link/..` goes by the link
		call.Input = in
	}
	return call
}

func expand(path, home string) string {
	if path == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

// relative reports whether the engine would take path to be below a directory.
func relative(path string) bool {
	return path != "" && !filepath.IsAbs(path) && !strings.ContainsAny(path[:1], "~$@'\" \t")
}

// names reports whether a rule that is meant for the tool decided.
func names(o *gate.Outcome) bool {
	c := o.Decisive
	if c == nil || c.Rule == nil {
		return false
	}
	return o.Action == engine.Deny || c.Rule.Surface != "*"
}

// questions are the asks of one use, each with what the agent tells of the call.
func (r *Rules) questions(c *Call, u Use, o *gate.Outcome) []*engine.Question {
	list := o.Questions(gate.Asker{Principal: c.Principal, Tool: u.Tool, Cwd: c.Cwd, Now: r.Now()})
	for _, q := range list {
		if c.Origin != "" {
			q.Evidence = append(q.Evidence, engine.Evidence{Label: "asked by", Text: c.Origin})
		}
		q.Evidence = append(q.Evidence, c.Evidence...)
	}
	return list
}
