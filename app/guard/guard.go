// Package guard makes the rules by which Nod protects itself: agents' tools may
// not write what decides about agents. They stand below every policy and no
// policy overrides them; only the setting selfProtection does.
//
// What they cover is what the engine can see: the paths of tools, and the
// words, redirects and commands of a shell line. A program that an agent is
// allowed to run can write wherever the user can.
package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/forwarding"
)

// Places are what is protected. All paths are absolute.
type Places struct {
	Home      string
	Project   string   // whose rules count; empty: none
	AgentDirs []string // whose inboxes, and whose policy files
	Config    string   // Nod's settings and policy
	State     string   // its review log, the trusted projects, what install remembers
	Runtime   string   // of its sockets; empty: below State
	Program   string   // its own executable; empty: not known
	Hooks     []string // agents' settings that call it

	Flavour pattern.Flavour
	// Links returns where a path really is; nil: links are not followed.
	Links func(path string) (string, error)
}

// The reasons, which agents are told.
const (
	whyFiles    = "Nod protects what decides about agents: its inboxes, settings, policy and log, and the hooks that call it. Only the user changes them."
	whyCommands = "Only the user serves, trusts a project, or installs and removes hooks."
)

// Rules compiles the rules for p.
func Rules(p Places) *engine.Ruleset {
	write := engine.Section{Surface: engine.SurfacePath + "_write"}
	tree := engine.Section{Surface: gate.SurfaceTree}
	seen := map[string]bool{}
	deny := func(s *engine.Section, text, why string) {
		if key := s.Surface + "\x00" + text; !seen[key] {
			seen[key] = true
			s.Rules = append(s.Rules, engine.Rule{Surface: s.Surface, Pattern: text, Action: engine.Deny, Reason: why, Origin: engine.OriginBuiltin})
		}
	}
	for _, path := range p.all() {
		deny(&write, path, whyFiles)
		deny(&write, strings.TrimSuffix(path, "/")+"/*", whyFiles)
		for up := filepath.Dir(path); len(up) < len(path) && !p.holds(up); path, up = up, filepath.Dir(up) {
			deny(&tree, up, whyFiles)
		}
	}
	for _, any := range []string{"*/.nod/policy.jsonc", "*/.pi/extensions/pi-permission-system/config.json"} {
		deny(&write, any, whyFiles) // of projects that are not this one
	}
	return engine.Compile([]engine.Layer{{Origin: engine.OriginBuiltin, Sections: []engine.Section{write, tree, bash(whyCommands)}}},
		engine.Options{Home: p.Home, Cwd: p.Project, Flavour: p.Flavour})
}

// widest compiles rules that deny, with the reason whyWidest, whatever the rules
// for any places deny.
func widest(home, project string, flavour pattern.Flavour) *engine.Ruleset {
	all := func(surface string) engine.Section {
		return engine.Section{Surface: surface, Rules: []engine.Rule{{Surface: surface, Pattern: "*", Action: engine.Deny, Reason: whyWidest, Origin: engine.OriginBuiltin}}}
	}
	return engine.Compile([]engine.Layer{{Origin: engine.OriginBuiltin, Sections: []engine.Section{all(engine.SurfacePath + "_write"), all(gate.SurfaceTree), bash(whyWidest)}}},
		engine.Options{Home: home, Cwd: project, Flavour: flavour})
}

// bash are the rules for commands.
func bash(why string) engine.Section {
	s := engine.Section{Surface: engine.SurfaceBash}
	for _, command := range commands {
		s.Rules = append(s.Rules, engine.Rule{Surface: s.Surface, Pattern: command, Action: engine.Deny, Reason: why, Origin: engine.OriginBuiltin})
	}
	for _, harmless := range []string{"nod --help", "nod -h", "nod --version"} {
		s.Rules = append(s.Rules, engine.Rule{Surface: s.Surface, Pattern: harmless, Action: engine.Allow, Origin: engine.OriginBuiltin})
	}
	return s
}

// commands are those of Nod that give somebody else's decisions weight, or take
// a gate away: a serving node answers, a trusted project brings rules.
var commands = [...]string{"nod", "nod -*", "nod serve *", "nod trust *", "nod hook install *", "nod hook uninstall *"}

// holds reports whether home or the project is dir or below it: a rule for such
// a directory would be in the way of everything.
func (p *Places) holds(dir string) bool {
	if dir == filepath.Dir(dir) || filepath.Dir(dir) == filepath.Dir(filepath.Dir(dir)) {
		return true // the root, and what is right below
	}
	for _, in := range []string{p.Home, p.Project} {
		if in == "" {
			continue
		}
		if rel, err := filepath.Rel(dir, in); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// all are the protected paths by their names, and where links lead.
func (p *Places) all() []string {
	var list []string
	known := map[string]place{}
	add := func(parts ...string) {
		if parts[0] == "" {
			return
		}
		path := filepath.Join(parts...)
		list = append(list, path)
		if real := p.real(path, known).real; real != path {
			list = append(list, real)
		}
	}
	for _, dir := range p.AgentDirs {
		if dir != "" {
			add(forwarding.Root(dir))
			add(dir, "extensions", "pi-permission-system", "config.json")
			add(dir, "agents") // whose front matter is policy
		}
	}
	add(p.Config)
	add(p.State)
	if p.Runtime != "" {
		add(p.Runtime, "nod")
	}
	// Trust is for a directory, so its rules must stay the ones that were trusted.
	add(p.Project, ".nod", "policy.jsonc")
	add(p.Project, ".pi", "extensions", "pi-permission-system", "config.json")
	add(p.Project, ".pi", "agents")
	add(p.Program)
	for _, file := range p.Hooks {
		add(file)
	}
	return slices.Compact(list)
}

// place is where a path really is, as far as it exists.
type place struct {
	real  string
	there bool // all of it exists
}

// real follows the links of as much of path as exists. Every command that
// judges a call does this for a dozen paths with the same few directories, so
// what is known of those is kept.
func (p *Places) real(path string, known map[string]place) place {
	if p.Links == nil {
		return place{path, false}
	}
	if at, ok := known[path]; ok {
		return at
	}
	at := place{path, true}
	if dir := filepath.Dir(path); dir != path {
		up := p.real(dir, known)
		at = place{filepath.Join(up.real, filepath.Base(path)), false}
		if up.there { // else there is nothing in it
			if real, err := p.Links(path); err == nil {
				at = place{real, true}
			}
		}
	}
	known[path] = at
	return at
}
