package notify

import (
	"fmt"
	"time"
)

// fallBack tells r's note through beeep. A note told that way stays wanted: a
// server that appears later shows it with its buttons.
func (d *desktop) fallBack(r *request, why error) {
	it := d.item(r)
	if it.id != 0 {
		d.takeOff(it.id) // the content before, which must not be clicked for this one
		it.id = 0
	}
	it.note, it.shown, it.before = r.note, Shown{Backend: ByBeeep}, nil
	if d.tell == nil || d.stuck {
		r.answer(Shown{}, why)
		d.forget(it)
		return
	}
	d.limit(it)
	d.tells = append(d.tells, told{r, why})
	if len(d.tells) == 1 {
		d.tellNext()
	}
}

// told is a note on its way through beeep.
type told struct {
	r   *request
	why error // the server does not show it
}

// tellNext tells the first of d.tells. beeep is slow on some systems, and can
// hang where a server hangs, so it runs by itself, one note at a time.
func (d *desktop) tellNext() {
	t := d.tells[0]
	back := make(chan error, 1)
	note := t.r.note
	go func() { back <- d.tell.tell(d.cfg.AppName, note) }()
	finish := func(t told, err error) {
		if err == nil {
			t.r.answer(Shown{Backend: ByBeeep}, nil)
			return
		}
		t.r.answer(Shown{}, fmt.Errorf("%w; beeep: %w", t.why, err))
		if it := d.items[t.r.note.Key]; it != nil && it.id == 0 && it.flight == nil {
			d.forget(it)
		}
	}
	limit := time.NewTimer(d.times.call)
	go func() {
		defer limit.Stop()
		select {
		case err := <-back:
			d.post(func() {
				finish(t, err)
				if d.tells = d.tells[1:]; len(d.tells) > 0 {
					d.tellNext()
				}
			})
			return
		case <-limit.C:
			d.post(func() {
				d.stuck = true
				for _, t := range d.tells {
					finish(t, errSlow)
				}
				d.tells = nil
			})
		case <-d.done:
			return
		}
		select {
		case <-back:
			d.post(func() { d.stuck = false })
		case <-d.done:
		}
	}()
}
