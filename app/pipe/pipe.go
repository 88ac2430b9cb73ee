// Package pipe is what the resident process and a window process say to each
// other: JSON lines over the window's standard input and output, which only
// its parent holds. They have no name in the file system nor below /proc, so
// that no agent can speak in a window's place.
package pipe

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nod-agents/nod/engine"
)

// MaxLine is the longest line either side reads, in bytes: a state of fifty
// asks at the largest request size.
const MaxLine = 64 << 20

// Ask is a pending ask as a window draws it.
type Ask struct {
	Key      string           `json:"key"`
	Hash     string           `json:"hash"`
	AgentDir string           `json:"agentDir,omitempty"`
	Adopted  bool             `json:"adopted,omitempty"`
	Since    time.Time        `json:"since"`
	Notes    []string         `json:"notes,omitempty"`
	Question *engine.Question `json:"question"`
}

// Grant is a recorded whole-session grant, or one kept for a requester.
type Grant struct {
	ID        string    `json:"id"`
	SessionID string    `json:"sessionId"`           // the served session
	Requester string    `json:"requester,omitempty"` // empty: the whole session
	Agent     string    `json:"agent,omitempty"`
	Surface   string    `json:"surface"`
	Pattern   string    `json:"pattern"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero"`
	Hits      int       `json:"hits"`
	LastUse   time.Time `json:"lastUse,omitzero"`
}

// GrantsKey is the key with which the view nod shows the grants.
const GrantsKey = "grants"

// Ended is how a recent ask ended, for the list of what was decided.
type Ended struct {
	Key   string    `json:"key"`
	Title string    `json:"title"`
	How   string    `json:"how"` // one sentence
	At    time.Time `json:"at"`
}

// Down is one message from the resident to a window.
type Down struct {
	Type string `json:"type"` // state, show, result or quit

	// state: the whole of what is to be drawn.
	Asks     []Ask    `json:"asks,omitempty"` // in the order of the queue, at most 50
	Total    int      `json:"total,omitempty"`
	Grants   []Grant  `json:"grants,omitempty"`
	Ended    []Ended  `json:"ended,omitempty"`
	Paused   bool     `json:"paused,omitempty"`
	Problems []string `json:"problems,omitempty"` // where the user must act, one sentence each
	Serving  []string `json:"serving,omitempty"`  // "session in directory", one per inbox

	// show: bring View to the front; Key names the ask, if any, or is GrantsKey.
	View  string `json:"view,omitempty"` // ask or nod
	Key   string `json:"key,omitempty"`
	Focus bool   `json:"focus,omitempty"` // show: the human asked for it, so it may take the keyboard

	// result: how an answer or command of this window went. Key names the ask.
	OK      bool   `json:"ok,omitempty"`
	Message string `json:"message,omitempty"`
}

// Up is one message from a window to the resident.
type Up struct {
	Type string `json:"type"` // ready, answer, revoke, clear, pause, openlog, hidden or quit

	Key     string         `json:"key,omitempty"`  // answer: the ask
	Hash    string         `json:"hash,omitempty"` // answer: the content that was shown
	Verdict engine.Verdict `json:"verdict,omitempty"`
	Reason  string         `json:"reason,omitempty"`

	Grant string `json:"grant,omitempty"` // revoke: its id
	On    bool   `json:"on,omitempty"`    // pause
}

// Writer writes messages, one JSON line each. It is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write sends v as one line.
func (w *Writer) Write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a pipe message: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing to the pipe: %w", err)
	}
	return nil
}

// Read calls each with every message of r until r ends, and returns nil at its
// end. A line that is no message is an error and ends the reading.
func Read[T any](r io.Reader, each func(T)) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), MaxLine)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			return fmt.Errorf("reading a pipe message: %w", err)
		}
		each(v)
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("reading from the pipe: %w", err)
	}
	return nil
}
