//go:build unix

package agents

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// whenUnread calls gone once nobody can read from the pipe that f writes to.
func whenUnread(ctx context.Context, f *os.File, gone func()) {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}} // errors are told without asking
	for ctx.Err() == nil {
		n, err := unix.Poll(fds, int(time.Minute/time.Millisecond))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return
		case n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
			gone()
			return
		}
	}
}

// readReady reads what stdin has now, less than limit bytes of it, and reports
// whether there may be more.
func readReady(stdin io.Reader, limit int) (data []byte, more bool, err error) {
	f, ok := stdin.(*os.File)
	if !ok {
		return nil, true, nil
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	data = make([]byte, 0, 4<<10)
	for {
		n, err := unix.Poll(fds, 0)
		if err != nil || n == 0 || len(data) == limit {
			return data, true, nil
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err = f.Read(data[len(data):min(cap(data), limit)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, false, nil
		case err != nil:
			return data, false, err
		}
	}
}
