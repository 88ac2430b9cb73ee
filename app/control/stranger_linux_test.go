package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/control"
)

// A process of another user is turned away by what the kernel says of it, even
// where modes would let it in. Only root can become another user to try.
func TestAStrangerIsTurnedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	p, dir := place(t), t.TempDir()
	serve(t, p, control.Service{Node: &node{board: board.New(time.Now)}}, dir)
	path := socketOf(t, p)
	for at, mode := range map[string]os.FileMode{p.RuntimeDir: 0o755, filepath.Dir(path): 0o755, path: 0o666} {
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got := askAs(t, path, 65534); got != "" {
		t.Errorf("a stranger was told %s", got)
	}
	if got := askAs(t, path, 0); !strings.Contains(got, `"ok":true`) {
		t.Errorf("our own user was told %q", got)
	}
}

// askAs asks for the status as a user that only this thread becomes.
func askAs(t *testing.T, path string, uid int) string {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(uid int) {
		keep := ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep); errno != 0 {
			t.Fatalf("becoming user %d: %v", uid, errno)
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	become(uid)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	become(0)
	if errors.Is(err, unix.EACCES) {
		t.Skipf("user %d cannot even come near: %s is closed to others", uid, os.TempDir())
	}
	if err != nil {
		t.Fatalf("connecting as user %d: %v", uid, err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)}); err != nil {
		t.Fatal(err)
	}
	_ = unix.Send(fd, []byte(`{"verb":"status"}`+"\n"), unix.MSG_NOSIGNAL) // it may be closed already
	buf := make([]byte, 4096)
	n, _ := unix.Read(fd, buf)
	return string(buf[:max(n, 0)])
}
