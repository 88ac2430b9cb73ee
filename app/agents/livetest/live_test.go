//go:build linux

package livetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const askAll = `{"permission": {"*": "ask"}}`

// scenario is one row of the table: what is set up, and what must be seen.
type scenario struct {
	name   string // as docs/agents.md has it
	policy string
	answer string                                          // of the program behind nod serve; empty: nothing serves
	run    []string                                        // commands, one call each
	check  func(t *testing.T, w *world, out string) string // what the table says
	play   func(t *testing.T, w *world) string             // in place of answer and check
}

const reason = "Not like this: use `git mv` & tell me <why>."

// ran checks that exactly those files were made.
func ran(t *testing.T, w *world, out string, names ...string) {
	t.Helper()
	if got := w.made("one", "two"); !slices.Equal(got, names) {
		t.Errorf("made %q, want %q\nthe model saw: %s\nit wrote: %s\nasks: %+v", got, names, w.model.seen(), out, w.asks())
	}
}

func asked(t *testing.T, w *world, out string, n int) {
	t.Helper()
	list := w.asks()
	if len(list) != n {
		t.Errorf("asked %d times, want %d: %+v\nthe model saw: %s\nit wrote: %s", len(list), n, list, w.model.seen(), out)
	}
	for _, a := range list {
		if a.Tool != "bash" || a.Surface != "bash" || !strings.HasPrefix(a.Value, "touch ") || a.AgentName != w.c.name || a.RequesterSessionID == "" {
			t.Errorf("asked %+v", a)
		}
	}
}

func told(t *testing.T, w *world, out, words string) {
	t.Helper()
	if !strings.Contains(w.model.seen(), words) {
		t.Errorf("the model was not told %q but: %s\nit wrote: %s", words, w.model.seen(), out)
	}
}

var scenarios = []scenario{
	{
		name: "allowed by rule", policy: `{"permission": {"*": "ask", "bash": {"touch *": "allow"}}}`, answer: `{"decision":"denied"}`, run: []string{"touch one"},
		check: func(t *testing.T, w *world, out string) string {
			ran(t, w, out, "one")
			asked(t, w, out, 0)
			return "runs"
		},
	},
	{
		name: "denied by rule", policy: `{"permission": {"*": "ask", "bash": {"touch *": {"action": "deny", "reason": "` + "Not like this: use `git mv` & tell me <why>." + `"}}}}`,
		answer: `{"decision":"approved"}`, run: []string{"touch one"},
		check: func(t *testing.T, w *world, out string) string {
			ran(t, w, out)
			asked(t, w, out, 0)
			told(t, w, out, reason)
			saw := strings.NewReplacer(reason, "REASON", w.home, "…", "\n", " ", "|", "\\|").Replace(w.model.seen())
			note(w.c, "what the model reads", "`"+strings.Join(strings.Fields(saw), " ")+"`")
			return "denied, reason word for word"
		},
	},
	{
		name: "asked, and allowed by a click", policy: askAll, run: []string{"touch one"}, play: approvedByClick,
	},
	{
		name: "asked and denied", policy: askAll, answer: `{"decision":"denied_with_reason","denialReason":"` + reason + `"}`, run: []string{"touch one"},
		check: func(t *testing.T, w *world, out string) string {
			ran(t, w, out)
			asked(t, w, out, 1)
			told(t, w, out, reason)
			return "denied, reason word for word"
		},
	},
	{
		name: "this session", policy: askAll, answer: `{"decision":"approved_for_session"}`, run: []string{"touch one", "touch two"},
		check: func(t *testing.T, w *world, out string) string {
			ran(t, w, out, "one", "two")
			asked(t, w, out, 1)
			return "then silent"
		},
	},
	{
		name: "Nod not running", policy: askAll, run: []string{"touch one"},
		check: func(t *testing.T, w *world, out string) string {
			ran(t, w, out)
			told(t, w, out, "Nobody could be asked, so this was denied: Session 'desktop' is not serving forwarded permission requests.")
			return "denied, with why"
		},
	},
	{
		name: "late answer", policy: `{"permission": {"*": "ask"}, "forwardingTimeoutMs": 1500}`, answer: "wait", run: []string{"touch one"},
		check: func(t *testing.T, w *world, out string) string {
			ran(t, w, out)
			told(t, w, out, "Nobody answered within 2s, so this was denied.")
			return "denied, with why"
		},
	},
	{
		name: "hook killed", policy: askAll, answer: "kill", run: []string{"touch one"},
		check: func(t *testing.T, w *world, out string) string {
			if w.c.survives {
				ran(t, w, out, "one")
				return "**runs**: fails open"
			}
			ran(t, w, out)
			return "does not run"
		},
	},
	{name: "hook late", policy: askAll, answer: "wait", run: []string{"touch one"}, play: lateHook},
}

