package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine"
)

// toolReader reads one tool's input into a call.
type toolReader func(c *Call, in *fields) error

// tools are an agent's tools by name, in lower case. What is not among them is
// an extension tool of its own name, for which the rules' default asks.
type tools map[string]toolReader

// read fills in c's uses. It reports an input that can't be judged.
func (t tools) read(c *Call, input map[string]json.RawMessage) error {
	if c.Tool == "" {
		return errors.New("it names no tool")
	}
	in := &fields{m: input}
	reader, ok := t[strings.ToLower(c.Tool)]
	if !ok {
		reader = extension(c.Tool)
		if server, tool, ok := mcpName(c.Tool); ok {
			reader = mcp(server, tool)
		} else if name, ok := strings.CutPrefix(c.Tool, "mcp_"); ok && name != "" {
			// Crush and Gemini: where the server ends is not marked, and a guess
			// could make a rule for one server count for another. Rules that say
			// server_tool match as it is.
			reader = mcp("", name)
		}
	}
	if err := reader(c, in); err != nil {
		return fmt.Errorf("the input of %s: %w", c.Tool, err)
	}
	if in.err != nil {
		return fmt.Errorf("the input of %s: %w", c.Tool, in.err)
	}
	return nil
}

// mcpName takes apart the name under which most agents offer the tool of an
// MCP server: mcp__server__tool.
func mcpName(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "__")
	return server, tool, ok && server != "" && tool != ""
}

func mcp(server, tool string) toolReader {
	return func(c *Call, _ *fields) error {
		in := map[string]any{"tool": tool}
		if server != "" {
			in["server"] = server
		}
		c.use("mcp", in)
		return nil
	}
}

func (c *Call) use(tool string, input map[string]any) {
	c.Uses = append(c.Uses, Use{Tool: tool, Input: input})
}

// note shows text beside the ask, cut to what a human reads.
func (c *Call) note(label, text string) {
	const most = 4000
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	c.Evidence = append(c.Evidence, engine.Evidence{Label: label, Text: text})
}

// shell is a tool that runs a command line, from the first of keys. A list of
// words counts as the command line that runs them.
func shell(keys ...string) toolReader {
	return func(c *Call, in *fields) error {
		command, err := commandLine(in, keys)
		if err != nil {
			return err
		}
		dir := in.only("workdir", "cwd", "directory", "dir_path")
		c.use("bash", map[string]any{"command": command})
		c.Uses[len(c.Uses)-1].Dir = dir
		uses, err := patchInShell(command, dir)
		c.Uses = append(c.Uses, uses...)
		return err
	}
}

func commandLine(in *fields, keys []string) (string, error) {
	named := keys
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { raw, ok := in.m[k]; return !ok || string(raw) == "null" })
	if len(keys) > 1 {
		return "", fmt.Errorf("it names both %s and %s", keys[0], keys[1])
	}
	for _, k := range keys {
		raw, ok := in.m[k]
		if !ok || string(raw) == "null" {
			continue
		}
		var words []string
		if json.Unmarshal(raw, &words) != nil {
			return in.only(k), nil
		}
		// The usual wrapper of a list is the shell that reads its last word.
		if len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") && slices.Contains([]string{"bash", "sh", "/bin/bash", "/bin/sh"}, words[0]) {
			return words[2], nil
		}
		for i := range words {
			words[i] = quote(words[i])
		}
		return strings.Join(words, " "), nil
	}
	return "", fmt.Errorf("%s is missing", named[0])
}

// file is a tool that touches the file named by the first of keys.
func file(tool string, keys ...string) toolReader {
	return func(c *Call, in *fields) error {
		path := in.only(keys...)
		if path == "" && in.err == nil {
			return fmt.Errorf("%s is missing", keys[0])
		}
		c.use(tool, map[string]any{"path": path})
		return nil
	}
}

// search is a tool that looks through a directory: the one named by the first
// of keys, else the working directory.
func search(tool string, keys ...string) toolReader {
	return func(c *Call, in *fields) error {
		input := map[string]any{"path": "."}
		if path := in.only(keys...); path != "" {
			input["path"] = path
		}
		for _, k := range [...]string{"filePattern", "query", "pattern"} {
			pattern := in.only(k)
			if pattern == "" {
				continue
			}
			input["pattern"] = pattern
			// A glob that starts somewhere else looks there.
			if dir, ok := globRoot(pattern); ok && tool == "find" {
				c.use(tool, map[string]any{"path": dir})
			}
		}
		// A search that is kept to one file reads that one.
		for _, k := range [...]string{"glob", "include", "include_pattern"} {
			var name string
			if json.Unmarshal(in.m[k], &name) == nil && tool == "grep" && name != "" && !strings.ContainsAny(name, "*?[{!") {
				if base, _ := input["path"].(string); relative(name) && base != "." {
					name = strings.TrimSuffix(base, "/") + "/" + name
				}
				c.use(tool, map[string]any{"path": name})
			}
		}
		c.use(tool, input)
		return nil
	}
}

// globRoot is the directory that a glob leaves its base for, if it does.
func globRoot(pattern string) (string, bool) {
	if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "~") && !slices.Contains(strings.Split(pattern, "/"), "..") {
		return "", false
	}
	var kept []string
	for part := range strings.SplitSeq(pattern, "/") {
		if strings.ContainsAny(part, "*?[{") {
			break
		}
		kept = append(kept, part)
	}
	if dir := strings.Join(kept, "/"); dir != "" {
		return dir, true
	}
	return "/", true
}

