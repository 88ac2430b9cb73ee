package gate_test

import (
	"io/fs"
	"os"

	"github.com/nod-agents/nod/engine/access"
)

// disk is the real file system.
type disk struct{}

func (disk) Look(path string) access.Kind {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return access.Missing
	case info.Mode()&fs.ModeSymlink != 0:
		return access.Link
	case info.IsDir():
		return access.Directory
	}
	return access.Plain
}

func (disk) Readlink(path string) (string, error) { return os.Readlink(path) }

func (disk) List(path string, limit int) ([]string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	names, _ := f.Readdirnames(limit + 1)
	if len(names) > limit {
		return names[:limit], true
	}
	return names, false
}
