//go:build linux

package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// client is a real agent.
type client struct {
	name    string // as nod hook calls it
	title   string
	version string
	dir     string   // what .ci/clients calls it
	install []string // further arguments of nod hook install
	// prepare writes the agent's own settings, before the hook is installed.
	prepare func(w *world)
	// run says how it is started.
	run func(w *world) (program string, args, env []string)
	// bash is a call of its shell tool, task one of a subagent.
	bash func(command string) tool
	task *tool
	// Names of what a subagent's ask says.
	subagent string
	// survives says that a call whose hook is killed runs all the same.
	survives bool
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
		t.Fatalf("%s is not installed: run .ci/clients install node claude codex gemini copilot opencode opencode-plugin", name)
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
	{
		name: "claude-code", title: "Claude Code", version: "2.1.332", dir: "claude",
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
	},
	{
		name: "codex", title: "Codex", version: "0.171.0", dir: "codex", install: []string{"--trust"},
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
			return filepath.Join(codexBin(w.dir), "codex"), []string{"exec", "--skip-git-repo-check", "--approve-for-me", "run it"}, []string{"MOCK_KEY=dummy"}
		},
		bash: func(command string) tool { return tool{name: "exec_command", input: object{"cmd": command}} },
		task: &tool{name: "spawn_agent", input: object{"message": "CHILD: run it"}, space: "multi_agent_v1"}, subagent: "default",
		asks: func(command string) tool {
			return tool{name: "exec_command", input: object{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "the test needs it"}}
		},
		survives: true,
	},
	{
		name: "gemini", title: "Gemini CLI", version: "0.61.0", dir: "gemini",
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
		survives: true,
	},
	{
		name: "copilot", title: "Copilot CLI", version: "1.0.102", dir: "copilot",
		prepare: func(*world) {},
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
	},
	{
		name: "opencode", title: "opencode", version: "1.18.33", dir: "opencode",
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
	},
}

func codexBin(modules string) string {
	list, _ := filepath.Glob(filepath.Join(modules, "@openai", "codex-linux-*", "vendor", "*", "bin"))
	if len(list) == 0 {
		return modules
	}
	return list[0]
}
