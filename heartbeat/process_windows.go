package heartbeat

import (
	"strconv"
	"time"

	"golang.org/x/sys/windows"
)

// stillActive is the exit code of a process that has none yet.
const stillActive = 259

// process looks a process up: whether it is there, and when it started. Access
// denied counts as there.
func process(pid int) (there bool, start string) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err == windows.ERROR_INVALID_PARAMETER {
		return false, ""
	}
	if err != nil {
		return true, ""
	}
	defer windows.CloseHandle(h)
	var code uint32
	if windows.GetExitCodeProcess(h, &code) == nil && code != stillActive {
		return false, ""
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return true, ""
	}
	return true, strconv.FormatInt(created.Nanoseconds(), 10)
}

// bootID is empty: a process's creation time is unique across boots here.
func bootID() string { return "" }

func sinceBoot() time.Duration { return windows.DurationSinceBoot() }
