// Package disk shows the file system to the engine, which does not touch it by
// itself.
package disk

import (
	"os"

	"github.com/nod-agents/nod/engine/access"
)

// Files is the disk of this machine. It implements access.FileSystem.
type Files struct{}

// Look says what is at path, without following a final link.
func (Files) Look(path string) access.Kind { return look(path) }

// Readlink returns the text of a link.
func (Files) Readlink(path string) (string, error) { return os.Readlink(path) }

// List returns up to limit names in a directory, and whether there are more.
// An unreadable directory has none.
func (Files) List(path string, limit int) (names []string, more bool) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, err = dir.Readdirnames(limit + 1)
	if err != nil && len(names) == 0 {
		return nil, false
	}
	if len(names) > limit {
		return names[:limit], true
	}
	return names, false
}
