package doctor

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// Well-known names on the session bus.
const (
	notifications = "org.freedesktop.Notifications"
	trayWatcher   = "org.kde.StatusNotifierWatcher"
)

// bus checks the session bus and what the desktop has put on it.
func (h Host) bus(ctx context.Context) []Finding {
	if !h.Desktop || h.Native || h.Getenv("DISPLAY") == "" && h.Getenv("WAYLAND_DISPLAY") == "" {
		return nil // there is no desktop to put anything on it
	}
	if h.BusAddress == "" {
		return []Finding{{"session bus", Bad, "There is no session bus, so neither a tray nor notifications.", "Start Nod inside the desktop session, or under dbus-run-session."}}
	}
	conn, err := dbus.Dial(h.BusAddress, dbus.WithContext(ctx))
	if err == nil {
		defer conn.Close()
		if err = conn.Auth(nil); err == nil {
			err = conn.Hello()
		}
	}
	if err != nil {
		return []Finding{{"session bus", Bad, fmt.Sprintf("%s cannot be reached: %v.", h.BusAddress, err), "Check DBUS_SESSION_BUS_ADDRESS."}}
	}
	return []Finding{
		{Check: "session bus", Level: OK, Says: "It answers."},
		tray(ctx, conn),
		server(ctx, conn),
	}
}

func owned(ctx context.Context, conn *dbus.Conn, name string) bool {
	var has bool
	err := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, name).Store(&has)
	return err == nil && has
}

func tray(ctx context.Context, conn *dbus.Conn) Finding {
	if owned(ctx, conn, trayWatcher) {
		return Finding{Check: "tray", Level: OK, Says: "A tray host is there."}
	}
	return Finding{"tray", Warn, "No tray host is there: Nod shows a window instead.",
		"On GNOME install the extension AppIndicator and KStatusNotifierItem Support; elsewhere add a status tray to the panel."}
}

func server(ctx context.Context, conn *dbus.Conn) Finding {
	var caps []string
	err := conn.Object(notifications, "/org/freedesktop/Notifications").CallWithContext(ctx, notifications+".GetCapabilities", 0).Store(&caps)
	if err != nil {
		return Finding{"notifications", Warn, fmt.Sprintf("No notification server answers (%v): asks come to the dialog.", err),
			"Install one, such as xfce4-notifyd, dunst or mako, or start the desktop's own."}
	}
	for _, c := range caps {
		if c == "actions" {
			return Finding{Check: "notifications", Level: OK, Says: "The notification server shows buttons."}
		}
	}
	return Finding{"notifications", Warn, "The notification server has no buttons: asks are answered in the dialog.", "Use a server with actions, if you want to answer from the popup."}
}
