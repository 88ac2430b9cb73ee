package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/control"
	"github.com/nod-agents/nod/app/doctor"
	"github.com/nod-agents/nod/app/settings"
)

// hookCommands are what agents call before they run a tool.
func (n *nod) hookCommands() []*cobra.Command { return agents.Commands(n.agents()) }

// hookFindings are the agents whose settings have Nod's hook, and what keeps it
// from running. An agent without it is no finding.
func (n *nod) hookFindings() []doctor.Finding {
	var list []doctor.Finding
	for _, h := range n.agents().Installed() {
		f := doctor.Finding{Check: "hook of " + h.Agent, Level: doctor.OK, Says: "it is in " + h.File}
		switch {
		case h.State == "unreadable":
			f.Level, f.Says, f.Remedy = doctor.Warn, "its settings can't be read: "+h.Problem, "mend "+h.File
		case h.State == "outdated":
			f.Level, f.Says, f.Remedy = doctor.Bad, h.Problem, "nod hook install "+h.Agent
		case len(h.Warnings) > 0:
			f.Level, f.Says, f.Remedy = doctor.Warn, h.Warnings[0], "see: nod hook status "+h.Agent
		}
		list = append(list, f)
	}
	return list
}

// ended has the running Nod, if there is one, take back what was granted to
// one requester only.
func (n *nod) ended(ctx context.Context, agentDir, requester string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dir, err := absolute(agentDir)
	if err != nil {
		return
	}
	client, err := control.Dial(ctx, n.place(), dir)
	if err != nil {
		return // no Nod, no grants
	}
	defer client.Close()
	grants, err := client.Grants(ctx)
	if err != nil {
		fmt.Fprintf(n.Stderr, "nod: %v\n", err)
		return
	}
	var ids []string
	for _, g := range grants {
		if g.Requester == requester {
			ids = append(ids, g.ID)
		}
	}
	if len(ids) > 0 {
		if _, err := client.Revoke(ctx, ids...); err != nil {
			fmt.Fprintf(n.Stderr, "nod: %v\n", err)
		}
	}
}

// agents is what asking needs. The settings are read when they are needed, so
// that no other command does. Broken ones must not keep a hook from deciding:
// it goes by the defaults, which are the strict ones, and says so.
func (n *nod) agents() agents.Env {
	cwd, _ := os.Getwd() // empty: who needs it says so
	var read *settings.Settings
	set := func() *settings.Settings {
		if read == nil {
			s, err := n.settings()
			if err != nil {
				fmt.Fprintf(n.Stderr, "nod: %v\n", err)
				s = settings.Settings{Session: "desktop", AgentDirs: []string{n.dirs.Agent}}
			}
			read = &s
		}
		return read
	}
	inboxes := func() string {
		if n.getenv("PI_CODING_AGENT_DIR") != "" {
			return n.dirs.Agent
		}
		return set().AgentDirs[0]
	}
	return agents.Env{
		Stdin: n.Stdin, Stdout: n.Stdout, Stderr: n.Stderr, Environ: n.Environ, Getenv: n.getenv,
		Home: n.home, Cwd: cwd, GOOS: runtime.GOOS, Now: time.Now, Dirs: n.dirs,
		Inboxes: inboxes,
		Ended:   func(ctx context.Context, requester string) { n.ended(ctx, inboxes(), requester) },
		Session: func() string { return set().Session },
		Setting: func(agent string) agents.Setting {
			h := set().Hook(agent)
			return agents.Setting{Mode: agents.Mode(h.Mode), Unserved: agents.Unserved(h.Unserved)}
		},
		Guard: n.protection(),
		Executable: func() (string, error) {
			path, err := os.Executable()
			if err != nil {
				return "", err
			}
			return filepath.Abs(path)
		},
	}
}
