//go:build linux

package notifytest

import (
	"bufio"
	"fmt"
	"image"
	_ "image/png" // Pixels reads screenshots
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// Screen is an X server without a screen, with its own home directory.
type Screen struct {
	Display string // such as :99
	bus     *Bus
	home    string
}

// StartXvfb starts an X server of that size, and openbox in it if wm is true.
// What runs on it uses bus.
func StartXvfb(t testing.TB, bus *Bus, width, height int, wm bool) *Screen {
	t.Helper()
	tools := []string{"Xvfb", "xdotool", "import"}
	if wm {
		tools = append(tools, "openbox")
	}
	paths := Need(t, tools...)
	read, writeEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &Screen{bus: bus, home: t.TempDir()}
	p := &Process{out: &output{}, done: make(chan struct{})}
	p.cmd = exec.Command(paths[0], "-displayfd", "3", "-screen", "0", fmt.Sprintf("%dx%dx24", width, height), "-nolisten", "tcp", "-noreset")
	p.cmd.ExtraFiles = []*os.File{writeEnd}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.start(t)
	_ = writeEnd.Close()
	_ = read.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(read).ReadString('\n')
	_ = read.Close()
	if err != nil {
		t.Fatalf("Xvfb did not name its display: %v", err)
	}
	s.Display = ":" + strings.TrimSpace(line)
	if wm {
		Start(t, s.Env(), paths[3])
		Eventually(t, "openbox", func() bool {
			out, err := try(s.Env(), "xdotool", "get_desktop")
			return err == nil && out == "0"
		})
	}
	return s
}

// Env is the environment for programs on this screen.
func (s *Screen) Env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "XDG_RUNTIME_DIR=" + s.home, "XDG_CONFIG_HOME=" + s.home + "/.config",
		"XDG_CACHE_HOME=" + s.home + "/.cache", "XDG_DATA_HOME=" + s.home + "/.local/share",
		"DISPLAY=" + s.Display, "DBUS_SESSION_BUS_ADDRESS=" + s.bus.Address, "XDG_SESSION_TYPE=x11",
		"XDG_CURRENT_DESKTOP=X-Generic", "LANG=C.UTF-8", "NO_AT_BRIDGE=1", "GTK_A11Y=none", "GSETTINGS_BACKEND=memory",
	}
}

// The real servers, where Debian, Fedora and Arch put them.
var (
	xfceNotifyd        = "/usr/lib*/{x86_64-linux-gnu/,aarch64-linux-gnu/,}xfce4/notifyd/xfce4-notifyd"
	notificationDaemon = "/usr/lib*/{notification-daemon/,}notification-daemon"
)

// StartXfceNotifyd starts xfce4-notifyd and returns when it serves.
func StartXfceNotifyd(t testing.TB, s *Screen) *Process {
	t.Helper()
	return s.serve(t, "xfce4-notifyd", needOne(t, xfceNotifyd))
}

// StartNotificationDaemon starts GNOME's old notification-daemon and returns
// when it serves.
func StartNotificationDaemon(t testing.TB, s *Screen) *Process {
	t.Helper()
	return s.serve(t, "notification-daemon", needOne(t, notificationDaemon))
}

// StartDunst starts dunst with its own defaults and returns when it serves.
func StartDunst(t testing.TB, s *Screen) *Process {
	t.Helper()
	return s.serve(t, "dunst", Need(t, "dunst")[0], "-conf", "/dev/null")
}

// needOne is Need for one tool that may be at several places: {a,b} as in a
// shell.
func needOne(t testing.TB, pattern string) string {
	t.Helper()
	open, end := strings.Index(pattern, "{"), strings.Index(pattern, "}")
	for _, middle := range strings.Split(pattern[open+1:end], ",") {
		if hits, _ := filepath.Glob(pattern[:open] + middle + pattern[end+1:]); len(hits) > 0 {
			return hits[0]
		}
	}
	return Need(t, filepath.Base(pattern))[0]
}

