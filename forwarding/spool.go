package forwarding

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/nod-agents/nod/heartbeat"
)

// Root is where agentDir keeps its forwarding: <agentDir>/sessions/permission-forwarding.
func Root(agentDir string) string {
	return filepath.Join(agentDir, "sessions", "permission-forwarding")
}

// ServingDir is where the heartbeats of agentDir's sessions are.
func ServingDir(agentDir string) string { return filepath.Join(Root(agentDir), "serving") }

// InboxDir is the session's own directory, above requests and responses.
func InboxDir(agentDir, sessionID string) string {
	return filepath.Join(Root(agentDir), "sessions", heartbeat.Encode(sessionID))
}

const (
	requestsDir  = "requests"
	responsesDir = "responses"
	fileSuffix   = ".json"
	tempPrefix   = ".nod-"
	tempSuffix   = ".tmp"
)

// spool is one session's inbox on disk. It holds no descriptor between two
// operations, so that a directory made anew is simply found.
type spool struct {
	files    Files
	agentDir string
	session  string // its id
}

func newSpool(files Files, agentDir, session string) *spool {
	if files == nil {
		files = Disk()
	}
	return &spool{files: files, agentDir: agentDir, session: session}
}

func (s *spool) path(which string) string {
	return filepath.Join(InboxDir(s.agentDir, s.session), which)
}

// Problem is a file or directory that this room cannot work with: which, why,
// and what the user can do about it.
type Problem struct {
	File   string
	Reason string
	Remedy string
	Err    error // what the system said; may be nil
}

// Error is the reason, with what the system said.
func (p *Problem) Error() string {
	if p.Err == nil {
		return fmt.Sprintf("%s: %s", p.File, p.Reason)
	}
	return fmt.Sprintf("%s: %s: %v", p.File, p.Reason, p.Err)
}

// Text is the problem for the one who must mend it, in a sentence or two.
func (p *Problem) Text() string {
	text := p.File + " " + p.Reason
	if p.Err != nil {
		text += " (" + p.Err.Error() + ")"
	}
	return text + ". To mend it: " + p.Remedy + "."
}

// Unwrap returns what the system said.
func (p *Problem) Unwrap() error { return p.Err }

// level opens one directory below dir, making it if asked. A link, another
// user's directory, or what is no directory at all is refused.
func (s *spool) level(dir Dir, name, path string, create bool) (Dir, error) {
	d, err := dir.OpenDir(name, false)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = dir.Mkdir(name); err == nil || errors.Is(err, fs.ErrExist) {
			d, err = dir.OpenDir(name, false)
		}
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if in, serr := dir.Stat(name); serr == nil {
			switch {
			case in.Mode&fs.ModeSymlink != 0:
				return nil, &Problem{File: path, Reason: "is a symbolic link where a directory must be", Remedy: "remove the link", Err: err}
			case !in.Mode.IsDir():
				return nil, &Problem{File: path, Reason: "is not a directory", Remedy: "move it away", Err: err}
			}
		}
		return nil, &Problem{File: path, Reason: "cannot be opened or made", Remedy: "check its owner, its mode and the free space", Err: err}
	}
	in, err := d.Info()
	if err == nil && !in.Mine {
		err = &Problem{File: path, Reason: "belongs to another user", Remedy: "give it to the user who runs Nod, or remove it"}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// inbox opens the session's own directory.
func (s *spool) inbox(create bool) (Dir, error) {
	root := Root(s.agentDir)
	dir, err := s.files.OpenDir(root)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = s.files.MkdirAll(root); err == nil {
			dir, err = s.files.OpenDir(root)
		}
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, &Problem{File: root, Reason: "cannot be opened or made", Remedy: "check its owner, its mode and the free space", Err: err}
	}
	path := root
	for _, name := range []string{"sessions", heartbeat.Encode(s.session)} {
		path = filepath.Join(path, name)
		below, err := s.level(dir, name, path, create)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = below
	}
	return dir, nil
}

// removals is how often in a row an empty inbox may be cleaned up by a child
// between two steps of making it.
const removals = 16

