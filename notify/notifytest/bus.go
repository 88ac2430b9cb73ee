//go:build linux

package notifytest

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// Bus is a session bus of the test's own. It starts nobody on demand but the
// services it was given.
type Bus struct {
	Address string
	config  string
	path    string
	process *Process
}

// Service is a program that the bus starts when its name is wanted.
type Service struct {
	Name string   // such as org.freedesktop.Notifications
	Exec []string // the program, by its whole path, and its arguments
}

// StartBus starts a session bus. It needs dbus-daemon.
func StartBus(t testing.TB, services ...Service) *Bus {
	t.Helper()
	daemon := Need(t, "dbus-daemon")[0]
	// Not t.TempDir: the path of a socket must be shorter than 108 bytes.
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	serviceDir := ""
	if len(services) > 0 {
		serviceDir = "<servicedir>" + quote(dir) + "</servicedir>"
	}
	for _, s := range services {
		write(t, filepath.Join(dir, s.Name+".service"),
			fmt.Sprintf("[D-BUS Service]\nName=%s\nExec=%s\n", s.Name, strings.Join(s.Exec, " ")))
	}
	b := &Bus{config: filepath.Join(dir, "bus.conf"), path: daemon, Address: "unix:path=" + filepath.Join(dir, "bus")}
	write(t, b.config, `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>`+quote(b.Address)+`</listen><auth>EXTERNAL</auth>`+serviceDir+`
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`)
	b.Start(t)
	return b
}

// Start starts the bus again, at the same address, after Stop.
func (b *Bus) Start(t testing.TB) {
	t.Helper()
	socket := strings.TrimPrefix(b.Address, "unix:path=")
	_ = os.Remove(socket)
	b.process = Start(t, b.env(), b.path, "--config-file="+b.config, "--nofork", "--nopidfile")
	Eventually(t, "the session bus", func() bool {
		if !b.process.Running() {
			t.Fatal("dbus-daemon ended at once")
		}
		conn, err := dbus.Connect(b.Address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Stop ends the bus at once.
func (b *Bus) Stop() { b.process.Kill() }

// Process is the bus's own.
func (b *Bus) Process() *Process { return b.process }

// Connect opens one more connection, as another program would.
func (b *Bus) Connect(t testing.TB) *dbus.Conn {
	t.Helper()
	conn, err := dbus.Connect(b.Address)
	if err != nil {
		t.Fatalf("connecting to the test's bus: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (b *Bus) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "DBUS_SESSION_BUS_ADDRESS=" + b.Address}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func quote(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
