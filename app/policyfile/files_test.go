package policyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "policy.jsonc")
	var d Disk
	if _, err := d.Identify(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	write := func(text string) {
		t.Helper()
		tmp := name + ".tmp"
		if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, name); err != nil {
			t.Fatal(err)
		}
	}
	write("{}")
	first, err := d.Identify(name)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := d.Identify(name); again != first {
		t.Error("an untouched file changed its identity")
	}
	write("[]")
	if changed, _ := d.Identify(name); changed == first {
		t.Error("a replaced file kept its identity")
	}
	if data, err := d.Read(name); err != nil || string(data) != "[]" {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := d.Read(dir); err == nil {
		t.Error("a directory was read")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "gone"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Identify(link); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link counts as absent: %v", err)
	}
	if _, err := d.Identify(filepath.Join(name, "below")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file there is none: %v", err)
	}
}

func TestDirsFrom(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for _, tt := range []struct {
		name   string
		getenv func(string) string
		goos   string
		want   Dirs
	}{
		{"defaults", env(), "linux", Dirs{"/h/.pi/agent", "/h/.config/nod", "/h/.local/state/nod"}},
		{"set", env("PI_CODING_AGENT_DIR", "/a", "XDG_CONFIG_HOME", "/c", "XDG_STATE_HOME", "/s"), "linux", Dirs{"/a", "/c/nod", "/s/nod"}},
		{"a relative XDG directory does not count", env("XDG_CONFIG_HOME", "c"), "linux", Dirs{"/h/.pi/agent", "/h/.config/nod", "/h/.local/state/nod"}},
		{"macOS", env(), "darwin", Dirs{"/h/.pi/agent", "/h/Library/Application Support/nod", "/h/Library/Application Support/nod"}},
		{"Windows", env("AppData", "/r", "LocalAppData", "/l"), "windows", Dirs{"/h/.pi/agent", "/r/nod", "/l/nod"}},
	} {
		if got := DirsFrom(tt.getenv, "/h", tt.goos); got != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}
