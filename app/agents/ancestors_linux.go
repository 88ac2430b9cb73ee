package agents

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// ancestors are the command lines of the processes above this one, the nearest
// first.
func ancestors() [][]string {
	var list [][]string
	for pid := os.Getppid(); pid > 1 && len(list) < 16; {
		dir := "/proc/" + strconv.Itoa(pid)
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			break
		}
		list = append(list, strings.Split(strings.TrimRight(string(args), "\x00"), "\x00"))
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			break
		}
		// pid (name) state ppid …, where the name may hold anything
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(rest) < 2 {
			break
		}
		if pid, err = strconv.Atoi(rest[1]); err != nil {
			break
		}
	}
	return list
}
