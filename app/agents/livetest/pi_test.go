//go:build linux

package livetest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pi is the pi agent with its permission system. It has no hook: it is started
// by nod run and forwards what it would ask.
var pi = client{
	name: "pi", title: "pi-permission-system", version: "20.7.3", dir: "pi",
	prepare: func(w *world) {
		w.piModel("mock/m1")
		w.write(".pi/agent/extensions/pi-permission-system/config.json", askAll)
	},
	run: func(w *world) (string, []string, []string) {
		// The name is how this agent's own subagents are told apart.
		return w.nod, append([]string{"run", "--"}, w.piCommand("--no-session", "--append-system-prompt", `<active_agent name="pi"/>`,
			"-e", filepath.Join(w.dir, "@gotgenes", "pi-permission-system"), "run it")...), []string{"PI_OFFLINE=1", "TMPDIR=" + w.shared} // where it keeps what it has compiled
	},
	bash: func(command string) tool { return tool{name: "bash", input: object{"command": command}} },
	plays: map[string]func(t *testing.T, w *world) string{
		"Nod not running": func(t *testing.T, w *world) string {
			done := w.start()
			eventually(t, "the ask", func() bool { return len(w.requests()) == 1 })
			ran(t, w, "")
			w.serve(`{"decision":"approved"}`)
			ran(t, w, done(), "one")
			return "waits for Nod, 600 s"
		},
		"late answer": func(t *testing.T, w *world) string {
			// What is ten minutes for this agent need not be ten for the test:
			// its clock is put forward once it waits.
			w.write("clock.mjs", `import fs from "node:fs";
const now = Date.now;
Date.now = () => { let ms = 0; try { ms = Number(fs.readFileSync(process.env.AHEAD, "utf8")); } catch {} return now() + ms; };
`)
			ahead := filepath.Join(w.home, "ahead")
			w.extra = []string{"NODE_OPTIONS=--import=" + filepath.Join(w.home, "clock.mjs"), "AHEAD=" + ahead}
			done := w.start()
			eventually(t, "the ask", func() bool { return len(w.asks()) == 1 })
			w.write("ahead", "590000")
			time.Sleep(time.Second)
			if len(w.requests()) != 1 {
				t.Error("it does not wait ten minutes")
			}
			w.write("ahead", "601000")
			out := done()
			ran(t, w, out)
			told(t, w, out, "denied")
			return "denied"
		},
		"hook killed": func(t *testing.T, w *world) string {
			ran(t, w, w.play()) // what asks is the agent itself
			asked(t, w, "", 1)
			return "no hook: pi asks by itself"
		},
	},
}

