package app

import (
	"fmt"
	"path/filepath"

	"github.com/nod-agents/nod/app/control"
)

// place is where the control sockets of this user are.
func (n *nod) place() control.Place {
	return control.Place{RuntimeDir: n.Getenv("XDG_RUNTIME_DIR"), StateDir: n.Dirs.State}
}

// logPath is the review log's file.
func (n *nod) logPath() string { return filepath.Join(n.Dirs.State, "review.jsonl") }

// hasDisplay reports whether a window system is named by the environment, or
// is always there.
func (n *nod) hasDisplay() bool {
	return alwaysDisplay || n.Getenv("DISPLAY") != "" || n.Getenv("WAYLAND_DISPLAY") != ""
}

func absolute(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", dir, err)
	}
	return abs, nil
}
