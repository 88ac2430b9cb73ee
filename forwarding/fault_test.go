//go:build unix

package forwarding

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nod-agents/nod/engine"
)

// faulty is the machine's files with failures: every operation is counted,
// and the ones that fail says so fail.
type faulty struct {
	Files
	mu    sync.Mutex
	n     int
	fail  func(n int, op string) error
	fired []string
}

func (f *faulty) hit(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if err := f.fail(f.n, op); err != nil {
		f.fired = append(f.fired, fmt.Sprintf("%d %s", f.n, op))
		return err
	}
	return nil
}

func (f *faulty) hits() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.fired...)
}

func (f *faulty) MkdirAll(path string) error {
	if err := f.hit("mkdirall"); err != nil {
		return err
	}
	return f.Files.MkdirAll(path)
}

func (f *faulty) OpenDir(path string) (Dir, error) {
	if err := f.hit("opendir"); err != nil {
		return nil, err
	}
	d, err := f.Files.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return faultyDir{d, f}, nil
}

func (f *faulty) Watch() (Watch, error) {
	if err := f.hit("watch"); err != nil {
		return nil, err
	}
	w, err := f.Files.Watch()
	if err != nil {
		return nil, err
	}
	return faultyWatch{w, f}, nil
}

type faultyDir struct {
	Dir
	f *faulty
}

func (d faultyDir) OpenDir(name string, follow bool) (Dir, error) {
	if err := d.f.hit("opendir"); err != nil {
		return nil, err
	}
	below, err := d.Dir.OpenDir(name, follow)
	if err != nil {
		return nil, err
	}
	return faultyDir{below, d.f}, nil
}

func (d faultyDir) Mkdir(name string) error {
	if err := d.f.hit("mkdir"); err != nil {
		return err
	}
	return d.Dir.Mkdir(name)
}

func (d faultyDir) Rmdir(name string) error {
	if err := d.f.hit("rmdir"); err != nil {
		return err
	}
	return d.Dir.Rmdir(name)
}

func (d faultyDir) Names(limit int) ([]string, error) {
	if err := d.f.hit("readdir"); err != nil {
		return nil, err
	}
	return d.Dir.Names(limit)
}

func (d faultyDir) Stat(name string) (Info, error) {
	if err := d.f.hit("stat"); err != nil {
		return Info{}, err
	}
	return d.Dir.Stat(name)
}

func (d faultyDir) Info() (Info, error) {
	if err := d.f.hit("fstat"); err != nil {
		return Info{}, err
	}
	return d.Dir.Info()
}

func (d faultyDir) Open(name string) (File, error) {
	if err := d.f.hit("open"); err != nil {
		return nil, err
	}
	f, err := d.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	return faultyFile{f, d.f}, nil
}

func (d faultyDir) Create(name string) (File, error) {
	if err := d.f.hit("create"); err != nil {
		return nil, err
	}
	f, err := d.Dir.Create(name)
	if err != nil {
		return nil, err
	}
	return faultyFile{f, d.f}, nil
}

func (d faultyDir) Publish(from, to string) error {
	if err := d.f.hit("rename"); err != nil {
		if strings.HasSuffix(err.Error(), "after all") {
			_ = d.Dir.Publish(from, to)
		}
		return err
	}
	return d.Dir.Publish(from, to)
}

