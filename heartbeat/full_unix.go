//go:build unix

package heartbeat

import (
	"errors"
	"syscall"
)

// full reports whether err says that no space or quota is left.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
