package forwarding

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows"
)

func (disk) MkdirAll(path string) error { return os.MkdirAll(path, 0o700) }

func (disk) OpenDir(path string) (Dir, error) { return openDir(path, true) }

// diskDir works by path: Windows has no openat in this toolchain's reach.
// Reparse points are refused where a link would be.
type diskDir struct{ path string }

func openDir(path string, follow bool) (Dir, error) {
	stat := os.Stat
	if !follow {
		stat = os.Lstat
	}
	fi, err := stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is not a directory")}
	}
	return diskDir{path}, nil
}

// bare refuses what is no name in this directory, device names among it.
func bare(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:*?"<>|`+"\x00") ||
		strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") || !filepath.IsLocal(name) {
		return fs.ErrInvalid
	}
	return nil
}

func (d diskDir) join(op, name string) (string, error) {
	if err := bare(name); err != nil {
		return "", &fs.PathError{Op: op, Path: name, Err: err}
	}
	return filepath.Join(d.path, name), nil
}

func (d diskDir) OpenDir(name string, follow bool) (Dir, error) {
	path, err := d.join("open", name)
	if err != nil {
		return nil, err
	}
	return openDir(path, follow)
}

func (d diskDir) Mkdir(name string) error {
	path, err := d.join("mkdir", name)
	if err != nil {
		return err
	}
	return os.Mkdir(path, 0o700)
}

func (d diskDir) Rmdir(name string) error {
	path, err := d.join("rmdir", name)
	if err != nil {
		return err
	}
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	return windows.RemoveDirectory(p)
}

func (d diskDir) Remove(name string) error {
	path, err := d.join("remove", name)
	if err != nil {
		return err
	}
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	return windows.DeleteFile(p)
}

func (d diskDir) Names(limit int) ([]string, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(limit)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func (d diskDir) Stat(name string) (Info, error) {
	path, err := d.join("stat", name)
	if err != nil {
		return Info{}, err
	}
	return infoAt(path)
}

func (d diskDir) Info() (Info, error) { return infoAt(d.path) }

func (d diskDir) Open(name string) (File, error) {
	path, err := d.join("open", name)
	if err != nil {
		return nil, err
	}
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(p, windows.GENERIC_READ, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_OPEN_REPARSE_POINT|windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return diskFile{os.NewFile(uintptr(h), path)}, nil
}

func (d diskDir) Create(name string) (File, error) {
	path, err := d.join("create", name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (d diskDir) Publish(from, to string) error {
	a, err1 := d.join("rename", from)
	b, err2 := d.join("rename", to)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	p, err1 := windows.UTF16PtrFromString(a)
	q, err2 := windows.UTF16PtrFromString(b)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	// Without MOVEFILE_REPLACE_EXISTING an existing target is an error.
	if err := windows.MoveFileEx(p, q, windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &fs.PathError{Op: "rename", Path: b, Err: err}
	}
	return nil
}

func (d diskDir) Remote() bool {
	p, err := windows.UTF16PtrFromString(filepath.VolumeName(d.path) + `\`)
	return err == nil && windows.GetDriveType(p) == windows.DRIVE_REMOTE
}

func (d diskDir) Close() error { return nil }

type diskFile struct{ *os.File }

func (f diskFile) Stat() (Info, error) { return infoOf(windows.Handle(f.Fd())) }

func infoAt(path string) (Info, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Info{}, err
	}
	h, err := windows.CreateFile(p, windows.FILE_READ_ATTRIBUTES|windows.READ_CONTROL,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_OPEN_REPARSE_POINT|windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	defer windows.CloseHandle(h)
	return infoOf(h)
}

func infoOf(h windows.Handle) (Info, error) {
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &d); err != nil {
		return Info{}, err
	}
	mode := fs.FileMode(0o600)
	switch {
	case d.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		mode |= fs.ModeSymlink
	case d.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0:
		mode |= fs.ModeDir
	}
	return Info{
		Mode: mode, Dev: uint64(d.VolumeSerialNumber), Inode: uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow),
		Size: int64(d.FileSizeHigh)<<32 | int64(d.FileSizeLow), Links: uint64(d.NumberOfLinks),
		MTime: time.Unix(0, d.LastWriteTime.Nanoseconds()), Mine: mine(h),
	}, nil
}

// mine reports whether the file's owner is the user of this process, or the
// administrators' group that owns what an elevated user makes.
func mine(h windows.Handle) bool {
	sd, err := windows.GetSecurityInfo(h, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return false
	}
	owner, _, err := sd.Owner()
	if err != nil || owner == nil {
		return false
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return false
	}
	return owner.Equals(user.User.Sid) || owner.IsWellKnown(windows.WinBuiltinAdministratorsSid)
}
