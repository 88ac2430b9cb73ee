package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nod-agents/nod/engine/access"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("gone", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var f Files
	for name, want := range map[string]access.Kind{"": access.Directory, "a": access.Plain, "link": access.Link, "none": access.Missing, "a/b": access.Missing, "nul\x00": access.Missing} {
		if got := f.Look(filepath.Join(dir, name)); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	if text, err := f.Readlink(filepath.Join(dir, "link")); text != "gone" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if names, more := f.List(dir, 3); len(names) != 3 || !more {
		t.Errorf("got %v, %v", names, more)
	}
	if names, more := f.List(dir, 4); len(names) != 4 || more {
		t.Errorf("got %v, %v", names, more)
	}
	if names, more := f.List(filepath.Join(dir, "none"), 4); len(names) != 0 || more {
		t.Errorf("got %v, %v", names, more)
	}
}
