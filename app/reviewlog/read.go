package reviewlog

import (
	"io/fs"
	"os"
	"syscall"
)

// Read opens the log at path for reading. It does not wait at a pipe.
func Read(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotPlain}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadNext opens what was written after was, a file of the log at path that has
// been put aside; more than one may have been since. Where was is gone or nil, it
// is the newest.
func ReadNext(path string, was *os.File) (*os.File, error) {
	for {
		n := place(path, was)
		if n < 1 {
			return Read(path)
		}
		name := path
		if n > 1 {
			name = aside(path, n-1)
		}
		f, err := Read(name)
		if place(path, was) == n {
			return f, err
		}
		if err == nil { // rotated meanwhile
			f.Close()
		}
	}
}

// place is the number that f was put aside under; 0: none.
func place(path string, f *os.File) int {
	if f == nil {
		return 0
	}
	was, err := f.Stat()
	if err != nil {
		return 0
	}
	for n := 1; n <= maxOld; n++ {
		if info, err := os.Lstat(aside(path, n)); err == nil && os.SameFile(info, was) {
			return n
		}
	}
	return 0
}
