//go:build linux

package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// client is a real agent.
type client struct {
	name    string // as nod hook calls it
	title   string
	version string
	// slow clients are driven by make test-agents only.
	slow    bool
	dir     string   // what .ci/clients calls it
	install []string // further arguments of nod hook install
	// prepare writes the agent's own settings, before the hook is installed.
	prepare func(w *world)
	// run says how it is started.
	run func(w *world) (program string, args, env []string)
	// bash is a call of its shell tool, task one of a subagent.
	bash func(command string) tool
	task *tool
	// subagent is the name that a subagent's ask bears; empty: it looks as if the
	// agent itself asked.
	subagent string
	// survives says that a call whose hook is killed runs all the same.
	survives bool
	// late has a call be one that the agent's own rules allow, and says what the
	// table says of such a call that runs though its hook is late. Empty: it does
	// not run.
	late func(w *world) string
	// settings is the file that nod hook install writes, events what it must name
	// and waits how long the agent then waits, as the file has it.
	settings, waits string
	events          []string
	// plays are the scenarios that this client does in its own way, by name.
	plays map[string]func(t *testing.T, w *world) string
	// asks is a call about which the agent itself asks when nobody watches; nil:
	// there is none.
	asks func(command string) tool
}

// where is the directory of a client.
func where(t testing.TB, name string) string {
	t.Helper()
	c := exec.Command("sh", filepath.Join("..", "..", "..", ".ci", "clients"), "where", name)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("finding %s: %v", name, err)
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("%s is not installed: run .ci/clients install %s", name, name)
	}
	return filepath.Join(dir, "node_modules")
}

func nodeBin(t testing.TB) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(where(t, "node"), "node-linux-*", "bin"))
	if err != nil || len(list) == 0 {
		t.Fatal("no node in its directory")
	}
	return list[0]
}

func shellTool(name string) func(string) tool {
	return func(command string) tool {
		return tool{name: name, input: object{"command": command, "description": "run it"}}
	}
}

