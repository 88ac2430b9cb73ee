//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nod-agents/nod/notify/notifytest"
)

// session is the one that Nod serves by default.
const session = "desktop"

// askAll is a policy under which everything is asked.
const askAll = `{"permission": {"*": "ask"}}`

// machine is one user's computer: a home directory and, as far as a test
// starts them, a session bus, a screen and what runs there.
type machine struct {
	t        testing.TB
	home     string
	agentDir string
	bus      *notifytest.Bus
	screen   *notifytest.Screen
	extra    []string // more environment for everything that runs here
	models   map[string]any
}

// newMachine is a computer without a bus or a screen, where agents ask for
// everything.
func newMachine(t testing.TB, tools ...string) *machine {
	t.Helper()
	notifytest.EndToEnd(t, tools...)
	// Not t.TempDir: the paths of sockets below it must be short.
	home, err := os.MkdirTemp("", "nod-home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keep(t, home)
		_ = os.RemoveAll(home)
	})
	m := &machine{t: t, home: home, agentDir: filepath.Join(home, "agent"), models: map[string]any{}}
	for _, dir := range []string{m.agentDir, m.path("run"), m.path("proj")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.write("agent/extensions/pi-permission-system/config.json", askAll)
	return m
}

// keep leaves what a failed test's Nod has written among the artifacts.
func keep(t testing.TB, home string) {
	dir := os.Getenv("NOD_ARTIFACTS")
	if !t.Failed() || dir == "" {
		return
	}
	if log, err := os.ReadFile(filepath.Join(home, "state", "nod", "review.jsonl")); err == nil {
		_ = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".review.jsonl"), log, 0o644)
	}
}

// withBus adds a session bus on which nobody is, but that starts these.
func (m *machine) withBus(services ...notifytest.Service) *machine {
	m.t.Helper()
	m.bus = notifytest.StartBus(m.t, services...)
	return m
}

// withScreen adds a screen with a window manager, and a bus.
func (m *machine) withScreen() *machine {
	m.t.Helper()
	if m.bus == nil {
		m.withBus()
	}
	m.screen = notifytest.StartXvfb(m.t, m.bus, 1280, 800, true)
	return m
}

// desktop is a machine with a screen, xfce4-notifyd and a tray host.
func desktop(t testing.TB) (*machine, *trayHost) {
	t.Helper()
	m := newMachine(t, "Xvfb", "openbox", "xdotool", "import", "dbus-daemon").withScreen()
	notifytest.StartXfceNotifyd(t, m.screen)
	return m, startTrayHost(t, m.bus)
}

// path is a path in the home directory.
func (m *machine) path(name string) string { return filepath.Join(m.home, filepath.FromSlash(name)) }

// write puts a file into the home directory, in one step.
func (m *machine) write(name, content string) string {
	m.t.Helper()
	path := m.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// policy sets Nod's own rules: pass its path as --policy.
func (m *machine) policy(content string) string { return m.write("policy.jsonc", content) }

// env is the environment of what the user runs here.
func (m *machine) env() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + m.home, "XDG_RUNTIME_DIR=" + m.path("run"),
		"XDG_CONFIG_HOME=" + m.path("config"), "XDG_STATE_HOME=" + m.path("state"), "XDG_CACHE_HOME=" + m.path("cache"),
		"XDG_DATA_HOME=" + m.path("data"), "PI_CODING_AGENT_DIR=" + m.agentDir, "LANG=en_US.UTF-8", "TZ=UTC",
	}
	if m.bus != nil {
		env = append(env, "DBUS_SESSION_BUS_ADDRESS="+m.bus.Address)
	}
	if m.screen != nil {
		env = append(env, "DISPLAY="+m.screen.Display, "XDG_SESSION_TYPE=x11", "XDG_CURRENT_DESKTOP=X-Generic")
	}
	return append(env, m.extra...)
}

// nod is a run of the program under test.
type nod struct {
	*process
	m *machine
}

// serve starts nod serve and returns once its inbox is announced.
func (m *machine) serve(args ...string) *nod {
	m.t.Helper()
	n := m.nod(append([]string{"serve"}, args...)...)
	m.t.Cleanup(func() { // before it is ended
		if m.t.Failed() && m.screen != nil {
			m.screen.Screenshot(m.t, "failed-"+strings.ReplaceAll(m.t.Name(), "/", "-"))
		}
	})
	eventually(m.t, "nod serving", func() bool {
		if !n.running() {
			m.t.Fatalf("nod ended at once with %d: %s", n.wait(), n.err)
		}
		return strings.Contains(n.err.String(), "serving session ")
	})
	return n
}

