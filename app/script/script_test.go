// Package script plays the commands as a shell would, from scripts in testdata.
package script

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nod-agents/nod/app"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"nod": func() {
			os.Exit(app.Main(app.Process{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}))
		},
	})
}

// TestScripts runs each script in a home of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o755)
		},
	})
}
