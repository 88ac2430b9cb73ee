//go:build unix

package reviewlog

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What becomes of the file while it is written neither loses entries without a
// word nor holds the writer.
func TestTheFileUnderTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "review.jsonl")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var told []string
	l.Problems(func(text string) { told = append(told, text) })
	record := func(id string) string {
		t.Helper()
		l.Record("e", slog.String("requestId", id))
		data, err := os.ReadFile(path)
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	wants := func(what, got string, present, absent string) {
		t.Helper()
		if !strings.Contains(got, present) || absent != "" && strings.Contains(got, absent) {
			t.Errorf("%s: the log holds %s", what, got)
		}
	}
	wants("at first", record("one"), "one", EventReplaced)
	wants("again", record("two"), "one", EventReplaced)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	got := record("three")
	wants("removed", got, "three", "two")
	wants("removed", got, EventReplaced, "")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = record("four")
	wants("replaced", got, "four", "three")
	wants("replaced", got, EventReplaced, "")
	if len(told) != 0 {
		t.Errorf("told %q", told)
	}

	for what, put := range map[string]func() error{
		"a pipe":      func() error { return unix.Mkfifo(path, 0o600) },
		"a directory": func() error { return os.Mkdir(path, 0o700) },
		"a link":      func() error { return os.Symlink("/dev/full", path) },
	} {
		told = nil
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		l.Record("e", slog.String("requestId", "lost")) // must come back
		l.Record("e", slog.String("requestId", "lost"))
		if len(told) != 1 || !strings.Contains(told[0], path) {
			t.Errorf("%s in its place: told %q", what, told)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		wants(what, record("five"), "five", "lost")
		if len(told) != 2 || told[1] != "" {
			t.Errorf("%s is gone: told %q", what, told)
		}
	}
}

// What is no file of ours is told of when the log is opened, and left alone.
func TestOpenWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "review.jsonl"), filepath.Join(dir, "target")
	for what, put := range map[string]func() error{
		"a pipe":      func() error { return unix.Mkfifo(path, 0o600) },
		"a directory": func() error { return os.Mkdir(path, 0o700) },
		"a link":      func() error { return os.Symlink(target, path) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if l, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
			l.Close()
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the file that a link leads to was made")
	}
}

// A lock that another program keeps holds nobody: the file grows, and that is
// told.
func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	f := &file{path: path, full: 10, keep: 2}
	defer f.Close()
	told := ""
	f.problems(func(text string) { told = text })
	write := func(line string) {
		t.Helper()
		if n, err := f.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	write("one, more than fits\n")
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	write("two\n")
	if !strings.Contains(told, "locked") {
		t.Errorf("told %q", told)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	write("three\n")
	if data, err := os.ReadFile(path); string(data) != "three\n" || told != "" {
		t.Errorf("%q, %v, told %q", data, err, told)
	}
}
