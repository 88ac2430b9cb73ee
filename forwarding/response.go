package forwarding

import (
	"fmt"
	"time"

	"github.com/nod-agents/nod/engine"
)

// Response is an answer as it stands on the wire.
type Response struct {
	Approved           bool
	State              engine.Verdict // approved, approved_for_session, denied or denied_with_reason
	DenialReason       string
	ResponderSessionID string
	RespondedAt        int64                  // ms since 1970; 0 if absent
	DecidedBy          *engine.DecisionSource // nil if absent or unusable
	GrantWidth         string                 // proven (also if absent) or both
}

// NewResponse puts a decision on the wire (record 0006): only the four states
// ever reach disk. The whole session's approval goes out as a plain one, the
// serving node having recorded the grant; unavailable goes out as denied,
// decided by unavailable, never as a user's denial.
func NewResponse(d engine.Decision, sessionID string, now time.Time) *Response {
	by := d.By
	r := &Response{State: engine.Denied, ResponderSessionID: sessionID, RespondedAt: now.UnixMilli(), DecidedBy: &by, GrantWidth: "proven"}
	switch d.Verdict {
	case engine.Approved, engine.ApprovedForServingSession:
		r.State = engine.Approved
	case engine.ApprovedForSession:
		r.State = engine.ApprovedForSession
	case engine.DeniedWithReason:
		if d.Reason != "" {
			r.State, r.DenialReason = engine.DeniedWithReason, d.Reason
		}
	case engine.Denied:
	case engine.Unavailable:
		if by.Kind == "" || by.Kind == engine.ByUser {
			by = engine.DecisionSource{Kind: engine.ByUnavailable, Reason: d.Reason}
		}
	default:
		by = engine.DecisionSource{Kind: engine.ByGateError, Reason: fmt.Sprintf("the gate decided %q, which is no verdict", d.Verdict)}
	}
	r.Approved = r.State.Approves()
	if encodeSource(r.DecidedBy, 0) == nil {
		r.DecidedBy = nil
	}
	return r
}

type responseJSON struct {
	Approved           bool           `json:"approved"`
	State              engine.Verdict `json:"state"`
	DenialReason       string         `json:"denialReason,omitempty"`
	ResponderSessionID string         `json:"responderSessionId"`
	RespondedAt        int64          `json:"respondedAt"`
	DecidedBy          any            `json:"decidedBy,omitempty"`
	GrantWidth         string         `json:"sessionGrantWidth,omitempty"`
}

// Marshal writes r. It refuses a state that must not reach disk.
func (r *Response) Marshal() ([]byte, error) {
	switch r.State {
	case engine.Approved, engine.ApprovedForSession, engine.Denied, engine.DeniedWithReason:
	default:
		return nil, fmt.Errorf("writing a response: state %q must not reach disk", r.State)
	}
	if r.Approved != r.State.Approves() {
		return nil, fmt.Errorf("writing a response: approved is %t and state %q", r.Approved, r.State)
	}
	j := responseJSON{Approved: r.Approved, State: r.State, DenialReason: r.DenialReason,
		ResponderSessionID: r.ResponderSessionID, RespondedAt: r.RespondedAt}
	if r.State == engine.ApprovedForSession && r.GrantWidth == "both" {
		j.GrantWidth = r.GrantWidth
	}
	if s := encodeSource(r.DecidedBy, 0); s != nil {
		j.DecidedBy = s
	}
	data, err := marshal(j)
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it takes %d bytes, and a response may have %d", len(data), maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("writing a response: %w", err)
	}
	return data, nil
}

// ParseResponse reads a response. One that lacks a core field, names an
// unknown state or contradicts itself is an *InvalidError; an unusable
// decidedBy is dropped and the answer stands.
func ParseResponse(data []byte) (*Response, error) {
	top, err := parseObject(data)
	if err != nil {
		return nil, &InvalidError{What: "response", Problem: err.Error()}
	}
	invalid := func(field, problem string) (*Response, error) {
		if _, there := top[field]; !there {
			problem = "is missing"
		}
		return nil, &InvalidError{What: "response", Field: field, Problem: problem}
	}
	r := &Response{GrantWidth: "proven"}
	var ok bool
	if r.Approved, ok = boolean(top["approved"]); !ok {
		return invalid("approved", "must be true or false")
	}
	state, ok := text(top["state"])
	if !ok {
		return invalid("state", "must be a string")
	}
	r.State = engine.Verdict(state)
	switch r.State {
	case engine.Approved, engine.ApprovedForSession, engine.Denied, engine.DeniedWithReason:
	default:
		return invalid("state", fmt.Sprintf("must be one of four words, not %.40q", state))
	}
	if r.Approved != r.State.Approves() {
		return invalid("approved", fmt.Sprintf("is %t and contradicts the state %q", r.Approved, state))
	}
	if r.ResponderSessionID, ok = text(top["responderSessionId"]); !ok {
		return invalid("responderSessionId", "must be a string")
	}
	if r.State == engine.DeniedWithReason {
		r.DenialReason, _ = text(top["denialReason"])
	}
	r.RespondedAt, _ = millis(top["respondedAt"])
	r.DecidedBy = decodeSource(top["decidedBy"], 0)
	if w, ok := text(top["sessionGrantWidth"]); ok && w == "both" {
		r.GrantWidth = w
	}
	return r, nil
}

