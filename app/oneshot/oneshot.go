// Package oneshot runs a program once: one JSON object on its standard input,
// one on its standard output. What it starts dies with it, its output is
// bounded, and no shell is involved.
package oneshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/visible"
)

// Bounds of what is kept of a program's output, in bytes.
const (
	MaxAnswer = 64 << 10
	maxStderr = 4 << 10
)

// Program is what to run.
type Program struct {
	Argv []string // the program, as found in Env's PATH or a path, and its arguments
	Dir  string   // its working directory; empty: ours
	Env  []string // its environment, "NAME=value"; nil: ours
}

// Run writes in to p as JSON and returns all of its output. When ctx ends, p
// and what it started in its process group are killed and the error is the
// cause. A program that fails, floods its output or leaves it open behind it is
// an error too.
func (p Program) Run(ctx context.Context, in any) ([]byte, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encoding what it reads: %w", err)
	}
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir, cmd.Env = p.Dir, p.Env
	cmd.Stdin = bytes.NewReader(append(data, '\n'))
	out, complaints := &bounded{max: MaxAnswer}, &bounded{max: maxStderr}
	cmd.Stdout, cmd.Stderr = out, complaints
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes open
	ownGroup(cmd)
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("it ended but something it started keeps its output open")
	case err != nil:
		if said := strings.TrimSpace(complaints.kept.String()); said != "" {
			return nil, fmt.Errorf("%w: %s", err, visible.Line(said, 500))
		}
		return nil, err
	case out.over:
		return nil, fmt.Errorf("its answer is longer than %d bytes", MaxAnswer)
	}
	return out.kept.Bytes(), nil
}

// Decode reads data as exactly one JSON object.
func Decode(data []byte, answer any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(answer); err != nil {
		return fmt.Errorf("its answer is no JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("its answer is followed by something else")
	}
	return nil
}

// bounded keeps the first max bytes and swallows the rest, so that a program
// that floods its output neither fills memory nor blocks. The buffer is not
// embedded: its ReadFrom would go past the bound.
type bounded struct {
	kept bytes.Buffer
	max  int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), b.max-b.kept.Len())
	b.over = b.over || keep < len(p)
	b.kept.Write(p[:keep])
	return len(p), nil
}
