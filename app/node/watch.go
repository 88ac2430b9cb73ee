package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Times of WatchPolicy.
const (
	calm    = 100 * time.Millisecond // editors write a file in several steps
	recheck = time.Minute            // for places that send no events
)

// WatchPolicy judges the waiting asks again whenever a policy file changes,
// until ctx ends. Decisions do not depend on it: each one looks at the files
// itself. It calls looked after each look at the files but the first.
func (n *Node) WatchPolicy(ctx context.Context, looked func()) {
	n.CheckPolicy()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		n.Problem("policy watch", "Policy changes are noticed once a minute only: no file watch could be had ("+err.Error()+"). See nod doctor.")
		w = &fsnotify.Watcher{}
	} else {
		defer w.Close()
	}
	slow := time.NewTicker(recheck)
	defer slow.Stop()
	watched := map[string]bool{}
	var due <-chan time.Time
	for {
		if err == nil && n.watchDirs(w, watched) {
			due = time.After(0) // what changed before the watch began sent no event
		}
		select {
		case <-ctx.Done():
			return
		case e := <-w.Events:
			if watched[e.Name] && e.Has(fsnotify.Remove|fsnotify.Rename) {
				delete(watched, e.Name)
			}
			if due == nil && n.matters(e.Name) {
				due = time.After(calm)
			}
			continue
		case <-w.Errors: // events were lost: look at everything
		case <-due:
		case <-slow.C:
		}
		due = nil
		n.CheckPolicy()
		n.Rejudge()
		looked()
	}
}

// matters reports whether a change of name can change a policy: it is one of
// its files, or a directory above one.
func (n *Node) matters(name string) bool {
	return slices.ContainsFunc(n.PolicyNames(), func(file string) bool {
		return file == name || len(file) > len(name) && file[:len(name)] == name && file[len(name)] == filepath.Separator
	})
}

// watchDirs watches the directory of every policy file or, where it does not
// exist yet, the nearest one above it. It reports whether it began to watch one.
func (n *Node) watchDirs(w *fsnotify.Watcher, watched map[string]bool) (began bool) {
	for _, file := range n.PolicyNames() {
		dir := filepath.Dir(file)
		for dir != filepath.Dir(dir) && !isDir(dir) {
			dir = filepath.Dir(dir)
		}
		if !watched[dir] && w.Add(dir) == nil {
			watched[dir] = true
			began = true
		}
	}
	return began
}

func isDir(name string) bool {
	i, err := os.Stat(name)
	return err == nil && i.IsDir()
}
