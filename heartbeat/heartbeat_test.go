//go:build unix

package heartbeat

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("HEARTBEAT_TEST_ROLE"); role != "" {
		os.Exit(helper(role, os.Getenv("HEARTBEAT_TEST_DIR")))
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

// helper is what the test binary does as another process.
func helper(role, dir string) int {
	switch role {
	case "announce": // until stdin ends
		a, err := NewWriter(SystemClock(), nil, quiet).Announce(dir, "desk", nil)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("announced")
		bufio.NewReader(os.Stdin).ReadString('\n')
		if err := a.Withdraw(); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	case "read":
		state, _ := Reader{Clock: SystemClock()}.Read(dir, "desk")
		fmt.Println(state)
		return 0
	}
	return 2
}

// start runs the test binary as another process and waits for its first line.
func start(t *testing.T, role, dir string) (cmd *exec.Cmd, line string, end func()) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HEARTBEAT_TEST_ROLE="+role, "HEARTBEAT_TEST_DIR="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ = bufio.NewReader(out).ReadString('\n')
	var once sync.Once
	end = func() { once.Do(func() { in.Close(); cmd.Wait() }) }
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGCONT); end() })
	return cmd, strings.TrimSpace(line), end
}

func later(d time.Duration) Clock {
	return Clock{Now: func() time.Time { return time.Now().Add(d) }, Boot: func() time.Duration { return sinceBoot() + d }}
}

// TestStatesOfRealProcesses produces each reading by what really happens.
func TestStatesOfRealProcesses(t *testing.T) {
	now := Reader{Clock: SystemClock()}
	check := func(t *testing.T, r Reader, dir, session string, want State) {
		t.Helper()
		if got, rec := r.Read(dir, session); got != want {
			t.Errorf("session %q reads %s (%+v), want %s", session, got, rec, want)
		}
	}
	t.Run("orderly exit", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "serving")
		check(t, now, dir, "desk", Absent)
		_, line, end := start(t, "announce", dir)
		if line != "announced" {
			t.Fatal(line)
		}
		check(t, now, dir, "desk", Alive)
		check(t, now, dir, "  desk\n", Alive)
		check(t, now, dir, "other", Absent)
		check(t, now, dir, "unknown", Absent)
		end()
		check(t, now, dir, "desk", Absent)
	})
	t.Run("kill -9", func(t *testing.T) {
		dir := t.TempDir()
		cmd, _, end := start(t, "announce", dir)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "linux" {
			// Nobody has waited for it yet: a zombie is gone too.
			waitState(t, now, dir, DeadPID)
		}
		end()
		check(t, now, dir, "desk", DeadPID)
	})
	t.Run("stopped", func(t *testing.T) {
		dir := t.TempDir()
		cmd, _, _ := start(t, "announce", dir)
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		check(t, Reader{Clock: later(4900 * time.Millisecond)}, dir, "desk", Alive)
		check(t, Reader{Clock: later(6 * time.Second)}, dir, "desk", Stale)
	})
	t.Run("another id in the file", func(t *testing.T) {
		dir := t.TempDir()
		_, _, _ = start(t, "announce", dir)
		if err := os.Rename(filepath.Join(dir, "desk.json"), filepath.Join(dir, "chair.json")); err != nil {
			t.Fatal(err)
		}
		check(t, now, dir, "chair", Absent)
	})
	t.Run("another user's process", func(t *testing.T) {
		// Process 1 is there, and an ordinary user may not signal it.
		dir := t.TempDir()
		write(t, dir, "desk.json", fmt.Sprintf(`{"sessionId":"desk","pid":1,"updatedAt":%d}`, time.Now().Add(time.Second).UnixMilli()))
		if os.Geteuid() != 0 {
			check(t, now, dir, "desk", Alive)
			return
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "desk.json"), 0o644); err != nil {
			t.Fatal(err)
		}
		self := filepath.Join(dir, "self.exe")
		data, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(self, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = []string{"HEARTBEAT_TEST_ROLE=read", "HEARTBEAT_TEST_DIR=" + dir}
		asNobody(cmd)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != string(Alive) {
			t.Errorf("reads %q, %v", got, err)
		}
	})
}

