//go:build unix

package policyfile

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipe reads what is no file and has no writer: it is refused at once.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.jsonc")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := (Disk{}).Read(name); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}
