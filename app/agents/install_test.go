package agents

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

// desk is a home in which the commands are run as processes.
type desk struct {
	t    testing.TB
	home string
	proj string
	env  []string
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, home: home, proj: filepath.Join(home, "proj")}
	if err := os.MkdirAll(d.proj, 0o755); err != nil {
		t.Fatal(err)
	}
	// The program that install names must be there.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(home, "the bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "nod")); err != nil {
		t.Fatal(err)
	}
	d.env = []string{"HOME=" + home, "NOD_TEST_HOOK=1", "PATH=" + os.Getenv("PATH"), "GOCOVERDIR=" + t.TempDir(),
		"GORACE=atexit_sleep_ms=0"} // else a program with the race detector ends a second later
	return d
}

// nod runs a command.
func (d *desk) nod(stdin string, args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	c := exec.Command(filepath.Join(d.home, "the bin", "nod"), args...)
	c.Env, c.Dir, c.Stdin = d.env, d.proj, strings.NewReader(stdin)
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	if e := c.Run(); e != nil && c.ProcessState == nil {
		d.t.Fatal(e)
	}
	return out.String(), err.String(), c.ProcessState.ExitCode()
}

func (d *desk) must(args ...string) string {
	d.t.Helper()
	out, err, code := d.nod("", args...)
	if code != 0 {
		d.t.Fatalf("nod %q: exit %d: %s%s", args, code, out, err)
	}
	return out
}