// piModel makes the model the one that pi uses.
func (w *world) piModel(model string) {
	provider, id, _ := strings.Cut(model, "/")
	data, err := json.Marshal(object{"providers": object{provider: object{
		"baseUrl": w.model.URL + "/v1", "api": "openai-completions", "apiKey": "x",
		"compat": object{"supportsDeveloperRole": false, "supportsReasoningEffort": false}, "models": []object{{"id": id}},
	}}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(".pi/agent/models.json", string(data))
}

// piCommand is pi without anybody to ask, with further arguments.
func (w *world) piCommand(args ...string) []string {
	return append([]string{filepath.Join(nodeBin(w.t), "node"), filepath.Join(w.dir, "@earendil-works", "pi-coding-agent", "dist", "cli.js"),
		"-p", "--provider", "mock", "--model", "mock/m1"}, args...)
}

// requests are the asks that wait in the inbox of the session desktop.
func (w *world) requests() []string {
	w.t.Helper()
	list, err := os.ReadDir(filepath.Join(w.home, ".pi/agent/sessions/permission-forwarding/sessions/desktop/requests"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".json") {
			names = append(names, e.Name())
		}
	}
	return names
}

// piSubagents is pi with subagents, in processes of their own and within its
// own. All of it loads the permission system by its settings.
var piSubagents = client{
	name: "pi-subagents", title: "pi-subagents", version: "0.67.0", dir: "pi-subagents", slow: true,
	prepare: func(w *world) {
		w.piModel("mock/m1")
		w.write(".pi/agent/extensions/pi-permission-system/config.json", `{"permission": {"*": "ask", "subagent": "allow"}}`)
		settings, err := json.Marshal(object{"defaultProvider": "mock", "defaultModel": "m1",
			"extensions": []string{filepath.Join(w.dir, "@gotgenes", "pi-permission-system"), filepath.Join(w.dir, "pi-subagents")}})
		if err != nil {
			w.t.Fatal(err)
		}
		w.write(".pi/agent/settings.json", string(settings))
		// What it compiles is shared, what else it keeps there is not.
		compiled := filepath.Join(w.shared, "jiti")
		if err := errors.Join(os.MkdirAll(compiled, 0o755), os.Symlink(compiled, filepath.Join(w.home, "tmp", "jiti"))); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(w.endRunners)
	},
	run: func(w *world) (string, []string, []string) {
		args := w.piCommand("run it")
		return args[0], args[1:], []string{"PI_OFFLINE=1"}
	},
}

// endRunners ends the subagents that outlived their parent.
func (w *world) endRunners() {
	files, _ := filepath.Glob(filepath.Join(w.home, "tmp", "pi-subagents-uid-*", "async-subagent-runs", "*", "status.json"))
	for _, f := range files {
		var status struct {
			PID int `json:"pid"`
		}
		if data, err := os.ReadFile(f); err == nil && json.Unmarshal(data, &status) == nil && status.PID > 1 {
			_ = syscall.Kill(status.PID, syscall.SIGKILL)
		}
	}
}

// TestPiSubagents plays the ways in which subagents of pi come about.
func TestPiSubagents(t *testing.T) {
	need(t)
	if !everything() {
		t.Skip("slow: runs with NOD_AGENTS=1")
	}
	c := &clients[len(clients)-1]
	play := func(t *testing.T, background bool, answer string, serve ...string) *world {
		w := newWorld(t, c, script{
			main:  []tool{{name: "subagent", input: object{"agent": "worker", "task": "CHILD: run it", "async": background}}},
			child: []tool{{name: "bash", input: object{"command": "touch one"}}},
		})
		w.policy(askAll)
		w.serve(answer, serve...)
		return w
	}
	made := func(w *world) func() bool { return func() bool { return len(w.made("one")) == 1 } }

	t.Run("background", func(t *testing.T) {
		t.Parallel()
		w := play(t, true, `{"decision":"approved"}`)
		// Without it they would ask their parent, which serves nobody.
		w.extra = []string{"PI_AGENT_ROUTER_PARENT_SESSION_ID=desktop"}
		out := w.play()
		eventually(t, "the subagent's file", made(w))
		if list := w.asks(); len(list) != 1 || list[0].AgentName != "worker" || list[0].Value != "touch one" || list[0].RequesterSessionID == "" {
			t.Errorf("asked %+v\nit wrote: %s", list, out)
		}
		note(c, "subagents", "own id, named `worker`")
	})
	t.Run("adopted", func(t *testing.T) {
		t.Parallel()
		w := play(t, true, `{"decision":"approved"}`, "--adopt")
		out := w.play()
		eventually(t, "the subagent's file", made(w))
		if list := w.asks(); len(list) != 1 || list[0].AgentName != "worker" || list[0].Value != "touch one" {
			t.Errorf("asked %+v\nit wrote: %s", list, out)
		}
		note(c, "subagents it doesn't serve", "`nod serve --adopt` answers")
	})
	t.Run("foreground", func(t *testing.T) {
		t.Parallel()
		w := play(t, false, `{"decision":"denied"}`, "--adopt")
		w.extra = []string{"PI_AGENT_ROUTER_PARENT_SESSION_ID=desktop"}
		out := w.play()
		if list := w.asks(); len(list) != 0 || !made(w)() {
			t.Errorf("asked %+v, made %q\nit wrote: %s", list, w.made("one"), out)
		}
		note(c, "subagents within its process", "**run**: not gated")
	})
}
