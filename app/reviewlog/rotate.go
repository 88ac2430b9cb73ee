package reviewlog

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// rotating appends to a file and starts a new one once it would be longer than
// limit. Of the old files the newest stays as it is, for whoever is reading it;
// the others are compressed, and those beyond keep are removed. It is safe for
// concurrent use. Old files are tended by the write that rotates: five short
// pieces of work in the life of ten megabytes.
type rotating struct {
	path  string
	limit int64 // bytes
	keep  int   // old files
	now   func() time.Time

	mu   sync.Mutex
	file *os.File // nil: to be opened
	size int64    // of file, bytes
}

// Write appends p, which is never split over two files.
func (r *rotating) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return 0, err
	}
	if r.size > 0 && r.size+int64(len(p)) > r.limit {
		if err := r.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := r.file.Write(p)
	r.size += int64(n)
	return n, err
}

// Close ends the file; a later Write opens it again.
func (r *rotating) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.close()
}

func (r *rotating) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// open opens the file, also where another process or person has moved the one
// that is open out of the way.
func (r *rotating) open() error {
	if r.file != nil {
		mine, err := r.file.Stat()
		if err == nil {
			if there, err := os.Stat(r.path); err == nil && os.SameFile(mine, there) {
				return nil
			}
		}
		_ = r.close()
	}
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the review log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("opening the review log: %w", err)
	}
	r.file, r.size = f, info.Size()
	return nil
}

func (r *rotating) rotate() error {
	if err := r.close(); err != nil {
		return fmt.Errorf("closing the review log: %w", err)
	}
	ext := filepath.Ext(r.path)
	stem := strings.TrimSuffix(r.path, ext)
	old := stem + "-" + r.now().UTC().Format("20060102T150405.000000000") + ext
	if err := os.Rename(r.path, old); err != nil {
		return fmt.Errorf("rotating the review log: %w", err)
	}
	if err := r.open(); err != nil {
		return err
	}
	// What fails from here on is tried again at the next rotation, and must
	// not keep an entry from being written.
	files, _ := filepath.Glob(escaped(stem) + "-*" + ext + "*")
	files = slices.DeleteFunc(files, func(f string) bool { return !strings.HasSuffix(f, ext) && !strings.HasSuffix(f, ext+".gz") })
	slices.Sort(files) // by their time, oldest first
	if n := len(files) - r.keep; n > 0 {
		for _, f := range files[:n] {
			_ = os.Remove(f)
		}
		files = files[n:]
	}
	for _, f := range files {
		if f != old && !strings.HasSuffix(f, ".gz") {
			_ = compress(f)
		}
	}
	return nil
}

// escaped is a path as a pattern for itself alone.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// compress replaces a file by its compressed form.
func compress(name string) (err error) {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(name+".gz", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	if err = errors.Join(err, z.Close(), out.Close()); err != nil {
		_ = os.Remove(name + ".gz")
		return err
	}
	return os.Remove(name)
}
