package policy

import (
	"testing"

	"github.com/tailscale/hujson"
)

// standard strips the comments.
func standard(t *testing.T, data []byte) []byte {
	t.Helper()
	out, err := hujson.Standardize(append([]byte(nil), data...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
