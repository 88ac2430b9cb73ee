//go:build !unix

package app

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/nod-agents/nod/app/exit"
)

// become runs the program and ends as it does.
func (n *nod) become(program string, args, environ []string) error {
	c := exec.Command(program, args[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = environ, n.Stdin, n.Stdout, n.Stderr
	err := c.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return &exit.Error{Code: ended.ExitCode()}
	}
	return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("starting %s: %w", program, err)}
}