func (s *Screen) serve(t testing.TB, what, path string, args ...string) *Process {
	t.Helper()
	p := Start(t, s.Env(), path, args...)
	conn := s.bus.Connect(t)
	Eventually(t, what+" on the bus", func() bool {
		if !p.Running() {
			t.Fatalf("%s ended at once", what)
		}
		var owner string
		return conn.BusObject().Call("org.freedesktop.DBus.GetNameOwner", 0, Name).Store(&owner) == nil
	})
	var caps []string
	if err := conn.Object(Name, dbus.ObjectPath(Path)).Call(Name+".GetCapabilities", 0).Store(&caps); err != nil {
		t.Fatalf("%s does not answer: %v", what, err)
	}
	return p
}

// Artifacts is the directory for pictures.
func Artifacts(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("NOD_ARTIFACTS")
	if dir == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Screenshot saves the whole screen as name.png and returns its path.
func (s *Screen) Screenshot(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Artifacts(t), name+".png")
	run(t, s.Env(), "import", "-window", "root", path)
	t.Logf("picture: %s", path)
	return path
}

// Settled takes screenshots until two in a row are the same, and saves that as
// name.png: animations are over then.
func (s *Screen) Settled(t testing.TB, name string) string {
	t.Helper()
	path, last := "", ""
	Eventually(t, "the screen to hold still", func() bool {
		time.Sleep(150 * time.Millisecond)
		path = filepath.Join(Artifacts(t), name+".png")
		run(t, s.Env(), "import", "-window", "root", path)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		same := sameImage(t, raw, last)
		last = string(raw)
		return same
	})
	t.Logf("picture: %s", path)
	return path
}

func sameImage(t testing.TB, raw []byte, last string) bool {
	if last == "" {
		return false
	}
	a, _, err := image.Decode(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := image.Decode(strings.NewReader(last))
	if err != nil {
		t.Fatal(err)
	}
	if a.Bounds() != b.Bounds() {
		return false
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				return false
			}
		}
	}
	return true
}

// Window is a window on the screen, in pixels.
type Window struct {
	ID                  string
	X, Y, Width, Height int
}

// Notifications returns the windows of the notification server that are on
// screen. Their class is that of the server's program.
func (s *Screen) Notifications(t testing.TB) []Window {
	t.Helper()
	seen := map[string]bool{}
	var all []Window
	for _, class := range []string{"xfce4-notifyd", "notification-daemon", "dunst"} {
		out, err := try(s.Env(), "xdotool", "search", "--onlyvisible", "--class", "^"+class+"$")
		if err != nil {
			continue // none
		}
		for _, id := range strings.Fields(out) {
			if seen[strings.ToLower(id)] {
				continue
			}
			seen[id] = true
			geometry, err := try(s.Env(), "xdotool", "getwindowgeometry", "--shell", id)
			if err != nil {
				continue // it went
			}
			w := Window{ID: id}
			for _, line := range strings.Split(geometry, "\n") {
				key, value, _ := strings.Cut(line, "=")
				n, _ := strconv.Atoi(value)
				switch key {
				case "X":
					w.X = n
				case "Y":
					w.Y = n
				case "WIDTH":
					w.Width = n
				case "HEIGHT":
					w.Height = n
				}
			}
			if w.Width > 50 && w.Height > 20 {
				all = append(all, w)
			}
		}
	}
	return all
}

// Notification waits until exactly one notification is on screen.
func (s *Screen) Notification(t testing.TB) Window {
	t.Helper()
	var found []Window
	Eventually(t, "one notification on screen", func() bool {
		found = s.Notifications(t)
		return len(found) == 1
	})
	return found[0]
}

// ClickNotificationButton clicks the k-th of the n buttons of the notification
// on screen, counted from 1. The buttons of xfce4-notifyd and of
// notification-daemon stand in one row at the bottom and share its width.
func (s *Screen) ClickNotificationButton(t testing.TB, k, n int) {
	t.Helper()
	w := s.Notification(t)
	const side, up = 14, 31
	s.Click(t, w, side+(2*k-1)*(w.Width-2*side)/(2*n), w.Height-up)
}

// Click clicks at a place in a window.
func (s *Screen) Click(t testing.TB, w Window, x, y int) {
	t.Helper()
	run(t, s.Env(), "xdotool", "mousemove", "--window", w.ID, strconv.Itoa(x), strconv.Itoa(y), "sleep", "0.2", "click", "1")
}
