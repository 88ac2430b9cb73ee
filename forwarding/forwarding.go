// Package forwarding carries asks from a child that has nobody to ask to the
// node that has, over files in a directory both can reach, and the answers
// back. It speaks the wire of the permission-forwarding convention (records
// 0005, 0006 and 0008) with children and serving nodes of every generation.
//
// A Server serves the inbox of one session; a Requester is the child's side
// and an engine.Terminal. Both put up with whatever lies in the directory:
// other programs of the same user can write there. What such a program cannot
// do is get a question answered that is not the one that was judged: an ask is
// bound to its file's identity and content, and one that changes is withdrawn.
package forwarding

import (
	"log/slog"
	"time"
)

// The times of the convention.
const (
	DefaultTimeout = 600_000 * time.Millisecond // forwardingTimeoutMs: how long a child waits
	PollInterval   = 250 * time.Millisecond     // where files give no events
	Grace          = 2000 * time.Millisecond    // a target not serving for so long is given up
)

// maxFile is the most bytes of a request or response that are read.
const maxFile = 1 << 20

// Log is the review log as this room sees it. An event is one of the
// convention's names, such as "forwarded_permission.approved". Record must be
// safe for concurrent use and must not block for long.
type Log interface {
	Record(event string, attrs ...slog.Attr)
}

// The review log events that this package writes.
const (
	EventServingStarted   = "forwarded_permission.serving_started"
	EventServingStopped   = "forwarded_permission.serving_stopped"
	EventPrompted         = "forwarded_permission.prompted" // written by the Decider, who alone knows that it prompts
	EventAutoApproved     = "forwarded_permission.auto_approved"
	EventAutoDenied       = "forwarded_permission.auto_denied"
	EventApproved         = "forwarded_permission.approved"
	EventDenied           = "forwarded_permission.denied"
	EventSessionRecorded  = "forwarded_permission.session_recorded"
	EventWithdrawn        = "forwarded_permission.withdrawn"
	EventRequestCreated   = "forwarded_permission.request_created"
	EventResponseReceived = "forwarded_permission.response_received"
	EventResponseTimedOut = "forwarded_permission.response_timed_out"
	EventNoServingSession = "forwarded_permission.no_serving_session"
	EventWarning          = "permission_forwarding.warning"
	EventError            = "permission_forwarding.error"
)

type noLog struct{}

func (noLog) Record(string, ...slog.Attr) {}
