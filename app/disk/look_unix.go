//go:build unix

package disk

import (
	"syscall"

	"github.com/nod-agents/nod/engine/access"
)

// look asks the kernel directly: a gate looks at many paths, and needs of each
// no more than its kind.
func look(path string) access.Kind {
	var st syscall.Stat_t
	for {
		err := syscall.Lstat(path, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return access.Missing
		}
		break
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFLNK:
		return access.Link
	case syscall.S_IFDIR:
		return access.Directory
	}
	return access.Plain
}
