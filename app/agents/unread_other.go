//go:build !unix

package agents

import (
	"context"
	"os"
)

// whenUnread knows no way to tell here; the deadline ends the wait.
func whenUnread(context.Context, *os.File, func()) {}