func (d faultyDir) Remove(name string) error {
	if err := d.f.hit("remove"); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

type faultyFile struct {
	File
	f *faulty
}

func (f faultyFile) Read(p []byte) (int, error) {
	if err := f.f.hit("read"); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

// Write fails as a full disk does: half of it is written.
func (f faultyFile) Write(p []byte) (int, error) {
	if err := f.f.hit("write"); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f faultyFile) Sync() error {
	if err := f.f.hit("fsync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f faultyFile) Stat() (Info, error) {
	if err := f.f.hit("fstat"); err != nil {
		return Info{}, err
	}
	return f.File.Stat()
}

func (f faultyFile) Close() error {
	err := f.File.Close()
	if herr := f.f.hit("close"); herr != nil {
		return herr
	}
	return err
}

type faultyWatch struct {
	Watch
	f *faulty
}

func (w faultyWatch) Add(path string) error {
	if err := w.f.hit("add"); err != nil {
		return err
	}
	return w.Watch.Add(path)
}

// run fails operation n and the length-1 after it.
func run(at, length int, err error) func(int, string) error {
	return func(n int, _ string) error {
		if n >= at && n < at+length {
			return err
		}
		return nil
	}
}

// TestServerFaultWalk lets each file operation of a serving node fail in turn,
// alone and with its followers, through a whole exchange. Whatever fails, the
// ask is shown once, the answer arrives once the fault is gone and is the one
// given, and no half file is ever seen.
func TestServerFaultWalk(t *testing.T) {
	walk(t, map[string]error{"alone": syscall.EIO, "six in a row": syscall.ENOSPC}, func(fail func(int, string) error) bool {
		return serverExchange(t, fail)
	})
}

// walk calls exchange with each operation failing in turn until one in which
// none did. Exchanges mostly wait, so eight run at once.
func walk(t *testing.T, causes map[string]error, exchange func(fail func(int, string) error) (failed bool)) {
	for name, cause := range causes {
		length := 1
		if name != "alone" {
			length = 6
		}
		at, through := 1, false
		for ; !through && !t.Failed(); at += 8 * length { // each operation is in one run
			var wg sync.WaitGroup
			var mu sync.Mutex
			for i := range 8 {
				wg.Go(func() {
					if !exchange(run(at+i*length, length, cause)) {
						mu.Lock()
						through = true
						mu.Unlock()
					}
				})
			}
			wg.Wait()
		}
		t.Logf("%s: about %d operations in a whole exchange", name, at-8*length)
		if at < 40 {
			t.Errorf("%s: the walk ended early: not every operation goes through the seam", name)
		}
	}
}

// serverExchange has a human approve one ask of a server whose files fail as
// told, and then deny another. It reports whether anything failed.
func serverExchange(t testing.TB, fail func(int, string) error) bool {
	t.Helper()
	dir, err := os.MkdirTemp("", "walk")
	must(t, err)
	defer os.RemoveAll(dir)
	f := &faulty{Files: Disk(), fail: fail}
	h := newHuman()
	s := serve(t, dir, "desk", h, func(c *ServerConfig) { c.Files = f })
	defer s.stop()
	stopWatching := halfFiles(t, filepath.Join(InboxDir(dir, "desk"), "responses"))
	defer stopWatching()
	for id, d := range map[string]engine.Decision{"yes": yes(byUser), "no": {Verdict: engine.Denied, By: byUser}} {
		path := drop(t, dir, bash(id, "desk", "ls"))
		h.wait(t, id).answer <- d
		if r := answerOf(t, dir, "desk", id); r.State != d.Verdict {
			t.Errorf("after failures %v: %s was answered %s", f.hits(), id, r.State)
		}
		s.lookAgain()
		eventually(t, "request removed", func() bool {
			if exists(path) {
				s.lookAgain()
			}
			return !exists(path)
		})
		if n := h.count(id); n != 1 {
			t.Errorf("after failures %v: %s was asked %d times", f.hits(), id, n)
		}
	}
	s.stop()
	if n := s.log.count(EventApproved); n != 1 || s.log.count(EventDenied) != 1 {
		t.Errorf("after failures %v: logged\n%s", f.hits(), s.log)
	}
	return len(f.hits()) > 0
}

// halfFiles fails the test if a response is ever seen that cannot be read.
func halfFiles(t testing.TB, dir string) (stop func()) {
	done, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
			files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			for _, p := range files {
				if data, err := os.ReadFile(p); err == nil {
					if _, err := ParseResponse(data); err != nil {
						t.Errorf("a half response was to be seen: %q", data)
					}
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}

// TestRequesterFaultWalk does the same to the child. It gets the answer, or is
// told that approval is unavailable; it never takes a failure for a denial or
// an approval, and leaves no request that a human would be asked for nothing.
func TestRequesterFaultWalk(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, "desk", always(yes(byUser))).ready()
	walk(t, map[string]error{"alone": syscall.EIO, "six in a row": syscall.EIO}, func(fail func(int, string) error) bool {
		f := &faulty{Files: Disk(), fail: fail}
		r := child(dir)
		r.Files = f
		a := r.Ask(t.Context(), question("touch x"))
		if a.Verdict != engine.Approved && (a.Verdict != engine.Unavailable || a.By.Kind != engine.ByUnavailable || a.Reason == "") {
			t.Errorf("after failures %v: got %+v", f.hits(), a)
		}
		return len(f.hits()) > 0
	})
	eventually(t, "all requests removed", func() bool {
		left, _ := filepath.Glob(filepath.Join(InboxDir(dir, "desk"), "requests", "*.json"))
		return len(left) == 0
	})
}

// TestFullDiskWhileAnswering: the decision is kept until there is room.
func TestFullDiskWhileAnswering(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	full := false
	f := &faulty{Files: Disk(), fail: func(_ int, op string) error {
		mu.Lock()
		defer mu.Unlock()
		if full && (op == "create" || op == "write" || op == "mkdir") {
			return syscall.ENOSPC
		}
		return nil
	}}
	set := func(v bool) { mu.Lock(); full = v; mu.Unlock() }
	h := newHuman()
	s := serve(t, dir, "desk", h, func(c *ServerConfig) { c.Files = f }).ready()
	drop(t, dir, bash("r1", "desk", "ls"))
	path := drop(t, dir, bash("r2", "desk", "ls"))
	a, b := h.wait(t, "r1"), h.wait(t, "r2")
	set(true)
	a.answer <- yes(byUser)
	b.answer <- yes(byUser)
	eventually(t, "both problems told", func() bool { return strings.Count(s.problems.text(), "no space left on device") == 2 })
	must(t, os.Remove(path)) // this child gives up meanwhile
	eventually(t, "one problem over", func() bool { return strings.Count(s.problems.text(), "no space left on device") == 1 })
	set(false)
	if r := answerOf(t, dir, "desk", "r1"); r.State != engine.Approved {
		t.Errorf("response %+v", r)
	}
	eventually(t, "all problems over", func() bool { return s.problems.text() == "" })
	if exists(responsePath(dir, "desk", "r2")) {
		t.Error("a child that had gone was answered")
	}
	if n := s.log.count(EventError); n != 2 || h.count("r1") != 1 {
		t.Errorf("%d errors logged, asked %d times\n%s", n, h.count("r1"), s.log)
	}
}

// TestRenameReportedAsFailed: it was done after all, as on a network disk.
func TestRenameReportedAsFailed(t *testing.T) {
	dir := t.TempDir()
	once := false
	f := &faulty{Files: Disk()}
	f.fail = func(_ int, op string) error {
		if op == "rename" && !once {
			once = true
			return fmt.Errorf("lost the reply, done after all")
		}
		return nil
	}
	s := serve(t, dir, "desk", always(yes(byUser)), func(c *ServerConfig) { c.Files = f }).ready()
	drop(t, dir, bash("r1", "desk", "ls"))
	answerOf(t, dir, "desk", "r1")
	eventually(t, "logged", func() bool { return s.log.count(EventApproved) == 1 })
	if s.log.count(EventWarning) != 0 || !once {
		t.Errorf("logged\n%s", s.log)
	}
}

// deaf is a file system whose events can be lost.
type deaf struct {
	Files
	noWatch error // Watch fails
	noAdd   error // Add fails
	remote  bool

	mu   sync.Mutex
	mute bool // events are swallowed
	errs []chan error
}

func (d *deaf) OpenDir(path string) (Dir, error) {
	dir, err := d.Files.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return deafDir{dir, d}, nil
}

type deafDir struct {
	Dir
	d *deaf
}

func (d deafDir) OpenDir(name string, follow bool) (Dir, error) {
	dir, err := d.Dir.OpenDir(name, follow)
	if err != nil {
		return nil, err
	}
	return deafDir{dir, d.d}, nil
}

func (d deafDir) Remote() bool { return d.d.remote }

func (d *deaf) Watch() (Watch, error) {
	if d.noWatch != nil {
		return nil, d.noWatch
	}
	w, err := d.Files.Watch()
	if err != nil {
		return nil, err
	}
	dw := &deafWatch{Watch: w, d: d, events: make(chan fsnotify.Event), errs: make(chan error, 1)}
	d.mu.Lock()
	d.errs = append(d.errs, dw.errs)
	d.mu.Unlock()
	go func() {
		defer close(dw.events)
		for ev := range w.Events() {
			d.mu.Lock()
			mute := d.mute
			d.mu.Unlock()
			if !mute {
				dw.events <- ev
			}
		}
	}()
	return dw, nil
}

type deafWatch struct {
	Watch
	d      *deaf
	events chan fsnotify.Event
	errs   chan error
}

func (w *deafWatch) Add(path string) error {
	if w.d.noAdd != nil {
		return w.d.noAdd
	}
	return w.Watch.Add(path)
}

func (w *deafWatch) Events() <-chan fsnotify.Event { return w.events }
func (w *deafWatch) Errors() <-chan error          { return w.errs }

func TestWithoutEvents(t *testing.T) {
	for name, c := range map[string]struct {
		d       *deaf
		problem string
	}{
		"no instances left": {&deaf{noWatch: syscall.EMFILE}, "cannot be watched"},
		"no watches left":   {&deaf{noAdd: syscall.ENOSPC}, "cannot be watched"},
		"network disk":      {&deaf{remote: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.d.Files = Disk()
			dir := t.TempDir()
			h := newHuman()
			s := serve(t, dir, "desk", h, func(cfg *ServerConfig) { cfg.Files = c.d }).ready()
			for i := range 3 {
				id := fmt.Sprintf("r%d", i)
				path := drop(t, dir, bash(id, "desk", "ls"))
				a := h.wait(t, id)
				if i == 1 {
					must(t, os.Remove(path))
					eventually(t, "withdrawn", func() bool { return h.end(id) == whyGone.Why })
					continue
				}
				a.answer <- yes(byUser)
				answerOf(t, dir, "desk", id)
			}
			if text := s.problems.text(); !strings.Contains(text, c.problem) || c.problem == "" && text != "" {
				t.Errorf("problems: %q, want …%s…", text, c.problem)
			}
			if n := s.log.count(EventError); n > 1 {
				t.Errorf("told %d times\n%s", n, s.log)
			}
		})
	}
}

// TestOverflow: the kernel drops events and says so.
func TestOverflow(t *testing.T) {
	dir := t.TempDir()
	d := &deaf{Files: Disk()}
	h := newHuman()
	serve(t, dir, "desk", h, func(c *ServerConfig) { c.Files = d }).ready()
	drop(t, dir, bash("r0", "desk", "ls"))
	h.wait(t, "r0")
	d.mu.Lock()
	d.mute = true
	d.mu.Unlock()
	for i := 1; i < 20; i++ {
		drop(t, dir, bash(fmt.Sprintf("r%d", i), "desk", "ls"))
	}
	must(t, os.Remove(filepath.Join(InboxDir(dir, "desk"), "requests", "r0.json")))
	d.mu.Lock()
	for _, c := range d.errs {
		c <- fsnotify.ErrEventOverflow
	}
	d.mu.Unlock()
	for i := 1; i < 20; i++ {
		h.wait(t, fmt.Sprintf("r%d", i))
	}
	eventually(t, "withdrawn", func() bool { return h.end("r0") == whyGone.Why })
}

// TestSweep: events are lost and nobody says so. The slow sweep finds what came.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a sweep")
	}
	t.Parallel()
	dir := t.TempDir()
	d := &deaf{Files: Disk(), mute: true}
	h := newHuman()
	serve(t, dir, "desk", h, func(c *ServerConfig) { c.Files = d }).ready()
	time.Sleep(300 * time.Millisecond) // the first looks are over
	drop(t, dir, bash("r1", "desk", "ls"))
	h.wait(t, "r1")
}

// TestDirectoriesComeAndGo: children clear empty directories away after each
// ask, and users remove whole trees. No ask is lost.
func TestDirectoriesComeAndGo(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, "desk", always(approved)).ready()
	inbox := InboxDir(dir, "desk")
	for name, clear := range map[string]func(){
		"in order, as a child does": func() {
			os.Remove(filepath.Join(inbox, "requests"))
			os.Remove(filepath.Join(inbox, "responses"))
			os.Remove(inbox)
		},
		"the inbox":        func() { removeAll(t, inbox) },
		"all sessions":     func() { removeAll(t, filepath.Dir(inbox)) },
		"the whole root":   func() { removeAll(t, Root(dir)) },
		"the inbox, moved": func() { os.Rename(inbox, inbox+time.Now().Format("150405.000000000")) },
		"requests, moved": func() {
			os.Rename(filepath.Join(inbox, "requests"), filepath.Join(inbox, time.Now().Format("150405.000000000")))
		},
		"nothing": func() {},
	} {
		for i := range 20 {
			clear()
			id := fmt.Sprintf("%s-%d", strings.ReplaceAll(strings.ReplaceAll(name, " ", "_"), ",", ""), i)
			drop(t, dir, bash(id, "desk", "ls"))
			answerOf(t, dir, "desk", id)
			os.Remove(responsePath(dir, "desk", id))
		}
	}
}

// TestRealChildrenComeAndGo runs many exchanges at once, each of which clears
// up behind itself while others begin.
func TestRealChildrenComeAndGo(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, "desk", always(yes(byUser))).ready()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for j := range 4 {
				r := child(dir)
				r.Child.SessionID = fmt.Sprintf("child-%d", i)
				if a := r.Ask(context.Background(), question("ls")); a.Verdict != engine.Approved {
					t.Errorf("child %d ask %d: %+v", i, j, a)
				}
			}
		})
	}
	wg.Wait()
}
