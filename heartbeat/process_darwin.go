package heartbeat

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// process looks a process up: whether it is there, and when it started. A
// zombie serves nobody and counts as gone; EPERM counts as there.
func process(pid int) (there bool, start string) {
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		return false, ""
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return true, ""
	}
	const zombie = 5 // SZOMB of sys/proc.h
	if info.Proc.P_stat == zombie {
		return false, ""
	}
	return true, fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec)
}

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// sinceBoot is time since boot by the wall clock's own account of it, which
// macOS shifts along when the wall clock is set.
func sinceBoot() time.Duration {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return 0
	}
	return time.Since(time.Unix(tv.Unix()))
}
