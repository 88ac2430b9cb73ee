package heartbeat

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Files is every file operation of this package, so that a test can make one
// fail. Disk is the real one.
type Files interface {
	MkdirAll(dir string) error
	Names(dir string) ([]string, error)
	// Read returns a regular file's bytes, at most 64 KiB of them. It follows
	// no link and never waits for a writer.
	Read(path string) ([]byte, error)
	// Replace makes data the content of path in one step: other processes see
	// the old content or the new, never a part. The stamp is the new file's.
	Replace(path string, data []byte) (Stamp, error)
	// Refresh writes data over the file if it still is what was says, of the
	// same size, and can be written in one step. Otherwise it returns an error
	// and has written nothing; Replace is the way then.
	Refresh(path string, was Stamp, data []byte) (Stamp, error)
	// Stamp looks at the file without reading it.
	Stamp(path string) (Stamp, error)
	// Overwrite writes data over the present file without asking for space.
	Overwrite(path string, data []byte) error
	Remove(path string) error
}

// Disk is the file system of the machine. Directories are made 0700, files 0600.
type Disk struct{}

// tempPrefix and tempSuffix mark files that a killed Writer may leave behind.
const (
	tempPrefix = ".nod-beat-"
	tempSuffix = ".tmp"
)

// MkdirAll makes dir and what is missing above it.
func (Disk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

// Names lists dir.
func (Disk) Names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Read implements Files.
func (Disk) Read(path string) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxRecord)
	}
	return data, err
}

// Stamp tells one version of a file from another. The zero value tells
// nothing and equals no file's.
type Stamp struct {
	dev, inode uint64
	mtime      int64 // ns
	size       int64 // bytes
	local      bool  // known to be on a file system where Refresh works
}

// same reports whether both are of one version.
func (s Stamp) same(o Stamp) bool {
	s.local, o.local = false, false
	return s == o && s != Stamp{}
}

// errNotInPlace means that a record must be replaced.
var errNotInPlace = errors.New("the record cannot be refreshed in place")

// Replace implements Files.
func (Disk) Replace(path string, data []byte) (Stamp, error) {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+rand.Text()+tempSuffix)
	stamp, err := create(temp, data)
	if err == nil {
		// No fsync: after a power cut there is no serving process either.
		err = rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return Stamp{}, err
	}
	return stamp, nil
}

// Overwrite implements Files.
func (Disk) Overwrite(path string, data []byte) error {
	f, err := openRegular(path, os.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	// Blanks over the rest: shortening first would let a reader see half.
	if pad := fi.Size() - int64(len(data)); pad > 0 && fi.Size() <= maxRecord {
		data = append(append([]byte(nil), data...), strings.Repeat(" ", int(pad))...)
	}
	_, err = f.WriteAt(data, 0)
	return err
}

// Remove removes a file.
func (Disk) Remove(path string) error { return os.Remove(path) }

func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noFollow, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// old reports whether the file at path was last written more than age ago.
func old(path string, now time.Time, age time.Duration) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular() && now.Sub(fi.ModTime()) > age
}
