//go:build unix

package heartbeat

import (
	"os/exec"
	"syscall"
)

// asNobody has cmd run as an ordinary user. It takes root.
func asNobody(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}
