package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nod-agents/nod/engine"
)

// capture is one call of a hook as a real agent made it, and the run of which
// it is a part. All of what each agent was seen to send in such runs is kept.
type capture struct {
	Case  string          `json:"case"`
	Event string          `json:"event"`
	Stdin json.RawMessage `json:"stdin"`
}

// captures are all of an agent's.
func captures(t testing.TB, agent string) []capture {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "captures", agent+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []capture
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c capture
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		all = append(all, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// gating are the events that an agent waits for, so that each is a call.
var gating = map[string]bool{
	"PreToolUse": true, "PermissionRequest": true, "BeforeTool": true, "preToolUse": true, "permissionRequest": true, "tool.execute.before": true,
}

// TestCaptures has the hook read every capture, pins what it understood, a line
// for each, and checks what it answers to an allow and to a denial.
func TestCaptures(t *testing.T) {
	for agent, count := range map[string]int{"claude-code": 215, "codex": 150, "copilot": 132, "gemini": 110, "opencode": 8} {
		t.Run(agent, func(t *testing.T) {
			a, _ := Find(agent)
			all := captures(t, agent)
			if len(all) != count {
				t.Errorf("%d captures, not %d", len(all), count)
			}
			var b bytes.Buffer
			for _, c := range all {
				fmt.Fprintf(&b, "%s %s: %s\n", c.Case, c.Event, understood(t, a, c))
				answered(t, a, c)
			}
			goldenText(t, filepath.Join("captures", agent+".txt"), b.Bytes())
		})
	}
}

// understood is what an adapter reads of a capture, on a line.
func understood(t *testing.T, a Adapter, c capture) string {
	t.Helper()
	call, err := a.Parse(c.Event, c.Stdin, func(string) string { return "" })
	if errors.Is(err, ErrNoCall) != !gating[c.Event] {
		t.Errorf("%s: %v", c.Event, err)
	}
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s of %s", call.Principal.AgentName, call.Tool, call.Principal.SessionID)
	for _, flag := range []struct {
		set  bool
		name string
	}{{call.Asks, "asks"}, {call.Inner, "inner"}, {call.Waits, "waits"}} {
		if flag.set {
			b.WriteString(", " + flag.name)
		}
	}
	for _, u := range call.Uses {
		input, err := json.Marshal(u.Input)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, " = %s %s", u.Tool, input)
		if u.Dir != "" {
			b.WriteString(" in " + u.Dir)
		}
	}
	return b.String()
}

// answered runs the whole hook on a capture: a denial must reach the agent word
// for word, an allow must not read as one, and an event without a call gets no
// opinion.
func answered(t *testing.T, a Adapter, c capture) {
	t.Helper()
	const why = `not "here", use <there> & ask`
	quoted := `not \"here\", use <there> & ask`
	for _, ruling := range []said{{Action: engine.Allow}, {Action: engine.Deny, Reason: why}} {
		h := hook(ruling, &answers{})
		h.Adapter = a
		r := h.Run(t.Context(), c.Event, bytes.NewReader(c.Stdin))
		out := string(r.Stdout)
		switch {
		case !gating[c.Event]:
			if r.Exit != 0 || out != "" {
				t.Errorf("%s %s: an opinion where there is no call: %+v", c.Case, c.Event, r)
			}
		case r.Exit != 0 || out != "" && !json.Valid(r.Stdout):
			t.Errorf("%s %s: %+v", c.Case, c.Event, r)
		case ruling.Action == engine.Deny && !strings.Contains(out, quoted):
			t.Errorf("%s %s: the reason is lost: %s", c.Case, c.Event, out)
		case ruling.Action == engine.Allow && (strings.Contains(out, "deny") || strings.Contains(out, "block")):
			t.Errorf("%s %s: an allow reads as a denial: %s", c.Case, c.Event, out)
		}
	}
}
