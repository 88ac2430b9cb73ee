//go:build unix

package app

import (
	"fmt"
	"syscall"

	"github.com/nod-agents/nod/app/exit"
)

// become replaces this process, so that signals, the terminal and the exit code
// are the program's own.
func (n *nod) become(program string, args, environ []string) error {
	err := syscall.Exec(program, args, environ)
	return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("starting %s: %w", program, err)}
}
