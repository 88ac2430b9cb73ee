package heartbeat

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Writer keeps the records of all sessions that this process serves. It holds
// one timer for all of them, and none while there is nothing to announce. It
// is safe for concurrent use.
type Writer struct {
	clock Clock
	files Files
	log   *slog.Logger
	pid   int
	start string
	boot  string

	mu    sync.Mutex
	live  map[*Announcement]struct{}
	swept map[string]bool
	pulse Pulse // of the running loop; nil if none runs
	done  chan struct{}
}

// NewWriter returns a Writer that announces nothing yet. A nil files means Disk.
func NewWriter(clock Clock, files Files, log *slog.Logger) *Writer {
	if files == nil {
		files = Disk{}
	}
	w := &Writer{clock: clock, files: files, log: log, pid: os.Getpid(), boot: bootID(),
		live: map[*Announcement]struct{}{}, swept: map[string]bool{}}
	_, w.start = process(w.pid)
	return w
}

// Announcement is one session being announced.
type Announcement struct {
	w         *Writer
	dir       string
	sessionID string
	yield     func(by Record)

	mu    sync.Mutex // held while the record is written or removed
	ended bool
	stamp Stamp     // of the record we wrote last
	err   error     // of the last refresh
	rival int       // pid last warned about
	seen  time.Time // when it last wrote
}

// Announce writes the session's record into dir, which is made if missing,
// and refreshes it every Interval until Withdraw. The first announcement in a
// directory also removes the records of processes that are gone.
//
// When a living process of another program refreshes the same record: with a
// yield, which the record tells of (StandIn), the announcement ends and yield
// is called once, from the Writer's goroutine; without one the record is written over and a warning is logged.
// The error says why the first record could not be written; nothing is
// announced then.
func (w *Writer) Announce(dir, sessionID string, yield func(by Record)) (*Announcement, error) {
	id, err := CheckSession(sessionID)
	if err != nil {
		return nil, fmt.Errorf("announcing a session: %w", err)
	}
	a := &Announcement{w: w, dir: dir, sessionID: id, yield: yield}
	if err := w.files.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("announcing session %q: making the serving directory: %w", id, err)
	}
	w.mu.Lock()
	sweep := !w.swept[dir]
	w.swept[dir] = true
	w.mu.Unlock()
	if sweep {
		w.sweep(dir)
	}
	if err := a.write(); err != nil {
		return nil, fmt.Errorf("announcing session %q: %w", id, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pulse == nil {
		if w.pulse, err = w.clock.pulse(Interval); err != nil {
			return nil, errors.Join(fmt.Errorf("announcing session %q: %w", id, err), w.files.Remove(a.path()))
		}
		w.done = make(chan struct{})
		go w.loop(w.pulse, w.done)
	}
	w.live[a] = struct{}{}
	return a, nil
}

// Withdraw ends the announcement and removes its record, unless another
// process has written it since. It may be called more than once, but not from
// within yield.
func (a *Announcement) Withdraw() error {
	a.w.forget(a)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil
	}
	a.ended = true
	if rec, err := a.read(); err == nil && !a.ours(rec) {
		return nil
	}
	if err := a.w.files.Remove(a.path()); err != nil && !missing(err) {
		return fmt.Errorf("withdrawing session %q: %w", a.sessionID, err)
	}
	return nil
}

// Err is why the last refresh failed, nil if it did not.
func (a *Announcement) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// rivalMemory is how long after its last record another writer is still told.
const rivalMemory = 30 * time.Second

// Rival is the id of another living process that announced the same session
// within the last half minute, 0 if none did.
func (a *Announcement) Rival() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rival == 0 || a.w.clock.Now().Sub(a.seen) > rivalMemory {
		return 0
	}
	return a.rival
}

