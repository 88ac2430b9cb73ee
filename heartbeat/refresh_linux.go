package heartbeat

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refresh implements Files. On a file system of this machine it writes over
// the file's bytes in one call, because replacing a file every second makes
// some file systems write it to the disk every second. The system calls do not
// tell the scheduler (see pulse): on these file systems they are copies in
// memory.
func (Disk) Refresh(path string, was Stamp, data []byte) (Stamp, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil || !was.local || was.size != int64(len(data)) || len(data) == 0 {
		return Stamp{}, errNotInPlace
	}
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(atCwd), uintptr(unsafe.Pointer(name)), unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return Stamp{}, errNotInPlace
	}
	defer unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	var st unix.Stat_t
	if _, _, errno = unix.RawSyscall(unix.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0); errno != 0 || st.Nlink != 1 {
		return Stamp{}, errNotInPlace
	}
	if now := stampOf(&st); now.dev != was.dev || now.inode != was.inode || now.mtime != was.mtime || now.size != was.size {
		return Stamp{}, errNotInPlace
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PWRITE64, fd, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), 0, 0, 0)
	if errno != 0 || n != uintptr(len(data)) {
		return Stamp{}, errNotInPlace
	}
	if _, _, errno = unix.RawSyscall(unix.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0); errno != 0 {
		return Stamp{}, errNotInPlace
	}
	next := stampOf(&st)
	next.local = true
	return next, nil
}

// atCwd is AT_FDCWD as a register holds it.
const atCwd = ^uintptr(-unix.AT_FDCWD - 1)

// isLocal reports whether the open file is on a file system where writing over
// a page that was just written is a copy in memory.
func isLocal(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}
