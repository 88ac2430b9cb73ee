package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/policyfile"
)

// house is a home directory with a project in it.
type house struct {
	t    *testing.T
	home string
	cwd  string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, home: home, cwd: filepath.Join(home, "project")}
	if err := os.MkdirAll(h.cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) write(name, text string) {
	h.t.Helper()
	name = filepath.Join(h.home, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// run runs one command and returns what it printed and its exit code.
func (h *house) run(stdin string, args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	var out, errs bytes.Buffer
	root := &cobra.Command{Use: "nod", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands(Env{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
		Dirs: policyfile.DirsFrom(func(string) string { return "" }, h.home, "linux"),
		Home: h.home, Cwd: h.cwd, GOOS: "linux",
		Now: func() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) },
	})...)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err := root.Execute()
	var coded *exit.Error
	switch {
	case err == nil:
	case errors.As(err, &coded):
		code = coded.Code
		errs.WriteString(coded.Error())
	default:
		code = exit.Misused // as the program does for cobra's own errors
		errs.WriteString(err.Error())
	}
	return out.String(), errs.String(), code
}

const (
	nodGlobal  = ".config/nod/policy.jsonc"
	peerGlobal = ".pi/agent/extensions/pi-permission-system/config.json"
)

const somePolicy = `{
  "permission": {
    "*": "ask",
    "bash": {
      "*": "ask",
      "git *": "allow",
      "git push *": "ask",
      "git push --force *": {"action": "deny", "reason": "Never rewrite what others pulled."}
    },
    "read": "allow",
    "path": {"*": "allow", "*.env": "deny"}
  }
}
`

func TestCheck(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		want []string // parts of stdout, in order
	}{
		{"allow", []string{"bash", "git status"}, 0, []string{"allow\n", "→ allow  bash: git status", `by "git *" on bash (global, ~/.config/nod/policy.jsonc:6)`, "also matching", `ask    *  on bash`}},
		{"deny with its reason", []string{"bash", "ls && git push --force"}, 1, []string{"deny\n", "ask    bash: ls", "→ deny   bash: git push --force", "policy.jsonc:8", "Never rewrite", `ask    git push *`}},
		{"ask, what a session grant covers", []string{"bash", "git push"}, 3, []string{"ask\n", "policy.jsonc:7", `would grant "git push*" on bash`, `starts with "git push"`, `still denied by "git push --force *"`}},
		{"a floor says why", []string{"bash", "sudo git status"}, 3, []string{"→ ask", "it executes git status", "a rule that allows it would not do: sudo runs another command <indirection-bash-wrapper>", "allow  bash: git status", "run by sudo git status", "exactly this and nothing else"}},
		{"a path with what it is", []string{"read", ".env"}, 1, []string{"→ deny   path: .env", `by "*.env" on path`, "allow  read: .env"}},
		{"outside", []string{"read", "/etc/hostname"}, 3, []string{"→ ask    external_directory: /etc/hostname", `no rule for external_directory matches, so the default "*" counts`, "everything below /etc/"}},
		{"a broken command", []string{"bash", "echo 'x"}, 3, []string{"could not be read as a whole"}},
		{"a session grant", []string{"--session-grant", "bash=git push *", "bash", "git push origin"}, 0, []string{`granted for the session: "git push *" on bash`}},
		{"a whole input", []string{"--input", `{"path": "a.env", "content": ""}`, "write"}, 1, []string{"→ deny   path: a.env"}},
		{"control characters are shown", []string{"bash", "git \x1b[2Jx"}, 0, []string{`\x1B[2Jx`}},
	}
	h := newHouse(t)
	h.write(nodGlobal, somePolicy)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, code := h.run("", append([]string{"check"}, tt.args...)...)
			if code != tt.code || errs != "" {
				t.Errorf("exit %d, want %d; %s", code, tt.code, errs)
			}
			rest := out
			for _, part := range tt.want {
				i := strings.Index(rest, part)
				if i < 0 {
					t.Fatalf("%q is missing, or out of order, in\n%s", part, out)
				}
				rest = rest[i:]
			}
			if strings.ContainsRune(out, '\x1b') {
				t.Error("a control character got through")
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	h := newHouse(t)
	for name, args := range map[string][]string{
		"no tool":              {"check"},
		"too many":             {"check", "bash", "ls", "-l"},
		"unquoted":             {"check", "bash", "git", "push"},
		"value and input":      {"check", "--input", "{}", "bash", "ls"},
		"input is no JSON":     {"check", "--input", "{", "bash"},
		"grant without =":      {"check", "--session-grant", "bash", "bash", "ls"},
		"grant of nothing":     {"check", "--session-grant", "bash=", "bash", "ls"},
		"no such directory":    {"check", "--cwd", "nowhere", "bash", "ls"},
		"batch and a tool":     {"check", "--batch", "bash"},
		"batch and a policy":   {"check", "--batch", "--policy", "x"},
		"an unknown flag":      {"check", "--polices", "x", "bash", "ls"},
		"policy alone":         {"policy"},
		"explain nothing":      {"policy", "explain"},
		"schema and more":      {"policy", "schema", "x"},
		"a missing file":       {"policy", "check", "none.jsonc"},
		"trusting a file":      {"trust", filepath.Join(h.home, "file")},
		"trusting nothing":     {"trust", "nowhere"},
		"two directories":      {"trust", "a", "b"},
		"list and a directory": {"trust", "--list", "."},
	} {
		h.write("file", "")
		if out, errs, code := h.run("", args...); code != exit.Misused || errs == "" || out != "" {
			t.Errorf("%s: exit %d, stderr %q, stdout %q", name, code, errs, out)
		}
	}
}

