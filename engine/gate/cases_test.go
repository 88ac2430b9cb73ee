package gate_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/check"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
)

// testCase is one decision with what is expected of it: testdata/cases.
type testCase struct {
	ID                string                     `json:"id"`
	Why               string                     `json:"why"`
	Policy            json.RawMessage            `json:"policy"`
	PolicyText        *string                    `json:"policyText"`
	Config            map[string]json.RawMessage `json:"config"`
	ProjectPolicy     json.RawMessage            `json:"projectPolicy"`
	ProjectPolicyText *string                    `json:"projectPolicyText"`
	ProjectConfig     map[string]json.RawMessage `json:"projectConfig"`
	Agents            map[string]json.RawMessage `json:"agents"`
	ProjectAgents     map[string]json.RawMessage `json:"projectAgents"`
	AgentText         map[string]string          `json:"agentText"`
	ProjectAgentText  map[string]string          `json:"projectAgentText"`
	Tree              []string                   `json:"tree"`
	Cwd               string                     `json:"cwd"`
	Agent             string                     `json:"agent"`
	Trusted           *bool                      `json:"trusted"`
	Session           []engine.Grant             `json:"session"`
	Skills            []gate.Skill               `json:"skills"`
	MCPServers        []string                   `json:"mcpServers"`
	Platform          string                     `json:"platform"`
	Tool              string                     `json:"tool"`
	Input             any                        `json:"input"`

	Expect           string      `json:"expect"`
	StricterOK       bool        `json:"stricterOk"`
	ExpectSurface    *string     `json:"expectSurface"`
	ExpectPattern    *string     `json:"expectPattern"`
	ExpectValue      *string     `json:"expectValue"`
	ExpectOrigin     *string     `json:"expectOrigin"`
	ExpectReason     *string     `json:"expectReason"`
	ExpectContext    *string     `json:"expectContext"`
	ExpectExecutes   *string     `json:"expectExecutes"`
	ExpectSuggestion *suggestion `json:"expectSuggestion"`
	ExpectAsks       []struct {
		Surface, Pattern, Decision string
	} `json:"expectAsks"`

	keys map[string]bool // the keys the case has, null values too
}

type suggestion struct {
	Surface  string         `json:"surface"`
	Patterns []string       `json:"patterns"`
	Grants   []engine.Grant `json:"grants"`
}

func (s *suggestion) grants() []engine.Grant {
	if s == nil {
		return nil
	}
	list := slices.Clone(s.Grants)
	for _, p := range s.Patterns {
		list = append(list, engine.Grant{Surface: s.Surface, Pattern: p})
	}
	return list
}

// box is the directory tree that a case runs in.
type box struct{ root, cwd, home, agentDir string }

var placeholder = regexp.MustCompile(`(\$?)\$(CWD|HOME|ROOT)([A-Za-z0-9_]?)`)

// into puts real directories in for $CWD, $HOME and $ROOT; `$$HOME` is the text.
func (b *box) into(s string) string {
	return placeholder.ReplaceAllStringFunc(s, func(m string) string {
		p := placeholder.FindStringSubmatch(m)
		switch {
		case p[3] != "":
			return m
		case p[1] != "":
			return "$" + p[2]
		}
		return map[string]string{"CWD": b.cwd, "HOME": b.home, "ROOT": b.root}[p[2]]
	})
}

