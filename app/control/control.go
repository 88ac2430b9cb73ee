// Package control lets a command reach the Nod that is running, and keeps it
// the only one for a user and an agent directory.
//
// An agent runs as the same user and can reach the socket, so nothing here
// approves and nothing loosens: the verbs read (status, grants) and tighten
// (revoke, clear, pause, show). Resuming is the tray's alone. A client of
// another user is turned away by the peer credentials of its connection, on top
// of a directory of mode 0700 and a socket of mode 0600.
//
// The wire is one JSON line each way per request.
package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nod-agents/nod/app/pipe"
)

// Verb is what a client asks for.
type Verb string

// The verbs. None approves an ask, and none ends a pause.
const (
	VerbStatus Verb = "status" // who is served, what waits
	VerbGrants Verb = "grants" // the recorded grants
	VerbRevoke Verb = "revoke" // take back Request.IDs
	VerbClear  Verb = "clear"  // take back every grant
	VerbPause  Verb = "pause"  // asks wait, nothing pops up
	VerbShow   Verb = "show"   // bring the window to the front
)

// Request is one line from a client.
type Request struct {
	Verb Verb     `json:"verb"`
	IDs  []string `json:"ids,omitempty"` // revoke
}

// Status is what is going on.
type Status struct {
	PID      int      `json:"pid"`
	Version  string   `json:"version,omitempty"`
	Frontend string   `json:"frontend"` // desktop, terminal or none
	Serving  []string `json:"serving"`  // "session in directory", one per inbox
	Waiting  int      `json:"waiting"`
	Grants   int      `json:"grants"`
	Paused   bool     `json:"paused"`
	Problems []string `json:"problems"` // where the user must act, one sentence each
}

// Response is the answer to a Request.
type Response struct {
	OK      bool         `json:"ok"`
	Error   string       `json:"error,omitempty"` // if not OK: one sentence
	Status  *Status      `json:"status,omitempty"`
	Grants  []pipe.Grant `json:"grants,omitempty"`
	Revoked int          `json:"revoked,omitempty"` // revoke, clear: how many
}

// The longest request and answer, in bytes: grants are made of patterns that
// agents wrote.
const (
	maxLine   = 64 << 10
	maxAnswer = 16 << 20
)

// maxPath is what fits in a sockaddr_un everywhere, in bytes.
const maxPath = 103

// Place is where the sockets of a user are.
type Place struct {
	RuntimeDir string // $XDG_RUNTIME_DIR; empty or unusable: StateDir is taken
	StateDir   string // Nod's own state directory
}

// Errors that a caller branches on.
var (
	// ErrNotRunning: no Nod serves that agent directory for this user.
	ErrNotRunning = errors.New("nod is not running")
	// ErrStranger: the socket is held by a process of another user.
	ErrStranger = errors.New("the control socket belongs to another user")
)

// RunningError says that another Nod holds the agent directory.
type RunningError struct {
	AgentDir string
	PID      int // 0 if unknown
}

// Error names the process and the directory.
func (e *RunningError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("nod already runs for %s", e.AgentDir)
	}
	return fmt.Sprintf("nod already runs for %s (process %d)", e.AgentDir, e.PID)
}

// dir returns the directory of the sockets, made and checked: a real directory
// of our own user that nobody else may enter. The runtime directory is
// preferred, since the system clears it when the user's last session ends.
func (p Place) dir() (string, error) {
	var tried []error
	if p.RuntimeDir != "" {
		d := filepath.Join(p.RuntimeDir, "nod")
		err := ownDir(d, false)
		if err == nil {
			return d, nil
		}
		tried = append(tried, err)
	}
	if p.StateDir != "" {
		d := filepath.Join(p.StateDir, "run")
		err := ownDir(d, true)
		if err == nil {
			return d, nil
		}
		tried = append(tried, err)
	}
	if len(tried) == 0 {
		return "", errors.New("no directory for the control socket: set XDG_RUNTIME_DIR or HOME")
	}
	return "", fmt.Errorf("finding a directory for the control socket: %w", errors.Join(tried...))
}

func ownDir(dir string, parents bool) error {
	make := os.Mkdir
	if parents {
		make = os.MkdirAll
	}
	if err := make(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if !ours(fi) {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	if private && fi.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("closing %s to others: %w", dir, err)
		}
	}
	return nil
}

// base is the path of an agent directory's socket and lock without their
// endings. Two spellings of one directory give one path.
func (p Place) base(agentDir string) (string, error) {
	dir, err := p.dir()
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(agentDir)
	if err != nil {
		return "", fmt.Errorf("finding the agent directory: %w", err)
	}
	sum := sha256.Sum256([]byte(canonical(abs)))
	base := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if len(base)+len(".sock") > maxPath {
		return "", fmt.Errorf("the control socket %s.sock has a path of more than %d bytes: set XDG_RUNTIME_DIR to a shorter directory", base, maxPath)
	}
	return base, nil
}

// canonical resolves the links of path as far as it exists, so that the name
// stays the same when the rest is made later.
func canonical(path string) string {
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if p == filepath.Dir(p) || strings.TrimSuffix(p, string(filepath.Separator)) == "" {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}
