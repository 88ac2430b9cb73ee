package forwarding

import "golang.org/x/sys/unix"

func renameNew(dir int, from, to string) error {
	return unix.RenameatxNp(dir, from, dir, to, unix.RENAME_EXCL)
}

// remote reports whether changes made elsewhere come without kqueue events.
func remote(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Flags&unix.MNT_LOCAL == 0
}