// lateHook plays an agent that is made to wait for its hook for 2 s only, which
// the hook does not know.
func lateHook(t *testing.T, w *world) string {
	if w.c.late == nil {
		return nothing
	}
	path := filepath.Join(w.home, w.c.settings)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.c.settings, strings.ReplaceAll(string(text), w.c.waits, strings.Replace(w.c.waits, "600", "2", 1)))
	says := w.c.late(w)
	out := w.play()
	if len(w.asks()) == 0 {
		t.Errorf("its hook was not called; it wrote: %s", out)
	}
	if says == "" {
		ran(t, w, out)
		return "does not run"
	}
	ran(t, w, out, "one")
	return says
}

// TestAgents plays every scenario with every agent, as many at once as there
// are processors.
func TestAgents(t *testing.T) {
	need(t)
	for _, c := range chosen() {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range scenarios {
				if c.bash == nil {
					continue // it is driven by tests of its own
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					play, its := s.play, c.plays[s.name]
					if its != nil {
						play = its
					}
					var plan script
					for _, command := range s.run {
						plan.main = append(plan.main, c.bash(command))
					}
					w := newWorld(t, c, plan)
					w.policy(s.policy)
					w.install()
					if s.answer != "" {
						w.serve(s.answer)
					}
					if play != nil {
						note(c, s.name, play(t, w))
						return
					}
					out := w.play()
					note(c, s.name, s.check(t, w, out))
				})
			}
		})
	}
}

// TestSubagents checks whose name and id a subagent's ask bears, and that a
// grant for it alone is not its parent's.
func TestSubagents(t *testing.T) {
	need(t)
	for _, c := range chosen() {
		if c.task == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c, script{main: []tool{*c.task, c.bash("touch two"), c.bash("sleep 6")}, child: []tool{c.bash("touch one")}})
			w.policy(`{"permission": {"*": "ask", "task": "allow", "bash": {"sleep *": "allow"}}}`)
			w.install()
			w.serve(`{"decision":"approved_for_session"}`)
			out := w.play()
			list := w.asks()
			var child, parent *ask
			for i := range list {
				switch list[i].Value {
				case "touch one":
					child = &list[i]
				case "touch two":
					parent = &list[i]
				}
			}
			if c.subagent == "" {
				// What is granted to it is granted to the agent itself.
				if child == nil || len(list) != 1 || child.AgentName != c.name {
					t.Errorf("asks: %+v\nthe model saw: %s\nit wrote: %s", list, w.model.seen(), out)
				}
				ran(t, w, out, "one", "two")
				note(c, "subagents", "not told from the agent")
				return
			}
			if child == nil || parent == nil || len(list) != 2 {
				t.Fatalf("asks: %+v\nthe model saw: %s\nit wrote: %s", list, w.model.seen(), out)
			}
			if child.AgentName != c.subagent || child.RequesterSessionID == parent.RequesterSessionID || parent.AgentName != c.name {
				t.Errorf("the child is %+v, the parent %+v", child, parent)
			}
			note(c, "subagents", fmt.Sprintf("own id, named `%s`", child.AgentName))
		})
	}
}

// TestAdvice plays the mode in which Nod only advises, with the agents that ask
// by a hook of their own when nobody watches.
func TestAdvice(t *testing.T) {
	need(t)
	for _, c := range chosen() {
		if c.asks == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for answer, files := range map[string][]string{`{"decision":"approved"}`: {"one"}, `{"decision":"denied_with_reason","denialReason":"` + reason + `"}`: nil} {
				w := newWorld(t, c, script{main: []tool{c.asks("touch one")}})
				w.policy(askAll)
				w.install("--mode", "advise")
				w.serve(answer)
				out := w.play()
				ran(t, w, out, files...)
				asked(t, w, out, 1)
				if files == nil {
					told(t, w, out, reason)
				}
			}
			note(c, "advise", "asks where the agent does")
		})
	}
}

