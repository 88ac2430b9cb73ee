//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// change is a's request with some of its fields replaced; nil removes one.
func change(t testing.TB, a ask, fields map[string]any) []byte {
	t.Helper()
	var request map[string]any
	if err := json.Unmarshal(a.request(), &request); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		if request[name] = value; value == nil {
			delete(request, name)
		}
	}
	data, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Whatever lies in the inbox, it gets one log entry, no other ask suffers, and
// nothing is approved.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	if err := os.MkdirAll(m.spool("requests"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(id string) string { return filepath.Join(m.spool("requests"), id+".json") }
	valid := func(id string) ask { return ask{id: id, command: "make test"} }
	// Each puts a file into the inbox under the id, and says whether it is
	// removed from there.
	bad := []struct {
		id      string
		put     func(id string)
		removed bool
	}{
		{"not-json", func(id string) { m.put(id+".json", []byte(`{"id": "not-json", `)) }, true},
		{"not-an-object", func(id string) { m.put(id+".json", []byte(`[1, 2]`)) }, true},
		{"empty", func(id string) { m.put(id+".json", nil) }, true},
		{"no-agent", func(id string) { m.put(id+".json", change(t, valid(id), map[string]any{"requesterAgentName": nil})) }, true},
		{"created-as-text", func(id string) { m.put(id+".json", change(t, valid(id), map[string]any{"createdAt": "now"})) }, true},
		{"wrong-target", func(id string) { m.submit(ask{id: id, command: "make test", target: "elsewhere"}) }, true},
		{"id-is-a-path", func(id string) { m.put(id+".json", change(t, valid(id), map[string]any{"id": "../../escape"})) }, false},
		{"id-of-another", func(id string) { m.put(id+".json", valid("good-before").request()) }, false},
		{"name with blanks", func(id string) { m.put(id+".json", valid(id).request()) }, false},
		{"symlink", func(id string) {
			target := m.write("outside/"+id+".json", string(valid(id).request()))
			if err := os.Symlink(target, at(id)); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"fifo", func(id string) {
			if err := unix.Mkfifo(at(id), 0o600); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"directory", func(id string) {
			if err := os.Mkdir(at(id), 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"huge", func(id string) {
			m.put(id+".json", change(t, valid(id), map[string]any{"message": string(bytes.Repeat([]byte("x"), 50<<20))}))
		}, false},
	}
	for _, b := range bad[:len(bad)/2] { // some are there before Nod, some come later
		b.put(b.id)
	}
	m.serve("--policy", m.policy(`{"permission": {"bash": {"*": "ask", "make *": "allow", "ls": "ask"}}}`))
	m.submit(ask{id: "good-before", command: "make test"})
	for _, b := range bad[len(bad)/2:] {
		b.put(b.id)
	}
	m.submit(ask{id: "good-after", command: "make test"})
	m.submit(ask{id: "good-asked", command: "ls"})
	for _, id := range []string{"good-before", "good-after"} {
		if r := m.collect(id); !r.Approved {
			t.Errorf("%s: %+v", id, r)
		}
	}
	note := d.Wait(t, 1)
	time.Sleep(alive)
	d.Invoke(t, note.ID, "allow")
	if r := m.collect("good-asked"); !r.Approved {
		t.Errorf("good-asked: %+v", r)
	}

	for _, e := range m.awaitLog("permission_forwarding.warning", len(bad)) {
		if e.File == "" || e.Reason == "" || e.Remedy == "" {
			t.Errorf("an entry lacks its particulars: %+v", e)
		}
	}
	logged := m.logged("permission_forwarding.warning")
	for _, b := range bad {
		n := 0
		for _, e := range logged {
			if e.File == at(b.id) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d log entries", b.id, n)
		}
		if _, err := os.Lstat(at(b.id)); (err != nil) != b.removed {
			t.Errorf("%s: removed: %v, want %v", b.id, err != nil, b.removed)
		}
		if _, ok := m.answered(b.id); ok {
			t.Errorf("%s was answered", b.id)
		}
	}
	if len(d.Posted()) != 1 || len(m.spooled("responses")) != 0 {
		t.Errorf("notifications: %d, responses: %v", len(d.Posted()), m.spooled("responses"))
	}
	h.awaitTooltip("nothing waits")
	if m.exists("agent/sessions/permission-forwarding/escape.json") {
		t.Error("an id that is a path wrote a file")
	}
}

func TestBrokenPolicy(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	const good = `{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`
	const broken = `{"permission": {"bash": {"*": "allow" "make *": "allow"}}}`
	policy := m.policy(broken)
	m.serve("--policy", policy)
	idle := func() {
		t.Helper()
		h.awaitTooltip("Nod: nothing waits")
		eventually(t, "nothing to mend", func() bool { return !strings.Contains(h.tooltip(), "mend") })
	}
	h.awaitTooltip("1 thing to mend")
	degraded := h.icon()
	h.awaitItem("! A policy file has errors")

	// With no good state everything asks.
	m.submit(ask{id: "asked", command: "make test"})
	h.awaitTooltip("1 ask waits, 1 thing to mend")
	note := d.Wait(t, 1)
	time.Sleep(alive)

	// Once mended, what waits is judged again, and the sign goes.
	m.policy(good)
	if r := m.collect("asked"); !r.Approved {
		t.Errorf("after the policy was mended: %+v", r)
	}
	d.WaitClosed(t, note.ID)
	idle()
	if h.icon() == degraded {
		t.Error("the tray icon looks as if there still was something to mend")
	}

	// Broken again, the last good state counts.
	m.policy(broken)
	h.awaitTooltip("1 thing to mend")
	m.submit(ask{id: "by-last-good", command: "make test"})
	if r := m.collect("by-last-good"); !r.Approved {
		t.Errorf("by the last good policy: %+v", r)
	}
	m.submit(ask{id: "not-by-broken", command: "rm -rf x"})
	d.Wait(t, 2)
	if problems := m.status().Problems; len(problems) != 1 || !strings.Contains(problems[0], policy) {
		t.Errorf("nod status tells of %q", problems)
	}
	m.policy(good)
	eventually(t, "nothing to mend", func() bool { return !strings.Contains(h.tooltip(), "mend") })
}

func TestUnreadableInbox(t *testing.T) {
	t.Parallel()
	m, h, _ := watched(t)
	// A file in the directory's place stands for any that cannot be used: modes
	// do not stop a superuser.
	blocked := filepath.Dir(m.spool("requests"))
	if err := os.MkdirAll(filepath.Dir(blocked), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n := m.nod("serve", "--policy", m.policy(`{"permission": {"bash": "allow"}}`))
	h.awaitTooltip("1 thing to mend")
	problem := h.awaitItem("! ")
	if !strings.Contains(problem.Label, "To mend it") {
		t.Errorf("the menu says %q", problem.Label)
	}
	m.awaitLog("permission_forwarding.error", 1)
	if m.exists("agent/sessions/permission-forwarding/serving/" + session + ".json") {
		t.Error("children are told that the session is served")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing to mend", func() bool { return !strings.Contains(h.tooltip(), "mend") })
	eventually(t, "serving", func() bool { return strings.Contains(n.err.String(), "serving session ") })
	m.submit(ask{id: "one", command: "make test"})
	if r := m.collect("one"); !r.Approved {
		t.Errorf("after it was mended: %+v", r)
	}
	m.awaitLog("permission_forwarding.error", 1)
}

// A disk that is full holds an answer up; it is not lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	m.serve()
	responses := m.spool("responses")
	m.submit(ask{id: "one", command: "make test"})
	note := d.Wait(t, 1)
	if err := unix.Mount("tmpfs", responses, "tmpfs", 0, "size=4k,nr_inodes=1"); err != nil {
		t.Skipf("a full disk needs a mount: %v", err)
	}
	mounted := true
	unmount := func() {
		if mounted {
			mounted = false
			if err := unix.Unmount(responses, 0); err != nil {
				t.Errorf("unmounting: %v", err)
			}
		}
	}
	defer unmount()
	time.Sleep(alive)
	d.Invoke(t, note.ID, "allow")
	h.awaitTooltip("1 thing to mend")
	if r, ok := m.answered("one"); ok {
		t.Fatalf("written to a full disk: %+v", r)
	}
	unmount()
	if r := m.collect("one"); !r.Approved {
		t.Errorf("the answer: %+v", r)
	}
	m.decided("forwarded_permission.approved", "approved", byHuman)
	eventually(t, "nothing to mend", func() bool { return !strings.Contains(h.tooltip(), "mend") })
}

// A request that changes while it waits is another ask.
func TestAChangedRequestIsNotApproved(t *testing.T) {
	t.Parallel()
	m, h, d := watched(t)
	m.serve()
	m.submit(ask{id: "one", command: "make test"})
	note := d.Wait(t, 1)
	time.Sleep(alive)
	m.submit(ask{id: "one", command: "rm -rf /"})
	d.WaitClosed(t, note.ID)
	d.Invoke(t, note.ID, "allow")
	never(t, "the other request was approved", time.Second, func() bool { r, ok := m.answered("one"); return ok && r.Approved })
	m.awaitLog("forwarded_permission.withdrawn", 1)
	h.awaitTooltip("nothing waits")
}

// Commands that tell of Nod find it, and nothing outside can approve.
func TestCommandsBesideARunningNod(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	n := m.serve("--frontend", "none", "--exec", "/bin/false")
	code, out, errs := m.run("status")
	if code != 0 || !strings.Contains(out, "desktop") || !strings.Contains(out, "alive") || !strings.Contains(out, fmt.Sprint(n.cmd.Process.Pid)) {
		t.Errorf("nod status: %d\n%s%s", code, out, errs)
	}
	if code, out, errs = m.run("grants"); code != 0 || out != "no grants\n" {
		t.Errorf("nod grants: %d\n%s%s", code, out, errs)
	}
	for _, verb := range []string{"approve", "allow", "answer"} {
		if code, _, _ := m.run(verb); code != 2 {
			t.Errorf("nod %s: %d", verb, code)
		}
	}
	if info, err := os.Stat(m.path("state/nod/review.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the review log: %v, %v", info, err)
	}
	n.signal(syscall.SIGINT)
	if code := n.wait(); code != 0 {
		t.Errorf("after SIGINT: %d: %s", code, n.err)
	}
	if code, out, _ = m.run("status"); code != 0 || !strings.Contains(out, "absent") {
		t.Errorf("nod status after the end: %d\n%s", code, out)
	}
	if code, _, errs = m.run("grants"); code != 4 || !strings.Contains(errs, "nod serve") {
		t.Errorf("nod grants after the end: %d %s", code, errs)
	}
}
