package agents

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// The shapes in which the agents keep a hook, with their fields in the order in
// which people write them.
type (
	hookGroup struct {
		Matcher string        `json:"matcher,omitempty"`
		Hooks   []hookCommand `json:"hooks"`
	}
	hookCommand struct {
		Name       string `json:"name,omitempty"`
		Type       string `json:"type,omitempty"`
		Matcher    string `json:"matcher,omitempty"`
		Command    string `json:"command,omitempty"`
		Bash       string `json:"bash,omitempty"`
		Timeout    int    `json:"timeout,omitempty"`
		TimeoutSec int    `json:"timeoutSec,omitempty"`
		FailClosed bool   `json:"failClosed,omitempty"`
	}
)

const seconds = int(hookFor / time.Second)

type commander = func(event string, hostTimeout time.Duration) []string

func (a Claude) setup(s site, mode Mode, command commander) setup {
	// What a project's other people read must not name a program of this
	// machine, so there it goes into the file that is not shared.
	out := setup{file: s.path("CLAUDE_CONFIG_DIR", ".claude", ".claude", "settings.json"), strict: true}
	if s.Project != "" {
		out.file = filepath.Join(filepath.Dir(out.file), "settings.local.json")
	}
	events := []string{"PreToolUse"}
	if mode == Advising {
		// A gate needs no PermissionRequest: it has spoken before, and where
		// Claude Code asks nonetheless it is by a rule of its own.
		events = append(events, "PermissionRequest")
	}
	for _, e := range events {
		out.parts = append(out.parts, part{[]string{"hooks", e}, hookGroup{Matcher: "*", Hooks: []hookCommand{
			{Type: "command", Command: shellLine(command("", hookFor)), Timeout: seconds},
		}}})
	}
	out.parts = append(out.parts, ends(command, "SessionEnd", "SubagentStop")...)
	out.notes = append(out.notes,
		"sessions that run already keep their hooks: start Claude Code anew",
		"claude --bare skips all hooks, and so does a folder that was not trusted in its own dialog")
	return out
}

func (a Codex) setup(s site, _ Mode, command commander) setup {
	out := setup{file: s.path("CODEX_HOME", ".codex", ".codex", "hooks.json"), strict: true}
	for _, e := range []string{"PreToolUse", "PermissionRequest"} {
		out.parts = append(out.parts, part{[]string{"hooks", e}, hookGroup{Hooks: []hookCommand{
			{Type: "command", Command: shellLine(command("", hookFor)), Timeout: seconds},
		}}})
	}
	out.parts = append(out.parts, ends(command, "SessionEnd", "SubagentStop")...)
	return out
}

// ends are the events by which Nod hears that what was granted to a session or
// a subagent ends with it.
func ends(command commander, events ...string) []part {
	var parts []part
	for _, e := range events {
		parts = append(parts, part{[]string{"hooks", e}, hookGroup{Hooks: []hookCommand{{Type: "command", Command: shellLine(command("", hookFor)), Timeout: 10}}}})
	}
	return parts
}

func (a Gemini) setup(s site, _ Mode, command commander) setup {
	out := setup{
		file: s.path("", ".gemini", ".gemini", "settings.json"),
		parts: []part{
			{[]string{"hooks", "BeforeTool"}, hookGroup{Matcher: ".*", Hooks: []hookCommand{
				{Name: "nod", Type: "command", Command: shellLine(command("", hookFor)), Timeout: seconds * 1000}, // ms
			}}},
			{[]string{"hooks", "SessionEnd"}, hookGroup{Hooks: []hookCommand{
				{Name: "nod", Type: "command", Command: shellLine(command("", hookFor)), Timeout: 10_000},
			}}},
		},
		notes: []string{
			"without a terminal Gemini CLI does not offer tools that its own policy would ask about: allow them there (a policy rule, or --yolo) and let Nod decide",
		},
	}
	if s.Project != "" {
		out.notes = append(out.notes, "a project's hooks run only in a folder that Gemini CLI trusts")
	}
	return out
}

func (a Copilot) setup(s site, _ Mode, command commander) setup {
	file := s.path("COPILOT_HOME", ".copilot", ".github", "hooks", "nod.json")
	return setup{file: file, whole: func() string { return copilotHooks(command) }, notes: []string{
		"sessions that run already keep their hooks: start Copilot CLI anew",
		"Copilot CLI lets a hook's allow lift its own --deny-tool rules: with such a rule Nod allows nothing and leaves it to Copilot (on Linux, where it can see the rule)",
	}}
}

