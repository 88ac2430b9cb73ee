//go:build unix

package heartbeat

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// noFollow keeps an open from following a link and from waiting at a FIFO.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// create and rename go to the system directly. A record is written every
// second for as long as a session is served, and package os adds as many
// system calls again, each of which may wake another thread.
func create(path string, data []byte) (Stamp, error) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return Stamp{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	n, err := unix.Write(fd, data)
	if err == nil && n < len(data) {
		err = unix.ENOSPC
	}
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	local := err == nil && isLocal(fd)
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err != nil {
		return Stamp{}, &fs.PathError{Op: "write", Path: path, Err: err}
	}
	stamp := stampOf(&st)
	stamp.local = local
	return stamp, nil
}

func rename(from, to string) error {
	if err := unix.Rename(from, to); err != nil {
		return &fs.PathError{Op: "rename", Path: to, Err: err}
	}
	return nil
}

// Stamp implements Files.
func (Disk) Stamp(path string) (Stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return stampOf(&st), nil
}

func stampOf(st *unix.Stat_t) Stamp {
	return Stamp{dev: uint64(st.Dev), inode: uint64(st.Ino), mtime: st.Mtim.Nano(), size: st.Size}
}
