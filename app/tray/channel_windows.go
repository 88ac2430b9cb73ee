//go:build !headless

package tray

import "os"

// downChannel leads to a window, upChannel from it. Pipes have no names here.
func downChannel() (ours, theirs *os.File, err error) {
	theirs, ours, err = os.Pipe()
	return ours, theirs, err
}

func upChannel() (ours, theirs *os.File, err error) { return os.Pipe() }
