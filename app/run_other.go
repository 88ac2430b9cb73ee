//go:build !unix

package app

import (
	"errors"
	"fmt"
	"os/exec"
)

// become runs the program and ends as it does.
func (n *nod) become(program string, args, environ []string) error {
	c := exec.Command(program, args[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = environ, n.Stdin, n.Stdout, n.Stderr
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return &exitError{code: exit.ExitCode()}
	}
	return &exitError{exitUsage, fmt.Errorf("starting %s: %w", program, err)}
}
