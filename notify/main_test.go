//go:build linux

package notify

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also makes the test binary the programs that tests start: role says
// which, and that it is none of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if role := roles[os.Args[1]]; role != nil {
			os.Exit(role())
		}
	}
	goleak.VerifyTestMain(m)
}

// roles are those programs by their only argument.
var roles = map[string]func() int{"tell": tellAlone, "serve": serveAlone}