func waitState(t *testing.T, r Reader, dir string, want State) {
	t.Helper()
	var got State
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got, _ = r.Read(dir, "desk"); got == want {
			return
		}
	}
	t.Fatalf("reads %s, never %s", got, want)
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadings reads records as other programs may leave them.
func TestReadings(t *testing.T) {
	pid := os.Getpid()
	_, started := process(pid)
	boot := bootID()
	now := time.Now()
	ms := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	bootMs := func(d time.Duration) int64 { return (sinceBoot() + d).Milliseconds() }
	const noProcess = 1<<22 + 1 // above the kernel's own limit
	for name, c := range map[string]struct {
		text string
		want State
	}{
		"fresh":                {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, pid, ms(0)), Alive},
		"unknown fields":       {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"x":[1]}`, pid, ms(0)), Alive},
		"pid as float":         {fmt.Sprintf(`{"sessionId":"desk","pid":%d.0,"updatedAt":%d.5}`, pid, ms(0)), Alive},
		"almost stale":         {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, pid, ms(-4*time.Second)), Alive},
		"stale":                {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, pid, ms(-5*time.Second)), Stale},
		"from the future":      {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, pid, ms(time.Hour)), Stale},
		"dead and stale":       {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":1}`, noProcess), DeadPID},
		"dead":                 {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, noProcess, ms(0)), DeadPID},
		"pid reused":           {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"processStart":"17","bootId":%q}`, pid, ms(0), boot), DeadPID},
		"same process":         {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"processStart":%q,"bootId":%q}`, pid, ms(0), started, boot), Alive},
		"other machine, fresh": {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"processStart":"17","bootId":"elsewhere"}`, noProcess, ms(0)), Alive},
		"other machine, old":   {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"bootId":"elsewhere"}`, pid, ms(-time.Minute)), Stale},
		"wall set forth":       {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"bootId":%q,"bootMs":%d}`, pid, ms(-24*time.Hour), boot, bootMs(0)), Alive},
		"wall set back":        {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"bootId":%q,"bootMs":%d}`, pid, ms(24*time.Hour), boot, bootMs(0)), Alive},
		"silent, wall back":    {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"bootId":%q,"bootMs":%d}`, pid, ms(0), boot, bootMs(-6*time.Second)), Stale},
		"bad extras ignored":   {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d,"processStart":17,"bootId":[],"bootMs":"x"}`, pid, ms(0)), Alive},

		"other session":   {fmt.Sprintf(`{"sessionId":"chair","pid":%d,"updatedAt":%d}`, pid, ms(0)), Absent},
		"empty":           {"", Absent},
		"not JSON":        {"{", Absent},
		"array":           {"[]", Absent},
		"null":            {"null", Absent},
		"no session":      {fmt.Sprintf(`{"pid":%d,"updatedAt":%d}`, pid, ms(0)), Absent},
		"case of the key": {fmt.Sprintf(`{"SessionId":"desk","pid":%d,"updatedAt":%d}`, pid, ms(0)), Absent},
		"pid zero":        {fmt.Sprintf(`{"sessionId":"desk","pid":0,"updatedAt":%d}`, ms(0)), Absent},
		"pid negative":    {fmt.Sprintf(`{"sessionId":"desk","pid":-1,"updatedAt":%d}`, ms(0)), Absent},
		"pid fraction":    {fmt.Sprintf(`{"sessionId":"desk","pid":1.5,"updatedAt":%d}`, ms(0)), Absent},
		"pid huge":        {fmt.Sprintf(`{"sessionId":"desk","pid":1e300,"updatedAt":%d}`, ms(0)), Absent},
		"pid as string":   {fmt.Sprintf(`{"sessionId":"desk","pid":"1","updatedAt":%d}`, ms(0)), Absent},
		"time as string":  {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":"now"}`, pid), Absent},
		"time infinite":   {fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":1e999}`, pid), Absent},
		"no time":         {fmt.Sprintf(`{"sessionId":"desk","pid":%d}`, pid), Absent},
		"too large":       {`{"x":"` + strings.Repeat("x", maxRecord) + `"}`, Absent},
		"deep":            {strings.Repeat("[", 100_000), Absent},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "desk.json", c.text)
			clock := Clock{Now: func() time.Time { return now }, Boot: sinceBoot}
			if got, rec := (Reader{Clock: clock}).Read(dir, "desk"); got != c.want {
				t.Errorf("reads %s (%+v), want %s", got, rec, c.want)
			}
		})
	}
}

