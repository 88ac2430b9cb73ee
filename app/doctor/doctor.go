// Package doctor looks at what Nod stands on (display, tray host, notification
// server, file watches, directory modes, heartbeats) and says how to mend what
// is wrong. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nod-agents/nod/forwarding"
	"github.com/nod-agents/nod/heartbeat"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // Nod works, less well
	Bad  Level = "bad"  // something does not work
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Says   string `json:"says"`             // what is there, one sentence
	Remedy string `json:"remedy,omitempty"` // what to do, unless Level is ok
}

// Host is where the doctor looks.
type Host struct {
	Getenv     func(string) string
	Desktop    bool   // this build has one
	Native     bool   // the window system is part of the system, and no bus is needed
	BusAddress string // of the session bus; empty: none
	AgentDirs  []string
	Sessions   []string
	ConfigDir  string
	StateDir   string
	Proc       string // where the kernel shows its limits; /proc
}

// Examine runs every check. ctx bounds those that ask other programs.
func Examine(ctx context.Context, h Host) []Finding {
	var all []Finding
	all = append(all, h.display())
	all = append(all, h.bus(ctx)...)
	all = append(all, h.watches()...)
	for _, dir := range h.AgentDirs {
		all = append(all, h.modes(dir)...)
		all = append(all, h.heartbeats(dir)...)
	}
	for _, dir := range []string{h.ConfigDir, h.StateDir} {
		f, there := private("own directory", dir)
		if !there {
			continue
		}
		if dir == h.ConfigDir && f.Level == Warn { // rules are no secret
			f = Finding{Check: f.Check, Level: OK, Says: "Only you can write to " + dir + "."}
		}
		all = append(all, f)
	}
	return all
}

func (h Host) display() Finding {
	f := Finding{Check: "display", Level: OK}
	x, wayland := h.Getenv("DISPLAY"), h.Getenv("WAYLAND_DISPLAY")
	switch {
	case h.Desktop && h.Native:
		f.Says = "The system's own."
	case !h.Desktop:
		f.Level, f.Says, f.Remedy = Warn, "This build has no desktop: asks come to the terminal.", "Build without -tags headless to have the tray and the windows."
	case x != "":
		f.Says = "X11 display " + x + "."
	case wayland != "":
		f.Level, f.Says, f.Remedy = Warn, "Wayland display "+wayland+" without Xwayland.", "Install or start Xwayland, so that DISPLAY is set: the windows are X11 windows."
	default:
		f.Level, f.Says, f.Remedy = Warn, "No display: asks come to the terminal.", "Start Nod inside the desktop session, or use nod serve --frontend terminal."
	}
	return f
}

// Limits below which watching many inboxes fails on a busy desktop.
const fewWatches = 8192

func (h Host) watches() []Finding {
	var all []Finding
	for _, l := range []struct {
		name  string
		least int
	}{{"max_user_instances", 128}, {"max_user_watches", fewWatches}, {"max_queued_events", 16384}} {
		path := filepath.Join(h.Proc, "sys/fs/inotify", l.name)
		data, err := os.ReadFile(path)
		if err != nil {
			continue // not Linux
		}
		var n int
		if _, err := fmt.Sscan(string(data), &n); err != nil {
			continue
		}
		f := Finding{Check: "inotify " + l.name, Level: OK, Says: fmt.Sprintf("The limit is %d.", n)}
		if n < l.least {
			f.Level = Warn
			f.Says = fmt.Sprintf("The limit is %d; with fewer than %d Nod may have to poll.", n, l.least)
			f.Remedy = fmt.Sprintf("sudo sysctl fs.inotify.%s=%d", l.name, l.least)
		}
		all = append(all, f)
	}
	return all
}

