package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
)

// timing is how long things may take.
type timing struct {
	call     time.Duration // a call to the server
	start    time.Duration // starting the server; the bus itself gives up after 25 s by default
	grace    time.Duration // the server may be away that long before it counts as gone
	retry    time.Duration // before the first try to reach a lost bus again; doubles
	retryMax time.Duration // the longest such wait
	again    time.Duration // before a server that failed is tried again, by the next Show
	farewell time.Duration // for withdrawing everything at the end
}

var realTiming = timing{
	call:     5 * time.Second,
	start:    10 * time.Second,
	grace:    2 * time.Second,
	retry:    time.Second,
	retryMax: time.Minute,
	again:    30 * time.Second,
	farewell: time.Second,
}

// state is what a Show can do at the moment.
type state int

const (
	settling state = iota // wait: a connection or a probe is on its way
	ready                 // send to the server
	dormant               // no server, but the bus can start one
	absent                // tell through beeep
)

// desktop is the notifier that speaks D-Bus. One goroutine owns all its state:
// run. Everything else reaches it as a function through do.
type desktop struct {
	cfg   Config
	log   *slog.Logger
	times timing
	tell  teller // nil: nothing can be told but through the server

	do     chan func()
	events chan Event
	ending chan struct{} // closed to ask run to end
	done   chan struct{} // closed when run has ended
	end    sync.Once
	caps   atomic.Pointer[Capabilities]

	// All below belongs to run.
	state   state
	failed  time.Time // when the server was last found not to work
	queue   []Event
	signals chan *dbus.Signal // of link; nil while there is none
	link    *link
	tries   int // to reach the bus, without success

	server  *server // the present owner; nil: none
	seen    int     // owners that came or went so far: tells a timer that its world is gone
	probing bool
	timers  map[*time.Timer]struct{}
	tells   []told
	stuck   bool // beeep does not come back

	seq     int
	items   map[string]*item // every note that is still wanted, by key
	waiting []*request
	flights int
	held    []*dbus.Signal // may belong to a call that is on its way
}

// againMax is how many new servers in a row are asked to show a note. A note
// that outlives more of them may be what ends them.
const againMax = 5

// heldMax bounds the signals kept for calls on their way. A server is not that
// fast, and a broken one shall not fill our memory.
const heldMax = 256

// item is a note that the caller still wants.
type item struct {
	seq   int
	note  Note
	shown Shown

	id     uint32        // on the present server; 0: not on screen
	since  dbus.Sequence // of the reply by which this content came on screen
	before *version      // what the same id showed before that
	token  string        // the activation token that came last
	expire *time.Timer

	again int // how often a new server was asked to show it

	flight *request
	next   []*request // for the same key, in order
}

type version struct {
	note  Note
	shown Shown
}

// request is one Show, or one note to be shown again.
type request struct {
	note   Note
	again  bool
	gone   error // the caller does not want it any more, and this is what Show says
	result chan result
	tried  bool // once already, on a server that went away
}

type result struct {
	shown Shown
	err   error
}

func (r *request) answer(s Shown, err error) {
	if r.result != nil {
		r.result <- result{s, err}
		r.result = nil
	}
}

// ErrWithdrawn is what Show returns if the note was withdrawn meanwhile.
var ErrWithdrawn = errors.New("withdrawn before it was shown")

