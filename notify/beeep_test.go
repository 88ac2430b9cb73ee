//go:build linux

package notify

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/notify/notifytest"
)

// serveAlone is a notification server that the bus starts.
func serveAlone() int {
	d, err := notifytest.Serve(os.Getenv("DBUS_STARTER_ADDRESS"), "Started", notifytest.PlainCaps())
	if err != nil {
		return 1
	}
	<-d.Conn.Context().Done() // the bus has ended
	return 0
}

// The real beeep, on a bus without a server, hands what it has to a program. We
// stand in for that program and look at what arrives.
func TestBeeepPassesPlainArguments(t *testing.T) {
	b := notifytest.StartBus(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"notify-send", "kdialog"} {
		t.Run(tool, func(t *testing.T) {
			dir := t.TempDir()
			script := "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done >>\"$0.args\"\n"
			if err := os.WriteFile(filepath.Join(dir, tool), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, text := range hostile {
				if !strings.Contains(text, "\x00") { // no environment can hold it
					texts = append(texts, text+" pi asks "+text)
				}
			}
			cmd := exec.Command(self, "tell")
			cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "DBUS_SESSION_BUS_ADDRESS=" + b.Address, "TITLES=" + strings.Join(texts, separator)}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			raw, err := os.ReadFile(filepath.Join(dir, tool+".args"))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
			told := 0
			for _, a := range got {
				if strings.Contains(a, "pi asks") {
					checkPlain(t, "…", a)
					told++
				}
				if strings.Contains(a, "BODY") {
					t.Errorf("the body was told: %q", a)
				}
			}
			if told != len(texts) || !slices.Contains(got, "Nod") {
				t.Errorf("%d of %d texts arrived: %q", told, len(texts), got)
			}
		})
	}
}

// A server that only the bus can start is started, and again after it ended.
func TestServerIsStarted(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := notifytest.StartBus(t, notifytest.Service{Name: notifytest.Name, Exec: []string{self, "serve"}})
	d, s := notifier(t, b)
	first := backend(t, d, ByDBus)
	if sh := show(t, d, ask()); sh.Backend != ByDBus || first.Server != "Started" {
		t.Fatalf("shown %+v by %+v", sh, first)
	}
	conn := b.Connect(t)
	end := func() {
		var pid uint32
		if err := conn.BusObject().Call(busName+".GetConnectionUnixProcessID", 0, serverName).Store(&pid); err != nil {
			t.Fatal(err)
		}
		p, err := os.FindProcess(int(pid))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	end()
	// A note is wanted, so a server is started for it.
	if e := next(t, d); e.Kind != Reshown {
		t.Fatalf("event %+v", e)
	}
	d.Withdraw("1")
	second := d.Capabilities()
	end()
	notifytest.Eventually(t, "the server to be gone", func() bool {
		var has bool
		return conn.BusObject().Call(busName+".NameHasOwner", 0, serverName).Store(&has) == nil && !has
	})
	time.Sleep(2 * quick().grace) // nobody needs it, so nobody starts it
	if c := d.Capabilities(); c != second {
		t.Errorf("capabilities changed without need: %+v was %+v", c, second)
	}
	if sh := show(t, d, ask()); sh.Backend != ByDBus {
		t.Errorf("shown %+v", sh)
	}
	if told := s.all(); len(told) > 0 {
		t.Errorf("told %q", told)
	}
}

// A server that cannot be started leaves us with beeep, at once and not again
// and again.
func TestServerDoesNotStart(t *testing.T) {
	b := notifytest.StartBus(t, notifytest.Service{Name: notifytest.Name, Exec: []string{"/bin/false"}})
	d, s := notifier(t, b, func(c *Config) { c.timing.again = time.Hour })
	if c := backend(t, d, ByBeeep); !strings.Contains(c.Why, "does not start") {
		t.Errorf("why: %q", c.Why)
	}
	for range 3 {
		if sh := show(t, d, ask()); sh.Backend != ByBeeep {
			t.Errorf("shown %+v", sh)
		}
	}
	if len(s.all()) != 3 {
		t.Errorf("told %q", s.all())
	}
}

func TestPause(t *testing.T) {
	var got []time.Duration
	for _, n := range []int{1, 2, 3, 6, 7, 8, 17, 100000} {
		got = append(got, realTiming.pause(n)/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 32, 60, 60, 60, 60}; !slices.Equal(got, want) {
		t.Errorf("pauses of %v seconds", got)
	}
}

func TestSessionBus(t *testing.T) {
	b := notifytest.StartBus(t)
	dir := filepath.Dir(strings.TrimPrefix(b.Address, "unix:path="))
	plain := t.TempDir()
	if err := os.WriteFile(filepath.Join(plain, "bus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"from the environment": {map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "XDG_RUNTIME_DIR": dir}, "unix:path=/x"},
		"from its place":       {map[string]string{"XDG_RUNTIME_DIR": dir}, b.Address},
		"autolaunch":           {map[string]string{"DBUS_SESSION_BUS_ADDRESS": "autolaunch:", "XDG_RUNTIME_DIR": dir}, b.Address},
		"not a socket":         {map[string]string{"XDG_RUNTIME_DIR": plain}, ""},
		"nothing":              {nil, ""},
	} {
		if got := SessionBus(func(k string) string { return c.env[k] }, -1); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
