//go:build unix

package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestMakefilePlaces runs the Makefile with a stand-in for go, in a directory
// whose name has a space: a program is whole in its place or the old one stays,
// also while another make builds, and nothing else is left.
func TestMakefilePlaces(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	makefile, err := filepath.Abs(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a tree")
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	script := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(env ...string) (string, error) {
		c := exec.Command("make", append([]string{"-f", makefile, "-C", dir, "GO=./go"}, env...)...)
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	holds := func(path, want string) {
		t.Helper()
		if data, err := os.ReadFile(path); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v, want %q", path, data, err, want)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o755 {
			t.Errorf("%s: mode %v", path, info.Mode())
		}
	}
	alone := func(want ...string) {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "nod*"))
		if err != nil || len(names) != len(want) {
			t.Errorf("left: %q, %v, want %q", names, err, want)
		}
	}
	nod := filepath.Join(dir, "nod")
	const build = `while [ "$1" != -o ]; do shift; done; `

	script(filepath.Join(dir, "go"), build+`echo one > "$2"`)
	if out, err := run("headless"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	holds(nod, "one\n")
	alone("nod")

	script(filepath.Join(dir, "go"), `exit 1`)
	if out, err := run("headless"); err == nil {
		t.Errorf("a build that fails: %s", out)
	}
	holds(nod, "one\n")
	alone("nod")

	script(filepath.Join(dir, "go"), build+`echo two > "$2"`)
	script(filepath.Join(bin, "dd"), `echo "dd: the disk is full" >&2; exit 1`)
	if out, err := run("headless"); err == nil || !strings.Contains(out, "the disk is full") {
		t.Errorf("a full disk: %v\n%s", err, out)
	}
	holds(nod, "one\n")
	alone("nod")
	if err := os.Remove(filepath.Join(bin, "dd")); err != nil {
		t.Fatal(err)
	}

	// The linker takes its time, and more than one build does it.
	script(filepath.Join(dir, "go"), build+`printf th > "$2"; sleep 0.2; echo ree >> "$2"`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if out, err := run("-j2", "build", "headless"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	holds(nod, "three\n")
	alone("nod")

	if out, err := run("clean"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	alone()
}
