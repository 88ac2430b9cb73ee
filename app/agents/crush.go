package agents

import "time"

// Crush is Charm's Crush. Source: docs/hooks/README.md in charmbracelet/crush;
// not run here. Only its top-level agent's calls reach a hook.
type Crush struct{}

// Name is crush.
func (Crush) Name() string { return "crush" }

// Title is Crush.
func (Crush) Title() string { return "Crush" }

// Timeout is 30 s.
func (Crush) Timeout() time.Duration { return 30 * time.Second }

func crushTools() tools {
	return common(tools{
		"view": file("read", "file_path", "path"), "download": file("write", "file_path"),
		"fetch": extension("webfetch", "url"), "web_fetch": extension("webfetch", "url"), "agentic_fetch": extension("webfetch", "url", "prompt"),
		"web_search": extension("websearch", "query"), "sourcegraph": extension("websearch", "query"),
		"agent": extension("task", "prompt"),

		"todos": inner("todos"), "job_output": inner("job_output"), "job_kill": inner("job_kill"),
		"lsp_diagnostics": inner("lsp_diagnostics"), "lsp_references": inner("lsp_references"), "diagnostics": inner("diagnostics"), "references": inner("references"),
	})
}

// Parse reads the data of PreToolUse, whose name Crush takes in any case and
// with underscores.
func (a Crush) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	return claudeCall{a.Name(), a.Title(), crushTools(), []string{"PreToolUse", "pretooluse", "PRETOOLUSE", "pre_tool_use", "PRE_TOOL_USE"}, nil}.parse(event, data)
}

type crushAnswer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	Halt     bool   `json:"halt,omitempty"`
}

// Answer says allow, which skips Crush's own prompt, or deny, or nothing.
func (Crush) Answer(c *Call, o Outcome) Reply {
	switch {
	case o.Say == Silence:
		return Reply{}
	case c == nil:
		return blocked(o.Reason)
	}
	a := crushAnswer{Decision: o.Say.String()}
	if o.Say == Deny {
		a.Reason, a.Halt = o.Reason, o.Interrupt
	}
	return reply(a)
}
