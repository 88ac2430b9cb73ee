package notify

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(tellAlone) != "" {
		os.Exit(tellAsHelper())
	}
	goleak.VerifyTestMain(m)
}
