//go:build unix

package heartbeat

import "golang.org/x/sys/unix"

// noFollow keeps an open from following a link and from waiting at a FIFO.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK
