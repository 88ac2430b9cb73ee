package agents

import (
	_ "embed"
	"fmt"
	"time"
)

// Opencode is opencode. Source: opencode.ai/docs/plugins, and runs of 1.18.33.
//
// It has no hooks for other programs but plugins: install puts one in place
// that calls the hook from tool.execute.before. What it throws is what the
// model reads. opencode's own permission check comes after it.
type Opencode struct{}

// Name is opencode.
func (Opencode) Name() string { return "opencode" }

// Title is opencode.
func (Opencode) Title() string { return "opencode" }

// Timeout is 600 s: the plugin's own, opencode itself waits forever.
func (Opencode) Timeout() time.Duration { return 600 * time.Second }

//go:embed opencode.js
var opencodePlugin string

func opencodeTools() tools {
	return common(tools{
		"patch": patch("patchText", "patch", "input"), "codesearch": extension("websearch", "query"), "task": extension("task", "subagent_type", "description", "prompt"),
		"glob": search("find", "path"), "lsp": inner("lsp"),

		"todowrite": inner("todowrite"), "todoread": inner("todoread"), "question": inner("question"), "plan_enter": inner("plan_enter"), "plan_exit": inner("plan_exit"), "invalid": inner("invalid"),
	})
}

// Parse reads what the plugin sends.
func (a Opencode) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	m, err := object(data)
	if err != nil {
		return nil, unreadable(a.Title(), err)
	}
	f := &fields{m: m}
	if event == "" {
		event = "tool.execute.before"
	}
	c := &Call{Event: event, Tool: f.text("tool"), Cwd: f.text("directory")}
	if event != "tool.execute.before" {
		if c.Tool == "" {
			return c, fmt.Errorf("%s tells of %q: %w", a.Title(), c.Event, ErrNoCall)
		}
		return c, unreadable(a.Title(), fmt.Errorf("the event %q is not known", c.Event))
	}
	args, session, parent, kind := f.inner("args"), f.text("sessionID"), f.text("parentID"), f.text("agent")
	if f.err != nil {
		return c, unreadable(a.Title(), f.err)
	}
	if err := opencodeTools().read(c, args); err != nil {
		return c, unreadable(a.Title(), err)
	}
	if parent == "" {
		c.Principal, c.Origin = principal(a.Name(), a.Title(), session, "", "")
	} else {
		c.Principal, c.Origin = principal(a.Name(), a.Title(), parent, session, kind)
	}
	return c, nil
}

// Answer is the plugin's own: it throws the reason of a denial.
func (Opencode) Answer(c *Call, o Outcome) Reply {
	switch {
	case o.Say == Silence:
		return Reply{}
	case c == nil:
		return blocked(o.Reason)
	}
	return reply(genericAnswer{Decision: o.Say.String(), Reason: o.Reason})
}