func (b *box) intoAny(v any) any {
	switch v := v.(type) {
	case string:
		return b.into(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = b.intoAny(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[b.into(k)] = b.intoAny(v[k])
		}
		return out
	}
	return v
}

// intoJSON replaces inside JSON text. Keys keep their order.
func (b *box) intoJSON(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	return json.RawMessage(b.into(string(raw)))
}

func (b *box) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newBox(t *testing.T, c *testCase, root string) *box {
	t.Helper()
	b := &box{root: root, cwd: root + "/cwd", home: root + "/home", agentDir: root + "/home/.pi/agent"}
	for _, d := range []string{b.cwd, b.agentDir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, raw := range c.Tree {
		name, target, link := strings.Cut(raw, " -> ")
		at := b.into(name)
		if !filepath.IsAbs(at) {
			at = filepath.Join(b.cwd, at)
		}
		switch {
		case link:
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(b.into(target), at); err != nil {
				t.Fatal(err)
			}
		case strings.HasSuffix(raw, "/"):
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
		default:
			b.put(t, filepath.Clean(at), "x\n")
		}
	}
	const config = "extensions/pi-permission-system/config.json"
	write := func(name string, text *string, policy json.RawMessage, rest map[string]json.RawMessage) {
		switch {
		case text != nil:
			b.put(t, name, b.into(*text))
		case policy != nil || rest != nil:
			var out bytes.Buffer
			out.WriteByte('{')
			sep := ""
			for k, v := range rest {
				fmt.Fprintf(&out, "%s%q:%s", sep, k, b.intoJSON(v))
				sep = ","
			}
			if policy != nil {
				fmt.Fprintf(&out, "%s\"permission\":%s", sep, b.intoJSON(policy))
			}
			out.WriteByte('}')
			b.put(t, name, out.String())
		}
	}
	write(filepath.Join(b.agentDir, config), c.PolicyText, c.Policy, c.Config)
	write(filepath.Join(b.cwd, ".pi", config), c.ProjectPolicyText, c.ProjectPolicy, c.ProjectConfig)
	for base, agents := range map[string]map[string]json.RawMessage{b.agentDir: c.Agents, b.cwd + "/.pi": c.ProjectAgents} {
		for name, permission := range agents {
			b.put(t, filepath.Join(base, "agents", name+".md"), frontMatter(t, name, b.intoJSON(permission)))
		}
	}
	for base, texts := range map[string]map[string]string{b.agentDir: c.AgentText, b.cwd + "/.pi": c.ProjectAgentText} {
		for name, text := range texts {
			b.put(t, filepath.Join(base, "agents", name+".md"), b.into(text))
		}
	}
	return b
}

// frontMatter writes a permission object as YAML, in the order of its keys.
func frontMatter(t *testing.T, name string, permission json.RawMessage) string {
	t.Helper()
	lines := []string{"---", "name: " + name, "permission:"}
	entries(t, permission, func(surface string, v json.RawMessage) {
		if v[0] == '"' {
			lines = append(lines, fmt.Sprintf("  %q: %s", surface, word(v)))
			return
		}
		lines = append(lines, fmt.Sprintf("  %q:", surface))
		entries(t, v, func(pattern string, action json.RawMessage) {
			if action[0] == '"' {
				lines = append(lines, fmt.Sprintf("    %q: %s", pattern, word(action)))
				return
			}
			lines = append(lines, fmt.Sprintf("    %q:", pattern))
			entries(t, action, func(k string, v json.RawMessage) { lines = append(lines, "      "+k+": "+word(v)) })
		})
	})
	return strings.Join(append(lines, "---", "", "You are "+name+".", ""), "\n")
}

func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// entries calls f with each member of a JSON object in order.
func entries(t *testing.T, raw json.RawMessage, f func(string, json.RawMessage)) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		f(k.(string), bytes.TrimSpace(v))
	}
}

// gateFor loads the case's policy as production does.
func gateFor(t *testing.T, c *testCase, b *box) *gate.Gate {
	t.Helper()
	cwd := filepath.Join(b.cwd, b.into(c.Cwd))
	g := &gate.Gate{Files: disk{}, Home: b.home, Cwd: cwd, AgentDir: b.agentDir, Servers: c.MCPServers}
	places := policy.Places{AgentDir: b.agentDir, Project: cwd, Trusted: c.Trusted == nil || *c.Trusted, Agent: c.Agent, Home: b.home}
	if c.Platform == "win32" {
		g.Flavour, g.Files = pattern.Windows, nil
		g.Cwd = `C:\Proj\App`
		if c.Cwd != "" {
			g.Cwd = c.Cwd
		}
		places.Project = b.cwd
	}
	p := policy.NewLoader(policyfile.Disk{}, false).Load(places)
	g.Rules = p.Ruleset(engine.Options{Home: g.Home, Cwd: g.Cwd, Flavour: g.Flavour, Now: time.Unix(1e9, 0)})
	g.InfrastructureReads = p.Settings.InfrastructureReadPaths
	for name, s := range p.Settings.ShellTools {
		if g.ShellTools == nil {
			g.ShellTools = map[string]gate.ShellTool{}
		}
		g.ShellTools[name] = gate.ShellTool{Command: s.CommandArgument, Workdir: s.WorkdirArgument}
	}
	for _, s := range c.Skills {
		g.Skills = append(g.Skills, gate.Skill{Name: s.Name, Location: b.into(s.Location)})
	}
	g.Grants = grantsFor(t, g, b, c.Session)
	return g
}