func (d *desk) write(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// tree is every file below the home, but Nod's own state, with its text.
func (d *desk) tree() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(d.home, path)
		switch {
		case err != nil:
			return err
		case rel == ".local" || rel == filepath.Join(".config", "nod"):
			return fs.SkipDir
		case rel == ".config" && onlyNod(path):
			return fs.SkipDir
		case e.IsDir() || rel == filepath.Join("the bin", "nod"):
			all[rel] = e.Type().String()
			return nil
		}
		data, err := os.ReadFile(path)
		all[rel] = string(data)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

func onlyNod(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && len(list) == 1 && list[0].Name() == "nod"
}

func differences(a, b map[string]string) []string {
	var list []string
	for name := range a {
		if v, ok := b[name]; !ok || v != a[name] {
			list = append(list, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			list = append(list, "+"+name)
		}
	}
	slices.Sort(list)
	return list
}

// places are where each agent keeps its hooks, and what is there before.
var places = []struct {
	agent, user, project string
	before               string // empty: no file
}{
	{"claude-code", ".claude/settings.json", "proj/.claude/settings.local.json", "{\n  // mine\n  \"model\": \"opus\", // best\n  \"permissions\": {\"deny\": [\"Read(./.env)\"]}\n}\n"},
	{"codex", ".codex/hooks.json", "proj/.codex/hooks.json", "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]\n  }\n}\n"},
	{"gemini", ".gemini/settings.json", "proj/.gemini/settings.json", "{\n\t\"ui\": {\n\t\t\"theme\": \"Dark\" /* dark */\n\t}\n}"},
	{"copilot", ".copilot/hooks/nod.json", "proj/.github/hooks/nod.json", ""},
	{"opencode", ".config/opencode/plugin/nod.js", "proj/.opencode/plugin/nod.js", ""},
	{"cursor", ".cursor/hooks.json", "proj/.cursor/hooks.json", "{\n  \"version\": 1,\n  \"hooks\": {\n    \"afterFileEdit\": [{\"command\": \"gofmt\"}],\n    \"preToolUse\": [{\"command\": \"audit\"}]\n  }\n}\n"},
	{"crush", ".config/crush/crush.json", "proj/crush.json", "{\n  \"$schema\": \"https://charm.land/crush.json\",\n  \"lsp\": {}\n}\n"},
	{"amp", ".config/amp/settings.json", "proj/.amp/settings.json", "{\n  \"amp.permissions\": [\n    {\"tool\": \"Bash\", \"action\": \"reject\", \"matches\": {\"cmd\": \"rm *\"}} // never\n  ]\n}\n"},
}

// TestInstallRoundTrip puts each hook in place and takes it out again, for the
// user and for a project, into a file that is there and into none. All else
// stays, a second install changes nothing, and the end is the beginning, byte
// for byte.
func TestInstallRoundTrip(t *testing.T) {
	for _, p := range places {
		for _, project := range []bool{false, true} {
			for _, text := range []string{p.before, ""} {
				name := p.agent
				file, flag := p.user, []string{}
				if project {
					name, file, flag = name+" in a project", p.project, []string{"--project"}
				}
				if text == "" {
					name += " without a file"
				}
				t.Run(name, func(t *testing.T) {
					d := newDesk(t)
					if text != "" {
						d.write(file, text)
					}
					before := d.tree()
					out := d.must(append([]string{"hook", "install", p.agent}, flag...)...)
					if !strings.Contains(out, "the hook is in "+filepath.Join(d.home, file)) {
						t.Errorf("it says %q", out)
					}
					with := d.tree()
					commands := commandsIn(t, p.agent, with[file])
					if len(commands) == 0 {
						t.Fatalf("no command in\n%s", with[file])
					}
					for _, c := range commands {
						if p.agent != "amp" && !strings.HasPrefix(c, "'"+filepath.Join(d.home, "the bin", "nod")+"' hook "+p.agent) {
							t.Errorf("the command is %q", c)
						}
					}
					for line := range strings.Lines(text) {
						if _, comment, ok := strings.Cut(line, "//"); ok && !strings.Contains(line, "https://") && !strings.Contains(with[file], strings.TrimSpace(comment)) {
							t.Errorf("lost %q in\n%s", line, with[file])
						}
					}
					if info, err := os.Stat(filepath.Join(d.home, file)); err != nil || text != "" && info.Mode().Perm() != 0o640 {
						t.Errorf("%v, mode %v", err, info.Mode())
					}
					if st, _, code := d.nod("", append([]string{"hook", "status", p.agent}, flag...)...); code != 0 || !strings.Contains(st, "installed") {
						t.Errorf("status: %d, %q", code, st)
					}
					if out = d.must(append([]string{"hook", "install", p.agent}, flag...)...); !strings.Contains(out, "already") {
						t.Errorf("again it says %q", out)
					}
					if diff := differences(with, d.tree()); len(diff) > 0 {
						t.Errorf("a second install changed %q", diff)
					}
					d.must(append([]string{"hook", "uninstall", p.agent}, flag...)...)
					if diff := differences(before, d.tree()); len(diff) > 0 {
						t.Errorf("after uninstall other than before: %q\n%s", diff, d.tree()[file])
					}
					out, _, code := d.nod("", append([]string{"hook", "uninstall", p.agent}, flag...)...)
					if code != 0 || !strings.Contains(out, "no hook") {
						t.Errorf("uninstall again: %d, %q", code, out)
					}
					if st, _, code := d.nod("", append([]string{"hook", "status", p.agent}, flag...)...); code != 1 || !strings.Contains(st, "absent") {
						t.Errorf("status: %d, %q", code, st)
					}
				})
			}
		}
	}
}

// commandsIn are Nod's commands in an agent's settings.
func commandsIn(t *testing.T, agent, text string) []string {
	t.Helper()
	list, err := written(agent, "settings", []byte(text), agent == "opencode" || agent == "copilot")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestUninstallAfterChanges takes the hook out of files that somebody changed
// since, or whose record is gone.
func TestUninstallAfterChanges(t *testing.T) {
	for _, p := range places {
		if p.before == "" {
			continue
		}
		t.Run(p.agent, func(t *testing.T) {
			d := newDesk(t)
			path := d.write(p.user, p.before)
			d.must("hook", "install", p.agent)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(data), "{", "{ // changed since", 1)
			if err := os.WriteFile(path, []byte(changed), 0o640); err != nil {
				t.Fatal(err)
			}
			// Installing again brings it up to date, and backs up what is there now.
			if out := d.must("hook", "install", p.agent, "--mode", "advise", "--unserved", "defer"); strings.Contains(out, "already") && p.agent != "amp" {
				t.Errorf("it says %q", out)
			}
			d.must("hook", "uninstall", p.agent)
			want := strings.Replace(p.before, "{", "{ // changed since", 1)
			if got := d.tree()[p.user]; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}

			d.write(p.user, p.before)
			d.must("hook", "install", p.agent)
			if err := os.RemoveAll(filepath.Join(d.home, ".local", "state", "nod", "hooks")); err != nil {
				t.Fatal(err)
			}
			d.must("hook", "uninstall", p.agent)
			if got := d.tree()[p.user]; got != p.before {
				t.Errorf("without a record:\n%s\nwant\n%s", got, p.before)
			}
		})
	}
}

// TestStatusDoubtsTrust says that Codex passes over the hook, until its
// configuration speaks of it.
func TestStatusDoubtsTrust(t *testing.T) {
	d := newDesk(t)
	d.must("hook", "install", "codex")
	if out := d.must("hook", "status", "codex"); !strings.Contains(out, "Codex skips hooks that were not trusted") {
		t.Error(out)
	}
	file := filepath.Join(d.home, ".codex", "hooks.json")
	d.write(".codex/config.toml", "[hooks.state.\""+file+":pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n")
	if out := d.must("hook", "status", "codex"); strings.Contains(out, "trusted") {
		t.Error(out)
	}
}

// TestStrictSettingsAreWarnedOf says where comments keep an agent from reading
// its settings at all.
func TestStrictSettingsAreWarnedOf(t *testing.T) {
	d := newDesk(t)
	d.write(".claude/settings.json", "{} // mine\n")
	_, stderr, code := d.nod("", "hook", "install", "claude-code")
	if code != 0 || !strings.Contains(stderr, "has comments or trailing commas, which Claude Code does not take") {
		t.Errorf("%d, %s", code, stderr)
	}
	if out := d.must("hook", "status", "claude-code"); !strings.Contains(out, "passes over the whole file") {
		t.Errorf("%s", out)
	}
	d.write(".gemini/settings.json", "{} // mine\n")
	if _, stderr, code = d.nod("", "hook", "install", "gemini"); code != 0 || strings.Contains(stderr, "comments") {
		t.Errorf("%d, %s", code, stderr)
	}
}

// What holds of a project's hooks only is told where they are a project's.
func TestNotesOnProjects(t *testing.T) {
	for _, agent := range []string{"gemini", "cursor"} {
		d := newDesk(t)
		for _, project := range []bool{false, true} {
			args := []string{"hook", "install", agent}
			if project {
				args = append(args, "--project")
			}
			_, notes, code := d.nod("", args...)
			if code != 0 || strings.Contains(notes, "a project's hooks run only in") != project {
				t.Errorf("%q: exit %d: %s", args, code, notes)
			}
		}
	}
}

func TestInstallKeepsABackup(t *testing.T) {
	d := newDesk(t)
	text := "{\n  \"model\": \"opus\"\n}\n"
	d.write(".claude/settings.json", text)
	d.must("hook", "install", "claude-code")
	files, err := filepath.Glob(filepath.Join(d.home, ".local/state/nod/hooks/*.backup"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if info, serr := os.Stat(files[0]); err != nil || serr != nil || string(data) != text || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", data, err, info.Mode())
	}
}

// TestInstallFollowsLinks checks that settings which are a link, as with
// dotfiles in a repository, stay one.
func TestInstallFollowsLinks(t *testing.T) {
	d := newDesk(t)
	real := d.write("dotfiles/claude.json", "{}\n")
	link := filepath.Join(d.home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	d.must("hook", "install", "claude-code")
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 || !strings.Contains(d.tree()["dotfiles/claude.json"], "hook claude-code") {
		t.Errorf("%v, %v: %s", info, err, d.tree()["dotfiles/claude.json"])
	}
	d.must("hook", "uninstall", "claude-code")
	if got := d.tree()["dotfiles/claude.json"]; got != "{}\n" {
		t.Errorf("%q", got)
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := d.nod("", "hook", "install", "claude-code"); code != 2 || !strings.Contains(stderr, "symbolic link to nothing") {
		t.Errorf("a dangling link: %d, %s", code, stderr)
	}
}

// TestInstallLeavesBrokenSettings names the line and the column, and changes
// nothing.
func TestInstallLeavesBrokenSettings(t *testing.T) {
	d := newDesk(t)
	text := "{\n  \"model\": \"opus\"\n  \"x\": 1\n}\n"
	path := d.write(".claude/settings.json", text)
	before := d.tree()
	for _, verb := range []string{"install", "uninstall"} {
		_, stderr, code := d.nod("", "hook", verb, "claude-code")
		if code != 2 || !strings.Contains(stderr, path+":3:3: ") {
			t.Errorf("%s: %d, %s", verb, code, stderr)
		}
	}
	if out, _, code := d.nod("", "hook", "status", "claude-code"); code != 1 || !strings.Contains(out, "unreadable") || !strings.Contains(out, ":3:3: ") {
		t.Errorf("status: %d, %s", code, out)
	}
	if diff := differences(before, d.tree()); len(diff) > 0 {
		t.Errorf("changed %q", diff)
	}
}

// TestWhatIsInstalled pins the settings of each agent as they are written into
// no file, timeouts and all.
func TestWhatIsInstalled(t *testing.T) {
	for _, p := range places {
		for _, mode := range []string{"gate", "advise"} {
			d := newDesk(t)
			d.must("hook", "install", p.agent, "--mode", mode)
			text := strings.ReplaceAll(d.tree()[p.user], d.home, "/home/dev")
			goldenText(t, filepath.Join("installed", p.agent+"-"+mode+filepath.Ext(p.user)), []byte(text))
			if p.agent != "opencode" {
				var v any
				if plain, err := hujson.Standardize([]byte(text)); err != nil || json.Unmarshal(plain, &v) != nil {
					t.Errorf("%s: %v: %s", p.agent, err, text)
				}
			}
		}
	}
}

// TestStatusOfAMovedProgram says that the hook runs what is gone.
func TestStatusOfAMovedProgram(t *testing.T) {
	for _, p := range places {
		if p.agent == "amp" {
			continue // its helper names the program
		}
		d := newDesk(t)
		d.must("hook", "install", p.agent)
		path := filepath.Join(d.home, p.user)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte("the bin/nod"), []byte("old bin/nod")), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, code := d.nod("", "hook", "status", p.agent, "--json")
		var st Installed
		if err := json.Unmarshal([]byte(out), &st); err != nil || code != 1 || st.State != "outdated" || !strings.Contains(st.Problem, "old bin/nod") {
			t.Errorf("%s: %d, %s, %v", p.agent, code, out, err)
		}
		if out := d.must("hook", "install", p.agent); strings.Contains(out, "already") {
			t.Errorf("%s: %s", p.agent, out)
		}
		d.must("hook", "uninstall", p.agent)
		if p.before == "" && d.tree()[p.user] != "" {
			t.Errorf("%s: left %s", p.agent, d.tree()[p.user])
		}
	}
}

func TestUsageErrors(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"hook"}, "name the agent"},
		{[]string{"hook", "emacs"}, "no agent that Nod knows: they are claude-code, codex"},
		{[]string{"hook", "generic", "a", "b"}, "name the agent"},
		{[]string{"hook", "generic", "--mode", "nice"}, "the modes are gate and advise"},
		{[]string{"hook", "generic", "--unserved", "allow"}, "deny or defer"},
		{[]string{"hook", "install"}, "name one agent"},
		{[]string{"hook", "install", "generic"}, "has no settings that Nod knows"},
		{[]string{"hook", "install", "claude-code", "--trust"}, "knows no trust"},
		{[]string{"hook", "status", "a", "b"}, "name one agent"},
	} {
		out, stderr, code := d.nod("{}", c.args...)
		if code != 2 || !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("%q: %d, %q, %q", c.args, code, out, stderr)
		}
	}
	// Somebody else's file in the place of Nod's own is not taken away.
	path := d.write(".copilot/hooks/nod.json", `{"version": 1, "hooks": {"preToolUse": [{"bash": "mine"}]}}`)
	if _, stderr, code := d.nod("", "hook", "uninstall", "copilot"); code != 2 || !strings.Contains(stderr, "not as Nod wrote it") {
		t.Errorf("%d, %s", code, stderr)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