// TestReaderIsNotHeldUp puts things that are no files where a record should be.
func TestReaderIsNotHeldUp(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "chair.json", fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, os.Getpid(), time.Now().UnixMilli()))
	path := filepath.Join(dir, "desk.json")
	for name, put := range map[string]func() error{
		"fifo":      func() error { return syscall.Mkfifo(path, 0o600) },
		"directory": func() error { return os.Mkdir(path, 0o700) },
		"link":      func() error { return os.Symlink(good, path) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if got, _ := (Reader{Clock: SystemClock()}).Read(dir, "desk"); got != Absent {
			t.Errorf("a %s reads %s", name, got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriterRefreshesAndWithdraws(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "serving")
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(Clock{Now: time.Now}, nil, quiet)
		a, err := w.Announce(dir, " desk/é ", nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.Announce(dir, "chair", nil)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "desk%2F%C3%A9.json")
		first := load(t, path)
		if first.SessionID != "desk/é" || first.PID != os.Getpid() || !first.UpdatedAt.Equal(time.Now()) {
			t.Errorf("record %+v", first)
		}
		for n := range 3 {
			time.Sleep(Interval)
			synctest.Wait()
			if rec := load(t, path); !rec.UpdatedAt.Equal(first.UpdatedAt.Add(time.Duration(n+1) * Interval)) {
				t.Errorf("after %d intervals: updated at %v, first %v", n+1, rec.UpdatedAt, first.UpdatedAt)
			}
		}
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", fi.Mode(), err)
		}
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("directory mode %v, %v", fi.Mode(), err)
		}
		for range 2 {
			if err := a.Withdraw(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(2 * Interval)
		synctest.Wait()
		if names, _ := (Disk{}).Names(dir); len(names) != 1 || names[0] != "chair.json" {
			t.Errorf("left in the directory: %v", names)
		}
		if err := b.Withdraw(); err != nil {
			t.Error(err)
		}
	})
}

func load(t *testing.T, path string) Record {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := ParseRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestRivals: another living process announces the same session.
func TestRivals(t *testing.T) {
	dir := t.TempDir()
	_, _, end := start(t, "announce", dir)
	path := filepath.Join(dir, "desk.json")
	theirs := load(t, path)

	// With a yield we step back and leave the record alone.
	w := NewWriter(SystemClock(), nil, quiet)
	yielded := make(chan Record, 1)
	a, err := w.Announce(dir, "desk", func(by Record) { yielded <- by })
	if err != nil {
		t.Fatal(err)
	}
	select {
	case by := <-yielded:
		if by.PID != theirs.PID {
			t.Errorf("yielded to %+v", by)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("never yielded")
	}
	if err := a.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if rec := load(t, path); rec.PID != theirs.PID {
		t.Errorf("the record is %+v", rec)
	}

	// Without one we go on, and say so.
	var log strings.Builder
	var mu sync.Mutex
	w = NewWriter(SystemClock(), nil, slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil)))
	a, err = w.Announce(dir, "desk", nil)
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		text := log.String()
		mu.Unlock()
		if strings.Contains(text, "another process announces the same session") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("no warning: %s", text)
		}
	}
	end() // they withdraw; our record must come back by the next beat
	deadline := time.Now().Add(20 * time.Second)
	for {
		if data, err := os.ReadFile(path); err == nil {
			if rec, err := ParseRecord(data); err == nil && rec.PID == os.Getpid() {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("our record did not come back")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := a.Withdraw(); err != nil {
		t.Fatal(err)
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func TestFirstAnnouncementSweepsOnce(t *testing.T) {
	dir := t.TempDir()
	pid, now := os.Getpid(), time.Now()
	_, started := process(pid)
	fresh := func(s string, pid int, more string) string {
		return fmt.Sprintf(`{"sessionId":%q,"pid":%d,"updatedAt":%d%s}`, s, pid, now.UnixMilli(), more)
	}
	const noProcess = 1<<22 + 1
	for name, text := range map[string]string{
		"dead.json":       fresh("dead", noProcess, ""),
		"reused.json":     fresh("reused", pid, fmt.Sprintf(`,"processStart":"1","bootId":%q`, bootID())),
		"live.json":       fresh("live", pid, fmt.Sprintf(`,"processStart":%q,"bootId":%q`, started, bootID())),
		"stale.json":      fmt.Sprintf(`{"sessionId":"stale","pid":%d,"updatedAt":1}`, pid),
		"elsewhere.json":  fresh("elsewhere", noProcess, `,"bootId":"elsewhere"`),
		"oldboot.json":    fmt.Sprintf(`{"sessionId":"oldboot","pid":%d,"updatedAt":1,"bootId":"elsewhere"}`, pid),
		"broken.json":     "{",
		"notes.txt":       fresh("dead", noProcess, ""),
		".nod-beat-x.tmp": "{",
		".nod-beat-y.tmp": "{",
	} {
		write(t, dir, name, text)
	}
	long := now.Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, ".nod-beat-x.tmp"), long, long); err != nil {
		t.Fatal(err)
	}
	w := NewWriter(SystemClock(), nil, quiet)
	a, err := w.Announce(dir, "desk", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return errors.Is(err, fs.ErrNotExist)
	}
	for name, want := range map[string]bool{
		"dead.json": true, "reused.json": true, "oldboot.json": true, ".nod-beat-x.tmp": true,
		"live.json": false, "stale.json": false, "elsewhere.json": false, "broken.json": false, "notes.txt": false,
		".nod-beat-y.tmp": false, "desk.json": false,
	} {
		if got := gone(name); got != want {
			t.Errorf("%s gone: %t, want %t", name, got, want)
		}
	}
	write(t, dir, "dead.json", fresh("dead", noProcess, ""))
	b, err := w.Announce(dir, "chair", nil)
	if err != nil {
		t.Fatal(err)
	}
	if gone("dead.json") {
		t.Error("swept twice")
	}
	for _, x := range []*Announcement{a, b} {
		if err := x.Withdraw(); err != nil {
			t.Error(err)
		}
	}
}

// fullDisk fails every write that needs space.
type fullDisk struct {
	Disk
	full *atomic.Bool
}

func (d fullDisk) Replace(path string, data []byte) (Stamp, error) {
	if d.full.Load() {
		return Stamp{}, &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	}
	return d.Disk.Replace(path, data)
}

func TestFullDiskKeepsTheHeartbeat(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		w := NewWriter(Clock{Now: time.Now}, fullDisk{full: &full}, quiet)
		a, err := w.Announce(dir, "desk", nil)
		if err != nil {
			t.Fatal(err)
		}
		full.Store(true)
		time.Sleep(10 * Interval)
		synctest.Wait()
		if rec := load(t, filepath.Join(dir, "desk.json")); time.Since(rec.UpdatedAt) >= 2*Interval {
			t.Errorf("the record is %v old", time.Since(rec.UpdatedAt))
		}
		if err := a.Err(); err != nil {
			t.Error(err)
		}
		full.Store(false)
		if err := a.Withdraw(); err != nil {
			t.Error(err)
		}
	})
}

