package app

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/guard"
	"github.com/nod-agents/nod/app/node"
	"github.com/nod-agents/nod/app/settings"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
)

// unprotected is what a user is told who has switched self-protection off.
const unprotected = "Self-protection is off (selfProtection in settings.jsonc), so rules may let agents write Nod's inboxes, settings, policy and log, and the hooks that call it."

// places are what Nod protects for an agent at work in project. agentDir is
// the one that policy is read from; it is empty for the user's.
func (n *nod) places(set *settings.Settings, agentDir, project string) (p guard.Places, looked []string) {
	p = guard.Places{Home: n.home, Project: project, AgentDirs: append([]string{n.dirs.Agent, agentDir}, set.AgentDirs...),
		Config: n.dirs.Config, State: n.dirs.State, Runtime: n.getenv("XDG_RUNTIME_DIR"), Links: filepath.EvalSymlinks}
	if runtime.GOOS == "windows" {
		p.Flavour = pattern.Windows
	}
	p.Program, _ = os.Executable() // empty if it can't be found
	p.Hooks, looked = agents.Env{Home: n.home, Getenv: n.getenv, Dirs: n.dirs}.HookFiles(project)
	return p, looked
}

// protection makes the rules by which Nod protects itself, for commands that
// judge a few calls, one after the other. Broken settings switch nothing off.
func (n *nod) protection() func(home, agentDir, project string) *engine.Ruleset {
	set := sync.OnceValue(func() settings.Settings {
		s, err := n.settings()
		if err != nil {
			return settings.Settings{}
		}
		return s
	})
	type place struct{ home, agentDir, project string }
	var last place
	var rules *engine.Ruleset
	return func(home, agentDir, project string) *engine.Ruleset {
		s := set()
		if !s.SelfProtects() {
			return nil
		}
		if at := (place{home, agentDir, project}); rules == nil || at != last {
			p, _ := n.places(&s, agentDir, project)
			p.Home = home
			last, rules = at, guard.Rules(p)
		}
		return rules
	}
}

// servedProtection is protection for a node, and the files on which it depends.
func (n *nod) servedProtection(set *settings.Settings, project string) func(node.Inbox) (*engine.Ruleset, []string) {
	if set == nil || !set.SelfProtects() {
		return nil
	}
	return func(i node.Inbox) (*engine.Ruleset, []string) {
		p, looked := n.places(set, i.AgentDir, project)
		return guard.Rules(p), looked
	}
}
