//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// runMark is in the environment of every process that a test starts, and so in
// that of every process which those start.
var runMark = fmt.Sprintf("NOD_TEST_RUN=%d-%d", os.Getpid(), time.Now().UnixNano())

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if left := leftovers(10 * time.Second); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "processes that outlived their tests:\n%s\n", strings.Join(left, "\n"))
		code = 1
	}
	if dir, err := scratch(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// leftovers are the processes of this run that are still there after some time
// to end in.
func leftovers(limit time.Duration) []string {
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		left := marked()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// marked are the processes that bear the mark of this run.
func marked() []string {
	var all []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, err := os.ReadFile(d + "/environ")
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), runMark) {
			continue
		}
		cmdline, _ := os.ReadFile(d + "/cmdline")
		all = append(all, filepath.Base(d)+" "+strings.ReplaceAll(strings.TrimRight(string(cmdline), "\x00"), "\x00", " "))
	}
	return all
}

// scratch is a directory that all tests of this run share.
var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "nod-e2e") })

// build makes the program under test once, as a desktop user would.
var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("NOD_BINARY"); path != "" {
		return path, nil
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nod")
	cmd := exec.Command("go", "build", "-tags", "gles", "-o", path, ".")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building nod: %w\n%s", err, out)
	}
	return path, nil
})

// program is the path of the program under test.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
