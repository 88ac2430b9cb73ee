//go:build !headless

package tray

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/notify"
	"github.com/nod-agents/nod/notify/notifytest"
)

// order is what the test wants of a resident in another process; it is there
// because the tray library keeps one icon per process.
type order struct {
	Do     string        `json:"do"`
	Agent  string        `json:"agent,omitempty"`
	Text   string        `json:"text,omitempty"`
	On     bool          `json:"on,omitempty"`
	Grants []pipe.Grant  `json:"grants,omitempty"`
	Wait   time.Duration `json:"wait,omitempty"`
}

// reply is what is going on there.
type reply struct {
	Key     string   `json:"key"`
	Grants  []string `json:"grants"`
	Paused  bool     `json:"paused"`
	Waiting int      `json:"waiting"`
	Ended   []string `json:"ended"`
}

// playResident is the resident: a whole Tray over a node that the test orders
// about through standard input.
func playResident() int {
	n := newNode()
	n.log = os.Getenv("NOD_TEST_LOG")
	log := &logged{}
	logger := log.logger()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	bus := notify.SessionBus(os.Getenv, -1)
	cfg := Config{
		Node: n, BusAddress: bus, Window: []string{os.Args[0], "window"}, Env: os.Environ(),
		Desktop: os.Getenv("XDG_CURRENT_DESKTOP"), Now: time.Now, Log: logger,
	}
	cfg.timing.hostGrace, _ = time.ParseDuration(os.Getenv("NOD_TEST_GRACE"))
	if os.Getenv("NOD_TEST_QUIET") == "" {
		cfg.Notifier = notify.New(ctx, notify.Config{AppName: "Nod", BusAddress: bus, Log: logger})
	}
	t := New(cfg)
	if os.Getenv("NOD_IDLE") != "" { // the heartbeat of a node
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		go func() {
			for range tick.C {
				n.board.Len()
			}
		}()
	}
	var all sync.WaitGroup
	all.Go(func() {
		in := bufio.NewScanner(os.Stdin)
		in.Buffer(nil, 16<<20)
		out := json.NewEncoder(os.Stdout)
		for in.Scan() {
			var o order
			if err := json.Unmarshal(in.Bytes(), &o); err != nil {
				panic(err)
			}
			var r reply
			switch o.Do {
			case "ask":
				r.Key = n.add(o.Agent, o.Text).Key
			case "withdraw":
				n.board.Withdraw(o.Text, "gone")
			case "grants":
				n.change(func() { n.grants = o.Grants })
			case "problem":
				n.change(func() {
					n.problems = nil
					if o.Text != "" {
						n.problems = []string{o.Text}
					}
				})
			case "pause":
				n.SetPaused(o.On)
			case "show":
				if err := t.Show(); err != nil {
					panic(err)
				}
			case "log":
				r.Key = log.String()
			case "stop":
				cancel()
			}
			for _, g := range n.Grants() {
				r.Grants = append(r.Grants, g.ID)
			}
			for _, e := range n.board.Ended() {
				r.Ended = append(r.Ended, e.Key+" "+string(e.Decision.Verdict))
			}
			r.Paused, r.Waiting = n.Paused(), n.board.Len()
			if err := out.Encode(r); err != nil {
				return
			}
		}
	})
	err := t.Run(ctx)
	cancel()
	if cfg.Notifier != nil {
		_ = cfg.Notifier.Close()
	}
	fmt.Fprintln(os.Stderr, "returned", err)
	all.Wait() // the test closes our input
	time.Sleep(200 * time.Millisecond)
	if err := goleak.Find(goleak.IgnoreTopFunction("os/signal.loop"), goleak.IgnoreTopFunction("os/signal.signal_recv")); err != nil {
		fmt.Fprintln(os.Stderr, "leak:", err)
		return 3
	}
	return 0
}

// resident is that process from the test's side.
type resident struct {
	*testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	err   *logged
	at    *windowsAt
	ended chan error
}

