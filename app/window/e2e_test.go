//go:build !headless && cgo && !ci && linux

package window

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/notify/notifytest"
)

// childEnv makes the test's own binary the window process.
const childEnv = "NOD_TEST_WINDOW_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(Run(context.Background(), os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}
	os.Exit(m.Run())
}

// A child is a window process on a test screen.
type child struct {
	t      *testing.T
	screen *notifytest.Screen
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	down   *pipe.Writer
	stderr *bytes.Buffer
	ended  chan error

	mu  sync.Mutex
	ups []pipe.Up
}

func start(t *testing.T, screen *notifytest.Screen, env ...string) *child {
	t.Helper()
	c := &child{t: t, screen: screen, cmd: exec.Command(os.Args[0]), stderr: &bytes.Buffer{}, ended: make(chan error, 1)}
	c.cmd.Env = append(append(screen.Env(), childEnv+"=1", "LANG=en_US.UTF-8", "FYNE_THEME=light"), env...)
	c.cmd.Stderr = c.stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin, c.down = stdin, pipe.NewWriter(stdin)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := pipe.Read(stdout, func(u pipe.Up) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ups = append(c.ups, u)
		})
		if w := c.cmd.Wait(); err == nil {
			err = w
		}
		c.ended <- err
	}()
	t.Cleanup(func() {
		_ = c.stdin.Close()
		_ = c.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the window process said:\n%s", c.stderr)
		}
	})
	c.await("ready")
	return c
}

// await waits for a message of that type, or of any if kind is empty, and
// takes everything up to it.
func (c *child) await(kind string) pipe.Up {
	c.t.Helper()
	var found pipe.Up
	notifytest.Eventually(c.t, "a message of type "+kind, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, u := range c.ups {
			if kind == "" || u.Type == kind {
				found = u
				c.ups = c.ups[i+1:]
				return true
			}
		}
		return false
	})
	return found
}

// silent fails if the window said anything.
func (c *child) silent(after string) {
	c.t.Helper()
	time.Sleep(300 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ups) > 0 {
		c.t.Fatalf("%s: the window sent %+v", after, c.ups)
	}
}

