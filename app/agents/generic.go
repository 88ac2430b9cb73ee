package agents

import (
	"encoding/json"
	"errors"
	"time"
)

// Generic is any agent that can run a program before a tool: in Nod's own
// words. On stdin
//
//	{"tool": "bash", "input": {"command": "ls"}, "cwd": "/home/dev/proj",
//	 "session": "s1", "agent": "scout", "parent": "s0", "asks": false}
//
// where all but tool may be left out, and on stdout
//
//	{"decision": "allow"} or {"decision": "deny", "reason": "…"}
//
// with exit code 0, or 1 for a denial. No opinion is an empty stdout.
type Generic struct{}

// Name is generic.
func (Generic) Name() string { return "generic" }

// Title is what people read where no agent's name is known.
func (Generic) Title() string { return "an agent" }

// Timeout is 600 s.
func (Generic) Timeout() time.Duration { return 600 * time.Second }

// enginesOwn reports whether tool is under the engine's own name, so that its
// input is taken as it is.
func enginesOwn(tool string) bool {
	switch tool {
	case "bash", "read", "write", "edit", "grep", "find", "ls", "mcp", "skill":
		return true
	}
	return false
}

// Parse reads the call. A tool of the engine's own name gets its input as it
// is; the names of the known agents are understood too.
func (a Generic) Parse(event string, data []byte, _ func(string) string) (*Call, error) {
	m, err := object(data)
	if err != nil {
		return nil, unreadable(a.Title(), err)
	}
	f := &fields{m: m}
	c := &Call{Event: event, Tool: f.text("tool"), Cwd: f.text("cwd")}
	input := f.inner("input")
	session, agent, parent := f.text("session"), f.text("agent"), f.text("parent")
	if raw, ok := m["asks"]; ok && json.Unmarshal(raw, &c.Asks) != nil && f.err == nil {
		f.err = errors.New("asks must be true or false")
	}
	if f.err != nil {
		return c, unreadable(a.Title(), f.err)
	}
	c.Principal, c.Origin = principal(a.Name(), a.Title(), session, "", "")
	if parent != "" && session != "" {
		c.Principal, c.Origin = principal(a.Name(), a.Title(), parent, session, agent)
	} else if agent != "" {
		c.Principal.AgentName = agent
	}
	if enginesOwn(c.Tool) {
		err = a.own(c, input)
	} else {
		err = common(nil).read(c, input)
	}
	if err != nil {
		return c, unreadable(a.Title(), err)
	}
	return c, nil
}

func (Generic) own(c *Call, input map[string]json.RawMessage) error {
	in := map[string]any{}
	for k, raw := range input {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		switch k {
		case "path", "command", "pattern", "server", "tool", "name", "connect", "search", "describe":
			if _, ok := v.(string); !ok {
				return errors.New("the input's " + k + " must be a string")
			}
		}
		in[k] = v
	}
	c.use(c.Tool, in)
	return nil
}

type genericAnswer struct {
	Decision  string `json:"decision"`
	Reason    string `json:"reason,omitempty"`
	Interrupt bool   `json:"interrupt,omitempty"`
}

// Answer says allow or deny, or nothing.
func (Generic) Answer(c *Call, o Outcome) Reply {
	switch {
	case o.Say == Silence:
		return Reply{}
	case c == nil:
		return blocked(o.Reason)
	}
	r := reply(genericAnswer{Decision: o.Say.String(), Reason: o.Reason, Interrupt: o.Interrupt && o.Say == Deny})
	if o.Say == Deny && r.Exit == 0 {
		r.Exit = 1
	}
	return r
}
