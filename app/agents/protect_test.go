package agents

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/policyfile"
)

// TestHookFiles holds that an agent's settings are named once Nod's hook is in
// one of them, in either place, and no others.
func TestHookFiles(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	env := Env{Home: home, Cwd: project, Getenv: func(string) string { return "" }, Dirs: policyfile.Dirs{Config: filepath.Join(home, "config"), State: filepath.Join(home, "state")},
		Now: time.Now, Setting: func(string) Setting { return Setting{Mode: Gated, Unserved: UnservedDeny} }, Executable: func() (string, error) { return "/usr/bin/nod", nil }}
	if called, looked := env.HookFiles(project); len(called) != 0 || len(looked) < 2*(len(All())-1) {
		t.Errorf("with no hook: called %q, looked at %d files", called, len(looked))
	}
	for _, a := range All() {
		i, ok := a.(installer)
		if !ok {
			continue
		}
		t.Run(a.Name(), func(t *testing.T) {
			for _, w := range []Where{{false}, {true}} {
				s, err := env.setup(i, w, Flags{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := env.install(a.Name(), &s); err != nil {
					t.Fatal(err)
				}
				called, looked := env.HookFiles(project)
				other, err := env.setup(i, Where{!w.Project}, Flags{})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range []string{s.file, other.file} {
					if !slices.Contains(called, f) || !slices.Contains(looked, f) {
						t.Errorf("project %v: %s is not among %q", w.Project, f, called)
					}
				}
				if _, err := env.uninstall(a.Name(), &s); err != nil {
					t.Fatal(err)
				}
				if called, _ := env.HookFiles(project); len(called) != 0 {
					t.Errorf("uninstalled: %q", called)
				}
			}
		})
	}
	// One that cannot be read is none.
	if err := os.MkdirAll(filepath.Join(home, ".gemini"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if called, _ := env.HookFiles(""); len(called) != 0 {
		t.Errorf("unreadable: %q", called)
	}
}
