//go:build linux

package e2e

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// limit is one of the kernel's, from /proc/sys.
func limit(t testing.TB, name string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc/sys", name))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unread watches a directory and reads nothing until it is asked whether the
// kernel dropped events meanwhile, which it does for every watcher alike.
func unread(t testing.TB, dir string) (overflowed func() bool) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		buf := make([]byte, 1<<20)
		for {
			n, err := unix.Read(fd, buf)
			if n <= 0 || err != nil {
				return false
			}
			for at := 0; at+unix.SizeofInotifyEvent <= n; {
				ev := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
				if ev.Mask&unix.IN_Q_OVERFLOW != 0 {
					return true
				}
				at += unix.SizeofInotifyEvent + int(ev.Len)
			}
		}
	}
}

// everLogged counts the entries of one event by the ask that they are about,
// in the review log and in what was rotated out of it.
func (m *machine) everLogged(event string) map[string]int {
	m.t.Helper()
	counts := map[string]int{}
	files, err := filepath.Glob(m.path("state/nod/review*"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			continue // it is being compressed: the next look has it
		}
		var r io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			plain := strings.TrimSuffix(name, ".gz")
			zr, err := gzip.NewReader(f)
			if _, twice := os.Stat(plain); twice == nil || err != nil {
				f.Close()
				continue
			}
			r = zr
		}
		for s := bufio.NewScanner(r); s.Scan(); {
			var e entry
			if json.Unmarshal(s.Bytes(), &e) == nil && e.Event == event {
				counts[e.RequestID]++
			}
		}
		f.Close()
	}
	return counts
}

// TestAStoppedNodLosesNoAsk stops Nod while more asks arrive than the kernel
// keeps events for. It goes on, and answers each of them, once.
func TestAStoppedNodLosesNoAsk(t *testing.T) {
	m := newMachine(t)
	n := m.serve("--frontend", "none", "--policy", m.policy(`{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`))
	m.submit(ask{id: "first", command: "make test"})
	m.collect("first")
	asks := limit(t, "fs/inotify/max_queued_events") + 3616
	if asks > 100_000 {
		t.Skipf("the kernel keeps too many events for a test: fs.inotify.max_queued_events is %d, not 16384 as usual", asks-3616)
	}
	// Written beside the inbox, so that each costs it one event.
	staged, inbox := m.path("staged"), m.spool("requests")
	for _, dir := range []string{staged, inbox} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	name := func(i int) string { return fmt.Sprintf("ask-%05d", i) }
	for i := range asks {
		if err := os.WriteFile(filepath.Join(staged, name(i)+".json"), ask{id: name(i), command: "make test"}.request(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	beat := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(inbox))), "serving", session+".json")
	beaten := func() time.Time {
		var r struct{ UpdatedAt int64 }
		data, err := os.ReadFile(beat)
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return time.UnixMilli(r.UpdatedAt)
	}

	n.signal(syscall.SIGSTOP)
	eventually(t, "nod to stand still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	overflowed := unread(t, inbox)
	for i := range asks {
		if err := os.Rename(filepath.Join(staged, name(i)+".json"), filepath.Join(inbox, name(i)+".json")); err != nil {
			t.Fatal(err)
		}
	}
	if !overflowed() {
		t.Fatal("the kernel lost no event, so this shows nothing")
	}
	went := time.Now()
	n.signal(syscall.SIGCONT)

	eventually(t, "every answer", func() bool {
		time.Sleep(100 * time.Millisecond) // a look at so many files costs Nod its time
		return len(m.spooled("responses")) == asks
	})
	t.Logf("%d asks answered %v after nod went on, which took it %v of a processor", asks, time.Since(went).Round(time.Millisecond), cpuTime(t, n.cmd.Process.Pid).Round(time.Millisecond))
	for i := range asks {
		r, ok := m.answered(name(i))
		if !ok || !r.Approved {
			t.Fatalf("%s: %+v", name(i), r)
		}
	}
	eventually(t, "a heartbeat since then", func() bool { return beaten().After(went) })
	eventually(t, "all in the log", func() bool { return len(m.everLogged("forwarded_permission.auto_approved")) == asks+1 })
	for id, times := range m.everLogged("forwarded_permission.auto_approved") {
		if times != 1 {
			t.Errorf("%s was answered %d times", id, times)
		}
	}
	if w := m.everLogged("permission_forwarding.warning"); len(w) > 0 {
		t.Errorf("warnings of %d asks", len(w))
	}
	if left := m.spooled("requests"); len(left) > 0 {
		t.Errorf("%d requests are left", len(left))
	}
}

// TestWithoutWatches has Nod serve where the kernel really gives it no watch,
// by the limits of a user namespace of its own.
func TestWithoutWatches(t *testing.T) {
	for _, which := range []string{"max_inotify_instances", "max_inotify_watches"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			policy := m.policy(`{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`)
			line := `echo 0 >/proc/sys/user/` + which + ` && exec "$0" "$@"`
			own := func() *syscall.SysProcAttr {
				return &syscall.SysProcAttr{
					Cloneflags:  syscall.CLONE_NEWUSER,
					UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
				}
			}
			probe := exec.Command("/bin/sh", "-c", line, "true")
			probe.SysProcAttr = own()
			if out, err := probe.CombinedOutput(); err != nil {
				t.Skipf("a user namespace with limits of its own cannot be had here: %v %s", err, out)
			}
			n := &nod{startIn(t, m.path("proj"), m.env(), own(), "/bin/sh", "-c", line, program(t), "serve", "--frontend", "none", "--policy", policy), m}
			eventually(t, "nod serving", func() bool {
				if !n.running() {
					t.Fatalf("nod ended with %d: %s", n.wait(), n.err)
				}
				return strings.Contains(n.err.String(), "serving session ")
			})
			for i := range 3 { // one at a time: each is found by a look of its own
				id := fmt.Sprint("ask-", i)
				m.submit(ask{id: id, command: "make test"})
				if r := m.collect(id); !r.Approved {
					t.Errorf("%s: %+v", id, r)
				}
			}
			told := strings.Join(m.status().Problems, "\n")
			if !strings.Contains(told, "cannot be watched") || !strings.Contains(told, "sudo sysctl fs.inotify.") {
				t.Errorf("nod status tells of %q", told)
			}
			if e := m.awaitLog("permission_forwarding.error", 1)[0]; !strings.Contains(e.Remedy, "sudo sysctl fs.inotify.") {
				t.Errorf("the log says %+v", e)
			}
			// The policy is looked at all the same.
			m.policy(`{"permission": {"bash": {"*": "ask", "make *": "deny"}}}`)
			m.submit(ask{id: "denied", command: "make test"})
			if r := m.collect("denied"); r.Approved {
				t.Errorf("by the policy as it was: %+v", r)
			}
			n.quit()
		})
	}
}