// TestHints is what a mistyped command is told.
func TestHints(t *testing.T) {
	h := newHouse(t)
	for want, args := range map[string][]string{
		"put the value in quotes, as in: nod check bash 'ls -l'": {"check", "bash", "ls", "-la"},
		"did you mean --policy?":                                 {"check", "--polcy", "x", "bash", "ls"},
		"did you mean --session-grant?":                          {"check", "--sesion-grant", "bash=ls", "bash", "ls"},
		"see: nod check --help":                                  {"check", "-q"},
		"quote the value if it has blanks":                       {"check", "bash", "ls", "x"},
	} {
		if _, errs, code := h.run("", args...); code != exit.Misused || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, %q, want %q", args, code, errs, want)
		}
	}
}

func TestCheckJSON(t *testing.T) {
	h := newHouse(t)
	h.write(nodGlobal, somePolicy)
	out, _, code := h.run("", "check", "--json", "bash", "git push --force")
	if code != exit.Denied {
		t.Errorf("exit %d", code)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"decision": "deny", "surface": "bash", "pattern": "git push --force *", "value": "git push --force", "origin": "global", "reason": "Never rewrite what others pulled.", "context": nil, "executes": nil} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s: %v, want %v", key, v, want)
		}
	}
	if _, ok := got["id"]; ok {
		t.Error("a single answer has no id")
	}
	rule := got["rule"].(map[string]any)
	if rule["line"] != 8.0 || rule["file"] != filepath.Join(h.home, nodGlobal) {
		t.Errorf("rule %v", rule)
	}
}

