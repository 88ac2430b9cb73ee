package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// claude is what Claude Code sends for a tool.
func claude(tool, input string) []byte {
	return fmt.Appendf(nil, `{"session_id":"s","cwd":"/home/dev/proj","hook_event_name":"PreToolUse","tool_name":%q,"tool_input":%s}`, tool, input)
}

func TestTools(t *testing.T) {
	gemini := func(tool, input string) []byte {
		return fmt.Appendf(nil, `{"session_id":"s","cwd":"/p","hook_event_name":"BeforeTool","tool_name":%q,"tool_input":%s}`, tool, input)
	}
	copilot := func(tool, input string) []byte {
		return fmt.Appendf(nil, `{"sessionId":"s","cwd":"/p","toolName":%q,"toolArgs":%s}`, tool, input)
	}
	opencode := func(tool, input string) []byte {
		return fmt.Appendf(nil, `{"sessionID":"s","directory":"/p","tool":%q,"args":%s}`, tool, input)
	}
	patch := "*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n*** Move to: b/c d.go\n*** Add File: new.txt\n+*** Delete File: not this\n*** Delete File: old.txt\n*** Update File: a.go\n*** End Patch"
	quoted, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	path := func(tool, p string) Use { return Use{Tool: tool, Input: map[string]any{"path": p}} }
	bash := func(c string) Use { return Use{Tool: "bash", Input: map[string]any{"command": c}} }
	patched := []Use{path("edit", "a.go"), path("write", "b/c d.go"), path("write", "new.txt"), path("write", "old.txt")}
	for _, c := range []struct {
		agent Adapter
		data  []byte
		want  []Use
	}{
		{Claude{}, claude("Bash", `{"command":"ls"}`), []Use{bash("ls")}},
		{Claude{}, claude("MultiEdit", `{"file_path":"/a","edits":[]}`), []Use{path("edit", "/a")}},
		{Claude{}, claude("NotebookEdit", `{"notebook_path":"/n.ipynb","new_source":"x"}`), []Use{path("edit", "/n.ipynb")}},
		{Claude{}, claude("Glob", `{"pattern":"**/*.go"}`), []Use{{Tool: "find", Input: map[string]any{"path": ".", "pattern": "**/*.go"}}}},
		{Claude{}, claude("Glob", `{"pattern":"/etc/**/*.conf"}`), []Use{path("find", "/etc"), {Tool: "find", Input: map[string]any{"path": ".", "pattern": "/etc/**/*.conf"}}}},
		{Claude{}, claude("Glob", `{"pattern":"../x/*"}`), []Use{path("find", "../x"), {Tool: "find", Input: map[string]any{"path": ".", "pattern": "../x/*"}}}},
		{Claude{}, claude("Grep", `{"pattern":"TODO","path":"src"}`), []Use{{Tool: "grep", Input: map[string]any{"path": "src", "pattern": "TODO"}}}},
		{Claude{}, claude("LS", `{"path":"/etc"}`), []Use{path("ls", "/etc")}},
		{Claude{}, claude("WebFetch", `{"url":"https://a.example","prompt":"x"}`), []Use{{Tool: "webfetch", Input: map[string]any{}}}},
		{Claude{}, claude("Task", `{"subagent_type":"scout","prompt":"x"}`), []Use{{Tool: "task", Input: map[string]any{}}}},
		{Claude{}, claude("Agent", `{"subagent_type":"scout","prompt":"x"}`), []Use{{Tool: "task", Input: map[string]any{}}}},
		{Claude{}, claude("Skill", `{"skill":"pdf"}`), []Use{{Tool: "skill", Input: map[string]any{"name": "pdf"}}}},
		{Claude{}, claude("mcp__exa__web_search", `{"q":1}`), []Use{{Tool: "mcp", Input: map[string]any{"server": "exa", "tool": "web_search"}}}},
		{Claude{}, claude("mcp__exa", `{}`), []Use{{Tool: "mcp", Input: map[string]any{"tool": "_exa"}}}},
		{Claude{}, claude("Teleport", `{"to":"mars"}`), []Use{{Tool: "Teleport", Input: map[string]any{}}}},
		{Claude{}, claude("Teleport", `{"path":"/etc/x"}`), []Use{path("Teleport", "/etc/x")}},
		{Codex{}, claude("apply_patch", `{"command":`+string(quoted)+`}`), patched},
		{Codex{}, claude("apply_patch", `{"input":`+string(quoted)+`}`), patched},
		{Codex{}, claude("exec_command", `{"cmd":"ls","workdir":"/x"}`), []Use{{Tool: "bash", Input: map[string]any{"command": "ls"}, Dir: "/x"}}},
		{Codex{}, claude("shell", `{"command":["bash","-lc","ls | wc"]}`), []Use{bash("ls | wc")}},
		{Codex{}, claude("shell", `{"command":["git","commit","-m","it's; done"]}`), []Use{bash(`git commit -m 'it'\''s; done'`)}},
		{Codex{}, claude("view_image", `{"path":"/x.png"}`), []Use{path("read", "/x.png")}},
		{Gemini{}, gemini("run_shell_command", `{"command":"ls","dir_path":"sub"}`), []Use{{Tool: "bash", Input: map[string]any{"command": "ls"}, Dir: "sub"}}},
		{Gemini{}, gemini("read_many_files", `{"include":["a.txt","/etc/*.conf"]}`), []Use{path("read", "a.txt"), path("read", "/etc")}},
		{Gemini{}, gemini("replace", `{"file_path":"a"}`), []Use{path("edit", "a")}},
		{Gemini{}, gemini("search_file_content", `{"pattern":"x"}`), []Use{{Tool: "grep", Input: map[string]any{"path": ".", "pattern": "x"}}}},
		{Gemini{}, gemini("mcp_exa_search", `{}`), []Use{{Tool: "mcp", Input: map[string]any{"tool": "exa_search"}}}},
		{Copilot{}, copilot("create", `{"path":"/p/new","file_text":"x"}`), []Use{path("write", "/p/new")}},
		{Copilot{}, copilot("str_replace_editor", `{"command":"view","path":"/p/x"}`), []Use{path("read", "/p/x")}},
		{Copilot{}, copilot("grep", `{"pattern":"x","paths":["/a","/b"]}`), []Use{path("grep", "/a"), path("grep", "/b")}},
		{Copilot{}, copilot("bash", `"{\"command\":\"ls\"}"`), []Use{bash("ls")}}, // older ones send text
		{Opencode{}, opencode("bash", `{"command":"ls","workdir":"/tmp"}`), []Use{{Tool: "bash", Input: map[string]any{"command": "ls"}, Dir: "/tmp"}}},
		{Opencode{}, opencode("edit", `{"filePath":"/p/a"}`), []Use{path("edit", "/p/a")}},
		{Opencode{}, opencode("apply_patch", `{"patchText":`+string(quoted)+`}`), patched},
	} {
		got, err := c.agent.Parse("", c.data, func(string) string { return "" })
		if err != nil {
			t.Errorf("%s: %s: %v", c.agent.Name(), c.data, err)
			continue
		}
		if !reflect.DeepEqual(got.Uses, c.want) {
			t.Errorf("%s: %s:\ngot  %+v\nwant %+v", c.agent.Name(), c.data, got.Uses, c.want)
		}
	}
}

