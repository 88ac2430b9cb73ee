//go:build unix

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is no file in the place of the log is told of: it neither looks like an
// empty log nor holds who reads it.
func TestLogIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	for what, put := range map[string]func() error{
		"a pipe":      func() error { return unix.Mkfifo(path, 0o600) },
		"a directory": func() error { return os.Mkdir(path, 0o700) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		for _, follow := range []bool{false, true} {
			err := readLog(t.Context(), path, follow, func([]byte) error { return nil })
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, follow %v: %v", what, follow, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
