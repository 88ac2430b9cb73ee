package reviewlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// EventReplaced begins a log whose file was removed or replaced while it was
// being written.
const EventReplaced = "review_log.replaced"

// file is the log on disk. It looks before each entry whether its file is still
// the one of that name: what goes into a file that was removed is read by
// nobody, and what took its place may be a pipe that holds the writer.
type file struct {
	path string
	out  *lumberjack.Logger

	mu   sync.Mutex
	own  fs.FileInfo // what the last entry went into
	tell func(text string)
	told string
}

// Write writes one entry.
func (f *file) Write(entry []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.write(entry)
	text := ""
	if err != nil {
		text = fmt.Sprintf("The review log %s cannot be written (%v), so what is decided now is not recorded. "+
			"To mend it: remove what lies there, check the directory's owner and mode, and the free space.", f.path, err)
	}
	if text != f.told && f.tell != nil {
		f.told = text
		f.tell(text)
	}
	return n, err
}

func (f *file) write(entry []byte) (int, error) {
	here, err := os.Lstat(f.path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, err
	case err == nil && !here.Mode().IsRegular():
		return 0, errors.New("it is no plain file")
	case f.own != nil && (err != nil || !os.SameFile(here, f.own)):
		if err := f.out.Close(); err != nil {
			return 0, err
		}
		note := fmt.Sprintf(`{"timestamp":%q,"event":%q,"stream":"review","reason":"the file of this log was removed or replaced; what it held is elsewhere or gone"}`+"\n",
			time.Now().UTC().Format(TimeFormat), EventReplaced)
		if _, err := f.out.Write([]byte(note)); err != nil {
			return 0, err
		}
	}
	n, err := f.out.Write(entry)
	if err == nil {
		f.own, err = os.Lstat(f.path)
	}
	return n, err
}

// Close implements io.Closer.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Close()
}

// problems has every change between a log that works and one that does not told
// to tell.
func (f *file) problems(tell func(text string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell = tell
}
