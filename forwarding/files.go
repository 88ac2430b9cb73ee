package forwarding

import (
	"io"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Files is every file operation of this room, so that a test can make any one
// of them fail. Disk returns the real ones.
type Files interface {
	// MkdirAll makes a directory and what is missing above it, 0700.
	MkdirAll(path string) error
	// OpenDir opens a directory by path, following links.
	OpenDir(path string) (Dir, error)
	// Watch returns a watcher that watches nothing yet.
	Watch() (Watch, error)
}

// Dir is an open directory. Names are bare file names; a name that holds a
// separator is refused by every method. Errors are those of package os.
type Dir interface {
	// OpenDir opens a directory below. Without follow a link is an error.
	OpenDir(name string, follow bool) (Dir, error)
	Mkdir(name string) error // 0700
	Rmdir(name string) error // only an empty directory
	// Names lists at most limit names, in no order.
	Names(limit int) ([]string, error)
	// Stat tells about the entry itself, never about what a link points to.
	Stat(name string) (Info, error)
	// Open opens for reading. It follows no link and waits for no writer.
	Open(name string) (File, error)
	// Create makes a file that must not exist yet, 0600, for writing.
	Create(name string) (File, error)
	// Publish renames from to to in one step. If to exists nothing changes
	// and the error is fs.ErrExist.
	Publish(from, to string) error
	Remove(name string) error // a file, not a directory
	Info() (Info, error)      // of the directory itself
	// Remote reports whether the file system may change without events here,
	// as network and user-space ones do.
	Remote() bool
	Close() error
}

// File is an open file.
type File interface {
	io.ReadWriteCloser
	Stat() (Info, error)
	Sync() error
}

// Info is what the spool wants to know of a file.
type Info struct {
	Mode  fs.FileMode
	Dev   uint64
	Inode uint64
	Size  int64
	MTime time.Time
	Links uint64 // 1 where a platform does not tell
	Mine  bool   // the file belongs to the user of this process
}

// sameDir reports whether two infos are of one directory.
func (i Info) sameDir(o Info) bool { return i.Dev == o.Dev && i.Inode == o.Inode }

// Watch tells of changes in directories by path.
type Watch interface {
	Add(path string) error
	Remove(path string) error
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

// Disk returns the files of the machine.
func Disk() Files { return disk{} }

type disk struct{}

func (disk) Watch() (Watch, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return notifyWatch{w}, nil
}

type notifyWatch struct{ *fsnotify.Watcher }

func (w notifyWatch) Events() <-chan fsnotify.Event { return w.Watcher.Events }
func (w notifyWatch) Errors() <-chan error          { return w.Watcher.Errors }
