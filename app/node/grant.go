package node

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/shell"
	"github.com/nod-agents/nod/forwarding"
)

// offer leaves out of q's suggestion what would not have answered q itself, and
// what is wider than any child proposes for such an ask: a grant must never
// stand beside the ask it is shown under, nor be `*` for whoever clicks fast.
func (n *Node) offer(q *engine.Question) *engine.Question {
	opt := engine.Options{Home: n.cfg.Home, Cwd: n.cfg.Project}
	kept := slices.DeleteFunc(slices.Clone(q.Suggestion), func(g engine.Grant) bool {
		return !slices.ContainsFunc(n.asked(q, g.Surface), func(v string) bool {
			return engine.PatternMatches(g.Surface, g.Pattern, v, opt) && !tooWide(g, v, n.cfg.Home)
		})
	})
	if len(kept) == len(q.Suggestion) {
		return q
	}
	fewer := *q
	fewer.Suggestion = kept
	return &fewer
}

// tooWide reports whether g covers more than a suggestion for value does: of
// commands those with the same name, of paths those in the same directory, of
// MCP tools those of the same server, of skills the one.
func tooWide(g engine.Grant, value, home string) bool {
	end := strings.IndexAny(g.Pattern, "*?")
	if strings.HasPrefix(g.Pattern, "glob:") {
		end = len("glob:") + strings.IndexAny(g.Pattern[len("glob:"):]+"*", "*?[{\\")
	}
	if end < 0 {
		return false
	}
	fixed := strings.TrimPrefix(g.Pattern[:end], "glob:")
	switch {
	case g.Surface == engine.SurfaceBash:
		name, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		return name == "" || !strings.HasPrefix(fixed, name)
	case g.Surface == engine.SurfaceMCP:
		return fixed == "mcp_" || !strings.ContainsAny(fixed, ":_")
	case g.Surface == engine.SurfaceSkill:
		return true
	case engine.IsPathSurface(g.Surface) || engine.IsBoundarySurface(g.Surface):
		for _, h := range [...]string{"~", "$HOME", "${HOME}"} {
			if rest, ok := strings.CutPrefix(fixed, h+"/"); ok {
				fixed = home + "/" + rest
			}
			if rest, ok := strings.CutPrefix(value, h+"/"); ok {
				value = home + "/" + rest
			}
		}
		i := strings.LastIndexByte(strings.TrimRight(value, "/"), '/') + 1 // its directory
		return strings.Trim(fixed, "./") == "" || !strings.HasPrefix(fixed, value[:i])
	}
	return false // an extension's tool: it has no parts
}

// asked are the spellings of everything on surface that q asks for.
func (n *Node) asked(q *engine.Question, surface string) []string {
	if q.Intent == nil {
		return []string{q.Value} // an old child fixes no more
	}
	var values []string
	if q.Intent.Surface == surface || engine.IsBoundarySurface(surface) && engine.IsBoundarySurface(q.Intent.Surface) {
		values = append(values, q.Intent.MatchValues...)
	}
	for _, e := range q.Evidence {
		switch {
		case surface == engine.SurfaceBash && e.Label == forwarding.LabelFullCommand:
			for _, u := range n.shell.Read(e.Text, shell.Env{Home: n.cfg.Home}).Units {
				values = append(values, u.Text)
			}
		case engine.IsBoundarySurface(surface) && e.Label == forwarding.LabelExternalPath:
			values = append(values, e.Text)
			if e.Detail != nil {
				values = append(values, *e.Detail)
			}
		}
	}
	return values
}

// record keeps q's suggestion as grants of the served session: for everyone in
// it (record 0006), or for one requester that remembers nothing itself. The
// serving node is their only holder. Then every waiting ask is judged again.
func (n *Node) record(inbox Inbox, q *engine.Question, requester string) {
	for _, g := range q.Suggestion {
		r, err := n.grants.Record(engine.NewGrant{
			Grant:     g,
			Scope:     engine.Scope{SessionID: inbox.SessionID, Requester: requester},
			AgentName: q.Principal.AgentName,
			Asked:     engine.Asked{Surface: g.Surface, Values: n.asked(q, g.Surface)},
		})
		if err != nil {
			n.cfg.Log.Warn("a session grant was not recorded", "surface", g.Surface, "pattern", g.Pattern, "error", err)
			n.event("permission_forwarding.warning", q, slog.String("reason", err.Error()))
			continue
		}
		n.event("forwarded_permission.session_recorded", q, slog.String("surface", r.Surface), slog.String("pattern", r.Pattern), slog.String("grantId", r.ID))
	}
	n.changed()
	n.Rejudge()
}
