package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/nod-agents/nod/app/pipe"
)

// Client speaks to the Nod that runs for one agent directory.
type Client struct {
	c     *net.UnixConn
	lines *lines
}

// Dial reaches the Nod of agentDir. The error wraps ErrNotRunning if there is
// none.
func Dial(ctx context.Context, place Place, agentDir string) (*Client, error) {
	base, err := place.base(agentDir)
	if err != nil {
		return nil, err
	}
	path := base + ".sock"
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("reaching nod: %w", err)
	}
	if fi.Mode()&fs.ModeSocket == 0 || !ours(fi) {
		return nil, fmt.Errorf("reaching nod at %s: %w", path, ErrStranger)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotRunning // the socket of one that was killed
	}
	if err != nil {
		return nil, fmt.Errorf("reaching nod: %w", err)
	}
	c := conn.(*net.UnixConn)
	if err := checkPeer(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("reaching nod at %s: %w", path, err)
	}
	return &Client{c: c, lines: newLines(c, maxAnswer)}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.c.Close() }

// Status asks what is going on.
func (c *Client) Status(ctx context.Context) (Status, error) {
	r, err := c.do(ctx, Request{Verb: VerbStatus})
	if err == nil && r.Status == nil {
		err = errors.New("asking nod for its status: the answer has none")
	}
	if err != nil {
		return Status{}, err
	}
	return *r.Status, nil
}

// Grants lists the recorded grants.
func (c *Client) Grants(ctx context.Context) ([]pipe.Grant, error) {
	r, err := c.do(ctx, Request{Verb: VerbGrants})
	return r.Grants, err
}

// Revoke takes grants back and says how many; the error names those that are
// not there.
func (c *Client) Revoke(ctx context.Context, ids ...string) (int, error) {
	r, err := c.do(ctx, Request{Verb: VerbRevoke, IDs: ids})
	return r.Revoked, err
}

// Clear takes every grant back and says how many there were.
func (c *Client) Clear(ctx context.Context) (int, error) {
	r, err := c.do(ctx, Request{Verb: VerbClear})
	return r.Revoked, err
}

// Pause lets asks wait without anything popping up.
func (c *Client) Pause(ctx context.Context) error {
	_, err := c.do(ctx, Request{Verb: VerbPause})
	return err
}

// Show brings the running Nod's window to the front.
func (c *Client) Show(ctx context.Context) error {
	_, err := c.do(ctx, Request{Verb: VerbShow})
	return err
}

// do sends r and reads its answer, within ctx and two patiences at most.
func (c *Client) do(ctx context.Context, r Request) (Response, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return Response{}, fmt.Errorf("asking nod: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = c.c.SetDeadline(time.Unix(1, 0)) })()
	if err := c.c.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		return Response{}, fmt.Errorf("asking nod: %w", err)
	}
	if ctx.Err() != nil {
		return Response{}, fmt.Errorf("asking nod: %w", ctx.Err())
	}
	if _, err := c.c.Write(append(line, '\n')); err != nil {
		return Response{}, fmt.Errorf("asking nod: %w", err)
	}
	line, err = c.lines.next()
	if err != nil {
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			err = ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = errors.New("there is none; its process hangs or is stopped")
		}
		return Response{}, fmt.Errorf("reading nod's answer: %w", err)
	}
	var out Response
	if err := json.Unmarshal(line, &out); err != nil {
		return Response{}, fmt.Errorf("reading nod's answer: %w", err)
	}
	if !out.OK {
		return out, errors.New(out.Error)
	}
	return out, nil
}

var errLongLine = errors.New("the line is too long")

// lines reads lines of a bounded length.
type lines struct{ s *bufio.Scanner }

func newLines(r io.Reader, max int) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4<<10), max)
	return &lines{s}
}

func (l *lines) next() ([]byte, error) {
	if l.s.Scan() {
		return l.s.Bytes(), nil
	}
	switch err := l.s.Err(); {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, errLongLine
	default:
		return nil, err
	}
}
