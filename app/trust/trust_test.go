package trust

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStore(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(base, "p")
	link := filepath.Join(base, "link")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(project, link); err != nil {
		t.Fatal(err)
	}
	s := Open(filepath.Join(base, "state", "nod"))
	trusted := func(dir string, want bool) {
		t.Helper()
		if got, err := s.Trusted(dir); got != want || err != nil {
			t.Errorf("%s trusted: %v, %v", dir, got, err)
		}
	}
	trusted(project, false)
	if path, added, err := s.Add(link, time.Unix(1, 5)); path != project || !added || err != nil {
		t.Errorf("got %s, %v, %v", path, added, err)
	}
	trusted(project, true)
	trusted(link, true)
	trusted(filepath.Dir(project), false)
	if err := os.Mkdir(filepath.Join(project, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	trusted(filepath.Join(project, "below"), false)
	if _, added, err := s.Add(project, time.Now()); added || err != nil {
		t.Errorf("added twice: %v, %v", added, err)
	}
	if _, _, err := s.Add(filepath.Join(base, "none"), time.Now()); err == nil {
		t.Error("a missing directory was trusted")
	}
	for path, mode := range map[string]os.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Path()), ".trusted-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.RemoveAll(project); err != nil {
		t.Fatal(err)
	}
	if _, removed, err := s.Remove(project); !removed || err != nil {
		t.Errorf("a directory that is gone: %v, %v", removed, err)
	}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("got %v, %v", list, err)
	}
	if err := os.WriteFile(s.Path(), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Trusted(base); got || err == nil {
		t.Errorf("a broken store: %v, %v", got, err)
	}
	if _, _, err := s.Add(base, time.Now()); err == nil {
		t.Error("a broken store was overwritten")
	}
}