// TestUntrustedHook shows what becomes of a hook that its user has not trusted,
// where the agent knows such trust: it is passed over.
func TestUntrustedHook(t *testing.T) {
	need(t)
	for _, c := range chosen() {
		if !slices.Contains(c.install, "--trust") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c, script{main: []tool{c.bash("touch one")}})
			w.policy(`{"permission": {"*": "deny"}}`)
			bare := *c
			bare.install = nil
			w.c = &bare
			w.install()
			ran(t, w, w.play(), "one")
			note(c, "hook not trusted", "**runs**: the hook is skipped")
		})
	}
}

// TestNeverCalled shows where an agent calls no hook though one might expect it.
func TestNeverCalled(t *testing.T) {
	need(t)
	for _, c := range chosen() {
		switch c.name {
		case "gemini":
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c, script{main: []tool{c.bash("touch one")}})
				// Nothing allows the shell tool, so it would ask.
				w.write("allow.toml", "[[rule]]\ntoolName = \"read_file\"\ndecision = \"allow\"\npriority = 900\n")
				w.policy(askAll)
				w.install()
				w.serve(`{"decision":"approved"}`)
				out := w.play()
				ran(t, w, out)
				asked(t, w, out, 0)
				told(t, w, out, "not found")
				note(c, "never called", "for tools that it would ask about: it hides them")
			})
		case "opencode":
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c, script{main: []tool{c.bash("touch one")}})
				path := ".config/opencode/opencode.json"
				data, err := os.ReadFile(filepath.Join(w.home, path))
				if err != nil {
					t.Fatal(err)
				}
				w.write(path, strings.Replace(string(data), `"permission": "allow"`, `"permission": {"*": "allow", "bash": "ask"}`, 1))
				w.write(".config/opencode/plugin/other.js", fmt.Sprintf(`import fs from "node:fs";
export const Other = async () => {
  fs.writeFileSync(%q, "");
  return { "permission.ask": async () => fs.writeFileSync(%q, "") };
};
`, filepath.Join(w.home, "loaded"), filepath.Join(w.home, "called")))
				out := w.play()
				ran(t, w, out) // nobody watches, so its own ask is a denial
				exists := func(name string) bool { _, err := os.Stat(filepath.Join(w.home, name)); return err == nil }
				if !exists("loaded") || exists("called") {
					t.Errorf("the plugin was loaded: %v, asked: %v\n%s", exists("loaded"), exists("called"), out)
				}
				note(c, "never called", "`permission.ask`")
			})
		}
	}
}

// TestOwnRulesStand checks that no allow of Nod's lifts a rule of the agent's.
func TestOwnRulesStand(t *testing.T) {
	need(t)
	own := map[string]func(w *world){
		"claude-code": func(w *world) {
			w.write(".claude/settings.json", `{"permissions": {"deny": ["Bash(touch one)"], "ask": ["Bash(touch two)"]}}`)
		},
		"gemini": func(w *world) {
			w.write("allow.toml", "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch\"\ndecision = \"deny\"\npriority = 950\n\n[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"allow\"\npriority = 900\n")
		},
		"codex": func(w *world) {
			w.write(".codex/rules/default.rules", "prefix_rule(pattern = [\"touch\"], decision = \"forbidden\")\n")
		},
		"pi": func(w *world) {
			w.write(".pi/agent/extensions/pi-permission-system/config.json", `{"permission": {"*": "ask", "bash": {"touch *": "deny"}}}`)
		},
		"copilot": func(w *world) { w.args = []string{"--allow-all-tools", "--deny-tool", "shell(touch)"} },
		"opencode": func(w *world) {
			path := ".config/opencode/opencode.json"
			data, err := os.ReadFile(w.home + "/" + path)
			if err != nil {
				w.t.Fatal(err)
			}
			w.write(path, strings.Replace(string(data), `"permission": "allow"`, `"permission": {"*": "allow", "bash": {"*": "allow", "touch *": "deny"}}`, 1))
		},
	}
	for _, c := range chosen() {
		prepare := own[c.name]
		if prepare == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c, script{main: []tool{c.bash("touch one"), c.bash("touch two")}})
			prepare(w)
			w.policy(`{"permission": {"*": "allow"}}`)
			w.install()
			w.serve(`{"decision":"approved"}`)
			out := w.play()
			ran(t, w, out)
			note(c, "own rules", "stand")
		})
	}
}
