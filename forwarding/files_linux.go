package forwarding

import "golang.org/x/sys/unix"

func renameNew(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}

// Magic numbers of file systems that golang.org/x/sys does not name.
const (
	cephMagic   = 0x00c36400
	lustreMagic = 0x0bd00bd0
	gfs2Magic   = 0x01161970
	ocfs2Magic  = 0x7461636f
	vboxMagic   = 0x786f4256
	virtiofs    = 0x6a656a63
)

// remote reports whether changes made elsewhere come without inotify events.
func remote(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC,
		unix.FUSE_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC,
		cephMagic, lustreMagic, gfs2Magic, ocfs2Magic, vboxMagic, virtiofs:
		return true
	}
	return false
}
