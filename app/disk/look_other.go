//go:build !unix

package disk

import (
	"io/fs"
	"os"

	"github.com/nod-agents/nod/engine/access"
)

func look(path string) access.Kind {
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