func newDesktop(ctx context.Context, cfg Config, tell teller) *desktop {
	d := &desktop{
		cfg: cfg, log: cfg.Log, times: cfg.timing, tell: tell,
		do: make(chan func()), events: make(chan Event),
		ending: make(chan struct{}), done: make(chan struct{}),
		timers: map[*time.Timer]struct{}{}, items: map[string]*item{},
	}
	if cfg.Icon != nil {
		d.cfg.picture = pixels(cfg.Icon)
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.times == (timing{}) {
		d.times = realTiming
	}
	d.caps.Store(&Capabilities{Why: "the session bus has not answered yet"})
	go d.run(ctx)
	return d
}

func (d *desktop) Events() <-chan Event       { return d.events }
func (d *desktop) Capabilities() Capabilities { return *d.caps.Load() }

// Close implements Notifier.
func (d *desktop) Close() error {
	d.end.Do(func() { close(d.ending) })
	<-d.done
	return nil
}

// post hands f to run. It reports false if run has ended.
func (d *desktop) post(f func()) bool {
	select {
	case d.do <- f:
		return true
	case <-d.done:
		return false
	}
}

// Show implements Notifier.
func (d *desktop) Show(ctx context.Context, n Note) (Shown, error) {
	if err := n.check(); err != nil {
		return Shown{}, err
	}
	if err := ctx.Err(); err != nil {
		return Shown{}, fmt.Errorf("showing %s: %w", n.Key, err)
	}
	n.Actions = slices.Clone(n.Actions)
	back := make(chan result, 1)
	r := &request{note: n, result: back}
	if !d.post(func() { d.want(r) }) {
		return Shown{}, ErrEnded
	}
	select {
	case res := <-back:
		if res.err != nil {
			return Shown{}, fmt.Errorf("showing %s: %w", n.Key, res.err)
		}
		return res.shown, nil
	case <-ctx.Done():
		d.post(func() { d.abandon(r, ctx.Err()) })
	case <-d.done:
	}
	// The answer may have come first after all.
	select {
	case res := <-back:
		if res.err == nil {
			return res.shown, nil
		}
		return Shown{}, fmt.Errorf("showing %s: %w", n.Key, res.err)
	default:
	}
	return Shown{}, fmt.Errorf("showing %s: %w", n.Key, cmp.Or(ctx.Err(), ErrEnded))
}

// Withdraw implements Notifier.
func (d *desktop) Withdraw(key string) {
	d.post(func() {
		d.waiting = slices.DeleteFunc(d.waiting, func(r *request) bool {
			if r.note.Key != key {
				return false
			}
			r.answer(Shown{}, ErrWithdrawn)
			return true
		})
		if len(d.tells) > 0 { // the first is being told already
			d.tells = slices.DeleteFunc(d.tells, func(t told) bool {
				if t.r.note.Key != key || t.r == d.tells[0].r {
					return false
				}
				t.r.answer(Shown{}, ErrWithdrawn)
				return true
			})
		}
		if it := d.items[key]; it != nil {
			d.drop(it, ErrWithdrawn)
		}
	})
}

// run is the one goroutine that owns the state.
func (d *desktop) run(ctx context.Context) {
	defer close(d.done)
	defer close(d.events)
	d.connect()
	for {
		var out chan Event
		var head Event
		if len(d.queue) > 0 {
			out, head = d.events, d.queue[0]
		}
		select {
		case f := <-d.do:
			f()
		case s, ok := <-d.signals:
			if !ok {
				d.lostBus(errors.New("the session bus closed the connection"))
				continue
			}
			d.signal(s)
		case out <- head:
			d.queue = slices.Delete(d.queue, 0, 1)
		case <-ctx.Done():
			d.farewell()
			return
		case <-d.ending:
			d.farewell()
			return
		}
	}
}

// farewell takes everything off the screen and ends all that runs.
func (d *desktop) farewell() {
	for t := range d.timers {
		t.Stop()
	}
	for _, r := range d.waiting {
		r.answer(Shown{}, ErrEnded)
	}
	for _, t := range d.tells {
		t.r.answer(Shown{}, ErrEnded)
	}
	var calls []*dbus.Call
	for _, it := range d.items {
		for _, r := range append(it.next, it.flight) {
			if r != nil {
				r.answer(Shown{}, ErrEnded)
			}
		}
		if it.id != 0 && d.server != nil {
			d.blank(it.id)
			calls = append(calls, d.server.object.Go(closeMethod, 0, make(chan *dbus.Call, 1), it.id))
		}
	}
	limit := time.NewTimer(d.times.farewell)
	defer limit.Stop()
wait:
	for _, c := range calls {
		select {
		case <-c.Done:
		case <-limit.C:
			break wait
		}
	}
	if d.link != nil {
		d.link.close()
	}
}

func (d *desktop) emit(e Event) {
	e.Caps = d.Capabilities()
	d.queue = append(d.queue, e)
}

// setCaps stores c and tells of it if it is news.
func (d *desktop) setCaps(c Capabilities) {
	if c == d.Capabilities() {
		return
	}
	d.caps.Store(&c)
	d.log.Info("notifications", "backend", string(c.Backend), "server", c.Server, "version", c.Version,
		"owner", c.Owner, "actions", c.HasActions, "why", c.Why)
	d.emit(Event{Kind: Changed})
}

// later runs f in run's goroutine after a while, unless the timer is stopped.
func (d *desktop) later(after time.Duration, f func()) *time.Timer {
	var t *time.Timer
	ready := make(chan struct{})
	t = time.AfterFunc(after, func() {
		<-ready
		d.post(func() {
			if _, on := d.timers[t]; on {
				delete(d.timers, t)
				f()
			}
		})
	})
	d.timers[t] = struct{}{}
	close(ready)
	return t
}

func (d *desktop) cancel(t *time.Timer) {
	if t != nil {
		t.Stop()
		delete(d.timers, t)
	}
}

// want takes a request in.
func (d *desktop) want(r *request) {
	if r.gone != nil {
		r.answer(Shown{}, r.gone)
		return
	}
	it := d.items[r.note.Key]
	if it != nil && it.flight != nil {
		it.next = append(it.next, r)
		return
	}
	switch d.state {
	case settling:
		d.waiting = append(d.waiting, r)
	case ready:
		d.send(r)
	case dormant:
		d.waiting = append(d.waiting, r)
		d.start()
	case absent:
		if d.link != nil && time.Since(d.failed) >= d.times.again && (d.server != nil || d.link.startable) {
			d.waiting = append(d.waiting, r)
			if d.server != nil {
				d.probe()
			} else {
				d.start()
			}
			return
		}
		d.fallBack(r, errors.New(d.Capabilities().Why))
	}
}

// settle ends settling: whoever waits goes on.
func (d *desktop) settle(s state) {
	d.state = s
	waiting := d.waiting
	d.waiting = nil
	for _, r := range waiting {
		d.want(r)
	}
}

// unusable says that from now on beeep tells, and why.
func (d *desktop) unusable(why string) {
	d.failed = time.Now()
	c := Capabilities{Backend: ByBeeep, Why: why}
	if d.tell == nil {
		c.Backend = ByNobody
	}
	d.setCaps(c)
	d.settle(absent)
}

// item returns the item of r's note, new or as it is.
func (d *desktop) item(r *request) *item {
	it := d.items[r.note.Key]
	if it == nil {
		d.seq++
		it = &item{seq: d.seq}
		d.items[r.note.Key] = it
	}
	return it
}

// send gives r's note to the server.
func (d *desktop) send(r *request) {
	it, srv := d.item(r), d.server
	it.flight = r
	d.flights++
	shown, args := srv.notify(&d.cfg, it.id, r.note)
	d.call(srv.object, notifyMethod, d.times.call, args, func(c *dbus.Call, err error) {
		d.flights--
		var id uint32
		if err == nil {
			if err = c.Store(&id); err == nil && id == 0 {
				err = errors.New("the server gave the id 0")
			}
		}
		d.landed(srv, it, r, shown, id, c, err)
		d.release()
	}, func(c *dbus.Call) {
		// It came after all, long after we said it did not.
		var id uint32
		if c.Store(&id) == nil && d.server == srv {
			d.closeID(id)
			if d.state == absent {
				d.probe()
			}
		}
	})
}

// landed handles the reply to a Notify.
func (d *desktop) landed(srv *server, it *item, r *request, shown Shown, id uint32, c *dbus.Call, err error) {
	it.flight = nil
	if d.server == srv && vanished(err) {
		d.owned("") // the signal that says so is on its way
	}
	current := d.server == srv
	switch {
	case r.gone != nil:
		r.answer(Shown{}, r.gone)
		if err != nil || !current {
			if it.note.Key == "" {
				d.forget(it)
			}
			break // what was there before, if anything, still is
		}
		d.closeID(id)
		if id == it.id {
			it.id = 0 // it was replaced, and now it is closed
		}
		if len(it.next) == 0 {
			d.drop(it, r.gone)
		}
	case !current && r.again:
		// The next server is asked again.
	case !current && !r.tried:
		// The server went away under the call. The next one gets the note.
		r.tried = true
		it.next = append([]*request{r}, it.next...)
	case err != nil || !current:
		err = cmp.Or(err, errors.New("the notification server went away"))
		d.log.Warn("the notification server did not take a note", "note", r.note.Key, "error", err)
		if current && serverFault(err) {
			d.unusable(fmt.Sprintf("the notification server failed: %v", err))
		}
		if r.again {
			d.drop(it, err)
			d.emit(Event{Kind: Lost, Note: r.note})
			return
		}
		d.fallBack(r, err)
	default:
		it.before = nil
		if it.id == id {
			it.before = &version{it.note, it.shown}
		} else if it.id != 0 {
			d.closeID(it.id) // the server did not replace it
		}
		it.note, it.shown, it.id, it.since, it.token = r.note, shown, id, c.ResponseSequence, ""
		d.limit(it)
		r.answer(shown, nil)
		if !r.again {
			it.again = 0
		} else {
			d.emit(Event{Kind: Reshown, Note: r.note, Shown: shown})
		}
	}
	next := it.next
	it.next = nil
	for _, r := range next {
		d.want(r)
	}
}

// limit starts the time that it may be on screen.
func (d *desktop) limit(it *item) {
	d.cancel(it.expire)
	it.expire = nil
	if it.note.Expire > 0 {
		it.expire = d.later(it.note.Expire, func() { d.expired(it) })
	}
}

func (d *desktop) expired(it *item) {
	if d.items[it.note.Key] != it {
		return
	}
	note := it.note
	d.drop(it, ErrWithdrawn)
	d.emit(Event{Kind: Closed, Note: note, Reason: Expired})
}

// drop takes it off the screen and forgets it; Shows on their way for it
// return why.
func (d *desktop) drop(it *item, why error) {
	if it.id != 0 {
		d.takeOff(it.id)
	}
	if it.flight != nil {
		it.flight.gone = why
	}
	for _, r := range it.next {
		r.answer(Shown{}, why)
	}
	it.next = nil
	d.forget(it)
}

func (d *desktop) forget(it *item) {
	d.cancel(it.expire)
	it.id = 0
	for key, have := range d.items {
		if have == it {
			delete(d.items, key)
		}
	}
}

func (d *desktop) abandon(r *request, why error) {
	r.gone = why
	d.waiting = slices.DeleteFunc(d.waiting, func(w *request) bool { return w == r })
}

// takeOff takes a note off the screen that nobody has answered.
func (d *desktop) takeOff(id uint32) {
	d.blank(id)
	d.closeID(id)
}

// blank turns a note on a server that does not take it off the screen into one
// that says so and has no buttons.
func (d *desktop) blank(id uint32) {
	if d.server != nil && d.server.caps.Server == notificationDaemon {
		_, args := d.server.notify(&d.cfg, id, Note{Title: "No longer waiting"})
		d.server.object.Go(notifyMethod, dbus.FlagNoReplyExpected, nil, args...)
	}
}

// closeID asks the server to close one of its notes. Whether it is still there
// does not matter, so neither does the reply.
func (d *desktop) closeID(id uint32) {
	if d.server != nil {
		d.server.object.Go(closeMethod, dbus.FlagNoReplyExpected, nil, id)
	}
}
