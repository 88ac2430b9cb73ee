//go:build unix

package forwarding

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
)

// TestHostileInbox fills one inbox with what a hostile program of the same
// user could put there. Nothing of it is asked or answered, each thing is
// reported once, and an honest ask is served all the while.
func TestHostileInbox(t *testing.T) {
	onceMoreAsNobody(t)
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	requests := filepath.Join(InboxDir(dir, "desk"), "requests")
	must(t, os.MkdirAll(requests, 0o700))
	valid := func(id string) []byte {
		data, err := bash(id, "desk", "ls").Marshal()
		must(t, err)
		return data
	}
	file := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	text := func(id string, from, to string) string { return strings.Replace(string(valid(id)), from, to, 1) }
	root := os.Geteuid() == 0
	must(t, os.WriteFile(outside, valid("symlink-out"), 0o600))
	must(t, os.WriteFile(filepath.Join(requests, "plain"), valid("symlink-in"), 0o600))

	cases := map[string]struct {
		put     func(path string) error
		reason  string // part of the warning
		removed bool
		skip    bool
	}{
		"empty.json":        {file(""), "not valid JSON", true, false},
		"truncated.json":    {file(string(valid("truncated"))[:50]), "not valid JSON", true, false},
		"duplicate.json":    {file(text("duplicate", `"id":`, `"id":"x","id":`)), "names a key twice", true, false},
		"trailing.json":     {file(string(valid("trailing")) + "{}"), "not valid JSON", true, false},
		"utf8.json":         {file(text("utf8", "ls", "l\xff")), "not valid UTF-8", true, false},
		"deep.json":         {file(text("deep", `"id":`, `"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`,"id":`)), "not valid JSON", true, false},
		"range.json":        {file(text("range", `"createdAt":`, `"createdAt":1e999,"x":`)), `"createdAt" must be`, true, false},
		"nocore.json":       {file(`{"id":"nocore"}`), "is missing", true, false},
		"target.json":       {file(text("target", `"targetSessionId":"desk"`, `"targetSessionId":"chair"`)), "meant for session", true, false},
		"otherid.json":      {file(string(valid("another"))), "not the file's name", false, false},
		"pathid.json":       {file(string(valid("../pathid"))), "not the file's name", false, false},
		"nul.json":          {file(text("nul", `"nul"`, `"nul\u0000"`)), "not the file's name", false, false},
		"casetwin.json":     {file(string(valid("CaseTwin"))), "not the file's name", false, false},
		"a b.json":          {file(string(valid("a b"))), "its name can be no request's", false, false},
		"a\nb.json":         {file(string(valid("a\nb"))), "its name can be no request's", false, false},
		"\x1b[2J.json":      {file(string(valid("x"))), "its name can be no request's", false, false},
		"é.json":            {file(string(valid("é"))), "its name can be no request's", false, false},
		"..json":            {file(string(valid("."))), "its name can be no request's", false, false},
		"...json":           {file(string(valid(".."))), "its name can be no request's", false, false},
		".json":             {file(string(valid(""))), "its name can be no request's", false, false},
		"large.json":        {file(text("large", "ls", strings.Repeat("l", maxFile))), "is larger than", false, false},
		"sparse.json":       {func(p string) error { return sparse(p, 50<<30) }, "is larger than", false, false},
		"symlink-out.json":  {func(p string) error { return os.Symlink(outside, p) }, "is a symbolic link", false, false},
		"symlink-in.json":   {func(p string) error { return os.Symlink("plain", p) }, "is a symbolic link", false, false},
		"symlink-loop.json": {func(p string) error { return os.Symlink("symlink-loop.json", p) }, "is a symbolic link", false, false},
		"hard.json":         {func(p string) error { return hardLink(p, valid("hard")) }, "more than one name", false, false},
		"directory.json":    {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file", false, false},
		"fifo.json":         {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "not a regular file", false, false},
		"socket.json":       {func(p string) error { return socket(t, p) }, "not a regular file", false, false},
		"device.json":       {func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o600, 1<<8|5) }, "not a regular file", false, !root},
		"foreign.json":      {func(p string) error { return foreign(p, valid("foreign")) }, "belongs to another user", false, !root},
		"open.json":         {func(p string) error { return mode(p, valid("open"), 0o666) }, "can be written by every user", false, false},
		"closed.json":       {func(p string) error { return mode(p, valid("closed"), 0) }, "cannot be read", false, root},
	}
	h := newHuman()
	s := serve(t, dir, "desk", h).ready()
	want := 0
	for name, c := range cases {
		if c.skip {
			continue
		}
		if err := c.put(filepath.Join(requests, name)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		want++
	}
	// Names that are odd and honest.
	honest := []string{"good", "CON", "nul.txt", "Twin", "twin", strings.Repeat("x", 240), "-rf", "a.json"}
	for _, id := range honest {
		drop(t, dir, bash(id, "desk", "ls"))
	}
	for _, id := range honest {
		h.wait(t, id).answer <- yes(byUser)
		answerOf(t, dir, "desk", id)
	}
	eventually(t, fmt.Sprintf("%d warnings", want), func() bool { return s.log.count(EventWarning) >= want })
	for range 3 {
		s.lookAgain()
		time.Sleep(50 * time.Millisecond)
	}
	warnings := map[string]map[string]any{}
	for _, w := range s.log.all(EventWarning) {
		name := filepath.Base(w["file"].(string))
		if warnings[name] != nil {
			t.Errorf("%q is reported twice: %v", name, w)
		}
		warnings[name] = w
		if w["remedy"] == "" {
			t.Errorf("%q: no remedy", name)
		}
	}
	for name, c := range cases {
		if c.skip {
			continue
		}
		w := warnings[name]
		if w == nil || !strings.Contains(w["reason"].(string), c.reason) || w["removed"] != c.removed {
			t.Errorf("%q: warning %v, want …%s…", name, w, c.reason)
		}
		if exists(filepath.Join(requests, name)) == c.removed {
			t.Errorf("%q: removed %t, want %t", name, !c.removed, c.removed)
		}
		if p := filepath.Join(InboxDir(dir, "desk"), "responses", name); exists(p) {
			t.Errorf("%q was answered", name)
		}
	}
	h.mu.Lock()
	if len(h.asks) != len(honest) {
		t.Errorf("%d asks shown, want %d", len(h.asks), len(honest))
	}
	h.mu.Unlock()
	if text := s.problems.text(); text != "" {
		t.Errorf("problems: %s", text)
	}
}

func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Close()
}

func hardLink(path string, data []byte) error {
	other := path + ".other"
	if err := os.WriteFile(other, data, 0o600); err != nil {
		return err
	}
	return os.Link(other, path)
}

func socket(t *testing.T, path string) error {
	// A socket's path is short; make it elsewhere and move it.
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		return err
	}
	t.Cleanup(func() { l.Close() })
	return os.Rename(filepath.Join(dir, "s"), path)
}

func foreign(path string, data []byte) error {
	if err := os.WriteFile(path+".part", data, 0o600); err != nil {
		return err
	}
	if err := os.Chown(path+".part", 65534, 65534); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

func mode(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".part", data, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(path+".part", mode); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// TestHostileResponses: nothing that lies where an answer belongs is written
// over or written through.
func TestHostileResponses(t *testing.T) {
	victim := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "victim")
		must(t, os.WriteFile(path, []byte("precious"), 0o600))
		return path
	}
	for name, put := range map[string]func(path, victim string) error{
		"a response":          func(p, _ string) error { return os.WriteFile(p, []byte("{}"), 0o600) },
		"a symlink":           func(p, v string) error { return os.Symlink(v, p) },
		"a dangling symlink":  func(p, v string) error { return os.Symlink(v+"x", p) },
		"a hard link":         func(p, v string) error { return os.Link(v, p) },
		"an empty directory":  func(p, _ string) error { return os.Mkdir(p, 0o700) },
		"a fifo":              func(p, _ string) error { return syscall.Mkfifo(p, 0o600) },
		"a file without mode": func(p, _ string) error { return os.WriteFile(p, nil, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, when := range []string{"before it is asked", "while it is asked"} {
				dir, v := t.TempDir(), victim(t)
				h := newHuman()
				s := serve(t, dir, "desk", h).ready()
				path := responsePath(dir, "desk", "r1")
				if when == "before it is asked" {
					must(t, os.MkdirAll(filepath.Dir(path), 0o700))
					must(t, put(path, v))
					drop(t, dir, bash("r1", "desk", "ls"))
				} else {
					drop(t, dir, bash("r1", "desk", "ls"))
					a := h.wait(t, "r1")
					must(t, put(path, v))
					a.answer <- yes(byUser)
					eventually(t, "reported", func() bool { return s.log.count(EventWarning) == 1 })
				}
				before, err := os.Lstat(path)
				must(t, err)
				drop(t, dir, bash("r2", "desk", "ls"))
				h.wait(t, "r2").answer <- yes(byUser)
				answerOf(t, dir, "desk", "r2")
				after, err := os.Lstat(path)
				if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
					t.Errorf("%s: what was there has changed: %v, %v", when, after, err)
				}
				if data, err := os.ReadFile(v); err != nil || string(data) != "precious" || exists(v+"x") {
					t.Errorf("%s: the victim holds %q, %v", when, data, err)
				}
				if when == "before it is asked" && h.count("r1") > 0 {
					t.Errorf("an answered request was asked")
				}
				s.stop()
				if n := s.log.count(EventApproved); n != 1 {
					t.Errorf("%s: %d approvals logged", when, n)
				}
			}
		})
	}
}

// TestHostileDirectories: what must be a directory of ours is something else.
// The server says so, goes on trying, and answers once it is mended.
func TestHostileDirectories(t *testing.T) {
	onceMoreAsNobody(t)
	elsewhere := t.TempDir()
	for name, c := range map[string]struct {
		which   string
		put     func(path string) error
		problem string
		unmend  bool // the ask may already be shown
		root    bool // it takes root
		user    bool // it takes an ordinary user
	}{
		"responses is a link":     {which: "responses", put: func(p string) error { return os.Symlink(elsewhere, p) }, problem: "is a symbolic link"},
		"responses is a file":     {which: "responses", put: func(p string) error { return os.WriteFile(p, nil, 0o600) }, problem: "is not a directory"},
		"responses is foreign":    {which: "responses", put: foreignDir, problem: "belongs to another user", root: true},
		"requests is a link":      {which: "requests", put: func(p string) error { return os.Symlink(elsewhere, p) }, problem: "is a symbolic link"},
		"requests is a file":      {which: "requests", put: func(p string) error { return os.WriteFile(p, nil, 0o600) }, problem: "is not a directory"},
		"requests is foreign":     {which: "requests", put: foreignDir, problem: "belongs to another user", root: true},
		"the session is a link":   {which: "", put: func(p string) error { return os.Symlink(elsewhere, p) }, problem: "is a symbolic link"},
		"the session is foreign":  {which: "", put: foreignDir, problem: "belongs to another user", root: true},
		"sessions is a link":      {which: "..", put: func(p string) error { return os.Symlink(elsewhere, p) }, problem: "is a symbolic link"},
		"the root is a file":      {which: "../..", put: func(p string) error { return os.WriteFile(p, nil, 0o600) }, problem: "cannot be opened or made"},
		"responses is read-only":  {which: "responses", put: readOnly, problem: "cannot be written", unmend: true, user: true},
		"requests cannot be read": {which: "requests", put: func(p string) error { return os.Mkdir(p, 0) }, problem: "cannot be opened", user: true},
		"the root is read-only":   {which: "../..", put: readOnly, problem: "cannot be opened or made", user: true},
	} {
		// Only root can give a directory away, and only others are kept out of
		// one by its mode: root runs these as well, as somebody else.
		root := os.Geteuid() == 0
		if c.root && !root || c.user && root {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Clean(filepath.Join(InboxDir(dir, "desk"), c.which))
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, c.put(path))
			h := newHuman()
			s := serve(t, dir, "desk", h)
			if c.which == "responses" {
				s.ready()
				drop(t, dir, bash("r1", "desk", "ls"))
			}
			if c.unmend {
				h.wait(t, "r1").answer <- yes(byUser)
			}
			eventually(t, "the problem is told", func() bool { return strings.Contains(s.problems.text(), c.problem) })
			if !c.unmend && h.count("r1") > 0 {
				t.Error("asked what could not be answered")
			}
			if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
				must(t, os.Chmod(path, 0o700))
			}
			must(t, os.RemoveAll(path))
			if c.which != "responses" {
				s.ready()
				drop(t, dir, bash("r1", "desk", "ls"))
			}
			if !c.unmend {
				h.wait(t, "r1").answer <- yes(byUser)
			}
			answerOf(t, dir, "desk", "r1")
			eventually(t, "the problem is over", func() bool { return s.problems.text() == "" })
			if n := h.count("r1"); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
				t.Errorf("written through the link: %v, %v", left, err)
			}
		})
	}
}

func foreignDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return os.Chown(path, 65534, 65534)
}

func readOnly(path string) error { return os.Mkdir(path, 0o500) }

// TestSessionIDsStayBelowTheRoot serves ids that look like paths.
func TestSessionIDsStayBelowTheRoot(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "agent")
	for _, id := range []string{"../../../escape", "/etc", "a/../../b", "..%2f..", "C:\\x", "\x00"} {
		s := serve(t, dir, id, always(approved)).ready()
		drop(t, dir, bash("r1", id, "ls"))
		answerOf(t, dir, id, "r1")
		s.stop()
		if enc := filepath.Base(InboxDir(dir, id)); filepath.Dir(InboxDir(dir, id)) != filepath.Join(Root(dir), "sessions") {
			t.Errorf("%q is served as %s", id, enc)
		}
	}
	if left, _ := os.ReadDir(base); len(left) != 1 {
		t.Errorf("outside the agent directory: %v", left)
	}
}

// TestSlowWriters: a child that does not rename is read when it has finished.
func TestSlowWriters(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	s := serve(t, dir, "desk", h).ready()
	data, err := bash("r1", "desk", "ls").Marshal()
	must(t, err)
	path := filepath.Join(InboxDir(dir, "desk"), "requests", "r1.json")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	for i := 0; i < len(data); i += len(data)/8 + 1 {
		_, err := f.Write(data[i:min(i+len(data)/8+1, len(data))])
		must(t, err)
		time.Sleep(20 * time.Millisecond)
	}
	must(t, f.Close())
	h.wait(t, "r1").answer <- yes(byUser)
	answerOf(t, dir, "desk", "r1")
	if n := s.log.count(EventWarning); n != 0 || h.count("r1") != 1 {
		t.Errorf("asked %d times\n%s", h.count("r1"), s.log)
	}
	// One that links and unlinks has two names for a moment.
	temp := filepath.Join(dir, "temp")
	data, err = bash("r2", "desk", "ls").Marshal()
	must(t, err)
	must(t, os.WriteFile(temp, data, 0o600))
	must(t, os.Link(temp, filepath.Join(InboxDir(dir, "desk"), "requests", "r2.json")))
	time.Sleep(50 * time.Millisecond)
	must(t, os.Remove(temp))
	h.wait(t, "r2").answer <- yes(byUser)
	answerOf(t, dir, "desk", "r2")
}

// TestLargeAsksDoNotHoldUpSmallOnes: the largest allowed requests fill their
// share of memory and no more, and wait on disk for the rest.
func TestLargeAsksDoNotHoldUpSmallOnes(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	var waiting, most atomic.Int64
	srv := NewServer(ServerConfig{AgentDir: dir, SessionID: "desk", Decider: deciderFunc(func(ctx context.Context, in *Inbound) engine.Decision {
		if strings.HasPrefix(in.Request.ID, "small") {
			return approved
		}
		most.Store(max(most.Load(), waiting.Add(1)))
		defer waiting.Add(-1)
		return h.Decide(ctx, in)
	})})
	srv.large = newBudget(1 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()
	const n = 20
	for i := range n {
		drop(t, dir, bash(fmt.Sprintf("large-%d", i), "desk", strings.Repeat("x", 50_000))) // four times over
	}
	for i := range 50 {
		drop(t, dir, bash(fmt.Sprintf("small-%d", i), "desk", "ls"))
	}
	for i := range 50 {
		answerOf(t, dir, "desk", fmt.Sprintf("small-%d", i))
	}
	for range n { // each makes room for another
		eventually(t, "some large ask", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			for id, a := range h.asks {
				delete(h.asks, id)
				a.answer <- yes(byUser)
				return true
			}
			return false
		})
	}
	for i := range n {
		answerOf(t, dir, "desk", fmt.Sprintf("large-%d", i))
	}
	cancel()
	must(t, <-done)
	if got := most.Load(); got > 5 {
		t.Errorf("%d large asks were held at once", got)
	}
}

// An answer that was there before the ask is not this server's, and the log
// says that nothing was decided.
func TestAResponseThatWasThereFirstIsLogged(t *testing.T) {
	dir := t.TempDir()
	h := newHuman()
	s := serve(t, dir, "desk", h).ready()
	must(t, os.MkdirAll(filepath.Dir(responsePath(dir, "desk", "r1")), 0o700))
	must(t, os.WriteFile(responsePath(dir, "desk", "r1"), []byte(`{"approved":true,"state":"approved","responderSessionId":"desk"}`), 0o600))
	path := drop(t, dir, bash("r1", "desk", "rm -rf /"))
	eventually(t, "removed", func() bool { return !exists(path) })
	all := s.log.all(EventWithdrawn)
	if h.count("r1") != 0 || len(all) != 1 || all[0]["requestId"] != "r1" || !strings.Contains(fmt.Sprint(all[0]["reason"]), "nothing was decided here") {
		t.Errorf("asked %d times, logged %v", h.count("r1"), all)
	}
}

// A heartbeat that somebody spoils or forges is told to the user: agents then
// find no server, or the wrong one.
func TestASpoiledHeartbeatIsTold(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, "desk", newHuman()).ready()
	record := filepath.Join(ServingDir(dir), "desk.json")
	told := func(what, part string) {
		t.Helper()
		eventually(t, what, func() bool {
			s.lookAgain()
			time.Sleep(20 * time.Millisecond)
			text := s.problems.text()
			return text == "" && part == "" || part != "" && strings.Contains(text, part)
		})
	}
	spoil := func() error {
		if err := os.Remove(record); err != nil {
			return err
		}
		return os.Mkdir(record, 0o700)
	}
	eventually(t, "spoiled", func() bool { return spoil() == nil }) // the next beat may come between
	told("a directory in its place", "cannot be refreshed")
	must(t, os.Remove(record))
	told("mended", "")

	rival := fmt.Appendf(nil, `{"sessionId":"desk","pid":%d,"updatedAt":%d}`, os.Getppid(), time.Now().Add(time.Second).UnixMilli())
	must(t, os.WriteFile(record+".new", rival, 0o600))
	must(t, os.Rename(record+".new", record))
	told("a forged record", fmt.Sprintf("process %d as well", os.Getppid()))
}
