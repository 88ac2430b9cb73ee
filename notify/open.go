package notify

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/godbus/dbus/v5"
)

// New returns this system's notifier: D-Bus on Linux and the BSDs, beeep
// elsewhere. It does not wait for the server; an event Changed tells when it is
// known. The end of ctx does what Close does. One per process: beeep keeps the
// program's name in a package variable.
func New(ctx context.Context, cfg Config) Notifier {
	switch runtime.GOOS {
	case "linux", "freebsd", "netbsd", "openbsd", "dragonfly":
		if cfg.BusAddress == "" {
			return newDesktop(ctx, cfg, nil)
		}
		return newDesktop(ctx, cfg, byBeeep(cfg.AppName))
	}
	return newTelling(cfg, byBeeep(cfg.AppName), "notifications here have no buttons that could be trusted")
}

// SessionBus returns the address of the session bus: that of the environment,
// or else the socket of the user's runtime directory, if it is there. It never
// starts a bus. Empty: there is none.
func SessionBus(getenv func(string) string, uid int) string {
	if a := getenv("DBUS_SESSION_BUS_ADDRESS"); a != "" && a != "autolaunch:" {
		return a
	}
	dir := getenv("XDG_RUNTIME_DIR")
	if dir == "" && uid >= 0 {
		dir = "/run/user/" + strconv.Itoa(uid)
	}
	if dir == "" {
		return ""
	}
	socket := filepath.Join(dir, "bus")
	if st, err := os.Stat(socket); err != nil || st.Mode().Type() != os.ModeSocket {
		return ""
	}
	return "unix:path=" + dbus.EscapeBusAddressValue(socket)
}
