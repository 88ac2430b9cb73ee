package app

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// trim gives back the memory that starting up took and waiting does not need:
// the heap's free pages, and the pages of the program's own file that package
// initialisation touched, most of them of the window toolkit, which the
// resident process never runs. They are read-only copies of the file, so the
// kernel brings one back when it is touched again.
func trim() error {
	debug.FreeOSMemory()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program's file: %w", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("reading the memory map: %w", err)
	}
	defer f.Close()
	var from, to uintptr
	s := bufio.NewScanner(f)
	for s.Scan() {
		line := s.Text()
		var start, end uintptr
		var perms string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &start, &end, &perms); n == 3 {
			from, to = 0, 0
			if strings.HasSuffix(line, " "+self) && (perms == "r-xp" || perms == "r--p") {
				from, to = start, end
			}
			continue
		}
		// A page that the linker has written to is no copy of the file.
		if from != 0 && strings.HasPrefix(line, "Anonymous:") && strings.HasSuffix(line, " 0 kB") {
			if _, _, e := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); e != 0 {
				return fmt.Errorf("giving back memory: %w", e)
			}
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("reading the memory map: %w", err)
	}
	return nil
}
