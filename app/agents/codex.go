package agents

import "time"

// Codex is the Codex CLI. Source: the hook schemas in openai/codex
// (codex-rs/hooks/schema), and runs of 0.171.0.
type Codex struct{}

// Name is codex.
func (Codex) Name() string { return "codex" }

// Title is Codex.
func (Codex) Title() string { return "Codex" }

// Timeout is 600 s.
func (Codex) Timeout() time.Duration { return 600 * time.Second }

func codexTools() tools {
	return common(tools{
		"exec_command": shell("cmd", "command"), "shell": shell("command"), "shell_command": shell("command"), "local_shell": shell("command"), "container.exec": shell("command"),
		"view_image": file("read", "path"), "read_file": file("read", "file_path", "path"), "list_dir": search("ls", "dir_path", "path"), "grep_files": search("grep", "path"),
		"web_search":  extension("websearch", "query"),
		"spawn_agent": extension("task", "agent_type", "message"),

		"update_plan": inner("update_plan"), "wait": inner("wait"), "wait_agent": inner("wait_agent"), "close_agent": inner("close_agent"), "resume_agent": inner("resume_agent"), "list_agents": inner("list_agents"),
		"send_input": inner("send_input"), "request_user_input": inner("request_user_input"),
		"get_goal": inner("get_goal"), "create_goal": inner("create_goal"), "update_goal": inner("update_goal"),
	})
}

// Parse reads the data of PreToolUse and PermissionRequest.
func (a Codex) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	c, err := claudeCall{a.Name(), a.Title(), codexTools(), []string{"PreToolUse"}, []string{"PermissionRequest"}}.parse(event, data)
	if c != nil && c.Asks && err == nil {
		if m, err := object(data); err == nil {
			in := &fields{m: (&fields{m: m}).inner("tool_input")}
			c.note("justification", in.text("description", "justification"))
		}
	}
	return c, err
}

func (Codex) ended(event string, data []byte) string { return claudeEnded(event, data) }

// Answer says deny, or allow where Codex itself asks. A PreToolUse hook that
// says allow has failed for Codex, so there silence is what lets a call go on.
// An interrupt would make it ignore even the denial.
func (Codex) Answer(c *Call, o Outcome) Reply {
	if c != nil && !c.Asks && o.Say == Allow {
		return Reply{}
	}
	o.Interrupt = false
	return Claude{}.Answer(c, o)
}