// forget takes a out of the loop, and ends the loop with the last one.
func (w *Writer) forget(a *Announcement) {
	w.mu.Lock()
	delete(w.live, a)
	var done chan struct{}
	if len(w.live) == 0 && w.pulse != nil {
		w.pulse.Stop()
		done, w.pulse, w.done = w.done, nil, nil
	}
	w.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (w *Writer) loop(p Pulse, done chan struct{}) {
	defer close(done)
	for p.Wait() {
		w.mu.Lock()
		all := make([]*Announcement, 0, len(w.live))
		for a := range w.live {
			all = append(all, a)
		}
		w.mu.Unlock()
		for _, a := range all {
			a.beat()
		}
	}
}

// beat refreshes the record once.
func (a *Announcement) beat() {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return
	}
	if data, err := a.record(); err == nil {
		if stamp, err := a.w.files.Refresh(a.path(), a.stamp, data); err == nil {
			a.stamp, a.err = stamp, nil
			a.mu.Unlock()
			return
		}
	}
	if rec, rival := a.look(); rival {
		if a.yield != nil {
			a.ended = true
			a.mu.Unlock()
			a.w.mu.Lock()
			delete(a.w.live, a) // the loop idles until the next Announce or Withdraw
			a.w.mu.Unlock()
			a.yield(rec)
			return
		}
		if !rec.StandIn { // that one goes by itself
			a.seen = a.w.clock.Now()
		}
		if a.rival != rec.PID && !rec.StandIn {
			a.rival = rec.PID
			a.w.log.Warn("another process announces the same session; stop one of the two",
				"session", a.sessionID, "pid", rec.PID, "file", a.path())
		}
	}
	err := a.write()
	if err != nil && a.err == nil {
		a.w.log.Error("the heartbeat cannot be refreshed; children will take this session for gone",
			"session", a.sessionID, "file", a.path(), "error", err)
	}
	a.err = err
	a.mu.Unlock()
}

// look reports whether the record is another living process's by now.
func (a *Announcement) look() (rec Record, rival bool) {
	stamp, err := a.w.files.Stamp(a.path())
	if err != nil || stamp.same(a.stamp) {
		return Record{}, false
	}
	rec, err = a.read()
	return rec, err == nil && !a.ours(rec) && rec.SessionID == a.sessionID && (Reader{Clock: a.w.clock}).state(rec) == Alive
}

func (a *Announcement) path() string { return filepath.Join(a.dir, Encode(a.sessionID)+".json") }

func (a *Announcement) read() (Record, error) {
	data, err := a.w.files.Read(a.path())
	if err != nil {
		return Record{}, err
	}
	return ParseRecord(data)
}

func (a *Announcement) ours(rec Record) bool {
	return rec.PID == a.w.pid && (rec.ProcessStart == "" || rec.ProcessStart == a.w.start)
}

// record is the announcement as of now.
func (a *Announcement) record() ([]byte, error) {
	return Record{SessionID: a.sessionID, PID: a.w.pid, UpdatedAt: a.w.clock.Now(),
		ProcessStart: a.w.start, BootID: a.w.boot, Boot: a.w.clock.boot(), StandIn: a.yield != nil}.Marshal()
}

func (a *Announcement) write() error {
	data, err := a.record()
	if err != nil {
		return err
	}
	a.stamp, err = a.w.files.Replace(a.path(), data)
	if missing(err) {
		// The directory went: somebody cleaned up below us.
		if err = a.w.files.MkdirAll(a.dir); err == nil {
			a.stamp, err = a.w.files.Replace(a.path(), data)
		}
	}
	if full(err) {
		// A full disk must not make a serving process look dead: the record's
		// own block is still ours to write.
		if a.w.files.Overwrite(a.path(), data) == nil {
			return nil
		}
	}
	return err
}

// otherBootAge is how long a record of another boot must have been silent
// before it is swept. If its writer lives after all, on another machine, it
// writes the record again within a second.
const otherBootAge = time.Minute

// sweep removes the records in dir whose process is gone for certain, and what
// killed writers left half-written. It is best effort.
func (w *Writer) sweep(dir string) {
	names, err := w.files.Names(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix) {
			if old(path, w.clock.Now(), time.Minute) {
				_ = w.files.Remove(path)
			}
			continue
		}
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		data, err := w.files.Read(path)
		if err != nil {
			continue
		}
		rec, err := ParseRecord(data)
		if err != nil {
			continue
		}
		otherBoot := rec.BootID != "" && w.boot != "" && rec.BootID != w.boot
		if gone(rec, w.boot) || otherBoot && w.clock.Now().Sub(rec.UpdatedAt) > otherBootAge {
			if err := w.files.Remove(path); err == nil {
				w.log.Info("swept the heartbeat of a process that is gone", "session", rec.SessionID, "pid", rec.PID, "file", path)
			}
		}
	}
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
