package app

import (
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/check"
)

// checkCommands are the commands that judge without asking anybody.
func (n *nod) checkCommands() []*cobra.Command {
	cwd, _ := os.Getwd() // empty: the commands that need it say so
	return check.Commands(check.Env{
		Stdin: n.Stdin, Stdout: n.Stdout, Stderr: n.Stderr, Getenv: n.getenv,
		Home: n.home, Cwd: cwd, GOOS: runtime.GOOS, Now: time.Now,
		Guard: n.protection(),
	})
}