func (c *child) tell(d pipe.Down) {
	c.t.Helper()
	if err := c.down.Write(d); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) tool(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("xdotool", args...)
	cmd.Env = c.screen.Env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("xdotool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// window waits for the visible window of that title and returns its id.
func (c *child) window(title string) string {
	c.t.Helper()
	var id string
	notifytest.Eventually(c.t, "the window "+title, func() bool {
		cmd := exec.Command("xdotool", "search", "--all", "--onlyvisible", "--pid", strconv.Itoa(c.cmd.Process.Pid), "--name", title)
		cmd.Env = c.screen.Env()
		out, _ := cmd.Output()
		ids := strings.Fields(string(out))
		if len(ids) != 1 {
			return false
		}
		id = ids[0]
		return true
	})
	return id
}

func (c *child) gone(title string) {
	c.t.Helper()
	notifytest.Eventually(c.t, "the window "+title+" to go", func() bool {
		cmd := exec.Command("xdotool", "search", "--all", "--onlyvisible", "--pid", strconv.Itoa(c.cmd.Process.Pid), "--name", title)
		cmd.Env = c.screen.Env()
		out, _ := cmd.Output()
		return len(strings.Fields(string(out))) == 0
	})
}

// at are window coordinates; negative ones count from the right or bottom.
func (c *child) move(id string, x, y int) {
	c.t.Helper()
	var w, h int
	for line := range strings.Lines(c.tool("getwindowgeometry", "--shell", id)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch n, _ := strconv.Atoi(value); key {
		case "WIDTH":
			w = n
		case "HEIGHT":
			h = n
		}
	}
	if x < 0 {
		x += w
	}
	if y < 0 {
		y += h
	}
	c.tool("mousemove", "--window", id, strconv.Itoa(x), strconv.Itoa(y), "sleep", "0.2")
}

func (c *child) click(id string, at [2]int) {
	c.t.Helper()
	c.move(id, at[0], at[1])
	c.tool("click", "1")
}

// focused waits until a window has the keyboard.
func (c *child) focused(id string) {
	c.t.Helper()
	notifytest.Eventually(c.t, "the window to have the keyboard", func() bool { return c.tool("getwindowfocus") == id })
}

// Where the buttons are in a window of usual size.
var (
	onDeny    = [2]int{40, -30}
	onDenyWhy = [2]int{150, -30}
	onSession = [2]int{-180, -30}
	onAllow   = [2]int{-45, -30} // and whatever verb stands in the right lower corner
)

// pass lets the dead time pass.
func pass() { time.Sleep(900 * time.Millisecond) }

func testAsk(key string) pipe.Ask {
	return pipe.Ask{Key: key, Hash: "hash" + key, Since: time.Now(), Question: &engine.Question{
		ID: "r" + key, SessionID: "desktop", Deadline: time.Now().Add(10 * time.Minute),
		Principal: engine.Principal{SessionID: "3f2a9c1e", AgentName: "agent" + key}, RequesterCwd: "/home/ada/src",
		Tool: "bash", Surface: "bash", Kind: "bash", Value: "git push origin branch-" + key, Pattern: "git push *",
		Suggestion: []engine.Grant{{Surface: "bash", Pattern: "git push *"}},
		Intent:     &engine.Intent{Surface: "bash", MatchValues: []string{"x"}},
	}}
}

func (c *child) show(key string, focus bool) string {
	c.t.Helper()
	c.tell(pipe.Down{Type: "state", Asks: []pipe.Ask{testAsk(key)}, Total: 1})
	c.tell(pipe.Down{Type: "show", View: "ask", Key: key, Focus: focus})
	id := c.window("agent" + key + ": bash")
	c.screen.Settled(c.t, "") // the first one is slow: the toolkit reads the fonts
	return id
}

func (c *child) answered(key string, v engine.Verdict, reason string) {
	c.t.Helper()
	got := c.await("answer")
	want := pipe.Up{Type: "answer", Key: key, Hash: "hash" + key, Verdict: v, Reason: reason}
	if got != want {
		c.t.Fatalf("answered %+v, want %+v", got, want)
	}
	c.tell(pipe.Down{Type: "result", Key: key, OK: true})
	c.tell(pipe.Down{Type: "state"})
}

// The dialog under a real window system, with a real mouse and keyboard.
func TestAskWindowOnX11(t *testing.T) {
	screen := notifytest.StartXvfb(t, notifytest.StartBus(t), 1500, 700, true)
	c := start(t, screen)
	run := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			c.t = t
			f(t)
		})
	}
	run("allow once", func(t *testing.T) {
		id := c.show("1", true)
		pass()
		screen.Screenshot(t, "window-x11-ask")
		c.click(id, onAllow)
		c.answered("1", engine.Approved, "")
		c.await("hidden")
		c.gone("agent1")
	})
	run("deny", func(t *testing.T) {
		id := c.show("2", true)
		pass()
		c.click(id, onDeny)
		c.answered("2", engine.Denied, "")
		c.await("hidden")
	})
	run("for this session, this subagent only", func(t *testing.T) {
		id := c.show("3", true)
		pass()
		c.click(id, onSession)
		pass()
		screen.Screenshot(t, "window-x11-scope")
		c.click(id, onAllow)
		c.answered("3", engine.ApprovedForSession, "")
		c.await("hidden")
	})
	run("deny with a typed reason", func(t *testing.T) {
		id := c.show("4", true)
		pass()
		c.click(id, onDenyWhy)
		pass()
		c.tool("type", "--delay", "30", "use a branch")
		c.tool("key", "Return")
		c.tool("type", "--delay", "30", "of your own")
		pass()
		screen.Screenshot(t, "window-x11-reason")
		c.click(id, onAllow)
		c.answered("4", engine.DeniedWithReason, "use a branch\nof your own")
		c.await("hidden")
	})
	run("keys", func(t *testing.T) {
		id := c.show("5", true)
		c.focused(id)
		c.tool("key", "Return", "space", "KP_Enter", "y", "Return", "space")
		pass()
		c.tool("key", "Return", "space", "KP_Enter", "y", "a", "Return", "space")
		c.silent("keys on a dialog without a focus")
		c.tool("key", "--delay", "60", "Tab", "Tab", "Return") // the sheet, then Deny
		c.silent("Enter on Deny")
		c.tool("key", "space")
		c.answered("5", engine.Denied, "")
		c.await("hidden")
	})
	run("closing is later", func(t *testing.T) {
		for _, key := range []string{"Escape", "alt+F4"} {
			c.focused(c.show("6", true))
			c.tool("key", key)
			c.await("hidden")
			c.silent(key)
			c.gone("agent6")
		}
	})
	run("no focus is taken, and the click that raises does not answer", func(t *testing.T) {
		c.tell(pipe.Down{Type: "show", View: "nod", Focus: true})
		nod := c.window("^Nod$")
		c.focused(nod)
		id := c.show("7", false)
		pass()
		if got := c.tool("getwindowfocus"); got != nod {
			t.Errorf("window %s took the keyboard from %s", got, nod)
		}
		screen.Screenshot(t, "window-x11-both")
		c.click(id, onAllow)
		c.silent("the click that raised the window")
		c.focused(id)
		pass()
		c.click(id, onAllow)
		c.answered("7", engine.Approved, "")
		c.gone("agent7")
		c.tool("windowactivate", "--sync", nod)
		c.focused(nod)
		c.tool("key", "Escape")
		c.await("hidden")
	})
	run("answered elsewhere", func(t *testing.T) {
		id := c.show("8", true)
		pass()
		c.tell(pipe.Down{Type: "state", Ended: []pipe.Ended{{Key: "8", Title: "agent8 wants to run a command", How: "denied (terminal)", At: time.Now()}}})
		time.Sleep(300 * time.Millisecond)
		screen.Screenshot(t, "window-x11-ended")
		c.click(id, onAllow)
		if u := c.await(""); u.Type != "hidden" {
			t.Errorf("sent %+v about an ask that has ended", u)
		}
	})
	run("its input ends", func(t *testing.T) {
		c.show("9", true)
		if err := c.stdin.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAMalformedLineEndsIt(t *testing.T) {
	screen := notifytest.StartXvfb(t, notifytest.StartBus(t), 800, 600, false)
	c := start(t, screen)
	if _, err := io.WriteString(c.stdin, "no message\n"); err != nil {
		t.Fatal(err)
	}
	err := <-c.ended
	if c.cmd.ProcessState.ExitCode() != exitInternal || !strings.Contains(c.stderr.String(), "reading a pipe message") {
		t.Errorf("ended with %v and said %q", err, c.stderr)
	}
}

// The toolkit would keep settings of its own if it were given an id to keep
// them under. What is in the cache directory, it and the graphics library can
// make again.
func TestItLeavesNoFiles(t *testing.T) {
	screen := notifytest.StartXvfb(t, notifytest.StartBus(t), 800, 600, false)
	home := t.TempDir()
	c := start(t, screen, "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_CACHE_HOME="+filepath.Join(home, "cache"))
	c.show("1", false)
	_ = c.stdin.Close()
	<-c.ended
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, filepath.Join(home, "cache")) {
			t.Errorf("it wrote %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoDisplay(t *testing.T) {
	for name, env := range map[string][]string{
		"none":     nil,
		"nobody's": {"DISPLAY=:4093"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(env, childEnv+"=1", "HOME="+t.TempDir(), "LANG=en_US.UTF-8")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			_ = cmd.Run()
			said := stderr.String()
			if cmd.ProcessState.ExitCode() != exitDisplay || !strings.Contains(said, "there is no display") && !strings.Contains(said, "the window system failed") {
				t.Errorf("exit code %d, and it said %q", cmd.ProcessState.ExitCode(), said)
			}
		})
	}
}