func grantsFor(t *testing.T, g *gate.Gate, b *box, session []engine.Grant) engine.Grants {
	t.Helper()
	if len(session) == 0 {
		return nil
	}
	scope := engine.Scope{SessionID: "s"}
	rules := engine.NewSessionRules(func() time.Time { return time.Unix(1e9, 0) }, g.Rules.Options())
	for _, x := range session {
		x.Pattern = b.into(x.Pattern)
		_, err := rules.Record(engine.NewGrant{Grant: x, Scope: scope, Asked: engine.Asked{Surface: x.Surface, Values: []string{pattern.ExpandHome(x.Pattern, g.Home)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return rules.View(scope)
}

func (c *testCase) judge(o *gate.Outcome, b *box) string {
	out := func(s string) string {
		s = strings.ReplaceAll(s, b.cwd, "$CWD")
		s = strings.ReplaceAll(s, b.home, "$HOME")
		return strings.ReplaceAll(s, b.root, "$ROOT")
	}
	want, err := engine.ParseAction(c.Expect)
	if err != nil {
		return err.Error()
	}
	if o.Action != want {
		if c.StricterOK && o.Action.Stricter(want) {
			return ""
		}
		return fmt.Sprintf("want %v, got %v", want, o.Action)
	}
	d := o.Decisive
	if d == nil {
		d = &gate.Check{}
	}
	var wrong []string
	field := func(key string, want *string, got string) {
		if !c.keys[key] {
			return
		}
		w := ""
		if want != nil {
			w = *want
		}
		if w != out(got) {
			wrong = append(wrong, fmt.Sprintf("%s: want %q, got %q", key, w, out(got)))
		}
	}
	field("expectSurface", c.ExpectSurface, d.Gate)
	field("expectPattern", c.ExpectPattern, d.Pattern)
	field("expectValue", c.ExpectValue, d.Value)
	field("expectOrigin", c.ExpectOrigin, string(d.Origin))
	field("expectReason", c.ExpectReason, d.Reason)
	field("expectContext", c.ExpectContext, d.Context)
	field("expectExecutes", c.ExpectExecutes, d.Executes)
	if c.keys["expectSuggestion"] {
		var got []engine.Grant
		for _, g := range d.Suggestion {
			got = append(got, engine.Grant{Surface: g.Surface, Pattern: out(g.Pattern)})
		}
		if !slices.Equal(got, c.ExpectSuggestion.grants()) {
			wrong = append(wrong, fmt.Sprintf("suggestion: want %v, got %v", c.ExpectSuggestion.grants(), got))
		}
	}
	if c.keys["expectAsks"] {
		var want, got [][3]string
		for _, a := range c.ExpectAsks {
			want = append(want, [3]string{a.Surface, a.Pattern, a.Decision})
		}
		for _, a := range o.Asks() {
			got = append(got, [3]string{a.Gate, a.Pattern, a.Action.String()})
		}
		if !slices.Equal(want, got) {
			wrong = append(wrong, fmt.Sprintf("asks: want %v, got %v", want, got))
		}
	}
	return strings.Join(wrong, "; ")
}

func readCases(t *testing.T, name string) []testCase {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []testCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &keys); err != nil {
			t.Fatal(err)
		}
		c.keys = map[string]bool{}
		for k := range keys {
			c.keys[k] = true
		}
		list = append(list, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func caseFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/cases/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	return files
}

// TestCases runs every case through the policy loader and the gate, in a
// directory tree of its own.
func TestCases(t *testing.T) {
	files := caseFiles(t)
	for _, name := range files {
		theme := strings.TrimSuffix(filepath.Base(name), ".jsonl")
		t.Run(theme, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range readCases(t, name) {
				b := newBox(t, &c, filepath.Join(root, fmt.Sprint(i)))
				g := gateFor(t, &c, b)
				o := g.Decide(gate.Call{Tool: c.Tool, Input: b.intoAny(c.Input)})
				if wrong := c.judge(o, b); wrong != "" {
					t.Errorf("%s: %s | %.160v | %s", c.ID, wrong, c.Input, c.Why)
				}
			}
		})
	}
}

// line is the case as `nod check --batch` reads it.
func (c *testCase) line(b *box) map[string]any {
	windows := c.Platform == "win32"
	cwd := filepath.Join(b.cwd, b.into(c.Cwd))
	if windows {
		cwd = c.Cwd
		if cwd == "" {
			cwd = `C:\Proj\App`
		}
	}
	line := map[string]any{
		"id": c.ID, "agentDir": b.agentDir, "home": b.home, "cwd": cwd, "agent": nil,
		"trusted": c.Trusted == nil || *c.Trusted, "tool": c.Tool, "input": b.intoAny(c.Input),
	}
	if c.Agent != "" {
		line["agent"] = c.Agent
	}
	if windows {
		line["platform"], line["projectDir"] = c.Platform, b.cwd
	}
	if len(c.MCPServers) > 0 {
		line["mcpServers"] = c.MCPServers
	}
	session := slices.Clone(c.Session)
	for i := range session {
		session[i].Pattern = b.into(session[i].Pattern)
	}
	if len(session) > 0 {
		line["session"] = session
	}
	var skills []map[string]string
	for _, s := range c.Skills {
		skills = append(skills, map[string]string{"name": s.Name, "location": b.into(s.Location)})
	}
	if len(skills) > 0 {
		line["skills"] = skills
	}
	return line
}

// TestCasesInBatch puts every case to the command, as scripts do, and reads its
// answers back.
func TestCasesInBatch(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	var boxes []*box
	var in, out, diagnostics bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, name := range caseFiles(t) {
		for _, c := range readCases(t, name) {
			b := newBox(t, &c, filepath.Join(root, fmt.Sprint(len(cases))))
			if err := enc.Encode(c.line(b)); err != nil {
				t.Fatal(err)
			}
			cases, boxes = append(cases, c), append(boxes, b)
		}
	}
	env := check.Env{
		Stdin: &in, Stdout: &out, Stderr: &diagnostics,
		Dirs: policyfile.DirsFrom(func(string) string { return "" }, filepath.Join(root, "nobody"), "linux"),
		Home: filepath.Join(root, "nobody"), Cwd: root, GOOS: "linux", Now: func() time.Time { return time.Unix(1e9, 0) },
	}
	for _, cmd := range check.Commands(env) {
		if cmd.Name() != "check" {
			continue
		}
		cmd.SetArgs([]string{"--batch"})
		if err := cmd.Execute(); err != nil {
			t.Fatalf("%v: %s", err, diagnostics.String())
		}
	}
	dec := json.NewDecoder(&out)
	for i := range cases {
		var a struct {
			ID                                                         string
			Decision                                                   engine.Action
			Surface, Pattern, Value, Origin, Reason, Context, Executes string
			Suggestion                                                 *struct{ Grants []engine.Grant }
			Asks                                                       []struct {
				Surface, Pattern string
				Decision         engine.Action
			}
		}
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		// The answer as an outcome, so that it is judged as every other.
		o := &gate.Outcome{Action: a.Decision}
		for _, x := range a.Asks {
			o.Checks = append(o.Checks, gate.Check{Gate: x.Surface, Pattern: x.Pattern, Action: x.Decision})
		}
		o.Decisive = &gate.Check{Gate: a.Surface, Pattern: a.Pattern, Value: a.Value, Origin: engine.Origin(a.Origin), Reason: a.Reason, Context: a.Context, Executes: a.Executes}
		if a.Suggestion != nil {
			o.Decisive.Suggestion = a.Suggestion.Grants
		}
		if wrong := cases[i].judge(o, boxes[i]); wrong != "" || a.ID != cases[i].ID {
			t.Errorf("%s (answered as %s): %s | %s", cases[i].ID, a.ID, wrong, cases[i].Why)
		}
	}
}
