package agents

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Cursor is Cursor's agent, in its editor and as cursor-agent. Source: its hooks
// reference at cursor.com/docs/agent/hooks; not run here.
type Cursor struct{}

// Name is cursor.
func (Cursor) Name() string { return "cursor" }

// Title is Cursor.
func (Cursor) Title() string { return "Cursor" }

// Timeout is 60 s.
func (Cursor) Timeout() time.Duration { return 60 * time.Second }

func cursorTools() tools {
	return common(tools{
		"shell":    shell("command"),
		"tabwrite": file("write", "file_path", "path"), "tabread": file("read", "file_path", "path"),
		"strreplace": file("edit", "file_path", "path"), "search_replace": file("edit", "file_path", "path"), "editnotebook": file("edit", "target_notebook", "file_path", "path"),
		"delete": file("write", "file_path", "path", "target_file"),

		"todowrite": inner("todowrite"), "askquestion": inner("askquestion"), "switchmode": inner("switchmode"),
	})
}

// Parse reads the data of beforeShellExecution, beforeMCPExecution,
// beforeReadFile and preToolUse.
func (a Cursor) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	m, err := object(data)
	if err != nil {
		return nil, unreadable(a.Title(), err)
	}
	f := &fields{m: m}
	c := &Call{Event: f.text("hook_event_name"), Cwd: f.text("cwd"), Tool: f.text("tool_name")}
	if c.Event == "" {
		c.Event = event
	}
	if c.Cwd == "" {
		var roots []string
		if json.Unmarshal(m["workspace_roots"], &roots) == nil && len(roots) > 0 {
			c.Cwd = roots[0]
		}
	}
	session := f.text("conversation_id", "session_id")
	c.Principal, c.Origin = principal(a.Name(), a.Title(), session, f.text("subagent_id"), f.text("subagent_type"))
	switch c.Event {
	case "beforeShellExecution":
		c.Tool = "Shell"
		err = cursorTools().read(c, m)
	case "beforeReadFile", "beforeTabFileRead":
		c.Tool = "Read"
		err = cursorTools().read(c, m)
	case "beforeMCPExecution":
		if c.Tool == "" && f.err == nil {
			err = fmt.Errorf("tool_name is missing")
			break
		}
		server := f.text("server", "server_name")
		if server == "" {
			// The server is named by what starts or reaches it only.
			c.note("server", f.text("command", "url"))
		}
		var text string
		if json.Unmarshal(m["tool_input"], &text) != nil {
			text = string(m["tool_input"])
		}
		c.note("input", text)
		err = mcp(server, strings.TrimPrefix(c.Tool, "MCP:"))(c, f)
	case "preToolUse":
		input := f.inner("tool_input")
		if tool, ok := strings.CutPrefix(c.Tool, "MCP:"); ok {
			err = mcp("", tool)(c, f)
			break
		}
		err = cursorTools().read(c, input)
	default:
		if call := strings.HasPrefix(c.Event, "before") || strings.HasPrefix(c.Event, "pre") || c.Tool != "" || f.text("command", "file_path") != ""; call && !cursorTells(c.Event) || c.Event == "" {
			return c, unreadable(a.Title(), fmt.Errorf("the event %q is not known", c.Event))
		}
		return c, fmt.Errorf("%s tells of %q: %w", a.Title(), c.Event, ErrNoCall)
	}
	if err == nil {
		err = f.err
	}
	if err != nil {
		return c, unreadable(a.Title(), err)
	}
	return c, nil
}

// cursorTells reports whether an event tells of something that goes on in any
// case, or of what has been done.
func cursorTells(event string) bool {
	return strings.HasPrefix(event, "after") || strings.HasPrefix(event, "post") || event == "beforeSubmitPrompt" || event == "preCompact"
}

type cursorAnswer struct {
	Permission string `json:"permission"`
	User       string `json:"user_message,omitempty"`
	Agent      string `json:"agent_message,omitempty"`
}

// Answer says allow or deny. Cursor reads an empty answer as no opinion.
func (Cursor) Answer(c *Call, o Outcome) Reply {
	switch {
	case o.Say == Silence:
		return Reply{}
	case c == nil:
		return blocked(o.Reason)
	}
	a := cursorAnswer{Permission: o.Say.String()}
	if o.Say == Deny {
		a.User, a.Agent = o.Reason, o.Reason
	}
	return reply(a)
}