func startResident(t *testing.T, b *notifytest.Bus, env ...string) *resident {
	t.Helper()
	r := &resident{T: t, err: &logged{}, at: listenForWindows(t), ended: make(chan error, 1)}
	r.cmd = exec.Command(os.Args[0])
	r.cmd.Env = append(os.Environ(), residentEnv+"=1", windowEnv+"="+r.at.path, "XDG_CURRENT_DESKTOP=KDE", "XDG_RUNTIME_DIR=")
	if b != nil {
		r.cmd.Env = append(r.cmd.Env, "DBUS_SESSION_BUS_ADDRESS="+b.Address)
	} else {
		r.cmd.Env = append(r.cmd.Env, "DBUS_SESSION_BUS_ADDRESS=")
	}
	races := filepath.Join(t.TempDir(), "race")
	r.cmd.Env = append(r.cmd.Env, "GORACE=exitcode=0 log_path="+races)
	r.cmd.Env = append(r.cmd.Env, env...)
	r.cmd.Stderr = r.err
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = json.NewDecoder(out)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	go func() { defer close(waited); r.ended <- r.cmd.Wait() }()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-waited
		checkRaces(t, races)
		if t.Failed() {
			t.Logf("the resident said: %s", r.err)
		}
	})
	return r
}

// checkRaces fails the test for every race that the resident's detector found,
// except those where the libraries below race with themselves: 150 ms after the
// first reading of the menu systray counts its version up without the lock
// that readers take, and godbus encodes a property while another goroutine
// sets it.
func checkRaces(t *testing.T, path string) {
	t.Helper()
	files, _ := filepath.Glob(path + ".*")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, report := range strings.Split(string(text), "WARNING: DATA RACE")[1:] {
			if !theirs(report) {
				t.Errorf("a data race:%s", report)
			}
		}
	}
}

// theirs reports whether both accesses of a race are made by code of the
// libraries.
func theirs(report string) bool {
	accesses := 0
	for _, stack := range strings.Split(report, "\n\n") {
		head, frames, _ := strings.Cut(strings.TrimSpace(stack), "\n")
		if !strings.Contains(head, " at 0x") {
			continue
		}
		accesses++
		for _, l := range strings.Split(frames, "\n") {
			l = strings.TrimSpace(l)
			if strings.HasPrefix(l, "/") || strings.HasPrefix(l, "runtime.") || strings.HasPrefix(l, "reflect.") {
				continue
			}
			if !strings.HasPrefix(l, "fyne.io/systray.") && !strings.HasPrefix(l, "github.com/godbus/dbus/v5") {
				return false
			}
			break
		}
	}
	return accesses == 2
}

func (r *resident) do(o order) reply {
	r.Helper()
	line, err := json.Marshal(o)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		r.Fatalf("ordering %s: %v", o.Do, err)
	}
	var got reply
	if err := r.out.Decode(&got); err != nil {
		r.Fatalf("after %s: %v", o.Do, err)
	}
	return got
}

func (r *resident) ask(agent, text string) string {
	r.Helper()
	return r.do(order{Do: "ask", Agent: agent, Text: text}).Key
}

// leaves waits for Run to return and the process to end without a leak.
func (r *resident) leaves() {
	r.Helper()
	eventually(r, "Run to return", func() bool { return strings.Contains(r.err.String(), "returned <nil>") })
	r.in.Close()
	select {
	case err := <-r.ended:
		r.ended <- err
		if err != nil {
			r.Errorf("the resident ended with %v: %s", err, r.err)
		}
	case <-time.After(patience):
		r.Fatal("the resident does not end")
	}
}

const idleMenu = `
		[Nod: nothing waits]
		--
		[No grants]
		--
		Pause
		Open Nod…
		Open log
		--
		Quit Nod`

