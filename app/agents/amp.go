package agents

import (
	"time"
)

// Amp is Sourcegraph's Amp. Source: "Permissions" in the appendix of its manual
// at ampcode.com/manual/appendix; not run here.
//
// Amp knows no hooks but rules that delegate to a program: it gets the tool's
// input as JSON on stdin and the rest in its environment, and its exit code is
// its answer.
type Amp struct{}

// Name is amp.
func (Amp) Name() string { return "amp" }

// Title is Amp.
func (Amp) Title() string { return "Amp" }

// Timeout is 60 s; Amp documents none.
func (Amp) Timeout() time.Duration { return 60 * time.Second }

func ampTools() tools {
	return common(tools{
		"bash": shell("cmd", "command"), "create_file": file("write", "path"), "edit_file": file("edit", "path"), "undo_edit": file("edit", "path"), "delete_file": file("write", "path"),
		"finder": search("grep", "path"), "list_directory": search("ls", "path"), "look_at": file("read", "path"),
		"read_web_page": extension("webfetch", "url", "prompt"), "web_search": extension("websearch", "query", "objective"),
		"oracle": extension("task", "task"), "librarian": extension("task", "query"),

		"todo_read": inner("todo_read"), "todo_write": inner("todo_write"), "mermaid": inner("mermaid"), "read_thread": inner("read_thread"),
	})
}

// Parse reads a tool's input; what tool it is stands in AGENT_TOOL_NAME.
func (a Amp) Parse(event string, data []byte, getenv func(string) string) (*Call, error) {
	m, err := object(data)
	if err != nil {
		return nil, unreadable(a.Title(), err)
	}
	c := &Call{Event: "delegate", Tool: getenv("AGENT_TOOL_NAME"), Cwd: getenv("PWD")}
	if c.Tool == "" {
		c.Tool = event
	}
	c.Principal, c.Origin = principal(a.Name(), a.Title(), getenv("AMP_THREAD_ID"), "", "")
	if err := ampTools().read(c, m); err != nil {
		return c, unreadable(a.Title(), err)
	}
	return c, nil
}

// Answer is an exit code: 0 allows, 1 has Amp ask its user, 2 rejects with what
// is on stderr.
func (Amp) Answer(_ *Call, o Outcome) Reply {
	switch o.Say {
	case Allow:
		return Reply{}
	case Deny:
		return blocked(o.Reason)
	}
	return Reply{Exit: 1}
}
