//go:build unix && !headless

package tray

import (
	"os"
	"syscall"
)

// channel is the two ends of a connection between us and a window. It is a pair
// of sockets, because a pipe has a name below /proc by which any process of the
// same user can open it and answer in the window's place.
func channel() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// Ours has deadlines, which the runtime keeps only for what never blocks.
	if err := syscall.SetNonblock(pair[0], true); err != nil {
		_ = syscall.Close(pair[0])
		_ = syscall.Close(pair[1])
		return nil, nil, os.NewSyscallError("setnonblock", err)
	}
	return os.NewFile(uintptr(pair[0]), "window"), os.NewFile(uintptr(pair[1]), "resident"), nil
}

// downChannel leads to a window, upChannel from it.
func downChannel() (ours, theirs *os.File, err error) { return channel() }
func upChannel() (ours, theirs *os.File, err error)   { return channel() }
