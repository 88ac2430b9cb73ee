//go:build unix

package policyfile

import (
	"io/fs"
	"syscall"
)

func inode(info fs.FileInfo) (device, number uint64, change int64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino), changed(st)
	}
	return 0, 0, 0
}
