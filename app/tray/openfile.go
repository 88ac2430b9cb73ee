//go:build !headless

package tray

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// openFile opens path with the desktop's own program for it. The path is one
// argument of a program, never part of a command line. It does not wait for
// that program.
func openFile(path string, env []string) error {
	if path == "" {
		return errors.New("no log is kept")
	}
	if !filepath.IsAbs(path) {
		return fmt.Errorf("opening %s: not an absolute path", path)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	var argv []string
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", path}
	case "windows":
		argv = []string{"rundll32.exe", "url.dll,FileProtocolHandler", path}
	default:
		argv = []string{"xdg-open", path}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the log is %s, but no program opens it: %w", path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select { // it fails at once or not at all
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("the log is %s, but no program opens it: %s: %w", path, argv[0], err)
		}
	case <-time.After(2 * time.Second):
	}
	return nil
}
