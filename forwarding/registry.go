package forwarding

import "sync"

// Registry knows the children that run inside this process and which session
// each one's asks go to, for Go programs that host their subagents themselves.
// The host announces a child before the child can ask anything, and takes it
// back when it ends. The zero value is ready; it is safe for concurrent use.
type Registry struct {
	mu       sync.Mutex
	children map[string]*registration
}

type registration struct{ parent string }

// Created announces a child session and the session that its asks go to, which
// may be empty: then the environment says. The announcement is in force when
// Created returns. The function it returns is the disposed event of this very
// child: it takes back this announcement and no later one of the same id, so
// that siblings and restarts never take each other's. It may be called twice.
func (r *Registry) Created(sessionID, parentSessionID string) (disposed func()) {
	g := &registration{parentSessionID}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = map[string]*registration{}
	}
	r.children[sessionID] = g
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.children[sessionID] == g {
			delete(r.children, sessionID)
		}
	}
}

// Parent returns the session that the child's asks go to, empty if it was
// announced without one, and whether it is announced at all. A nil Registry
// knows nobody.
func (r *Registry) Parent(sessionID string) (parent string, child bool) {
	if r == nil {
		return "", false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g, ok := r.children[sessionID]
	if !ok {
		return "", false
	}
	return g.parent, true
}
