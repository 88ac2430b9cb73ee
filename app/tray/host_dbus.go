//go:build !headless && (linux || freebsd || netbsd || openbsd)

package tray

import (
	"context"
	"fmt"
	"time"

	"fyne.io/systray"
	"github.com/godbus/dbus/v5"
)

const (
	watcherName = "org.kde.StatusNotifierWatcher"
	watcherPath = "/StatusNotifierWatcher"
)

// hostNews says whether there is something that shows tray icons.
type hostNews struct {
	there bool
	why   string // if not
}

// loop puts the icon on the bus and calls serve with its menu, or with nil
// where there is no bus.
func (t *Tray) loop(ctx context.Context, serve func(*menu)) {
	if t.cfg.BusAddress == "" {
		serve(nil)
		return
	}
	// The library shares this connection. Without it the library would go on
	// with none, and fall over it at the end.
	conn, err := dbus.SessionBus()
	if err != nil {
		t.cfg.Log.Warn("no tray icon", "error", err)
		serve(nil)
		return
	}
	systray.SetTitle("Nod")
	setIcon(t.look())
	ready := make(chan *menu, 1)
	start, _ := systray.RunWithExternalLoop(func() {
		m := newMenu(ctx, t.cfg.Desktop)
		m.show(ctx, t.look(), t.cfg.Now())
		m.delay = delayFor(t.cfg.Desktop)
		m.gone = func() bool { return !conn.Connected() }
		ready <- m
	}, nil)
	start()
	m := <-ready
	m.icon = "" // the library drops what it is told while it starts
	serve(m)
	systray.Quit()
	_ = conn.Close()
}

// watchHost tells whether there is a tray, now and whenever that changes.
func (t *Tray) watchHost(ctx context.Context) <-chan hostNews {
	news := make(chan hostNews, 1)
	if t.cfg.BusAddress == "" {
		news <- hostNews{why: "there is no session bus"}
		return news
	}
	go func() {
		defer close(news)
		tell := func(h hostNews) {
			select {
			case news <- h:
			case <-ctx.Done():
			}
		}
		if err := t.followHost(ctx, tell); err != nil && ctx.Err() == nil {
			tell(hostNews{why: err.Error()})
		}
	}()
	return news
}

func (t *Tray) followHost(ctx context.Context, tell func(hostNews)) error {
	conn, err := dbus.Connect(t.cfg.BusAddress, dbus.WithContext(ctx), dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return fmt.Errorf("connecting to the session bus: %w", err)
	}
	defer conn.Close()
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, watcherName)},
		{dbus.WithMatchSender(watcherName), dbus.WithMatchInterface(watcherName), dbus.WithMatchMember("StatusNotifierHostRegistered")},
		{dbus.WithMatchSender(watcherName), dbus.WithMatchInterface(watcherName), dbus.WithMatchMember("StatusNotifierHostUnregistered")},
	} {
		if err := conn.AddMatchSignalContext(ctx, match...); err != nil {
			return fmt.Errorf("watching for a tray: %w", err)
		}
	}
	var last *hostNews
	for {
		if h := t.host(ctx, conn); last == nil || *last != h {
			last = &h
			tell(h)
		}
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-signals:
			if !ok {
				return fmt.Errorf("the session bus is gone")
			}
		}
	}
}

// host asks whether a tray is there.
func (t *Tray) host(ctx context.Context, conn *dbus.Conn) hostNews {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var owned bool
	if err := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, watcherName).Store(&owned); err != nil || !owned {
		return hostNews{why: "this desktop has no system tray (on GNOME the AppIndicator extension is one)"}
	}
	var v dbus.Variant
	err := conn.Object(watcherName, watcherPath).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, watcherName, "IsStatusNotifierHostRegistered").Store(&v)
	if registered, ok := v.Value().(bool); err == nil && ok && !registered {
		return hostNews{why: "nothing on this desktop shows tray icons"}
	}
	return hostNews{there: true}
}
