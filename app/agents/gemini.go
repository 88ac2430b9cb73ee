package agents

import (
	"fmt"
	"time"
)

// Gemini is the Gemini CLI. Source: docs/hooks in google-gemini/gemini-cli, and
// runs of 0.61.0. It gives its hook no call id and no agent id, so a
// subagent's calls look like its parent's.
type Gemini struct{}

// Name is gemini.
func (Gemini) Name() string { return "gemini" }

// Title is Gemini CLI.
func (Gemini) Title() string { return "Gemini CLI" }

// Timeout is 60 s.
func (Gemini) Timeout() time.Duration { return 60 * time.Second }

func geminiTools() tools {
	return common(tools{
		"run_shell_command": shell("command"),
		"read_file":         file("read", "file_path", "absolute_path", "path"), "read_many_files": files("read", "include", "paths"),
		"write_file": file("write", "file_path", "path"), "replace": file("edit", "file_path", "path"),
		"glob": search("find", "dir_path", "path"), "grep_search": search("grep", "dir_path", "path"), "search_file_content": search("grep", "dir_path", "path"), "list_directory": search("ls", "dir_path", "path"),
		"web_fetch": extension("webfetch", "prompt", "url"), "google_web_search": extension("websearch", "query"),
		"invoke_agent": extension("task", "agent_name", "prompt"), "delegate_to_agent": extension("task", "agent_name", "prompt"),
		"activate_skill": skill("name"),

		"write_todos": inner("write_todos"), "ask_user": inner("ask_user"), "enter_plan_mode": inner("enter_plan_mode"), "exit_plan_mode": inner("exit_plan_mode"), "complete_task": inner("complete_task"),
		"update_topic": inner("update_topic"),
	})
}

// Parse reads the data of BeforeTool.
func (a Gemini) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	m, err := object(data)
	if err != nil {
		return nil, unreadable(a.Title(), err)
	}
	f := &fields{m: m}
	c := &Call{Event: f.text("hook_event_name"), Tool: f.text("tool_name"), Cwd: f.text("cwd")}
	if c.Event == "" {
		c.Event = event
	}
	switch {
	case c.Event == "BeforeTool" || c.Event == "" && c.Tool != "":
	case c.Tool != "" && c.Event != "AfterTool":
		return c, unreadable(a.Title(), fmt.Errorf("the event %q is not known", c.Event))
	default:
		return c, fmt.Errorf("%s tells of %q: %w", a.Title(), c.Event, ErrNoCall)
	}
	input, session := f.inner("tool_input"), f.text("session_id")
	server := &fields{m: f.inner("mcp_context")}
	if f.err != nil {
		return c, unreadable(a.Title(), f.err)
	}
	c.Principal, c.Origin = principal(a.Name(), a.Title(), session, "", "")
	if name, tool := server.text("server_name"), server.text("tool_name"); name != "" && tool != "" {
		c.use("mcp", map[string]any{"server": name, "tool": tool})
		return c, nil
	}
	if err := geminiTools().read(c, input); err != nil {
		return c, unreadable(a.Title(), err)
	}
	return c, nil
}

func (Gemini) ended(event string, data []byte) string { return claudeEnded(event, data) }

type geminiAnswer struct {
	Decision   string `json:"decision,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Continue   *bool  `json:"continue,omitempty"`
	StopReason string `json:"stopReason,omitempty"`
}

// Answer says allow or deny, or nothing. An allow does not lift the agent's own
// policy. There is no word for ask: it ends a run that nobody watches.
func (Gemini) Answer(c *Call, o Outcome) Reply {
	switch {
	case o.Say == Silence:
		return Reply{}
	case c == nil:
		return blocked(o.Reason)
	}
	a := geminiAnswer{Decision: o.Say.String(), Reason: o.Reason}
	if o.Say == Deny && o.Interrupt {
		a.Continue, a.StopReason = new(bool), o.Reason
	}
	return reply(a)
}
