package forwarding

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nod-agents/nod/heartbeat"
)

// The variables that name a child's parent session, in the order in which they
// count. New subagent programs set the second and nothing else.
const (
	EnvRouterParent  = "PI_AGENT_ROUTER_PARENT_SESSION_ID"
	EnvParentSession = "PI_SUBAGENT_PARENT_SESSION"
)

// childHints are variables that older subagent programs mark their children
// with. Any that is not empty will do.
var childHints = []string{
	EnvRouterParent, EnvParentSession,
	"PI_IS_SUBAGENT", "PI_SUBAGENT_SESSION_ID", "PI_AGENT_ROUTER_SUBAGENT", "PI_SUBAGENT_CHILD", "PI_SUBAGENT_RUN_ID",
	"PI_SUBAGENT_CHILD_AGENT", "PI_SUBAGENT_DEPTH", "PI_SUBAGENT_NAME", "PI_SUBAGENT_ID", "PI_SUBAGENT_SESSION",
	"PI_SUBAGENT_ACTIVITY_FILE",
}

// Child is what tells whether a session is a subagent's and where its asks go.
type Child struct {
	SessionID  string              // its own
	Env        func(string) string // os.Getenv, or a stand-in
	Registry   *Registry           // nil if the process hosts no children
	SessionDir string              // where the session is stored; empty if nowhere
	AgentDir   string
}

// Is reports whether the session is a subagent's: it is announced in the
// registry, the environment marks or names a parent, or its directory is below
// the agent directory's subagent-sessions.
func (c Child) Is() bool {
	if _, ok := c.Registry.Parent(c.SessionID); ok {
		return true
	}
	if c.Env != nil {
		for _, name := range childHints {
			if strings.TrimSpace(c.Env(name)) != "" {
				return true
			}
		}
	}
	if c.SessionDir == "" || c.AgentDir == "" {
		return false
	}
	rel, err := filepath.Rel(filepath.Join(c.AgentDir, "subagent-sessions"), c.SessionDir)
	return err == nil && filepath.IsLocal(rel)
}

// reason is why an ask cannot be forwarded, as a sentence that an agent is told.
type reason string

// Error is the sentence.
func (r reason) Error() string { return string(r) }

func reasonf(format string, a ...any) reason { return reason(fmt.Sprintf(format, a...)) }

const errNoParent = reason("No parent session is named to forward the request to.")

// Target returns the session that asks go to: the registry's, else the
// environment's. A name that can be no session's counts as not given; one that
// is the session's own is an error, and no other is tried, since whoever set
// it meant this session to ask. The error is a sentence for the agent.
func (c Child) Target() (string, error) {
	var named []string
	if parent, ok := c.Registry.Parent(c.SessionID); ok {
		named = append(named, parent)
	}
	if c.Env != nil {
		named = append(named, c.Env(EnvRouterParent), c.Env(EnvParentSession))
	}
	for _, name := range named {
		id, err := heartbeat.CheckSession(name)
		if err != nil {
			continue
		}
		if id == c.SessionID {
			return "", reasonf("Session '%s' is named as its own parent, so there is nobody to forward the request to.", id)
		}
		return id, nil
	}
	return "", errNoParent
}
