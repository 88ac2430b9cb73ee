package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/policyfile"
)

// runAsNod makes the test's own program act as nod does, for tests that need
// the hook to be a process.
func runAsNod() int {
	cwd, _ := os.Getwd()
	home := os.Getenv("HOME")
	dirs := policyfile.DirsFrom(os.Getenv, home, runtime.GOOS)
	root := &cobra.Command{Use: "nod", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands(Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Getenv: os.Getenv, Home: home, Cwd: cwd,
		GOOS: runtime.GOOS, Now: time.Now, Dirs: dirs,
		Inboxes: func() string { return dirs.Agent }, Session: func() string { return "desktop" }, Setting: func(string) Setting { return Setting{} },
		Executable: func() (string, error) { return filepath.Join(filepath.Dir(os.Args[0]), "nod"), nil },
	})...)
	err := root.Execute()
	if err == nil {
		return 0
	}
	if err.Error() != "" {
		fmt.Fprintln(os.Stderr, "nod:", err)
	}
	if coded, ok := err.(interface{ ExitCode() int }); ok {
		return coded.ExitCode()
	}
	return 2
}