func TestTheTray(t *testing.T) {
	b := notifytest.StartBus(t)
	server := notifytest.FakeDaemon(t, b, "Xfce Notify Daemon", notifytest.XfceCaps())
	h := startHost(t, b)
	r := startResident(t, b)
	h.reads(idleMenu)
	if h.property("Title") != "Nod" || h.property("Id") != "Nod" || h.property("ItemIsMenu") != true {
		t.Errorf("title %v, id %v, menu %v", h.property("Title"), h.property("Id"), h.property("ItemIsMenu"))
	}
	if h.icon() != "idle" || h.tooltip() != "Nod: nothing waits" {
		t.Errorf("icon %s, tooltip %s", h.icon(), h.tooltip())
	}
	quit := h.find("Quit Nod").id

	// Asks come and go in place.
	first := r.ask("scout", "rm -rf my_build_dir && __x__")
	second := r.ask("worker", "curl \u202ehttp://x")
	h.reads(`
		[Nod: 2 asks wait]
		scout: rm -rf my_build_dir && __x__
		worker: curl \u202Ehttp://x
		--
		[No grants]
		--
		Pause
		Open Nod…
		Open log
		--
		Quit Nod`)
	eventually(t, "the icon", func() bool { return h.icon() == "pending 2" })
	if h.tooltip() != "Nod: 2 asks wait" {
		t.Errorf("tooltip %s", h.tooltip())
	}
	slot := h.find("scout:").id
	r.do(order{Do: "withdraw", Text: first})
	eventually(t, "the second ask in the first place", func() bool { return h.find("worker:").id == slot })
	if h.find("Quit Nod").id != quit {
		t.Error("the menu was rebuilt")
	}

	// A click opens the ask's own dialog; its answer closes everything.
	h.clicks("worker:")
	w := r.at.next()
	w.shown(viewAsk, second)
	w.says(pipe.Up{Type: "answer", Key: second, Hash: "hash-curl \u202ehttp://x", Verdict: engine.Denied})
	if res := w.result(); !res.OK {
		t.Errorf("result %+v", res)
	}
	h.reads(idleMenu)
	eventually(t, "the icon", func() bool { return h.icon() == "idle" })
	eventually(t, "the notifications to go", func() bool { return len(server.Live()) == 0 })

	// More than the menu holds.
	var keys []string
	for i := range 25 {
		keys = append(keys, r.ask("scout", fmt.Sprint("cmd ", i)))
	}
	eventually(t, "the overflow", func() bool { return strings.Contains(text(h.menu()), "scout: cmd 9\n15 more…\n--") })
	eventually(t, "the icon", func() bool { return h.icon() == "pending 9+" })
	h.clicks("15 more…")
	w.shown(viewAsk, keys[10])
	for _, k := range keys {
		r.do(order{Do: "withdraw", Text: k})
	}
	h.reads(idleMenu)

	// Grants.
	since := time.Date(2026, 3, 1, 12, 30, 0, 0, time.Local)
	r.do(order{Do: "grants", Grants: []pipe.Grant{
		{ID: "g1", Surface: "bash", Pattern: "git status*", Since: since, Hits: 1},
		{ID: "g2", Surface: "read", Pattern: "/home/dev/*", Since: since, Hits: 3, Requester: "s", Agent: "scout", Until: since.Add(time.Hour)},
	}})
	h.reads(`
		[Nod: nothing waits]
		--
		Grants (2)
		  bash git status* (whole session)
		    [since 12:30, used 1 time]
		    Revoke
		  read /home/dev/* (scout)
		    [since 12:30, used 3 times, until 13:30]
		    Revoke
		  Revoke all…
		    Yes, revoke all 2
		--
		Pause
		Open Nod…
		Open log
		--
		Quit Nod`)
	time.Sleep(deadSlot)
	g2 := h.find("Grants", "read", "Revoke").id
	h.clicks("Grants", "bash", "Revoke")
	eventually(t, "the revocation", func() bool { return fmt.Sprint(r.do(order{}).Grants) == "[g2]" })
	eventually(t, "the menu", func() bool { return strings.Contains(text(h.menu()), "Grants (1)\n  read") })
	if h.find("Grants", "read", "Revoke").id != g2 {
		t.Error("the other grant moved under the pointer")
	}
	// A new grant takes the free place, and is not revoked by a click that was
	// on its way to the old one.
	r.do(order{Do: "grants", Grants: []pipe.Grant{{ID: "g2"}, {ID: "g3", Surface: "bash", Pattern: "make *"}}})
	h.clicks("Grants", "bash make", "Revoke")
	time.Sleep(200 * time.Millisecond)
	if got := fmt.Sprint(r.do(order{}).Grants); got != "[g2 g3]" {
		t.Errorf("a hasty click left %s", got)
	}
	time.Sleep(deadSlot)
	h.clicks("Grants", "Revoke all…", "Yes, revoke all 2")
	eventually(t, "the revocation of all", func() bool { return len(r.do(order{}).Grants) == 0 })
	h.reads(idleMenu)

	// Pause.
	r.ask("scout", "ls")
	h.clicks("Pause")
	h.reads(`
		[Nod: paused, 1 ask waits]
		scout: ls
		--
		[No grants]
		--
		Resume
		Open Nod…
		Open log
		--
		Quit Nod`)
	eventually(t, "the icon", func() bool { return h.icon() == "paused" })
	if !r.do(order{}).Paused {
		t.Error("the node is not paused")
	}
	h.clicks("Resume")
	eventually(t, "the end of the pause", func() bool { return !r.do(order{}).Paused && h.icon() == "pending 1" })
	r.do(order{Do: "withdraw", Text: strconv.Itoa(28)})
	h.reads(idleMenu)

	// Problems.
	r.do(order{Do: "problem", Text: "policy.jsonc is broken at line 3: mend it"})
	eventually(t, "the problem", func() bool {
		return h.icon() == "degraded" && strings.HasPrefix(text(h.menu()), "[Nod: nothing waits, 1 thing to mend]\n! policy.jsonc is broken at line 3: mend it\n--")
	})
	h.clicks("! policy.jsonc")
	w.shown(viewNod, "")
	r.do(order{Do: "problem"})
	h.reads(idleMenu)

	h.clicks("Open Nod…")
	w.shown(viewNod, "")
	r.do(order{Do: "show"})
	w.shown(viewNod, "")

	h.clicks("Quit Nod")
	w.told("to go", func(d pipe.Down) bool { return d.Type == "quit" })
	w.gone()
	r.leaves()
}

