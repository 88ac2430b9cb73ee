package agents

import (
	"fmt"
	"strings"
	"time"
)

// Copilot is the GitHub Copilot CLI. Source: its hooks reference at
// docs.github.com/en/copilot/reference/hooks-configuration, and runs of
// 1.0.102.
//
// Its events have two spellings. As preToolUse a hook is sent camelCase, without
// the event's name; as PreToolUse it is sent what Claude Code sends and may
// answer so. PermissionRequest is sent camelCase in either spelling.
type Copilot struct{}

// Name is copilot.
func (Copilot) Name() string { return "copilot" }

// Title is Copilot CLI.
func (Copilot) Title() string { return "Copilot CLI" }

// Timeout is 30 s.
func (Copilot) Timeout() time.Duration { return 30 * time.Second }

func copilotTools() tools {
	return common(tools{
		"powershell": extension("powershell", "command"),
		"view":       file("read", "path", "file_path"), "create": file("write", "path", "file_path"), "edit": file("edit", "path", "file_path"),
		"str_replace_editor": strReplaceEditor, "glob": search("find", "path"), "grep": grepMany, "rg": grepMany,
		"web_fetch": extension("webfetch", "url"), "fetch": extension("webfetch", "url"), "web_search": extension("websearch", "query"),
		"task": extension("task", "agent_type", "name", "description", "prompt"), "skill": skill("skill", "name"),

		"report_intent": inner("report_intent"), "update_todo": inner("update_todo"), "todo": inner("todo"), "read_bash": inner("read_bash"), "stop_bash": inner("stop_bash"), "list_bash": inner("list_bash"),
		"read_agent": inner("read_agent"), "list_agents": inner("list_agents"), "ask_user": inner("ask_user"), "exit_plan_mode": inner("exit_plan_mode"), "task_complete": inner("task_complete"),
	})
}

func strReplaceEditor(c *Call, in *fields) error {
	tool := "edit"
	switch in.text("command") {
	case "view":
		tool = "read"
	case "create":
		tool = "write"
	}
	return file(tool, "path")(c, in)
}

// grepMany is a search below one path or several.
func grepMany(c *Call, in *fields) error {
	if _, ok := in.m["paths"]; ok {
		return files("grep", "paths")(c, in)
	}
	return search("grep", "path")(c, in)
}

// Parse reads the data of preToolUse and permissionRequest, in both spellings.
func (a Copilot) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	m, err := object(data)
	if err != nil {
		return nil, unreadable(a.Title(), err)
	}
	if _, ok := m["hook_event_name"]; ok {
		c, err := claudeCall{a.Name(), a.Title(), copilotTools(), []string{"PreToolUse"}, []string{"PermissionRequest"}}.parse(event, data)
		if c != nil {
			c.snake = true
		}
		return c, err
	}
	f := &fields{m: m}
	c := &Call{Event: f.text("hookName"), Tool: f.text("toolName"), Cwd: f.text("cwd")}
	if c.Event == "" {
		c.Event = event
	}
	_, asked := m["toolInput"]
	_, done := m["toolResult"]
	switch {
	case strings.EqualFold(c.Event, "permissionRequest") || c.Event == "" && asked:
		c.Asks = true
	case strings.EqualFold(c.Event, "preToolUse") || c.Event == "" && c.Tool != "" && !done:
	case c.Tool != "" && !done && !strings.EqualFold(c.Event, "postToolUse"):
		return c, unreadable(a.Title(), fmt.Errorf("the event %q is not known", c.Event))
	default:
		return c, fmt.Errorf("%s tells of %q: %w", a.Title(), c.Event, ErrNoCall)
	}
	input := f.inner("toolArgs", "toolInput")
	session, sub, kind, parent := f.text("sessionId"), f.text("agentId"), f.text("agentType"), f.text("parentAgentId")
	if f.err != nil {
		return c, unreadable(a.Title(), f.err)
	}
	if err := copilotTools().read(c, input); err != nil {
		return c, unreadable(a.Title(), err)
	}
	if sub != "" && session == sub {
		session = parent // the session of a subagent's preToolUse is its own id
	}
	c.Principal, c.Origin = principal(a.Name(), a.Title(), session, sub, kind)
	c.note("change", (&fields{m: input}).text("diff"))
	return c, nil
}

// yields reports whether Copilot was started with deny rules of its own. It lets
// any hook's allow lift them, so then Nod must not say allow: where it would, it
// is silent, and Copilot's own rules go on.
func (Copilot) yields(ancestors [][]string) bool {
	for _, args := range ancestors {
		for _, a := range args {
			if a == "--deny-tool" || a == "--deny-url" || strings.HasPrefix(a, "--deny-tool=") || strings.HasPrefix(a, "--deny-url=") {
				return true
			}
		}
	}
	return false
}

func (Copilot) ended(event string, data []byte) string {
	m, err := object(data)
	if err != nil {
		return ""
	}
	f := &fields{m: m}
	switch event {
	case "sessionEnd":
		return f.text("sessionId")
	case "subagentStop":
		return f.text("agentId")
	}
	return claudeEnded(event, data)
}

type copilotAnswer struct {
	Decision  string `json:"permissionDecision,omitempty"`
	Reason    string `json:"permissionDecisionReason,omitempty"`
	Behavior  string `json:"behavior,omitempty"`
	Message   string `json:"message,omitempty"`
	Interrupt bool   `json:"interrupt,omitempty"`
}

// Answer says allow or deny, or nothing. Where it couldn't read its call it
// says deny on stdout as well: Copilot does not show what is on stderr.
func (Copilot) Answer(c *Call, o Outcome) Reply {
	switch {
	case o.Say == Silence:
		return Reply{}
	case c == nil:
		return blocked(o.Reason)
	case c.Asks:
		a := copilotAnswer{Behavior: o.Say.String()}
		if o.Say == Deny {
			a.Message, a.Interrupt = o.Reason, o.Interrupt
		}
		return reply(a)
	case c.snake:
		return Claude{}.Answer(c, o)
	}
	return reply(copilotAnswer{Decision: o.Say.String(), Reason: o.Reason})
}
