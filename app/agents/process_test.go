package agents_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/hooks"
	"github.com/nod-agents/nod/app/policyfile"
)

func TestMain(m *testing.M) {
	if os.Getenv("NOD_TEST_HOOK") != "" {
		os.Exit(runAsNod())
	}
	goleak.VerifyTestMain(m)
}

// runAsNod makes the test's own program act as nod does, for tests that need
// the hook to be a process.
func runAsNod() int {
	cwd, _ := os.Getwd()
	home := os.Getenv("HOME")
	dirs := policyfile.DirsFrom(os.Getenv, home, runtime.GOOS)
	root := &cobra.Command{Use: "nod", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(hooks.Command(agents.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Getenv: os.Getenv, Home: home, Cwd: cwd,
		GOOS: runtime.GOOS, Now: time.Now, Dirs: dirs,
		Inboxes: func() string { return dirs.Agent }, Session: func() string { return "desktop" }, Setting: func(string) agents.Setting { return agents.Setting{} },
		Executable: func() (string, error) { return filepath.Join(filepath.Dir(os.Args[0]), "nod"), nil },
	}))
	return exit.Report(os.Stderr, root.Execute())
}
