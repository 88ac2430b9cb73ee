package reviewlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// EventReplaced begins a log whose file was removed or replaced while it was
// being written.
const EventReplaced = "review_log.replaced"

// file is the log on disk. It looks before each entry whether its file is still
// the one of that name: what goes into a file that was removed is read by
// nobody, and what took its place may be a pipe that holds the writer.
//
// A file that is full becomes path.1, what was path.1 becomes path.2 and so on,
// as logrotate names them. Several processes may write the same log.
type file struct {
	path string
	full int64 // bytes of one file before it is rotated; one entry may be longer
	keep int   // old files kept

	mu   sync.Mutex
	out  *os.File    // nil: it is opened for the next entry
	own  fs.FileInfo // of out, or of the file that out was
	note string      // what must come before the next entry
	tell func(text string)
	told string
}

// Write writes one entry.
func (f *file) Write(entry []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.write(entry)
	text := ""
	var r *rotationError
	switch {
	case errors.As(err, &r):
		text = fmt.Sprintf("The review log %s is full and cannot be put aside (%v), so it grows. "+
			"To mend it: check its directory's owner and mode, and what lies at %s.1.", f.path, r.err, f.path)
		err = nil // the entry is in
	case err != nil:
		text = fmt.Sprintf("The review log %s cannot be written (%v), so what is decided now is not recorded. "+
			"To mend it: remove what lies there, check the directory's owner and mode, and the free space.", f.path, err)
	}
	if text != f.told && f.tell != nil {
		f.told = text
		f.tell(text)
	}
	return n, err
}

// rotationError says that an entry was written, but into a file that is full.
type rotationError struct{ err error }

func (e *rotationError) Error() string { return e.err.Error() }

func (f *file) write(entry []byte) (int, error) {
	size, err := f.open()
	if err != nil {
		return 0, err
	}
	var full *rotationError
	if size > 0 && size+int64(len(entry)) > f.full {
		if err := f.rotate(); err != nil {
			full = &rotationError{err}
		}
		if size, err = f.open(); err != nil {
			return 0, err
		}
	}
	if err := f.put(size, f.note+string(entry)); err != nil {
		return 0, err
	}
	f.note = ""
	if full != nil {
		return len(entry), full
	}
	return len(entry), nil
}

// put writes lines behind the size bytes that are there, on lines of their own:
// the last one that is there has no end after a full disk or a crash.
func (f *file) put(size int64, lines string) error {
	last := []byte{'\n'}
	if size > 0 {
		if _, err := f.out.ReadAt(last, size-1); err != nil && err != io.EOF { // truncated meanwhile
			return err
		}
	}
	if last[0] != '\n' {
		lines = "\n" + lines
	}
	_, err := f.out.WriteString(lines)
	return err
}

var errNotPlain = errors.New("it is no plain file")

// open has out be the file of the log, and returns its size. It neither waits at
// a pipe nor follows a link.
func (f *file) open() (int64, error) {
	here, err := os.Lstat(f.path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, err
	case err == nil && !here.Mode().IsRegular():
		return 0, &fs.PathError{Op: "open", Path: f.path, Err: errNotPlain}
	case f.own != nil && (err != nil || !os.SameFile(here, f.own)):
		if !f.wasPutAside() {
			f.note = fmt.Sprintf(`{"timestamp":%q,"event":%q,"stream":"review","reason":"the file of this log was removed or replaced; what it held is elsewhere or gone"}`+"\n",
				time.Now().UTC().Format(TimeFormat), EventReplaced)
		}
		f.own = nil
		if err := f.shut(); err != nil {
			return 0, err
		}
	case f.out != nil:
		return here.Size(), nil
	}
	out, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_RDWR|syscall.O_NONBLOCK|noFollow, 0o600)
	if err != nil {
		return 0, err
	}
	info, err := out.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: errNotPlain}
	}
	if err != nil {
		return 0, errors.Join(err, out.Close())
	}
	f.out, f.own = out, info
	return info.Size(), nil
}

// wasPutAside reports whether another process has rotated the log.
func (f *file) wasPutAside() bool {
	for n := 1; n <= f.keep; n++ {
		if info, err := os.Lstat(f.aside(n)); err == nil && os.SameFile(info, f.own) {
			return true
		}
	}
	return false
}

// shut closes the file if it is open.
func (f *file) shut() error {
	if f.out == nil {
		return nil
	}
	out := f.out
	f.out = nil
	return out.Close()
}

// rotate puts the file aside, unless another process has done so. After an error
// it is where it was, and so are the older ones, but for what had to make room.
func (f *file) rotate() error {
	release, err := claim(f.path)
	if err != nil {
		return err
	}
	defer release()
	if here, err := os.Lstat(f.path); err != nil || !os.SameFile(here, f.own) {
		return nil
	}
	free := 1
	for free < f.keep {
		if _, err := os.Lstat(f.aside(free)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		free++
	}
	for ; free > 1; free-- {
		if err := os.Rename(f.aside(free-1), f.aside(free)); err != nil {
			return err
		}
	}
	if err := f.shut(); err != nil { // Windows renames no open file
		return err
	}
	if err := os.Rename(f.path, f.aside(1)); err != nil {
		return err
	}
	f.own = nil
	return nil
}

func (f *file) aside(n int) string { return aside(f.path, n) }

func aside(path string, n int) string { return path + "." + strconv.Itoa(n) }

// Close implements io.Closer.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shut()
}

// problems has every change between a log that works and one that does not told
// to tell.
func (f *file) problems(tell func(text string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell = tell
}
