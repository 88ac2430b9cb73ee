//go:build linux || darwin

package forwarding

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func (disk) MkdirAll(path string) error { return os.MkdirAll(path, 0o700) }

func (disk) OpenDir(path string) (Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return diskDir{os.NewFile(uintptr(fd), path)}, nil
}

// diskDir works by openat and its kin on the descriptor it holds, so that no
// part of a path can be exchanged between a check and a use.
type diskDir struct{ f *os.File }

func (d diskDir) fd() int { return int(d.f.Fd()) }

func (d diskDir) err(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: d.f.Name() + "/" + name, Err: err}
}

// bare refuses what is no name in this directory.
func bare(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fs.ErrInvalid
	}
	return nil
}

func retry(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func (d diskDir) open(name string, flags int, mode uint32) (*os.File, error) {
	if err := bare(name); err != nil {
		return nil, d.err("open", name, err)
	}
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd(), name, flags|unix.O_CLOEXEC, mode) })
	if err != nil {
		return nil, d.err("open", name, err)
	}
	return os.NewFile(uintptr(fd), d.f.Name()+"/"+name), nil
}

func (d diskDir) OpenDir(name string, follow bool) (Dir, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	f, err := d.open(name, flags, 0)
	if err != nil {
		return nil, err
	}
	return diskDir{f}, nil
}

func (d diskDir) Mkdir(name string) error {
	err := bare(name)
	if err == nil {
		err = unix.Mkdirat(d.fd(), name, 0o700)
	}
	return d.err("mkdir", name, err)
}

func (d diskDir) Rmdir(name string) error {
	err := bare(name)
	if err == nil {
		err = unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR)
	}
	return d.err("rmdir", name, err)
}

func (d diskDir) Remove(name string) error {
	err := bare(name)
	if err == nil {
		err = unix.Unlinkat(d.fd(), name, 0)
	}
	return d.err("remove", name, err)
}

func (d diskDir) Names(limit int) ([]string, error) {
	if _, err := d.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := d.f.Readdirnames(limit)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func (d diskDir) Stat(name string) (Info, error) {
	var st unix.Stat_t
	err := bare(name)
	if err == nil {
		err = unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	return infoOf(&st), d.err("stat", name, err)
}

func (d diskDir) Info() (Info, error) { return fileInfo(d.f) }

func (d diskDir) Open(name string) (File, error) {
	f, err := d.open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (d diskDir) Create(name string) (File, error) {
	f, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (d diskDir) Publish(from, to string) error {
	err := errors.Join(bare(from), bare(to))
	if err == nil {
		err = renameNew(d.fd(), from, to)
	}
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP || err == unix.EOPNOTSUPP {
		// This file system cannot rename without replacing. A link cannot
		// replace either; the name it leaves behind is removed at once.
		if err = unix.Linkat(d.fd(), from, d.fd(), to, 0); err == nil {
			_ = unix.Unlinkat(d.fd(), from, 0)
		}
	}
	return d.err("rename", to, err)
}

func (d diskDir) Remote() bool { return remote(d.fd()) }

func (d diskDir) Close() error { return d.f.Close() }

type diskFile struct{ *os.File }

func (f diskFile) Stat() (Info, error) { return fileInfo(f.File) }

func fileInfo(f *os.File) (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	default:
		mode |= fs.ModeDevice
	}
	return Info{
		Mode: mode, Dev: uint64(st.Dev), Inode: st.Ino, Size: st.Size, Links: uint64(st.Nlink),
		MTime: time.Unix(st.Mtim.Unix()), Mine: int(st.Uid) == os.Geteuid(),
	}
}