// dir opens requests or responses.
func (s *spool) dir(which string, create bool) (d Dir, err error) {
	for range removals {
		if d, err = s.open(which, create); !create || !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return d, err
}

func (s *spool) open(which string, create bool) (Dir, error) {
	in, err := s.inbox(create)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return s.level(in, which, s.path(which), create)
}

// identity is what binds an answer to the file that was judged.
type identity struct {
	dev, inode uint64
	size       int64
	mtime      time.Time
	hash       [sha256.Size]byte
}

// sameFile compares all but the content.
func (id identity) sameFile(in Info) bool {
	return id.dev == in.Dev && id.inode == in.Inode && id.size == in.Size && id.mtime.Equal(in.MTime)
}

// errUnsettled is wrapped by errors of files that their writer may not have
// finished yet.
var errUnsettled = errors.New("may still be being written")

// read returns the content of a file that this room accepts: a regular file
// of our own user, with one name, at most 1 MiB, that no other user can write.
// Anything else is a *Problem; an error that wraps errUnsettled may be over in
// a moment. A file that is gone is fs.ErrNotExist.
func (s *spool) read(dir Dir, which, name string) ([]byte, identity, error) {
	path := filepath.Join(s.path(which), name)
	// Opening a device can do something; look before.
	in, err := dir.Stat(name)
	if err == nil {
		err = acceptable(path, in)
	}
	if err != nil {
		return nil, identity{}, err
	}
	f, err := dir.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = &Problem{File: path, Reason: "cannot be read", Remedy: "check its mode", Err: err}
		}
		return nil, identity{}, err
	}
	defer f.Close()
	if in, err = f.Stat(); err == nil {
		err = acceptable(path, in)
	}
	if err != nil {
		return nil, identity{}, err
	}
	data := make([]byte, 0, in.Size+1)
	for len(data) < cap(data) {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, identity{}, err
		}
	}
	after, err := f.Stat()
	if err != nil {
		return nil, identity{}, err
	}
	id := identity{dev: in.Dev, inode: in.Inode, size: in.Size, mtime: in.MTime, hash: sha256.Sum256(data)}
	if int64(len(data)) != in.Size || !id.sameFile(after) {
		return nil, identity{}, fmt.Errorf("%s changed while it was read: %w", path, errUnsettled)
	}
	return data, id, nil
}

func acceptable(path string, in Info) error {
	problem := func(reason, remedy string) error { return &Problem{File: path, Reason: reason, Remedy: remedy} }
	switch {
	case in.Mode&fs.ModeSymlink != 0:
		return problem("is a symbolic link", "remove it; a request must be a plain file")
	case !in.Mode.IsRegular():
		return problem("is not a regular file", "remove it; a request must be a plain file")
	case !in.Mine:
		return problem("belongs to another user", "run the agent and Nod as the same user, or remove the file")
	case in.Mode.Perm()&0o002 != 0:
		return problem("can be written by every user", "start the agent with a umask that keeps others out, such as 022")
	case in.Size > maxFile:
		return problem(fmt.Sprintf("is larger than %d bytes", maxFile), "remove it")
	case in.Links > 1:
		return &Problem{File: path, Reason: "has more than one name (hard link)", Remedy: "remove the other names", Err: errUnsettled}
	}
	return nil
}

// errAnswered says that a response of that name is there already.
var errAnswered = errors.New("a response is there already")

// publish makes data appear as name in one step. It never replaces a file: if
// one is there the error is errAnswered. There is no fsync on a local disk:
// the other side does not outlive a crash of the machine either, and a crash
// of this process does not undo a rename. A network file system may report a
// full disk only then, so there the data is flushed first.
func (s *spool) publish(which, name string, data []byte) error {
	dir, err := s.dir(which, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	temp := tempPrefix + rand.Text() + tempSuffix
	f, err := dir.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && dir.Remote() {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = dir.Publish(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp)
		if errors.Is(err, fs.ErrExist) {
			return errAnswered
		}
	}
	return err
}

// remove removes a file if it is still the one that id names. A file that is
// gone is no error.
func (s *spool) remove(which, name string, id identity) error {
	dir, err := s.dir(which, false)
	if err == nil {
		defer dir.Close()
		var in Info
		if in, err = dir.Stat(name); err == nil && id.sameFile(in) {
			err = dir.Remove(name)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// tidy removes the directories in the order that no peer trips over: requests
// if empty, responses only when requests is gone, then the session's own.
// Whatever is not empty stays; that is no error.
func (s *spool) tidy() {
	in, err := s.inbox(false)
	if err != nil {
		return
	}
	gone := func(dir Dir, name string) bool {
		err := dir.Rmdir(name)
		return err == nil || errors.Is(err, fs.ErrNotExist)
	}
	empty := gone(in, requestsDir) && gone(in, responsesDir)
	in.Close()
	if !empty {
		return
	}
	if above, err := s.files.OpenDir(filepath.Dir(InboxDir(s.agentDir, s.session))); err == nil {
		_ = above.Rmdir(heartbeat.Encode(s.session))
		above.Close()
	}
}

// tempAge is how old a temporary file must be to be nobody's: writing one
// takes milliseconds.
const tempAge = time.Minute

// reap removes what dead processes left: temporary files of this program, and
// files older than keep, if keep is positive, that pass the filter.
func (s *spool) reap(which string, now time.Time, keep time.Duration, filter func(name string) bool) error {
	dir, err := s.dir(which, false)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer dir.Close()
	names, err := dir.Names(maxNames)
	if err != nil {
		return err
	}
	for _, name := range names {
		age := tempAge
		if !strings.HasPrefix(name, tempPrefix) || !strings.HasSuffix(name, tempSuffix) {
			if age = keep; age <= 0 || !strings.HasSuffix(name, fileSuffix) || !filter(name) {
				continue
			}
		}
		in, err := dir.Stat(name)
		if err == nil && in.Mode.IsRegular() && in.Mine && now.Sub(in.MTime) > age {
			_ = dir.Remove(name)
		}
	}
	return nil
}

// maxNames bounds one listing of a directory.
const maxNames = 100_000
