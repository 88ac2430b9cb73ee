//go:build !unix

package agents

import (
	"context"
	"io"
	"os"
)

// whenUnread knows no way to tell here; the deadline ends the wait.
func whenUnread(context.Context, *os.File, func()) {}

// readReady knows no way to tell what can be read without waiting.
func readReady(io.Reader, int) (data []byte, more bool, err error) { return nil, true, nil }
