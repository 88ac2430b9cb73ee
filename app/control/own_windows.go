package control

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// private: the user's own directories are closed to others by their lists of
// access rights, not by modes.
const private = false

func ours(fs.FileInfo) bool { return true }

func openOwn(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// tryLock locks one byte far behind the process id, which stays readable.
func tryLock(f *os.File) (bool, error) {
	at := &windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