var clients = []client{
	pi,
	{
		name: "claude-code", title: "Claude Code", version: "2.1.332", dir: "claude",
		settings: ".claude/settings.json", events: []string{"PreToolUse"}, waits: `"timeout": 600`,
		prepare: func(w *world) {
			w.write(".claude/settings.json", "{\n  \"includeCoAuthoredBy\": false\n}\n") // it takes no comments
		},
		run: func(w *world) (string, []string, []string) {
			return filepath.Join(w.dir, "@anthropic-ai", "claude-code-linux-x64", "claude"), []string{"-p", "run it"}, []string{
				"ANTHROPIC_BASE_URL=" + w.model.URL, "ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
			}
		},
		bash:     shellTool("Bash"),
		task:     &tool{name: "Agent", input: object{"description": "a job", "prompt": "CHILD: run it", "subagent_type": "general-purpose", "run_in_background": false}},
		subagent: "general-purpose",
		asks:     shellTool("Bash"),
		late: func(w *world) string {
			path := filepath.Join(w.home, ".claude", "settings.json")
			text, err := os.ReadFile(path)
			if err != nil {
				w.t.Fatal(err)
			}
			w.write(".claude/settings.json", strings.Replace(string(text), "{", `{"permissions": {"allow": ["Bash(touch *)"]},`, 1))
			return "**runs** if its own rules allow"
		},
	},
	{
		name: "codex", title: "Codex", version: "0.171.0", dir: "codex", install: []string{"--trust"},
		settings: ".codex/hooks.json", events: []string{"PreToolUse", "PermissionRequest"}, waits: `"timeout": 600`,
		prepare: func(w *world) {
			w.write(".codex/config.toml", fmt.Sprintf(`model = "m1"
model_provider = "mock"
check_for_update_on_startup = false
analytics.enabled = false
features.plugins = false # else it looks up other hosts
[model_providers.mock]
name = "mock"
base_url = "%s/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
`, w.model.URL))
			w.write(".codex/hooks.json", "{\n  \"hooks\": {}\n}\n")
			w.path = codexBin(w.dir) + ":" + w.path
		},
		run: func(w *world) (string, []string, []string) {
			args := append([]string{"exec"}, w.args...)
			w.args = nil // they belong behind the word
			return filepath.Join(codexBin(w.dir), "codex"), append(args, "--skip-git-repo-check", "--approve-for-me", "run it"), []string{"MOCK_KEY=dummy"}
		},
		bash: func(command string) tool { return tool{name: "exec_command", input: object{"cmd": command}} },
		task: &tool{name: "spawn_agent", input: object{"message": "CHILD: run it"}, space: "multi_agent_v1"}, subagent: "default",
		asks: func(command string) tool {
			return tool{name: "exec_command", input: object{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "the test needs it"}}
		},
		survives: true,
		late: func(w *world) string {
			w.args = []string{"--dangerously-bypass-hook-trust"} // its settings were changed
			return "**runs**: fails open"
		},
	},
	{
		name: "gemini", title: "Gemini CLI", version: "0.61.0", dir: "gemini",
		settings: ".gemini/settings.json", events: []string{"BeforeTool"}, waits: `"timeout": 600000`,
		prepare: func(w *world) {
			w.write(".gemini/settings.json", `{
  "general": {"enableAutoUpdate": false}, // kept
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}
}
`)
			w.write("allow.toml", "[[rule]]\ntoolName = [\"run_shell_command\", \"invoke_agent\"]\ndecision = \"allow\"\npriority = 900\n")
		},
		run: func(w *world) (string, []string, []string) {
			return filepath.Join(nodeBin(w.t), "node"), []string{filepath.Join(w.dir, "@google", "gemini-cli", "bundle", "gemini.js"), "-m", "gemini-2.5-flash", "--policy", filepath.Join(w.home, "allow.toml"), "-p", "run it"},
				[]string{"GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL=" + w.model.URL, "GEMINI_CLI_NO_RELAUNCH=true", "NO_COLOR=1"}
		},
		bash:     shellTool("run_shell_command"),
		task:     &tool{name: "invoke_agent", input: object{"agent_name": "generalist", "prompt": "CHILD: run it"}},
		survives: true,
		late:     func(*world) string { return "**runs**: fails open" },
	},
	{
		name: "copilot", title: "Copilot CLI", version: "1.0.102", dir: "copilot",
		settings: ".copilot/hooks/nod.json", events: []string{"preToolUse", "permissionRequest"}, waits: `"timeoutSec": 600`,
		prepare: func(w *world) {
			// It unpacks itself at its first start, into a directory that all share.
			if err := copilotUnpacked(w.dir); err != nil {
				w.t.Fatal(err)
			}
		},
		run: func(w *world) (string, []string, []string) {
			return filepath.Join(w.dir, "@github", "copilot-linux-x64", "copilot"), []string{"--disable-client-telemetry", "--no-color", "-s", "-p", "run it"}, []string{
				"COPILOT_PROVIDER_BASE_URL=" + w.model.URL + "/v1", "COPILOT_PROVIDER_API_KEY=dummy", "COPILOT_MODEL=m1", "COPILOT_OFFLINE=true",
				"COPILOT_AUTO_UPDATE=false", "NO_COLOR=1", "XDG_CACHE_HOME=" + filepath.Join(filepath.Dir(w.dir), "cache"),
			}
		},
		bash:     shellTool("bash"),
		task:     &tool{name: "task", input: object{"description": "a job", "prompt": "CHILD: run it", "agent_type": "general-purpose", "name": "scout", "mode": "sync"}},
		subagent: "general-purpose",
		asks:     shellTool("bash"),
		late: func(w *world) string {
			w.args = []string{"--allow-all-tools"}
			return "**runs** with `--allow-all-tools`"
		},
	},
	{
		name: "opencode", title: "opencode", version: "1.18.33", dir: "opencode",
		slow: true, settings: ".config/opencode/plugin/nod.js", events: []string{"tool.execute.before"}, waits: `patience = 600000`,
		prepare: func(w *world) {
			w.write(".config/opencode/opencode.json", fmt.Sprintf(`{
  "autoupdate": false, "share": "disabled", "model": "mock/m1", "small_model": "mock/m1", "permission": "allow",
  "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "%s/v1", "apiKey": "dummy"},
    "models": {"m1": {"tool_call": true, "limit": {"context": 128000, "output": 8000}}}}}
}
`, w.model.URL))
			// opencode would fetch its plugin package into each new folder.
			plugin := where(w.t, "opencode-plugin")
			if out, err := exec.Command("cp", "-r", plugin, filepath.Join(filepath.Dir(plugin), "package.json"), filepath.Join(w.home, ".config", "opencode")).CombinedOutput(); err != nil {
				w.t.Fatalf("%v: %s", err, out)
			}
		},
		run: func(w *world) (string, []string, []string) {
			return filepath.Join(w.dir, "opencode-linux-x64", "bin", "opencode"), []string{"run", "run it"}, []string{
				"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "NO_COLOR=1",
			}
		},
		bash:     shellTool("bash"),
		task:     &tool{name: "task", input: object{"description": "a job", "prompt": "CHILD: run it", "subagent_type": "general"}},
		subagent: "general",
		late:     func(*world) string { return "" },
	},
	piSubagents,
}

// unpacked is the state of Copilot CLI's own files.
var unpacked struct {
	sync.Once
	err error
}

func copilotUnpacked(modules string) error {
	unpacked.Do(func() {
		dir, err := scratch()
		if err != nil {
			unpacked.err = err
			return
		}
		c := exec.Command(filepath.Join(modules, "@github", "copilot-linux-x64", "copilot"), "--version")
		c.Env = []string{"HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(filepath.Dir(modules), "cache"), "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false"}
		if out, err := c.CombinedOutput(); err != nil {
			unpacked.err = fmt.Errorf("starting Copilot CLI: %w\n%s", err, out)
		}
	})
	return unpacked.err
}

// chosen are the clients that are driven: the fast ones wherever a desktop may
// be tested, all where NOD_AGENTS is set.
func chosen() []*client {
	var list []*client
	for i := range clients {
		if c := &clients[i]; everything() || !c.slow {
			list = append(list, c)
		}
	}
	return list
}

func codexBin(modules string) string {
	list, _ := filepath.Glob(filepath.Join(modules, "@openai", "codex-linux-*", "vendor", "*", "bin"))
	if len(list) == 0 {
		return modules
	}
	return list[0]
}
