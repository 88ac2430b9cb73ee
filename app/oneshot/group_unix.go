//go:build unix

package oneshot

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes cmd the head of a process group that is killed whole when its
// context ends, so that what a script started goes with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