// maxFrames is how many forwarded frames may stand around what decided.
const maxFrames = 4

// MarshalSource writes s as the wire has it: null if s is nil or not usable.
func MarshalSource(s *engine.DecisionSource) ([]byte, error) {
	return marshal(encodeSource(s, 0))
}

// ParseSource reads a DecisionSource; nil means null or unusable.
func ParseSource(data []byte) *engine.DecisionSource {
	if _, err := parseObject(data); err != nil {
		return nil
	}
	return decodeSource(data[space(data, 0):], 0)
}

// encodeSource is all or nothing: nil if any frame of s is not usable.
func encodeSource(s *engine.DecisionSource, frames int) any {
	if s == nil {
		return nil
	}
	type object = map[string]any
	switch s.Kind {
	case engine.ByUser:
		// The wire knows two ways of being asked; a button is a dialog too.
		via := s.Via
		if via != "select" {
			via = "dialog"
		}
		return object{"kind": s.Kind, "via": via}
	case engine.ByAuthorizer:
		if s.Verdict != "allow" && s.Verdict != "deny" {
			return nil
		}
		return object{"kind": s.Kind, "name": s.Name, "verdict": s.Verdict, "reason": nonEmpty(s.Reason)}
	case engine.ByRule:
		return object{"kind": s.Kind, "surface": s.Surface, "pattern": nonEmpty(s.Pattern), "origin": nonEmpty(string(s.Origin))}
	case engine.BySessionApproval:
		return object{"kind": s.Kind, "surface": s.Surface, "pattern": nonEmpty(s.Pattern)}
	case engine.ByYolo:
		return object{"kind": s.Kind, "pattern": nonEmpty(s.Pattern)}
	case engine.ByInfrastructureRead:
		return object{"kind": s.Kind}
	case engine.ByUnavailable, engine.ByGateError:
		return object{"kind": s.Kind, "reason": s.Reason}
	case engine.ByForwarded:
		if frames >= maxFrames {
			return nil
		}
		inner := encodeSource(s.Decision, frames+1)
		if s.Decision != nil && inner == nil {
			return nil
		}
		return object{"kind": s.Kind, "responderSessionId": nonEmpty(s.ResponderSessionID), "decision": inner}
	}
	return nil
}

func decodeSource(raw []byte, frames int) *engine.DecisionSource {
	m, err := members(orNull(raw))
	if err != nil {
		return nil
	}
	kind, _ := text(m["kind"])
	s := &engine.DecisionSource{Kind: engine.SourceKind(kind)}
	good := true
	need := func(field string) string {
		v, ok := text(m[field])
		good = good && ok
		return v
	}
	maybe := func(field string) string {
		v, ok := textOrNull(m[field])
		good = good && ok
		return deref(v)
	}
	switch s.Kind {
	case engine.ByUser:
		s.Via = need("via")
		good = good && (s.Via == "dialog" || s.Via == "select")
	case engine.ByAuthorizer:
		s.Name, s.Verdict, s.Reason = need("name"), need("verdict"), maybe("reason")
		good = good && (s.Verdict == "allow" || s.Verdict == "deny")
	case engine.ByRule:
		s.Surface, s.Pattern, s.Origin = need("surface"), maybe("pattern"), engine.Origin(maybe("origin"))
	case engine.BySessionApproval:
		s.Surface, s.Pattern = need("surface"), maybe("pattern")
	case engine.ByYolo:
		s.Pattern = maybe("pattern")
	case engine.ByInfrastructureRead:
	case engine.ByUnavailable, engine.ByGateError:
		s.Reason = need("reason")
	case engine.ByForwarded:
		if frames >= maxFrames {
			return nil
		}
		s.ResponderSessionID = maybe("responderSessionId")
		if inner, there := m["decision"]; there && string(inner) != "null" {
			s.Decision = decodeSource(inner, frames+1)
			good = good && s.Decision != nil
		}
	default:
		good = false
	}
	if !good {
		return nil
	}
	return s
}

// Decision is what the answer means to the child that got it. What decided is
// nested under the frame of the hop. An answer that nobody was there to give
// is Unavailable, not a denial.
func (r *Response) Decision() engine.Decision {
	d := engine.Decision{Verdict: r.State, Reason: r.DenialReason,
		By: engine.DecisionSource{Kind: engine.ByForwarded, ResponderSessionID: r.ResponderSessionID, Decision: r.DecidedBy}}
	leaf := r.DecidedBy
	for leaf != nil && leaf.Kind == engine.ByForwarded {
		leaf = leaf.Decision
	}
	if leaf != nil && leaf.Kind == engine.ByUnavailable && !r.Approved {
		d.Verdict, d.Reason = engine.Unavailable, leaf.Reason
	}
	return d
}