// modes checks the forwarding directories of one agent directory: whoever can
// write there can ask in another's name, and read what is asked.
func (h Host) modes(agentDir string) []Finding {
	root := forwarding.Root(agentDir)
	dirs := []string{root, filepath.Join(root, "sessions"), forwarding.ServingDir(agentDir)}
	for _, s := range h.Sessions {
		inbox := forwarding.InboxDir(agentDir, s)
		dirs = append(dirs, inbox, filepath.Join(inbox, "requests"), filepath.Join(inbox, "responses"))
	}
	var all []Finding
	for _, dir := range dirs {
		if f, there := private("forwarding directory", dir); there {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return []Finding{{Check: "forwarding directory", Level: OK, Says: root + " does not exist yet; it is made when it is needed."}}
	}
	return summary(all, "forwarding directory", "All directories below "+root+" are yours alone.")
}

// private checks that dir is a directory which only its owner can enter.
func private(check, dir string) (Finding, bool) {
	i, err := os.Lstat(dir)
	switch {
	case os.IsNotExist(err):
		return Finding{}, false
	case err != nil:
		return Finding{check, Bad, fmt.Sprintf("%s cannot be looked at: %v.", dir, err), "Look at the directories above it."}, true
	case !i.IsDir():
		return Finding{check, Bad, fmt.Sprintf("%s is no directory but a %s.", dir, kind(i.Mode())), "Move it away; Nod makes the directory anew."}, true
	case i.Mode().Perm()&0o022 != 0:
		return Finding{check, Bad, fmt.Sprintf("Others can write to %s (mode %04o).", dir, i.Mode().Perm()), "chmod 700 " + quote(dir)}, true
	case i.Mode().Perm()&0o077 != 0:
		return Finding{check, Warn, fmt.Sprintf("Others can look into %s (mode %04o).", dir, i.Mode().Perm()), "chmod 700 " + quote(dir)}, true
	}
	return Finding{Check: check, Level: OK, Says: dir + " is yours alone."}, true
}

func kind(m fs.FileMode) string {
	if m&fs.ModeSymlink != 0 {
		return "symbolic link"
	}
	return "file"
}

// quote writes a path as a shell reads it back.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// summary leaves only what is wrong, or one line if nothing is.
func summary(all []Finding, check, fine string) []Finding {
	var wrong []Finding
	for _, f := range all {
		if f.Level != OK {
			wrong = append(wrong, f)
		}
	}
	if len(wrong) == 0 {
		return []Finding{{Check: check, Level: OK, Says: fine}}
	}
	return wrong
}

func (h Host) heartbeats(agentDir string) []Finding {
	dir := forwarding.ServingDir(agentDir)
	entries, err := heartbeat.Reader{Clock: heartbeat.SystemClock()}.List(dir)
	if err != nil {
		return []Finding{{"heartbeats", Bad, fmt.Sprintf("%s cannot be read: %v.", dir, err), "Check its owner and mode."}}
	}
	var all []Finding
	alive := 0
	for _, e := range entries {
		f := Finding{Check: "heartbeat", Level: Warn}
		switch e.State {
		case heartbeat.Alive:
			alive++
			continue
		case heartbeat.DeadPID:
			f.Says = fmt.Sprintf("%s was left by process %d, which is gone.", e.File, e.Record.PID)
			f.Remedy = "Nothing: the next nod serve removes it."
		case heartbeat.Stale:
			f.Says = fmt.Sprintf("%s has not been refreshed for %s; process %d hangs or is stopped.", e.File, time.Since(e.Record.UpdatedAt).Round(time.Second), e.Record.PID)
			f.Remedy = fmt.Sprintf("Look at that process, for instance with: ps -fp %d", e.Record.PID)
		case heartbeat.Absent:
			f.Says = e.File + " is no usable record."
			f.Remedy = "rm " + quote(e.File)
		}
		all = append(all, f)
	}
	says := fmt.Sprintf("%d sessions are served in %s.", alive, agentDir)
	if alive == 1 {
		says = fmt.Sprintf("1 session is served in %s.", agentDir)
	}
	return append(all, Finding{Check: "heartbeats", Level: OK, Says: says})
}