// TestDirectoryRemoved: a cleaner took the serving directory away.
func TestDirectoryRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "serving")
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(Clock{Now: time.Now}, nil, quiet)
		a, err := w.Announce(dir, "desk", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(Interval)
		synctest.Wait()
		load(t, filepath.Join(dir, "desk.json"))
		if err := a.Withdraw(); err != nil {
			t.Error(err)
		}
	})
}

func TestSessions(t *testing.T) {
	for id, want := range map[string]string{
		"desktop": "desktop", "a-Z_0.9!~*'()": "a-Z_0.9!~*'()", "a b": "a%20b", "a/b": "a%2Fb", "../x": "..%2Fx",
		"é€😀": "%C3%A9%E2%82%AC%F0%9F%98%80", "a\x00b": "a%00b", "%2F": "%252F", `a\b`: "a%5Cb", "a:b": "a%3Ab", "...": "...",
		"\u00a0\ufeff\u2028x\t": "x", "unknown2": "unknown2", "x\u0085": "x%C2%85",
	} {
		got, err := CheckSession(id)
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		if enc := Encode(got); enc != want {
			t.Errorf("%q is encoded %q, want %q", id, enc, want)
		}
		if back, err := Decode(Encode(got)); err != nil || back != got {
			t.Errorf("%q decodes to %q, %v", Encode(got), back, err)
		}
	}
	for _, id := range []string{"", " ", "\t\n", "unknown", "UnKnown", " UNKNOWN ", ".", "..", " .. ", "\xff", strings.Repeat("x", 251), strings.Repeat("é", 50)} {
		if got, err := CheckSession(id); err == nil {
			t.Errorf("%q is accepted as %q", id, got)
		}
	}
	for _, name := range []string{"a b", "%2f", "%", "%zz", "%FF", "é", "a/b"} {
		if id, err := Decode(name); err == nil {
			t.Errorf("%q decodes to %q", name, id)
		}
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "desk.json", fmt.Sprintf(`{"sessionId":"desk","pid":%d,"updatedAt":%d}`, os.Getpid(), time.Now().UnixMilli()))
	write(t, dir, "a%20b.json", "{")
	write(t, dir, "a b.json", "{")
	write(t, dir, "x.tmp", "{")
	list, err := Reader{Clock: SystemClock()}.List(dir)
	if err != nil || len(list) != 3 || list[2].State != Alive || list[2].Record.SessionID != "desk" || list[0].State != Absent {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := (Reader{Clock: SystemClock()}).List(filepath.Join(dir, "none")); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// FuzzRecord: what is read can be written and reads the same again.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"sessionId":"desk-1","pid":4711,"updatedAt":1795979153781}`))
	f.Add([]byte(`{"sessionId":"desk-1","pid":4711,"updatedAt":1.5e3,"processStart":"88","bootId":"x","bootMs":12,"more":{}}`))
	f.Add([]byte(`{"sessionId":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRecord(data)
		if err != nil {
			return
		}
		if r.PID < 1 {
			t.Fatalf("pid %d", r.PID)
		}
		again, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if r2, err := ParseRecord(again); err != nil || r2 != r {
			t.Fatalf("%+v came back as %+v, %v", r, r2, err)
		}
	})
}

// FuzzSession: an accepted id names one file, and no other directory.
func FuzzSession(f *testing.F) {
	for _, s := range []string{"desk", "../..", "a/b", "é", "\x00", "unknown"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		s, err := CheckSession(id)
		if err != nil {
			return
		}
		name := Encode(s)
		if name != filepath.Base(name) || name == "." || name == ".." || len(name) > 250 || strings.ContainsAny(name, `/\`+"\x00") {
			t.Fatalf("%q is encoded %q", id, name)
		}
		if back, err := Decode(name); err != nil || back != s {
			t.Fatalf("%q decodes to %q, %v", name, back, err)
		}
	})
}
