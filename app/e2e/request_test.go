//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// ask is an ask as a child of the newest generation writes it.
type ask struct {
	id      string
	agent   string // empty: scout
	command string
	whole   string // the line that command is the judged part of; empty: itself
	target  string // empty: the session
	cwd     string // empty: /home/dev/proj
}

// request is a's file.
func (a ask) request() []byte {
	if a.agent == "" {
		a.agent = "scout"
	}
	if a.target == "" {
		a.target = session
	}
	if a.cwd == "" {
		a.cwd = "/home/dev/proj"
	}
	evidence := []any{}
	if a.whole != "" {
		evidence = append(evidence, map[string]any{"label": "full command", "text": a.whole, "detail": nil})
	}
	child := a.agent + "-session"
	data, err := json.Marshal(map[string]any{
		"id": a.id, "createdAt": time.Now().UnixMilli(), "requesterSessionId": child, "targetSessionId": a.target,
		"requesterAgentName": a.agent, "source": "tool_call", "surface": "bash", "value": a.command,
		"sessionApproval": map[string]any{"grants": []any{map[string]any{"surface": "bash", "pattern": a.command}}},
		"accessIntent": map[string]any{
			"surface": "bash", "matchValues": []string{a.command}, "boundaryValue": nil, "requesterCwd": a.cwd,
			"principal": map[string]any{"sessionId": child, "agentName": a.agent},
		},
		"payload": map[string]any{
			"kind": "bash",
			"request": map[string]any{
				"requester": map[string]any{"agentName": a.agent, "forwarded": false, "sessionId": child},
				"surface":   "bash", "toolName": "bash", "invokedToolName": nil, "value": a.command, "matchedPattern": nil,
				"commandContext": nil, "executedUnit": nil,
			},
			"evidence": evidence, "annotations": []any{},
		},
	})
	if err != nil {
		panic(err) // there is nothing in it that could fail
	}
	return data
}

// submit puts an ask into the inbox, in one step, and returns when that was.
func (m *machine) submit(a ask) time.Time {
	m.t.Helper()
	return m.put(a.id+".json", a.request())
}

// put puts a file into the inbox, in one step.
func (m *machine) put(name string, data []byte) time.Time {
	m.t.Helper()
	dir := m.spool("requests")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	fresh := filepath.Join(dir, "."+name+".tmp")
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		m.t.Fatal(err)
	}
	at := time.Now()
	if err := os.Rename(fresh, filepath.Join(dir, name)); err != nil {
		m.t.Fatal(err)
	}
	return at
}

// response is the answer to an ask.
type response struct {
	Approved  bool            `json:"approved"`
	State     string          `json:"state"`
	Reason    string          `json:"denialReason"`
	Responder string          `json:"responderSessionId"`
	DecidedBy json.RawMessage `json:"decidedBy"`
}

// answered reads the answer to an ask, if there is one, and leaves it there.
func (m *machine) answered(id string) (r response, ok bool) {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.spool("responses"), id+".json"))
	if err != nil {
		return r, false
	}
	if err := json.Unmarshal(data, &r); err != nil {
		m.t.Fatalf("the response to %s is unreadable: %v: %s", id, err, data)
	}
	return r, true
}

// collect waits for the answer to an ask and takes it, as its child does.
func (m *machine) collect(id string) response {
	m.t.Helper()
	var r response
	eventually(m.t, "the answer to "+id, func() (ok bool) {
		r, ok = m.answered(id)
		return ok
	})
	if err := os.Remove(filepath.Join(m.spool("responses"), id+".json")); err != nil {
		m.t.Fatal(err)
	}
	return r
}

// remove takes a file out of the inbox.
func (m *machine) remove(kind, name string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.spool(kind), name)); err != nil {
		m.t.Fatal(err)
	}
}
