package notify

import (
	"slices"

	"github.com/godbus/dbus/v5"
)

// signal handles one signal from the bus. Its sender is the bus's own word, not
// the sender's; everything else in it is checked.
func (d *desktop) signal(s *dbus.Signal) {
	switch {
	case s.Sender == busName && s.Name == ownerChanged:
		name, _, owner, ok := three(s.Body)
		if ok && name == serverName && s.Sequence > d.link.asOf {
			d.owned(owner)
		}
	case d.server == nil || s.Sender != d.server.owner || s.Path != serverPath:
		d.log.Debug("a signal that is not from the notification server", "name", s.Name, "sender", s.Sender)
	default:
		d.served(s)
	}
}

func three(body []any) (a, b, c string, ok bool) {
	if len(body) != 3 {
		return "", "", "", false
	}
	a, ok = body[0].(string)
	b, ok2 := body[1].(string)
	c, ok3 := body[2].(string)
	return a, b, c, ok && ok2 && ok3
}

// served handles a signal of the present server.
func (d *desktop) served(s *dbus.Signal) {
	if len(s.Body) != 2 {
		return
	}
	id, ok := s.Body[0].(uint32)
	if !ok || id == 0 {
		return
	}
	var it *item
	for _, have := range d.items {
		if have.id == id {
			it = have
		}
	}
	if d.flights > 0 && (it == nil || it.flight != nil) {
		// It may be about a note whose Notify has not been answered yet, or is
		// about to be replaced: the reply tells.
		if len(d.held) == heldMax {
			d.held = slices.Delete(d.held, 0, 1)
		}
		d.held = append(d.held, s)
		return
	}
	if it == nil {
		return // another program's note, or one that we are done with
	}
	on, current := version{it.note, it.shown}, true
	if it.before != nil && s.Sequence < it.since {
		on, current = *it.before, false
	}
	switch s.Name {
	case serverName + ".ActivationToken":
		it.token, _ = s.Body[1].(string)
	case serverName + ".ActionInvoked":
		if key, ok := s.Body[1].(string); ok {
			d.invoked(it, on, current, key)
		}
	case serverName + ".NotificationClosed":
		// What was replaced may have been closed just before; nobody cares.
		if reason, ok := s.Body[1].(uint32); ok && current {
			d.closed(it, reason)
		}
	}
}

// release looks at the held signals again, now that a call was answered.
func (d *desktop) release() {
	held := d.held
	d.held = nil
	for _, s := range held {
		d.signal(s)
	}
}

func (d *desktop) invoked(it *item, on version, current bool, key string) {
	if key == defaultKey {
		key = on.note.Click
	}
	if !slices.ContainsFunc(on.shown.Actions, func(a Action) bool { return a.Key == key }) {
		d.log.Warn("the notification server invoked an action that was not offered", "note", on.note.Key, "action", key)
		return
	}
	token := it.token
	if current {
		// NotificationClosed may or may not follow, so this ends it.
		d.closeID(it.id)
		it.id = 0
		d.drop(it, ErrWithdrawn)
	}
	d.emit(Event{Kind: Invoked, Note: on.note, Action: key, Token: token})
}

func (d *desktop) closed(it *item, reason uint32) {
	note := it.note
	it.id = 0
	d.drop(it, ErrWithdrawn)
	r := Reason(reason)
	if r != Expired && r != Dismissed {
		r = Other // 3 included: it was not we who asked for it
	}
	d.emit(Event{Kind: Closed, Note: note, Reason: r})
}