func TestGNOMEHasNoMenusInMenus(t *testing.T) { noMenusInMenus(t, "ubuntu:GNOME") }
func TestNorHasXfce(t *testing.T)             { noMenusInMenus(t, "XFCE") }

func noMenusInMenus(t *testing.T, desktop string) {
	t.Helper()
	b := notifytest.StartBus(t)
	h := startHost(t, b)
	r := startResident(t, b, "XDG_CURRENT_DESKTOP="+desktop)
	r.do(order{Do: "grants", Grants: []pipe.Grant{{ID: "g1", Surface: "bash", Pattern: "ls *", Since: time.Date(2026, 1, 2, 12, 30, 0, 0, time.Local)}}})
	h.reads(`
		[Nod: nothing waits]
		--
		Grants (1)
		  bash ls * (whole session), since 12:30, not used yet
		  Revoke all…
		--
		Pause
		Open Nod…
		Open log
		--
		Quit Nod`)
	h.clicks("Grants", "bash")
	w := r.at.next()
	w.shown(viewNod, pipe.GrantsKey)
	h.clicks("Grants", "Revoke all…")
	w.shown(viewNod, pipe.GrantsKey)
	if got := fmt.Sprint(r.do(order{Do: "stop"}).Grants); got != "[g1]" {
		t.Errorf("a click without a confirm left %s", got)
	}
	r.leaves()
}

func TestOpenLogFromTheMenu(t *testing.T) {
	b := notifytest.StartBus(t)
	server := notifytest.FakeDaemon(t, b, "Xfce Notify Daemon", notifytest.XfceCaps())
	h := startHost(t, b)
	bin, dir := t.TempDir(), t.TempDir()
	log, seen := filepath.Join(dir, "review.jsonl"), filepath.Join(dir, "seen")
	script := "#!/bin/sh\nprintf %s \"$1\" > " + seen + ".new; mv " + seen + ".new " + seen + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := startResident(t, b, "PATH="+bin+":"+os.Getenv("PATH"), "NOD_TEST_LOG="+log)
	h.clicks("Open log") // there is none yet
	p := server.Wait(t, 1)
	if p.Title != "The log was not opened" || !strings.Contains(p.Body, "no such file") {
		t.Errorf("it says %q, %q", p.Title, p.Body)
	}
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.clicks("Open log")
	eventually(t, "the log", func() bool { text, _ := os.ReadFile(seen); return string(text) == log })
	r.do(order{Do: "stop"})
	r.leaves()
}

