// Package exit says how a command ends: with which code, and with what on
// stderr.
package exit

import (
	"errors"
	"fmt"
	"io"
)

// The codes of every command.
const (
	Done        = 0
	Denied      = 1
	Misused     = 2 // an error of usage or configuration
	Asks        = 3 // nod check only
	Unavailable = 4 // nobody could be asked
	Internal    = 70
)

// Error ends a command with a code of its own. If Err is nil there is nothing
// to say beyond the code.
type Error struct {
	Code int
	Err  error
}

// Error is the message of Err, empty if there is none.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Usage is an error of usage, made as by fmt.Errorf.
func Usage(format string, args ...any) error {
	return &Error{Code: Misused, Err: fmt.Errorf(format, args...)}
}

// Hinted is an error with what to do about it.
type Hinted struct {
	Err  error
	Hint string
}

// Error is the message of Err.
func (e *Hinted) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Hinted) Unwrap() error { return e.Err }

// WithHint is err with what to do about it.
func WithHint(err error, hint string) error { return &Hinted{Err: err, Hint: hint} }

// Report prints to w what err says, if it says anything, and returns the code
// that ends the program: of an error without one, Misused.
func Report(w io.Writer, err error) int {
	if err == nil {
		return Done
	}
	code := Misused
	if coded, ok := errors.AsType[*Error](err); ok {
		if code = coded.Code; coded.Err == nil {
			return code
		}
	}
	fmt.Fprintf(w, "nod: %v\n", err)
	if h, ok := errors.AsType[*Hinted](err); ok {
		fmt.Fprintf(w, "nod: hint: %s\n", h.Hint)
	}
	return code
}
