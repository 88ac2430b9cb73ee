//go:build unix

package agents

import (
	"context"
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