// copilotHooks is the file that has Copilot call Nod.
func copilotHooks(command commander) string {
	type events struct {
		Pre  []hookCommand `json:"preToolUse"`
		Asks []hookCommand `json:"permissionRequest"`
		End  []hookCommand `json:"sessionEnd"`
		Stop []hookCommand `json:"subagentStop"`
	}
	hook := func(event string, timeout int) []hookCommand {
		return []hookCommand{{Type: "command", Bash: shellLine(command(event, hookFor)), TimeoutSec: timeout}}
	}
	text, err := indented(struct {
		Version int    `json:"version"`
		Hooks   events `json:"hooks"`
	}{1, events{hook("preToolUse", seconds), hook("permissionRequest", seconds), hook("sessionEnd", 10), hook("subagentStop", 10)}})
	if err != nil {
		panic(err) // strings and numbers always can be written
	}
	return text + "\n"
}

func (a Opencode) setup(s site, _ Mode, command commander) setup {
	dir := filepath.Join(s.Home, ".config", "opencode")
	if v := s.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(v) {
		dir = filepath.Join(v, "opencode")
	}
	if v := s.Getenv("OPENCODE_CONFIG_DIR"); filepath.IsAbs(v) {
		dir = v
	}
	if s.Project != "" {
		dir = filepath.Join(s.Project, ".opencode")
	}
	return setup{
		file: filepath.Join(dir, "plugin", "nod.js"), whole: func() string { return opencodeCaller(command) },
		notes: []string{"sessions that run already keep their plugins: start opencode anew", "opencode's own permissions come after Nod's answer and still count"},
	}
}

// opencodeCaller is the plugin that has opencode call Nod.
func opencodeCaller(command commander) string {
	words, err := marshal(command("tool.execute.before", hookFor))
	if err != nil {
		panic(err) // strings always can be written
	}
	return strings.NewReplacer("NOD_COMMAND", strings.TrimSpace(string(words)), "NOD_PATIENCE", fmt.Sprint(hookFor.Milliseconds())).Replace(opencodePlugin)
}

func (a Cursor) setup(s site, _ Mode, command commander) setup {
	out := setup{file: s.path("", ".cursor", ".cursor", "hooks.json"), fresh: "{\n  \"version\": 1\n}\n"}
	for _, e := range []string{"beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "preToolUse"} {
		h := hookCommand{Command: shellLine(command(e, hookFor)), Timeout: seconds, FailClosed: true}
		if e == "preToolUse" {
			// The others come through hooks of their own, which are older.
			h.Matcher = "Write|StrReplace|Edit|MultiEdit|EditNotebook|Delete|TabWrite|Task"
		}
		out.parts = append(out.parts, part{[]string{"hooks", e}, h})
	}
	if s.Project != "" {
		out.notes = []string{"a project's hooks run only in a workspace that Cursor trusts"}
	}
	return out
}

func (a Crush) setup(s site, _ Mode, command commander) setup {
	dir := filepath.Join(s.Home, ".config", "crush")
	if v := s.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(v) {
		dir = filepath.Join(v, "crush")
	}
	if v := s.Getenv("CRUSH_GLOBAL_CONFIG"); filepath.IsAbs(v) {
		dir = v
	}
	file := filepath.Join(dir, "crush.json")
	if s.Project != "" {
		file = filepath.Join(s.Project, "crush.json")
	}
	return setup{
		file: file,
		parts: []part{{[]string{"hooks", "PreToolUse"}, hookCommand{
			Name: "nod", Command: shellLine(command("", hookFor)), Timeout: seconds,
		}}},
		notes: []string{"Crush calls hooks for its top-level agent only: what a subagent does is not gated"},
	}
}

func (a Amp) setup(s site, _ Mode, command commander) setup {
	file := filepath.Join(s.Home, ".config", "amp", "settings.json")
	if v := s.Getenv("AMP_SETTINGS_FILE"); filepath.IsAbs(v) {
		file = v
	}
	if s.Project != "" {
		file = filepath.Join(s.Project, ".amp", "settings.json")
	}
	// Amp delegates to a program without arguments.
	helper := filepath.Join(s.Config, "hooks", "nod-amp")
	return setup{
		file: file,
		// Behind the user's own rules, of which the first that matches counts.
		parts: []part{{[]string{"amp.permissions"}, struct {
			Tool   string `json:"tool"`
			Action string `json:"action"`
			To     string `json:"to"`
		}{"*", "delegate", helper}}},
		helper: helper, helperText: "#!/bin/sh\n# Amp runs this to ask Nod. Written by `nod hook install amp`.\nexec " + shellLine(command("", a.Timeout())) + "\n",
		notes: []string{"rules of your own in amp.permissions come first: what they allow does not reach Nod"},
	}
}
