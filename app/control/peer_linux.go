package control

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer refuses a connection whose other end belongs to another user, root
// aside: root needs no socket to do as it likes.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("asking who is there: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return fmt.Errorf("asking who is there: %w", err)
	}
	if credErr != nil {
		return fmt.Errorf("asking who is there: %w", credErr)
	}
	return checkUID(int(cred.Uid), os.Geteuid())
}
