package app

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapUnused takes the program's own read-only pages out of this process: its
// code, its constants, its function table. What is needed comes back from the
// kernel's cache at the next use, at the price of a minor fault; what only the
// start needed, such as the setting up of a window toolkit that a resident
// never draws with, does not. A part with a single page that was written to,
// such as one the loader has relocated, is left alone.
func unmapUnused() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var from, to uintptr // of the part being read; 0 if it is none of ours
	for s := bufio.NewScanner(maps); s.Scan(); {
		line := s.Text()
		var a, b uintptr
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %4s", &a, &b, &mode); n == 3 {
			if from = 0; (mode == "r-xp" || mode == "r--p") && strings.HasSuffix(line, " "+self) {
				from, to = a, b
			}
			continue
		}
		if from != 0 && strings.HasPrefix(line, "Anonymous:") {
			if strings.Join(strings.Fields(line), " ") == "Anonymous: 0 kB" {
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
			}
			from = 0
		}
	}
}
