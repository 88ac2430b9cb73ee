package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	busName    = "org.freedesktop.DBus"
	busPath    = "/org/freedesktop/DBus"
	serverName = "org.freedesktop.Notifications"
	serverPath = "/org/freedesktop/Notifications"

	ownerChanged = busName + ".NameOwnerChanged"
	notifyMethod = serverName + ".Notify"
	closeMethod  = serverName + ".CloseNotification"
)

// link is one connection to the session bus.
type link struct {
	conn      *dbus.Conn
	cancel    context.CancelFunc
	owner     string        // of the server's name when the link began; empty: nobody
	asOf      dbus.Sequence // of the bus's word on that; older news are stale
	startable bool          // the bus can start a server
}

func (l *link) close() {
	_ = l.conn.Close()
	l.cancel()
}

// dial connects to the bus and asks who serves. The signals are on their way
// into the channel when it returns.
func dial(ctx context.Context, address string, limit time.Duration) (_ *link, _ chan *dbus.Signal, err error) {
	ctx, cancel := context.WithCancel(ctx)
	// A bus that takes the connection and then says nothing must not hold us:
	// the end of ctx closes the connection under the handshake.
	guard := time.AfterFunc(limit, cancel)
	conn, err := dbus.Connect(address, dbus.WithContext(ctx), dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("connecting to the session bus: %w", err)
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
			cancel()
		}
	}()
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	// By the server's well-known name, so that the bus keeps other programs'
	// signals from waking us. They are checked here all the same.
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchSender(busName), dbus.WithMatchInterface(busName), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, serverName)},
		{dbus.WithMatchSender(serverName), dbus.WithMatchInterface(serverName), dbus.WithMatchObjectPath(serverPath)},
	} {
		if err := conn.AddMatchSignalContext(ctx, match...); err != nil {
			return nil, nil, fmt.Errorf("asking the session bus for signals: %w", err)
		}
	}
	l := &link{conn: conn, cancel: cancel}
	var startable []string
	if err := conn.BusObject().CallWithContext(ctx, busName+".ListActivatableNames", 0).Store(&startable); err != nil {
		return nil, nil, fmt.Errorf("asking the session bus what it can start: %w", err)
	}
	for _, name := range startable {
		l.startable = l.startable || name == serverName
	}
	call := conn.BusObject().CallWithContext(ctx, busName+".GetNameOwner", 0, serverName)
	var refused dbus.Error
	if err := call.Store(&l.owner); err != nil && !(errors.As(err, &refused) && refused.Name == busName+".Error.NameHasNoOwner") {
		return nil, nil, fmt.Errorf("asking the session bus for the notification server: %w", err)
	}
	l.asOf = call.ResponseSequence
	if !guard.Stop() {
		return nil, nil, errors.New("the session bus was too slow")
	}
	return l, signals, nil
}

// pause is how long to wait after that many failures in a row to reach the bus.
func (t timing) pause(failures int) time.Duration {
	if failures > 16 {
		return t.retryMax
	}
	return min(t.retryMax, t.retry<<(failures-1))
}

// connect reaches for the bus, now and again until it is there.
func (d *desktop) connect() {
	if d.cfg.BusAddress == "" {
		d.unusable(errNoBus.Error())
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		dialed := make(chan struct{})
		go func() {
			select {
			case <-d.done:
				cancel()
			case <-dialed:
			}
		}()
		l, signals, err := dial(ctx, d.cfg.BusAddress, d.times.call)
		close(dialed)
		if !d.post(func() { d.connected(l, signals, err) }) && l != nil {
			l.close()
		}
	}()
}

func (d *desktop) connected(l *link, signals chan *dbus.Signal, err error) {
	if err != nil {
		d.tries++
		wait := d.times.pause(d.tries)
		d.log.Debug("no session bus", "error", err, "next try in", wait)
		d.later(wait, d.connect)
		d.unusable(err.Error())
		return
	}
	d.tries, d.failed = 0, time.Time{}
	d.link, d.signals = l, signals
	if l.owner == "" {
		d.nobody()
		return
	}
	d.owned(l.owner)
}

// lostBus forgets everything that came over the connection.
func (d *desktop) lostBus(err error) {
	d.log.Warn("the session bus is gone", "error", err)
	d.link.close()
	d.link, d.signals, d.server, d.probing = nil, nil, nil, false
	d.offScreen()
	d.state = settling
	d.later(d.times.retry, d.connect)
}

// offScreen notes that nothing we showed is on screen any more.
func (d *desktop) offScreen() {
	for _, it := range d.items {
		it.id, it.before = 0, nil
	}
	d.held = nil
}

// call makes a call and hands its outcome to done in run's goroutine. If it
// times out and is answered after all, late gets the answer, if there is one.
func (d *desktop) call(o dbus.BusObject, method string, limit time.Duration, args []any, done func(*dbus.Call, error), late func(*dbus.Call)) {
	c := o.Go(method, 0, make(chan *dbus.Call, 1), args...)
	go func() {
		t := time.NewTimer(limit)
		defer t.Stop()
		select {
		case <-c.Done:
			d.post(func() { done(c, c.Err) })
			return
		case <-t.C:
			d.post(func() { done(c, errSlow) })
		case <-d.done:
			return
		}
		select {
		case <-c.Done:
			if late != nil && c.Err == nil {
				d.post(func() { late(c) })
			}
		case <-d.done:
		}
	}()
}

// vanished reports whether err is the bus's word that the server is not there
// any more.
func vanished(err error) bool {
	var refused dbus.Error
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Name {
	case busName + ".Error.NoReply", busName + ".Error.ServiceUnknown", busName + ".Error.NameHasNoOwner":
		return true
	}
	return false
}

var errSlow = errors.New("no answer in time")

// serverFault reports whether err says that the server, rather than one note, is
// no good.
func serverFault(err error) bool {
	var refused dbus.Error
	if !errors.As(err, &refused) {
		return true
	}
	switch refused.Name {
	case busName + ".Error.Timeout", busName + ".Error.TimedOut", busName + ".Error.Disconnected",
		busName + ".Error.AccessDenied", busName + ".Error.UnknownMethod",
		busName + ".Error.UnknownObject", busName + ".Error.UnknownInterface":
		return true
	}
	return false
}
