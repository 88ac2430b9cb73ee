package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/visible"
)

// Instance is the right to be the Nod of some agent directories, held until
// Close or the end of the process, and the sockets that go with it.
type Instance struct {
	log   *slog.Logger
	locks []*os.File
	socks []*socket
}

type socket struct {
	path string
	self fs.FileInfo // what we made there: nothing else is removed
	l    *net.UnixListener
}

// Listen takes the lock of every agent directory and opens its socket. If
// another Nod holds one of them the error is a *RunningError and nothing is
// kept. The lock ends with the process however it dies, so a socket that was
// left behind is known to be stale.
func Listen(place Place, agentDirs []string, log *slog.Logger) (_ *Instance, err error) {
	in := &Instance{log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	seen := map[string]bool{}
	for _, dir := range agentDirs {
		base, err := place.base(dir)
		if err != nil {
			return nil, err
		}
		if seen[base] {
			continue
		}
		seen[base] = true
		lock, err := takeLock(base+".lock", dir)
		if err != nil {
			return nil, err
		}
		in.locks = append(in.locks, lock)
		s, err := open(base + ".sock")
		if err != nil {
			return nil, err
		}
		in.socks = append(in.socks, s)
	}
	return in, nil
}

// takeLock locks path and writes our process id into it. The file stays when
// the lock goes: removing it would let two processes lock two files of one name.
func takeLock(path, agentDir string) (*os.File, error) {
	f, err := openOwn(path)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of %s: %w", agentDir, err)
	}
	ok, err := tryLock(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !ok {
		defer f.Close()
		head, _ := io.ReadAll(io.LimitReader(f, 32))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(head)))
		return nil, &RunningError{AgentDir: agentDir, PID: pid}
	}
	// Only a courtesy to whoever comes second: a full disk must not stop us.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return f, nil
}

// open listens on path. What is there already is removed only if it is a
// socket of ours on which nobody listens; the caller holds the lock.
func open(path string) (*socket, error) {
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode()&fs.ModeSocket == 0 || !ours(fi) {
			return nil, fmt.Errorf("opening the control socket: %s is there and is no socket of ours: remove it", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("opening the control socket: somebody listens on %s without its lock", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing a stale control socket: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // it would remove whatever bears the name by then
	s := &socket{path: path, l: l}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("closing the control socket to others: %w", err)
	}
	if s.self, err = os.Lstat(path); err != nil {
		l.Close()
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	return s, nil
}

// Close gives the agent directories up.
func (in *Instance) Close() error {
	var errs []error
	for _, s := range in.socks {
		if err := s.l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
		if fi, err := os.Lstat(s.path); err == nil && os.SameFile(fi, s.self) {
			if err := os.Remove(s.path); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, f := range in.locks {
		if err := f.Close(); err != nil { // frees the lock
			errs = append(errs, err)
		}
	}
	in.socks, in.locks = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the control socket: %w", err)
	}
	return nil
}

// Service is what the sockets answer with.
type Service struct {
	Node     desk.Node
	Show     func() error // brings the window, or what stands for it, to the front
	Frontend string       // of Status
	Version  string
}

// How many clients are served at once and how long one may take for its line.
const (
	maxClients = 32
	patience   = 5 * time.Second
)

// Serve answers clients until ctx ends, then closes the instance.
func (in *Instance) Serve(ctx context.Context, s Service) error {
	var all sync.WaitGroup
	open := &clients{}
	stop := context.AfterFunc(ctx, func() {
		for _, s := range in.socks {
			s.l.Close()
		}
	})
	defer stop()
	var failed error
	var mu sync.Mutex
	for _, sock := range in.socks {
		all.Go(func() {
			for {
				c, err := sock.l.AcceptUnix()
				if err != nil {
					if ctx.Err() == nil {
						mu.Lock()
						failed = errors.Join(failed, fmt.Errorf("accepting a control client: %w", err))
						mu.Unlock()
					}
					return
				}
				if open.add(c) {
					in.log.Debug("the oldest control client was turned away", "why", "too many at once")
				}
				all.Go(func() {
					defer open.remove(c)
					defer context.AfterFunc(ctx, func() { c.Close() })()
					defer c.Close()
					in.serveOne(c, s)
				})
			}
		})
	}
	all.Wait()
	return errors.Join(failed, in.Close())
}

// clients are the connections that are open, oldest first. One too many ends the
// oldest: clients that say nothing must not keep out one who revokes a grant.
type clients struct {
	mu   sync.Mutex
	list []*net.UnixConn
}

// add reports whether the oldest had to go.
func (c *clients) add(conn *net.UnixConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	full := len(c.list) >= maxClients
	if full {
		c.list[0].Close()
		c.list = slices.Delete(c.list, 0, 1)
	}
	c.list = append(c.list, conn)
	return full
}

func (c *clients) remove(conn *net.UnixConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.list, conn); i >= 0 {
		c.list = slices.Delete(c.list, i, i+1)
	}
}

func (in *Instance) serveOne(c *net.UnixConn, s Service) {
	if err := checkPeer(c); err != nil {
		in.log.Warn("control client turned away", "why", err)
		return
	}
	lines := newLines(c, maxLine)
	for {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			return
		}
		line, err := lines.next()
		if err != nil {
			if errors.Is(err, errLongLine) {
				in.reply(c, Response{Error: err.Error()})
			}
			return
		}
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			in.reply(c, Response{Error: "this is no request: one JSON object a line"})
			return
		}
		if !in.reply(c, s.answer(r)) {
			return
		}
	}
}

func (in *Instance) reply(c *net.UnixConn, r Response) bool {
	line, err := json.Marshal(r)
	if err != nil {
		in.log.Error("control answer", "error", err)
		return false
	}
	_, err = c.Write(append(line, '\n'))
	return err == nil
}

// answer does what r asks. A verb that is not known here is refused; there is
// none that approves.
func (s Service) answer(r Request) Response {
	n := s.Node
	switch r.Verb {
	case VerbStatus:
		return Response{OK: true, Status: &Status{
			PID: os.Getpid(), Version: s.Version, Frontend: s.Frontend,
			Serving: list(n.Serving()), Waiting: n.Board().Len(), Grants: len(n.Grants()),
			Paused: n.Paused(), Problems: list(n.Problems()),
		}}
	case VerbGrants:
		return Response{OK: true, Grants: n.Grants()}
	case VerbRevoke:
		if len(r.IDs) == 0 {
			return Response{Error: "revoke needs the id of a grant"}
		}
		var out Response
		var errs []string
		for _, id := range r.IDs {
			if err := n.Revoke(id); err != nil {
				errs = append(errs, fmt.Sprintf("%s: %v", visible.Line(id, 80), err))
				continue
			}
			out.Revoked++
		}
		out.OK, out.Error = len(errs) == 0, strings.Join(errs, "; ")
		return out
	case VerbClear:
		return Response{OK: true, Revoked: n.ClearGrants()}
	case VerbPause:
		n.SetPaused(true)
		return Response{OK: true}
	case VerbShow:
		if s.Show == nil {
			return Response{Error: "this nod has no window to show"}
		}
		if err := s.Show(); err != nil {
			return Response{Error: err.Error()}
		}
		return Response{OK: true}
	default:
		return Response{Error: fmt.Sprintf("unknown verb %q", visible.Line(string(r.Verb), 40))}
	}
}

// list makes nil an empty list, as scripts expect it.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