// nod starts a command of Nod.
func (m *machine) nod(args ...string) *nod {
	m.t.Helper()
	return &nod{start(m.t, m.path("proj"), m.env(), program(m.t), args...), m}
}

// run runs a command of Nod to its end and returns its code and outputs.
func (m *machine) run(args ...string) (code int, stdout, stderr string) {
	m.t.Helper()
	n := m.nod(args...)
	code = n.wait()
	return code, n.out.String(), n.err.String()
}

// quit ends it in order.
func (n *nod) quit() {
	n.t.Helper()
	n.signal(syscall.SIGTERM)
	if code := n.wait(); code != 0 {
		n.t.Errorf("nod ended with %d after SIGTERM:\n%s", code, n.err)
	}
}

// grant is a line of nod grants --json.
type grant struct {
	ID        string `json:"id"`
	SessionID string `json:"sessionId"`
	Agent     string `json:"agent"`
	Surface   string `json:"surface"`
	Pattern   string `json:"pattern"`
	Hits      int    `json:"hits"`
}

// grants is what nod grants lists.
func (m *machine) grants() []grant {
	m.t.Helper()
	code, out, errs := m.run("grants", "--json")
	if code != 0 {
		m.t.Fatalf("nod grants ended with %d: %s", code, errs)
	}
	return decodeLines[grant](m.t, out)
}

// status is what nod status says of the Nod that runs.
func (m *machine) status() (s struct {
	Waiting  int
	Grants   int
	Paused   bool
	Problems []string
}) {
	m.t.Helper()
	code, out, errs := m.run("status", "--json")
	var report struct {
		Running []json.RawMessage `json:"running"`
	}
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || len(report.Running) != 1 {
		m.t.Fatalf("nod status ended with %d, %v: %s%s", code, err, out, errs)
	}
	if err := json.Unmarshal(report.Running[0], &s); err != nil {
		m.t.Fatal(err)
	}
	return s
}

func decodeLines[T any](t testing.TB, lines string) []T {
	t.Helper()
	var all []T
	for s := bufio.NewScanner(strings.NewReader(lines)); s.Scan(); {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("not JSON: %v: %s", err, s.Text())
		}
		all = append(all, v)
	}
	return all
}

// entry is a line of the review log.
type entry struct {
	Timestamp string          `json:"timestamp"`
	Event     string          `json:"event"`
	RequestID string          `json:"requestId"`
	Agent     string          `json:"requesterAgentName"`
	Target    string          `json:"targetSessionId"`
	Value     string          `json:"value"`
	File      string          `json:"file"`
	Reason    string          `json:"reason"`
	Remedy    string          `json:"remedy"`
	State     string          `json:"state"`
	DecidedBy json.RawMessage `json:"decidedBy"`
	Denial    string          `json:"denialReason"`
	Surface   string          `json:"surface"`
	Pattern   string          `json:"pattern"`
}

// log is the review log.
func (m *machine) log() []entry {
	m.t.Helper()
	data, err := os.ReadFile(m.path("state/nod/review.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	whole := data[:strings.LastIndexByte(string(data), '\n')+1]
	return decodeLines[entry](m.t, string(whole))
}

// logged are the entries of one event.
func (m *machine) logged(event string) []entry {
	m.t.Helper()
	return slices.DeleteFunc(m.log(), func(e entry) bool { return e.Event != event })
}

// awaitLog waits until there are n entries of an event, and returns them.
func (m *machine) awaitLog(event string, n int) []entry {
	m.t.Helper()
	var all []entry
	eventually(m.t, fmt.Sprintf("%d log entries %s", n, event), func() bool {
		all = m.logged(event)
		return len(all) >= n
	})
	if len(all) > n {
		m.t.Fatalf("%d entries of %s, not %d: %+v", len(all), event, n, all)
	}
	return all
}

// spool is the directory of the requests or responses of a session.
func (m *machine) spool(kind string) string {
	return filepath.Join(m.agentDir, "sessions", "permission-forwarding", "sessions", session, kind)
}

// spooled are the names of the files in it.
func (m *machine) spooled(kind string) []string {
	m.t.Helper()
	list, err := os.ReadDir(m.spool(kind))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// clean waits until no request and no response is left.
func (m *machine) clean() {
	m.t.Helper()
	eventually(m.t, "an empty inbox", func() bool {
		return len(m.spooled("requests")) == 0 && len(m.spooled("responses")) == 0
	})
}

// exists reports whether a file is there.
func (m *machine) exists(name string) bool {
	_, err := os.Stat(m.path(name))
	return err == nil
}
