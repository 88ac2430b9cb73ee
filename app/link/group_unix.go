//go:build unix

package link

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes cmd the head of a process group that is killed whole when its
// context ends.
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
