//go:build linux

package notifytest

import (
	"bufio"
	"bytes"
	"fmt"
	"image"
	"image/png"
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
	return save(t, s.pixels(t), name)
}

// Settled waits until the screen holds still and returns what is on it. Its
// picture is saved as name.png, if name is not empty.
func (s *Screen) Settled(t testing.TB, name string) *image.RGBA {
	t.Helper()
	var last *image.RGBA
	Eventually(t, "the screen to hold still", func() bool {
		time.Sleep(100 * time.Millisecond)
		now := s.pixels(t)
		same := last != nil && Same(now, last, now.Rect)
		last = now
		return same
	})
	if name != "" {
		save(t, last, name)
	}
	return last
}

func save(t testing.TB, img image.Image, name string) string {
	t.Helper()
	path := filepath.Join(Artifacts(t), name+".png")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = png.Encode(f, img); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatalf("saving %s: %v", path, err)
	}
	t.Logf("picture: %s", path)
	return path
}

// Same reports whether two pictures are the same within r.
func Same(a, b *image.RGBA, r image.Rectangle) bool {
	r = r.Intersect(a.Rect).Intersect(b.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		i, j, n := a.PixOffset(r.Min.X, y), b.PixOffset(r.Min.X, y), 4*r.Dx()
		if !bytes.Equal(a.Pix[i:i+n], b.Pix[j:j+n]) {
			return false
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

// ClickNotificationButton clicks the k-th of the n buttons of the one
// notification on screen, counted from 1. It looks for them in a picture, and
// fails the test if there are not n.
func (s *Screen) ClickNotificationButton(t testing.TB, k, n int) {
	t.Helper()
	w := s.Notification(t)
	var at []image.Point
	Eventually(t, fmt.Sprintf("a row of %d buttons", n), func() bool {
		w = s.Notification(t)
		at = buttons(s.pixels(t), w)
		return len(at) == n
	})
	s.Click(t, w, at[k-1].X-w.X, at[k-1].Y-w.Y)
}

// buttons finds the lowest row of things in the notification w, each apart from
// the next by some pixels of background: framed buttons in xfce4-notifyd, bare
// words in notification-daemon. It returns their centres on the screen.
func buttons(img *image.RGBA, w Window) []image.Point {
	const edge, gap = 8, 6 // pixels: a frame and its shadow; more than between letters
	x0, x1 := w.X+edge, w.X+w.Width-edge
	background := img.RGBAAt(x0+4, w.Y+w.Height-edge-12)
	// Shadows are fainter than that, faces of buttons are not.
	const faint = 10
	drawn := func(x, y int) bool {
		c := img.RGBAAt(x, y)
		return apart(c.R, background.R) > faint || apart(c.G, background.G) > faint || apart(c.B, background.B) > faint
	}
	filled := func(y int) bool {
		for x := x0; x < x1; x++ {
			if drawn(x, y) {
				return true
			}
		}
		return false
	}
	bottom := w.Y + w.Height - edge
	for bottom > w.Y && !filled(bottom) {
		bottom--
	}
	top := bottom
	for top > w.Y && filled(top-1) {
		top--
	}
	var at []image.Point
	from, last := -1, -1
	end := func() {
		if from >= 0 {
			at = append(at, image.Pt((from+last)/2, (top+bottom)/2))
		}
	}
	for x := x0; x < x1; x++ {
		for y := top; y <= bottom; y++ {
			if !drawn(x, y) {
				continue
			}
			if from < 0 || x-last > gap {
				end()
				from = x
			}
			last = x
			break
		}
	}
	end()
	return at
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

// pixels takes a picture of the whole screen and keeps it to itself.
func (s *Screen) pixels(t testing.TB) *image.RGBA {
	t.Helper()
	cmd := exec.Command("import", "-window", "root", "-depth", "8", "ppm:-")
	cmd.Env = s.Env()
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("taking a picture: %v", err)
	}
	var width, height, top int
	if _, err := fmt.Sscanf(string(raw[:min(len(raw), 40)]), "P6\n%d %d\n%d\n", &width, &height, &top); err != nil || top != 255 {
		t.Fatalf("import made no picture: %v", err)
	}
	raw = raw[len(raw)-3*width*height:]
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		copy(img.Pix[4*i:], raw[3*i:3*i+3])
		img.Pix[4*i+3] = 0xff
	}
	return img
}

// Click clicks at a place in a window.
func (s *Screen) Click(t testing.TB, w Window, x, y int) {
	t.Helper()
	run(t, s.Env(), "xdotool", "mousemove", "--window", w.ID, strconv.Itoa(x), strconv.Itoa(y), "sleep", "0.2", "click", "1")
}
