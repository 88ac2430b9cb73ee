package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nod-agents/nod/engine"
)

// Claude is Claude Code. Source: its hooks reference at
// docs.anthropic.com/en/docs/claude-code/hooks, and runs of 2.1.332.
type Claude struct{}

// Name is claude-code.
func (Claude) Name() string { return "claude-code" }

// Title is Claude Code.
func (Claude) Title() string { return "Claude Code" }

// Timeout is 600 s.
func (Claude) Timeout() time.Duration { return 600 * time.Second }

func claudeTools() tools {
	return common(tools{
		"multiedit": file("edit", "file_path"), "notebookedit": file("edit", "notebook_path", "file_path"), "notebookread": file("read", "notebook_path", "file_path"),
		"monitor": shell("command"),
		"agent":   extension("task", "subagent_type", "description", "prompt"),
		"skill":   skill("skill", "command", "name"),

		"todowrite": inner("todowrite"), "todoread": inner("todoread"), "bashoutput": inner("bashoutput"), "killshell": inner("killshell"), "killbash": inner("killbash"),
		"taskoutput": inner("taskoutput"), "taskstop": inner("taskstop"), "taskcreate": inner("taskcreate"), "taskupdate": inner("taskupdate"), "taskget": inner("taskget"), "tasklist": inner("tasklist"),
		"exitplanmode": inner("exitplanmode"), "enterplanmode": inner("enterplanmode"), "askuserquestion": inner("askuserquestion"), "toolsearch": inner("toolsearch"),
	})
}

// claudeCall is the data that Claude Code and those that followed it send.
type claudeCall struct {
	agent, title string
	tools        tools
	pre, asks    []string // names of the events
}

func (a Claude) shape() claudeCall {
	return claudeCall{a.Name(), a.Title(), claudeTools(), []string{"PreToolUse"}, []string{"PermissionRequest"}}
}

// Parse reads the data of PreToolUse and PermissionRequest.
func (a Claude) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	return a.shape().parse(event, data)
}

func (s claudeCall) parse(event string, data []byte) (*Call, error) {
	m, err := object(data)
	if err != nil {
		return nil, unreadable(s.title, err)
	}
	f := &fields{m: m}
	c := &Call{Event: f.text("hook_event_name", "event"), Tool: f.text("tool_name"), Cwd: f.text("cwd")}
	if c.Event == "" {
		c.Event = event
	}
	switch {
	case slices.Contains(s.pre, c.Event) || c.Event == "" && c.Tool != "":
	case slices.Contains(s.asks, c.Event):
		c.Asks = true
	case c.Tool != "" && !claudeTold(c.Event):
		return c, unreadable(s.title, fmt.Errorf("the event %q is not known", c.Event))
	default:
		return c, fmt.Errorf("%s tells of %q: %w", s.title, c.Event, ErrNoCall)
	}
	input := f.inner("tool_input")
	session, sub, kind := f.text("session_id"), f.text("agent_id"), f.text("agent_type")
	mode := f.text("permission_mode")
	if f.err != nil {
		return c, unreadable(s.title, f.err)
	}
	if err := s.tools.read(c, input); err != nil {
		return c, unreadable(s.title, err)
	}
	c.Principal, c.Origin = principal(s.agent, s.title, session, sub, kind)
	c.Waits = mode == "plan" && !slices.ContainsFunc(c.Uses, readsOnly)
	if why := (&fields{m: input}).text("justification"); why != "" {
		c.note("justification", why)
	}
	var free bool
	if json.Unmarshal(input["dangerouslyDisableSandbox"], &free) == nil && free {
		c.note("sandbox", "The agent wants to run this outside its sandbox.")
	}
	return c, nil
}

func readsOnly(u Use) bool {
	switch u.Tool {
	case "read", "grep", "find", "ls", "webfetch", "websearch", "task", "skill":
		return true
	}
	return false
}

// claudeTold are events that tell of a tool call which is over, or of none.
func claudeTold(event string) bool {
	switch event {
	case "PostToolUse", "PostToolUseFailure", "PermissionDenied", "Notification", "SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "UserPromptSubmit", "PreCompact", "PostCompact":
		return true
	}
	return false
}

func (Claude) ended(event string, data []byte) string { return claudeEnded(event, data) }

// claudeEnded is the session or subagent of whose end the data tells.
func claudeEnded(event string, data []byte) string {
	m, err := object(data)
	if err != nil {
		return ""
	}
	f := &fields{m: m}
	if e := f.text("hook_event_name"); e != "" {
		event = e
	}
	switch event {
	case "SessionEnd":
		return f.text("session_id")
	case "SubagentStop":
		return f.text("agent_id")
	}
	return ""
}

// principal is who asks: the subagent, by its own id and kind, or the session.
func principal(agent, title, session, sub, kind string) (engine.Principal, string) {
	p := engine.Principal{SessionID: session, AgentName: agent}
	origin := title
	if session != "" {
		origin += ", session " + session
	}
	if sub == "" {
		if p.SessionID == "" {
			p.SessionID = agent
		}
		return p, origin
	}
	p.SessionID = sub
	if kind != "" {
		p.AgentName = kind
	}
	return p, origin + ", subagent " + sub + " (" + p.AgentName + ")"
}

// The answers of Claude Code and those that followed it.
type (
	claudeAnswer struct {
		Continue   *bool        `json:"continue,omitempty"`
		StopReason string       `json:"stopReason,omitempty"`
		Specific   *claudeWords `json:"hookSpecificOutput,omitempty"`
	}
	claudeWords struct {
		Event    string          `json:"hookEventName"`
		Decision string          `json:"permissionDecision,omitempty"`
		Reason   string          `json:"permissionDecisionReason,omitempty"`
		Request  *claudeDecision `json:"decision,omitempty"`
	}
	claudeDecision struct {
		Behavior  string `json:"behavior"`
		Message   string `json:"message,omitempty"`
		Interrupt bool   `json:"interrupt,omitempty"`
	}
)

// Answer says allow or deny, or nothing. A denial is JSON with exit code 0.
func (Claude) Answer(c *Call, o Outcome) Reply {
	switch {
	case o.Say == Silence:
		return Reply{}
	case c == nil:
		return blocked(o.Reason)
	case c.Asks:
		d := &claudeDecision{Behavior: o.Say.String()}
		if o.Say == Deny {
			d.Message, d.Interrupt = o.Reason, o.Interrupt
		}
		return reply(claudeAnswer{Specific: &claudeWords{Event: "PermissionRequest", Request: d}})
	}
	a := claudeAnswer{Specific: &claudeWords{Event: "PreToolUse", Decision: o.Say.String(), Reason: o.Reason}}
	if o.Say == Deny && o.Interrupt {
		a.Continue, a.StopReason = new(bool), o.Reason
	}
	return reply(a)
}
