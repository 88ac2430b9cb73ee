//go:build unix

package policyfile

import (
	"io/fs"
	"syscall"
)

// read returns the first limit bytes of a regular file, or false for anything
// else. Package os would set up its network poller for the file, which takes
// longer than reading it, and a hook has no other use for that.
func read(name string, limit int) (data []byte, regular bool, err error) {
	wrong := func(op string, err error) ([]byte, bool, error) {
		return nil, false, &fs.PathError{Op: op, Path: name, Err: err}
	}
	var fd int
	// Without blocking: it may be, or have become, a pipe that nobody writes to.
	err = again(func() (err error) {
		fd, err = syscall.Open(name, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return wrong("open", err)
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := again(func() error { return syscall.Fstat(fd, &st) }); err != nil {
		return wrong("stat", err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, false, nil
	}
	data = make([]byte, 0, min(max(st.Size, 0), int64(limit))+1)
	for len(data) < limit {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)] // it grew meanwhile
		}
		n := 0
		err := again(func() (err error) {
			n, err = syscall.Read(fd, data[len(data):min(cap(data), limit)])
			return err
		})
		if err != nil {
			return wrong("read", err)
		}
		if n == 0 {
			break
		}
		data = data[:len(data)+n]
	}
	return data, true, nil
}

// again calls f until no signal interrupts it.
func again(f func() error) error {
	for {
		if err := f(); err != syscall.EINTR {
			return err
		}
	}
}
