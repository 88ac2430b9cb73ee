// Package heartbeat says which sessions are being served, and reads whether
// one is. A serving process keeps one small JSON record per session in the
// serving directory and refreshes it every second; a process that wants to
// forward an ask reads it before it commits to a long wait.
//
// The record is {"sessionId", "pid", "updatedAt"} as the permission-forwarding
// convention has it. A Writer adds three fields that other readers ignore:
// "processStart" and "bootId", so that a reused process id is not taken for
// the server, and "bootMs", so that a wall clock that is set back or forth
// makes no record look old or young. A process that only stands in for a
// session until its real one comes adds "standIn".
//
// A record is a hint, not a lock: two processes can announce one session, and
// any program of the same user can write one. Nothing is approved because of it.
package heartbeat

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// The times of the convention.
const (
	Interval = 1000 * time.Millisecond // between two refreshes of a record
	StaleAge = 5000 * time.Millisecond // a record this old is not serving
)

// maxRecord is the most bytes of a record that are read.
const maxRecord = 64 << 10

// State is one of the four readings of a heartbeat. Only Alive is serving.
type State string

// The readings.
const (
	Alive   State = "alive"
	Absent  State = "absent"   // no record, an unusable one, or one that names another session
	DeadPID State = "dead_pid" // the process it names is gone
	Stale   State = "stale"    // not refreshed for StaleAge or longer
)

// Record is one heartbeat. The last four fields are empty or zero in records
// of other programs.
type Record struct {
	SessionID string
	PID       int
	UpdatedAt time.Time // wall clock, whole milliseconds

	ProcessStart string        // when the process started, in the platform's own words; compared for equality only
	BootID       string        // of the running kernel
	Boot         time.Duration // since that boot, running through suspend; zero if unknown
	StandIn      bool          // the writer steps back as soon as another process announces the session
}

type recordJSON struct {
	SessionID    string `json:"sessionId"`
	PID          int    `json:"pid"`
	UpdatedAt    int64  `json:"updatedAt"`
	ProcessStart string `json:"processStart,omitempty"`
	BootID       string `json:"bootId,omitempty"`
	BootMs       int64  `json:"bootMs,omitempty"`
	StandIn      bool   `json:"standIn,omitempty"`
}

// Marshal returns r as the JSON of a record file.
func (r Record) Marshal() ([]byte, error) {
	b, err := json.Marshal(recordJSON{
		SessionID: r.SessionID, PID: r.PID, UpdatedAt: r.UpdatedAt.UnixMilli(),
		ProcessStart: r.ProcessStart, BootID: r.BootID, BootMs: r.Boot.Milliseconds(), StandIn: r.StandIn,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the heartbeat of session %q: %w", r.SessionID, err)
	}
	return b, nil
}

// ParseRecord reads a record file. Fields it does not know are ignored, and an
// added field of a wrong type counts as not written; the error names a core
// field that is missing or wrong.
func ParseRecord(data []byte) (Record, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return Record{}, fmt.Errorf("a heartbeat record must be a JSON object: %w", err)
	}
	var r Record
	if !isString(fields["sessionId"]) || json.Unmarshal(fields["sessionId"], &r.SessionID) != nil {
		return Record{}, fmt.Errorf("heartbeat record: sessionId must be a string")
	}
	pid, ok := number(fields["pid"])
	if !ok || pid < 1 || pid > math.MaxInt32 || pid != math.Trunc(pid) {
		return Record{}, fmt.Errorf("heartbeat record: pid must be a positive integer")
	}
	r.PID = int(pid)
	at, ok := number(fields["updatedAt"])
	if !ok || math.Abs(at) > maxTime {
		return Record{}, fmt.Errorf("heartbeat record: updatedAt must be a time in milliseconds")
	}
	r.UpdatedAt = time.UnixMilli(int64(at))
	if s, ok := fields["processStart"]; ok && isString(s) {
		_ = json.Unmarshal(s, &r.ProcessStart)
	}
	if s, ok := fields["bootId"]; ok && isString(s) {
		_ = json.Unmarshal(s, &r.BootID)
	}
	r.StandIn = string(fields["standIn"]) == "true"
	if ms, ok := number(fields["bootMs"]); ok && ms > 0 && ms < maxTime {
		r.Boot = time.Duration(ms) * time.Millisecond
	}
	return r, nil
}

// maxTime is the largest time value of ECMAScript, in milliseconds.
const maxTime = 8.64e15

func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// number reads a JSON number as ECMAScript would: a finite float64.
func number(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || (raw[0] != '-' && (raw[0] < '0' || raw[0] > '9')) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// Clock is the time that a Writer stamps and a Reader compares.
type Clock struct {
	Now  func() time.Time     // the wall clock
	Boot func() time.Duration // since boot, running through suspend; may be nil, zero means unknown
	// Pulse makes what a Writer beats by; nil means a ticker of package time.
	Pulse func(every time.Duration) (Pulse, error)
}

// SystemClock is the clock of the machine.
func SystemClock() Clock { return Clock{Now: time.Now, Boot: sinceBoot, Pulse: systemPulse} }

func (c Clock) boot() time.Duration {
	if c.Boot == nil {
		return 0
	}
	return c.Boot()
}

func (c Clock) pulse(every time.Duration) (Pulse, error) {
	if c.Pulse == nil {
		return newTickPulse(every)
	}
	return c.Pulse(every)
}