// TestInputsThatCannotBeJudged checks that nothing is made up for a call that
// does not say what it would do.
func TestInputsThatCannotBeJudged(t *testing.T) {
	for input, want := range map[string]string{
		string(claude("Write", `{"file_path":5}`)):                       "file_path must be a string",
		string(claude("Write", `{"file_path":["/a"]}`)):                  "file_path must be a string",
		string(claude("Write", `{}`)):                                    "file_path is missing",
		string(claude("Read", `{"file_path":null}`)):                     "file_path is missing",
		string(claude("Bash", `{"command":{"a":1}}`)):                    "command must be a string",
		string(claude("Bash", `{}`)):                                     "command is missing",
		string(claude("Bash", `[]`)):                                     "no JSON object",
		string(claude("Bash", `7`)):                                      "no JSON object",
		string(claude("Grep", `{"path":{}}`)):                            "path must be a string",
		string(claude("Skill", `{"skill":1}`)):                           "skill must be a string",
		string(claude("Teleport", `{"path":1}`)):                         "path must be a string",
		string(claude("", `{}`)):                                         "names no tool",
		string(claude("apply_patch", `{"command":"rm"}`)):                "names no file",
		string(claude("apply_patch", `{"command":"*** Add File:  \n"}`)): "without a path",
		`{"hook_event_name":"PreToolUse","tool_name":5,"tool_input":{}}`: "tool_name must be a string",
		`{"hook_event_name":"PreToolX","tool_name":"B","tool_input":{}}`: `"PreToolX" is not known`,
		`{"hook_event_name":7,"tool_name":"Bash","tool_input":{}}`:       "hook_event_name must be a string",
		`{"hook_event_name":"PreToolUse","cwd":1,"tool_name":"Bash"`:     "not JSON",
		`[1]`:  "no JSON object",
		`null`: "no JSON object",
		``:     "empty",
		" \n":  "empty",
	} {
		_, err := Claude{}.Parse("", []byte(input), func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
}
