//go:build unix

package policyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only what is truly not there counts as no policy. What cannot be looked at, or
// was meant to be there, is an error.
func TestStatesOfAPolicyFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.WriteFile(at("file"), []byte("{}"), 0o600),
		os.Mkdir(at("dir"), 0o700),
		os.Mkdir(at("locked"), 0o700),
		os.WriteFile(at("locked/file"), []byte("{}"), 0o600),
	)
	for link, target := range map[string]string{
		"to file": "file", "to dir": "dir", "dangling": "gone", "loop": "loop", "through a file": "file/below",
		"below nothing": "dangling/below", "to locked": "locked/file", "twice": "dangling",
	} {
		err = errors.Join(err, os.Symlink(target, at(link)))
	}
	if err = errors.Join(err, os.Chmod(at("locked"), 0)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(at("locked"), 0o700)
	const absent = "absent"
	for name, want := range map[string]string{
		"file": "", "dir": "", "to file": "", "to dir": "", // Read refuses a directory
		"missing": absent, "dir/missing": absent, "missing/deep/below": absent, "to dir/missing": absent,
		"file/below": absent, "to file/below": absent,
		"dangling": "link to nothing", "twice": "link to nothing", "below nothing": "link to nothing",
		"dangling/below": "dangling is a symbolic link to nothing", "dangling/deep/below": "dangling is a symbolic link to nothing",
		"twice/below": "twice is a symbolic link to nothing",
		"loop":        "too many", "loop/below": "too many", "through a file": "not a directory",
		"locked/file": "permission denied", "locked/missing": "permission denied", "to locked": "permission denied",
		strings.Repeat("x", 300): "too long",
	} {
		if want == "permission denied" && os.Geteuid() == 0 {
			continue // root looks everywhere
		}
		_, err := Disk{}.Identify(at(name))
		switch {
		case want == "" && err != nil,
			want == absent && err != fs.ErrNotExist,
			want != "" && want != absent && (err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
