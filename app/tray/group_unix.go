//go:build unix && !headless

package tray

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps ^C in our terminal from the window: it is ended in order.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the process and whatever it started.
func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