// No bus: everything but the tray works, and that is said once.
func TestWithoutABus(t *testing.T) {
	r := startResident(t, nil, "NOD_TEST_GRACE=50ms")
	w := r.at.next()
	w.shown(viewNod, "")
	key := r.ask("scout", "ls")
	w.told("the ask", func(d pipe.Down) bool { return d.Type == "state" && d.Total == 1 })
	w.says(pipe.Up{Type: "answer", Key: key, Hash: "hash-ls", Verdict: engine.Approved})
	eventually(t, "the answer", func() bool { return fmt.Sprint(r.do(order{}).Ended) == "["+key+" approved]" })
	log := r.do(order{Do: "log"}).Key
	if n := strings.Count(log, "no tray icon"); n != 1 || !strings.Contains(log, "there is no session bus") {
		t.Errorf("said %d times: %s", n, log)
	}
	w.says(pipe.Up{Type: "quit"})
	r.leaves()
}

// No panel: a window instead, and the icon when a panel comes.
func TestAPanelThatComesLater(t *testing.T) {
	b := notifytest.StartBus(t)
	r := startResident(t, b, "NOD_TEST_GRACE=100ms")
	w := r.at.next()
	w.shown(viewNod, "")
	w.says(pipe.Up{Type: "hidden"})
	h := startHost(t, b)
	h.reads(idleMenu)
	eventually(t, "the news", func() bool { return strings.Contains(r.do(order{Do: "log"}).Key, "there is a tray now") })

	// The panel goes and another comes, as when a shell restarts.
	if err := h.conn.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	next := startHost(t, b)
	next.reads(idleMenu)
	next.clicks("Open Nod…")
	w.shown(viewNod, "")
	log := r.do(order{Do: "log"}).Key
	if n := strings.Count(log, "no tray icon"); n != 1 {
		t.Errorf("said %d times: %s", n, log)
	}
	r.do(order{Do: "stop"})
	r.leaves()
}

func TestABusThatDies(t *testing.T) {
	b := notifytest.StartBus(t)
	h := startHost(t, b)
	r := startResident(t, b, "NOD_TEST_GRACE=50ms")
	h.reads(idleMenu)
	b.Stop()
	w := r.at.next() // there is no tray any more
	w.shown(viewNod, "")
	key := r.ask("scout", "ls")
	w.told("the ask", func(d pipe.Down) bool { return d.Type == "state" && d.Total == 1 })
	w.says(pipe.Up{Type: "answer", Key: key, Hash: "hash-ls", Verdict: engine.Denied})
	eventually(t, "the answer", func() bool { return fmt.Sprint(r.do(order{}).Ended) == "["+key+" denied]" })
	r.do(order{Do: "stop"})
	r.leaves()
}

func TestKilledResidentTakesTheWindowAlong(t *testing.T) {
	b := notifytest.StartBus(t)
	r := startResident(t, b)
	r.do(order{Do: "show"})
	w := r.at.next()
	w.shown(viewNod, "")
	if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.gone() // its input ended
}

// What a resident costs that waits: run with NOD_IDLE=seconds, without -race.
func TestIdle(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("NOD_IDLE"))
	if seconds == 0 {
		t.Skip("set NOD_IDLE to the seconds to measure")
	}
	b := notifytest.StartBus(t)
	notifytest.FakeDaemon(t, b, "Xfce Notify Daemon", notifytest.XfceCaps())
	h := startHost(t, b)
	r := startResident(t, b)
	h.reads(idleMenu)
	time.Sleep(3 * time.Second)
	sample := func() (switches int, cpu int, rss string) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", r.cmd.Process.Pid))
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			for _, l := range strings.Split(string(text), "\n") {
				name, value, _ := strings.Cut(l, ":")
				if name == "voluntary_ctxt_switches" {
					n, _ := strconv.Atoi(strings.TrimSpace(value))
					switches += n
				}
				if name == "VmRSS" {
					rss = strings.TrimSpace(value)
				}
			}
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		u, _ := strconv.Atoi(fields[11])
		s, _ := strconv.Atoi(fields[12])
		return switches, u + s, rss
	}
	s1, c1, _ := sample()
	time.Sleep(time.Duration(seconds) * time.Second)
	s2, c2, rss := sample()
	t.Logf("RSS %s, %.2f wake-ups/s, %d ticks of CPU in %d s", rss, float64(s2-s1)/float64(seconds), c2-c1, seconds)
}
