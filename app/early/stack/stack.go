// Package stack makes the main goroutine's stack large enough for a decision, in
// one step and before anything else has started.
//
// The stack would double again and again while packages start and the parser
// goes deep, and each time every frame on it is looked up in the tables of the
// program, which are read from the disk page by page, and moved: a twentieth of
// the time of nod check. This package imports nothing, so it is among the first
// to be initialized, when there is next to nothing on the stack.
package stack

// size is how much of it a decision takes, in bytes.
const size = 20 << 10

// never is false, which the compiler does not know.
var never bool

func init() { grow() }

// grow has a frame of size. Only that counts, so nothing is done with it.
//
//go:noinline
func grow() {
	if never {
		var frame [size]byte
		touch(&frame)
	}
}

//go:noinline
func touch(frame *[size]byte) { frame[size/2]++ }