func TestBrokenPolicyIsTold(t *testing.T) {
	h := newHouse(t)
	h.write(peerGlobal, `{"permission": {"bash": "alow"}}`)
	out, errs, code := h.run("", "check", "bash", "ls")
	if code != exit.Asks || !strings.Contains(errs, "config.json:1:25: permission.bash: ") || !strings.Contains(errs, `did you mean "allow"?`) || !strings.Contains(out, "a policy file is broken") {
		t.Errorf("exit %d\n%s\n%s", code, errs, out)
	}
	h.write(peerGlobal, `{"permission": {"bash": "allow"}}`)
	h.write("project/.nod/policy.jsonc", `{`)
	if _, errs, code := h.run("", "check", "bash", "ls"); code != 0 || !strings.Contains(errs, "nod trust") {
		t.Errorf("an untrusted project's file: exit %d, %s", code, errs)
	}
	if _, _, code := h.run("", "trust"); code != 0 {
		t.Fatal("not trusted")
	}
	out, errs, code = h.run("", "check", "bash", "ls")
	if code != exit.Asks || !strings.Contains(errs, "every allow asks") || !strings.Contains(out, "says allow, but a policy file is broken, so it asks") {
		t.Errorf("exit %d\n%s\n%s", code, errs, out)
	}
	h.write(nodGlobal, "{")
	h.write(peerGlobal, `{"permission": {"bash": {"*": "allow", "rm *": "deny"}}}`)
	h.write("project/.nod/policy.jsonc", "{}")
	if out, errs, code := h.run("", "check", "bash", "ls"); code != exit.Asks || !strings.Contains(errs, "everything asks that is not denied") || !strings.Contains(out, "so it asks") {
		t.Errorf("exit %d\n%s\n%s", code, errs, out)
	}
	if out, _, code := h.run("", "check", "bash", "rm x"); code != exit.Denied {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestBatch(t *testing.T) {
	h := newHouse(t)
	h.write(nodGlobal, `{"permission": {"bash": {"*": "ask", "ls *": "allow"}}}`)
	h.write("other/.pi/x", "")
	line := func(m map[string]any) string {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	in := line(map[string]any{"id": "a", "cwd": h.cwd, "tool": "bash", "input": map[string]any{"command": "ls -l"}}) +
		"\n" +
		line(map[string]any{"id": 2, "cwd": h.cwd, "tool": "bash", "input": map[string]any{"command": "rm x"}, "policy": map[string]any{"bash": map[string]any{"rm *": map[string]any{"action": "deny", "reason": "no"}}}}) +
		"{\n" +
		line(map[string]any{"id": "no tool", "cwd": h.cwd}) +
		line(map[string]any{"id": "no cwd", "tool": "bash"}) +
		line(map[string]any{"id": "relative", "tool": "bash", "cwd": "x"}) +
		line(map[string]any{"id": "platform", "tool": "bash", "cwd": "/", "platform": "amiga"}) +
		line(map[string]any{"id": "type", "tool": 5, "cwd": "/"}) +
		line(map[string]any{"id": "win", "platform": "win32", "cwd": `C:\Proj`, "projectDir": h.cwd, "tool": "read", "input": map[string]any{"path": `c:\proj\x`}, "policy": map[string]any{"read": "allow"}}) +
		strings.TrimSuffix(line(map[string]any{"id": "last", "cwd": h.cwd, "tool": "bash", "input": map[string]any{"command": "ls"}, "session": []any{}}), "\n")
	out, _, code := h.run(in, "check", "--batch")
	if code != exit.Misused {
		t.Errorf("exit %d", code)
	}
	var got []map[string]any
	for l := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		got = append(got, m)
	}
	want := []struct {
		id       any
		decision any
	}{{"a", "allow"}, {2.0, "deny"}, {nil, nil}, {"no tool", nil}, {"no cwd", nil}, {"relative", nil}, {"platform", nil}, {"type", nil}, {"win", "allow"}, {"last", "allow"}}
	if len(got) != len(want) {
		t.Fatalf("%d answers\n%s", len(got), out)
	}
	for i, w := range want {
		if got[i]["id"] != w.id || got[i]["decision"] != w.decision || (w.decision == nil) != (got[i]["error"] != nil) {
			t.Errorf("answer %d: %v", i, got[i])
		}
	}
	if got[1]["reason"] != "no" {
		t.Errorf("got %v", got[1])
	}
	for _, key := range []string{"id", "decision", "surface", "pattern", "value", "origin", "reason", "context", "executes", "suggestion", "asks"} {
		if _, ok := got[0][key]; !ok {
			t.Errorf("the answer lacks %s", key)
		}
	}
	allowed := map[string]any{"id": "a", "cwd": h.cwd, "tool": "read", "input": nil, "policy": map[string]any{"read": "allow"}}
	if out, _, _ := h.run(line(allowed), "check", "--batch"); !strings.Contains(out, `"decision":"allow"`) || !strings.Contains(out, `"suggestion":null`) {
		t.Errorf("what is allowed needs no grant: %s", out)
	}
	if _, _, code := h.run(line(map[string]any{"id": "a", "cwd": h.cwd, "tool": "x", "input": nil}), "check", "--batch"); code != 0 {
		t.Errorf("a good batch ends with %d", code)
	}
}

func TestPolicyCheck(t *testing.T) {
	h := newHouse(t)
	if out, _, code := h.run("", "policy", "check"); code != 0 || out != "nothing wrong in 0 files\n" {
		t.Errorf("exit %d, %s", code, out)
	}
	h.write(nodGlobal, `{"permission": {"bash": {"git push *": "deny", "git *": "ask"}}}`)
	out, _, code := h.run("", "policy", "check")
	if code != 0 || !strings.HasPrefix(out, "warning: ") || !strings.Contains(out, "it never counts") {
		t.Errorf("exit %d, %s", code, out)
	}
	h.write("project/mine.jsonc", `{"permission": {"bash": "aks"}}`)
	out, _, code = h.run("", "policy", "check", "--json", "mine.jsonc")
	var f finding
	if err := json.Unmarshal([]byte(out), &f); err != nil || code != exit.Misused || f.Level != "error" || f.Line != 1 || f.Key != "permission.bash" || f.Remedy == "" {
		t.Errorf("exit %d, %s, %v", code, out, err)
	}
	h.write("project/config.json", `{"links": {}}`)
	if out, _, code := h.run("", "policy", "check", "config.json"); code != exit.Misused || !strings.Contains(out, "only Nod knows this") {
		t.Errorf("exit %d, %s", code, out)
	}
}

func TestPolicyExplainAndPaths(t *testing.T) {
	h := newHouse(t)
	h.write(nodGlobal, somePolicy)
	out, _, code := h.run("", "policy", "explain", "bash", "git push origin")
	if code != 0 || !strings.Contains(out, "→ ask    git push *") || !strings.Contains(out, "  allow  git *") || strings.Contains(out, "--force") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, _, _ := h.run("", "policy", "explain", "bash"); strings.Count(out, "\n") != 5 {
		t.Errorf("all rules of bash:\n%s", out)
	}
	if out, _, _ := h.run("", "policy", "explain", "path", "/x"); !strings.Contains(out, "→ allow  *  on path") {
		t.Errorf("a bare path name:\n%s", out)
	}
	h.write(nodGlobal, `{"permission": {"*": "deny", "path": {"~/.ssh/*": "ask"}}}`)
	if out, _, _ := h.run("", "policy", "explain", "path_read", "../.ssh/id"); !strings.HasPrefix(out, "→ ask    ~/.ssh/*  on path  ") {
		t.Errorf("another spelling of a path:\n%s", out)
	}
	if out, _, _ := h.run("", "policy", "explain", "path_read", "x"); out != "no rule matches: path_read decides nothing, what the other surfaces say counts\n" {
		t.Errorf("the universal key and a path:\n%s", out)
	}
	h.write(nodGlobal, somePolicy)
	h.write("project/.nod/policy.jsonc", "{}")
	out, _, _ = h.run("", "policy", "paths")
	for _, want := range []string{"global         read       " + filepath.Join(h.home, nodGlobal), "global         absent     " + filepath.Join(h.home, peerGlobal), "project        untrusted  " + filepath.Join(h.cwd, ".nod/policy.jsonc")} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestPolicySchema(t *testing.T) {
	h := newHouse(t)
	out, _, code := h.run("", "policy", "schema")
	if !json.Valid([]byte(out)) || code != 0 {
		t.Errorf("exit %d", code)
	}
	if _, _, code := h.run("", "policy", "schema", "-o", "s.json"); code != 0 {
		t.Errorf("exit %d", code)
	}
	if data, err := os.ReadFile(filepath.Join(h.cwd, "s.json")); err != nil || string(data) != out {
		t.Errorf("the file differs, %v", err)
	}
}

func TestTrust(t *testing.T) {
	h := newHouse(t)
	h.write("project/.nod/policy.jsonc", `{"permission": {"bash": "allow"}}`)
	if err := os.Symlink(h.cwd, filepath.Join(h.home, "link")); err != nil {
		t.Fatal(err)
	}
	check := func(want int) {
		t.Helper()
		if _, _, code := h.run("", "check", "bash", "ls"); code != want {
			t.Errorf("exit %d, want %d", code, want)
		}
	}
	check(exit.Asks)
	if out, _, code := h.run("", "trust", filepath.Join(h.home, "link")); code != 0 || out != "trusted "+h.cwd+"\n" {
		t.Errorf("exit %d, %s", code, out)
	}
	check(0)
	if out, _, _ := h.run("", "trust"); !strings.HasPrefix(out, "already trusted ") {
		t.Errorf("got %s", out)
	}
	if out, _, _ := h.run("", "trust", "--list"); out != h.cwd+"\n" {
		t.Errorf("got %s", out)
	}
	store := filepath.Join(h.home, ".local/state/nod/trusted.json")
	if info, err := os.Stat(store); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if out, _, _ := h.run("", "untrust"); out != "no longer trusted "+h.cwd+"\n" {
		t.Errorf("got %s", out)
	}
	check(exit.Asks)
	if out, _, code := h.run("", "untrust"); code != 0 || !strings.HasPrefix(out, "was not trusted ") {
		t.Errorf("exit %d, %s", code, out)
	}
	h.run("", "trust")
	if err := os.WriteFile(store, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := h.run("", "check", "bash", "ls")
	if code != exit.Asks || !strings.Contains(errs, "remove the file") {
		t.Errorf("a broken store trusts nobody: exit %d, %s", code, errs)
	}
}