// files is a tool that touches each of a list of files.
func files(tool string, keys ...string) toolReader {
	return func(c *Call, in *fields) error {
		for _, k := range keys {
			raw, ok := in.m[k]
			if !ok || string(raw) == "null" {
				continue
			}
			var paths []string
			if err := json.Unmarshal(raw, &paths); err != nil {
				var one string
				if json.Unmarshal(raw, &one) != nil {
					return fmt.Errorf("%s must be a list of strings", k)
				}
				paths = []string{one}
			}
			for _, p := range paths {
				if strings.Contains(p, "\x00") {
					return fmt.Errorf("%s has a NUL character", k)
				}
				if root, ok := globRoot(p); ok && strings.ContainsAny(p, "*?[{") {
					p = root
				}
				c.use(tool, map[string]any{"path": p})
			}
		}
		if len(c.Uses) > 0 {
			return nil
		}
		return fmt.Errorf("%s is missing", keys[0])
	}
}

// extension is a tool that the engine knows by its name only. shown are the
// inputs that a human should see.
func extension(name string, shown ...string) toolReader {
	return func(c *Call, in *fields) error {
		input := map[string]any{}
		if raw, ok := in.m["path"]; ok {
			var path string
			if json.Unmarshal(raw, &path) != nil {
				return errors.New("path must be a string")
			}
			input["path"] = path
		}
		c.use(name, input)
		if len(shown) == 0 {
			if data, err := marshal(in.m); err == nil && len(in.m) > 0 {
				c.note("input", string(data))
			}
			return nil
		}
		for _, k := range shown {
			var text string
			if json.Unmarshal(in.m[k], &text) == nil {
				c.note(k, text)
			}
		}
		return nil
	}
}

// inner is a tool that changes nothing outside the agent.
func inner(name string) toolReader {
	return func(c *Call, _ *fields) error {
		c.Inner = true
		c.use(name, nil)
		return nil
	}
}

// skill is a tool that loads a skill by name, from the first of keys.
func skill(keys ...string) toolReader {
	return func(c *Call, in *fields) error {
		name := in.only(keys...)
		if name == "" && in.err == nil {
			return fmt.Errorf("%s is missing", keys[0])
		}
		c.use("skill", map[string]any{"name": name})
		return nil
	}
}

// patch is a tool that applies a patch, from the first of keys: every file it
// touches is a use of its own.
func patch(keys ...string) toolReader {
	return func(c *Call, in *fields) error {
		text := in.only(keys...)
		if in.err != nil {
			return nil
		}
		uses, err := patchUses(text)
		if err != nil {
			return err
		}
		c.Uses = append(c.Uses, uses...)
		c.note("patch", text)
		return nil
	}
}

// patchUses reads the headers of a patch in the format that starts with
// *** Begin Patch. A file that is new, removed or the new place of another is
// written; one that is changed is edited.
func patchUses(text string) ([]Use, error) {
	var uses []Use
	add := func(tool, path string) {
		u := Use{Tool: tool, Input: map[string]any{"path": path}}
		if !slices.ContainsFunc(uses, func(o Use) bool { return o.Tool == tool && o.Input["path"] == path }) {
			uses = append(uses, u)
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		// The agents' own readers put up with space around a header.
		header := strings.TrimSpace(line)
		for _, h := range []struct{ prefix, tool string }{
			{"*** Add File:", "write"}, {"*** Delete File:", "write"}, {"*** Update File:", "edit"}, {"*** Move to:", "write"},
		} {
			path, ok := strings.CutPrefix(header, h.prefix)
			if !ok {
				continue
			}
			if path = strings.TrimSpace(path); path == "" {
				return nil, fmt.Errorf("the patch has a header without a path: %q", line)
			}
			add(h.tool, path)
		}
	}
	if len(uses) == 0 {
		return nil, errors.New("the patch names no file")
	}
	return uses, nil
}

// patchInShell reads the patch that a command line hands to apply_patch. Codex
// applies it itself, so that no command of the line is ever run. dir is where
// the line runs; Codex puts up with one cd in front.
func patchInShell(command, dir string) ([]Use, error) {
	const begin = "*** Begin Patch"
	head, _, ok := strings.Cut(command, begin)
	if !ok || !strings.Contains(head, "apply_patch") && !strings.Contains(head, "applypatch") {
		return nil, nil
	}
	uses, err := patchUses(command)
	if err != nil {
		return nil, err
	}
	if to, _, ok := strings.Cut(head, "&&"); ok && strings.HasPrefix(strings.TrimSpace(to), "cd ") {
		to = strings.Trim(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(to), "cd ")), `"'`)
		if strings.ContainsAny(to, "$`\\\"'*?[{") {
			return nil, errors.New("where its patch is applied is not known")
		}
		if relative(to) && dir != "" {
			to = strings.TrimSuffix(dir, "/") + "/" + to
		}
		dir = to
	}
	for i := range uses {
		uses[i].Dir = dir
	}
	return uses, nil
}

// common are the tools that several agents offer under these names.
func common(more tools) tools {
	t := tools{
		"bash": shell("command", "cmd"),
		"read": file("read", "file_path", "filePath", "path"), "write": file("write", "file_path", "filePath", "path"),
		"edit": file("edit", "file_path", "filePath", "path"), "multiedit": file("edit", "file_path", "filePath", "path"),
		"glob": search("find", "path"), "grep": search("grep", "path"), "ls": search("ls", "path"), "list": search("ls", "path"),
		"webfetch": extension("webfetch", "url", "prompt"), "websearch": extension("websearch", "query"),
		"task": extension("task", "subagent_type", "agent_type", "description", "prompt"), "skill": skill("name", "skill", "command"),
		"apply_patch": patch("command", "input", "patchText", "patch"),
	}
	for name, reader := range more {
		t[name] = reader
	}
	return t
}
