package heartbeat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPulses(t *testing.T) {
	for name, start := range map[string]func(time.Duration) (Pulse, error){"system": systemPulse, "ticker": newTickPulse} {
		t.Run(name, func(t *testing.T) {
			p, err := start(5 * time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if !p.Wait() {
					t.Fatal("the pulse ended by itself")
				}
			}
			p.Stop()
			if p.Wait() {
				t.Error("it ticks after Stop")
			}

			slow, err := start(time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan bool, 1)
			go func() { ended <- slow.Wait() }()
			slow.Stop()
			if <-ended {
				t.Error("a stopped wait says it ticked")
			}
		})
	}
}

// TestRefreshTouchesOnlyItsOwnRecord holds that a record is written over only
// while it is the file that was written before, of the same size, with one
// name.
func TestRefreshTouchesOnlyItsOwnRecord(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	first, second := []byte(`{"n":1}`), []byte(`{"n":2}`)
	fresh := func() Stamp {
		t.Helper()
		s, err := Disk{}.Replace(path, first)
		if err != nil {
			t.Fatal(err)
		}
		if !s.local {
			t.Skip("records are replaced on the file system of the test")
		}
		return s
	}
	was := fresh()
	next, err := Disk{}.Refresh(path, was, second)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := (Disk{}).Stamp(path); err != nil || !now.same(next) {
		t.Errorf("stamp %+v, want %+v: %v", now, next, err)
	}
	if data, _ := os.ReadFile(path); string(data) != string(second) {
		t.Errorf("record %s", data)
	}
	for name, spoil := range map[string]func() error{
		"gone":        func() error { return os.Remove(path) },
		"replaced":    func() error { _, err := Disk{}.Replace(path, first); return err },
		"grown":       func() error { return os.WriteFile(path, []byte(strings.Repeat(" ", 99)), 0o600) },
		"linked":      func() error { return os.Link(path, path+".twin") },
		"a link":      func() error { os.Remove(path); return os.Symlink(path+".twin", path) },
		"a directory": func() error { os.Remove(path); return os.Mkdir(path, 0o700) },
	} {
		os.RemoveAll(path)
		os.Remove(path + ".twin")
		was := fresh()
		if err := spoil(); err != nil {
			t.Fatal(name, err)
		}
		before, _ := os.ReadFile(path)
		if _, err := (Disk{}).Refresh(path, was, second); err == nil {
			t.Errorf("%s: it was refreshed", name)
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s: written to: %s", name, after)
		}
	}
	if _, err := (Disk{}).Refresh(path, was, []byte("longer than before")); err == nil {
		t.Error("another size was written in place")
	}
}
