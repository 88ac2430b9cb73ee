//go:build unix

package reviewlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Nods of different agent directories write the same log: no rotation of one
// costs another an entry or an old file, or has it tell of a replaced file.
func TestWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	const writers, lines = 3, 3000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			f := &file{path: path, full: 1000, keep: 1000}
			f.problems(func(text string) { t.Errorf("told %q", text) })
			defer f.Close()
			for i := range lines {
				if _, err := fmt.Fprintf(f, "%d.%d\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 1000+writers*len("2.2999\n") { // each may have looked before the others wrote
			t.Errorf("%s has %d bytes", name, len(data))
		}
		for line := range bytes.Lines(data) {
			seen[strings.TrimSpace(string(line))]++
		}
	}
	lost := 0
	for w := range writers {
		for i := range lines {
			if seen[fmt.Sprintf("%d.%d", w, i)] != 1 {
				lost++
			}
		}
	}
	if lost > 0 || len(seen) != writers*lines {
		t.Errorf("%d of %d entries are not there once, and there are %d lines, %d files", lost, writers*lines, len(seen), len(names))
	}
}
