package forwarding

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nod-agents/nod/heartbeat"
)

// sweepInterval is the pause between two full looks at an inbox that gives
// events: the net under lost ones, rare enough to cost nothing.
const sweepInterval = 10 * time.Second

// maxChanged is how many changed names are kept apart before a full look is
// cheaper.
const maxChanged = 4096

// watch tells which files of a spool's directory may have changed. It watches
// the directory and the two above it, since children and serving nodes remove
// empty ones and make them anew.
type watch struct {
	spool *spool
	which string // requests or responses

	wake chan struct{} // holds one token while something is to be taken

	mu    sync.Mutex
	names map[string]struct{}
	all   bool // everything may have changed
	moved bool // a directory came or went: arm again
	dead  bool // no more events will come

	w       Watch // nil while there are no events
	watched Info  // the directory that w watches
	pumps   sync.WaitGroup
}

func newWatch(s *spool, which string) *watch {
	return &watch{spool: s, which: which, wake: make(chan struct{}, 1), names: map[string]struct{}{}}
}

// arm makes the watch see dir, which is open. It reports whether events can be
// relied on; if not the caller must poll, and err says why unless the file
// system is simply one that gives none.
func (w *watch) arm(dir Dir) (events bool, err error) {
	w.mu.Lock()
	moved, dead := w.moved, w.dead
	w.moved = false
	w.mu.Unlock()
	if dead {
		w.close()
	}
	if dir.Remote() {
		w.close()
		return false, nil
	}
	in, err := dir.Info()
	if err != nil {
		return false, err
	}
	if w.w != nil && !moved && in.sameDir(w.watched) {
		return true, nil
	}
	if w.w == nil {
		nw, err := w.spool.files.Watch()
		if err != nil {
			return false, err
		}
		w.w = nw
		w.mu.Lock()
		w.dead = false
		w.mu.Unlock()
		w.pumps.Add(1)
		go w.pump(nw)
	}
	path := w.spool.path(w.which)
	inbox := filepath.Dir(path)
	for _, p := range []string{filepath.Dir(inbox), inbox, path} {
		if p == path && !in.sameDir(w.watched) {
			_ = w.w.Remove(p) // whatever directory had that name before
		}
		if err := w.w.Add(p); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				// Gone again already; its removal is the next event.
				w.touch("", true)
				return true, nil
			}
			w.close()
			return false, err
		}
	}
	w.watched = in
	w.touch("", false) // what came before the watch
	return true, nil
}

// touch notes that name, or everything if name is empty, may have changed.
func (w *watch) touch(name string, moved bool) {
	w.mu.Lock()
	if name == "" {
		w.all = true
	} else if !w.all {
		w.names[name] = struct{}{}
	}
	if len(w.names) > maxChanged {
		w.all = true
	}
	if w.all {
		clear(w.names)
	}
	w.moved = w.moved || moved
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns what may have changed since the last take.
func (w *watch) take() (names []string, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.names {
		names = append(names, n)
	}
	all = w.all
	clear(w.names)
	w.all = false
	return names, all
}

// pump empties the kernel's queue at once, whatever the taker does.
func (w *watch) pump(nw Watch) {
	defer w.pumps.Done()
	path := w.spool.path(w.which)
	inbox := filepath.Dir(path)
	session := heartbeat.Encode(w.spool.session)
	events, errs := nw.Events(), nw.Errors()
	for events != nil {
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				break
			}
			dir, name := filepath.Split(ev.Name)
			switch filepath.Clean(dir) {
			case path:
				if strings.HasSuffix(name, fileSuffix) {
					w.touch(name, false)
				}
			case inbox: // requests or responses themselves
				if ev.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) && name == w.which {
					w.touch("", true)
				}
			default: // the session's directory, or one above
				if ev.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) && (name == session || ev.Name == filepath.Dir(inbox)) {
					w.touch("", true)
				}
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
				break
			}
			// An overflow, or a watch that broke: look at everything.
			w.touch("", true)
		}
	}
	w.mu.Lock()
	w.dead = true
	w.mu.Unlock()
	w.touch("", true)
}

// close ends the events. The watch can be armed again.
func (w *watch) close() {
	if w.w == nil {
		return
	}
	_ = w.w.Close()
	w.pumps.Wait()
	w.w, w.watched = nil, Info{}
	w.mu.Lock()
	w.dead = false
	w.mu.Unlock()
}
