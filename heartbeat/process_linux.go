package heartbeat

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process looks a process up: whether it is there, and when it started (clock
// ticks since boot; empty if that cannot be told). A zombie serves nobody and
// counts as gone; EPERM counts as there.
func process(pid int) (there bool, start string) {
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		return false, ""
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true, ""
	}
	// The second field is the name in parentheses and may hold anything.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return true, ""
	}
	rest := strings.Fields(string(stat[end+1:]))
	if len(rest) < 20 {
		return true, ""
	}
	if rest[0] == "Z" || rest[0] == "X" {
		return false, ""
	}
	return true, rest[19]
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func sinceBoot() time.Duration {
	var ts unix.Timespec
	// It never blocks, so the scheduler need not hear of it (see kernelPulse).
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
