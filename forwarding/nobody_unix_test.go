//go:build unix

package forwarding

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the ordinary user as whom root runs what modes cannot stop root
// from doing.
const nobody = 65534

// onceMoreAsNobody runs the test that calls it a second time if this is root:
// as an ordinary user, for whom modes count.
func onceMoreAsNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	test := t.Name()
	t.Run("as an ordinary user", func(t *testing.T) {
		// The test binary is where only root comes.
		dir, err := os.MkdirTemp("", "nobody")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		must(t, os.Chmod(dir, 0o755))
		program, err := os.ReadFile(os.Args[0])
		must(t, err)
		self := filepath.Join(dir, "test.exe")
		must(t, os.WriteFile(self, program, 0o755))
		own := filepath.Join(dir, "own")
		must(t, os.Mkdir(own, 0o700))
		must(t, os.Chown(own, nobody, nobody))

		cmd := exec.Command(self, "-test.v", "-test.run", fmt.Sprintf("^%s$", test), "-test.timeout", "5m")
		cmd.Dir = own
		cmd.Env = []string{"TMPDIR=" + own, "HOME=" + own, "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+test+" ") {
			t.Errorf("user %d: %v (every directory above %s must let it through)\n%s", nobody, err, dir, out)
		}
	})
}
