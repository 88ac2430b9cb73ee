//go:build windows

package heartbeat

import (
	"errors"

	"golang.org/x/sys/windows"
)

// full reports whether err says that no space is left.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
