package engine

// Verdict is how an ask ended.
type Verdict string

// The verdicts. ApprovedForServingSession is internal to a serving node and
// never reaches disk (record 0006). Unavailable means that nobody could be
// asked; it is never a user's denial.
const (
	Approved                  Verdict = "approved"
	ApprovedForSession        Verdict = "approved_for_session"
	ApprovedForServingSession Verdict = "approved_for_serving_session"
	Denied                    Verdict = "denied"
	DeniedWithReason          Verdict = "denied_with_reason"
	Unavailable               Verdict = "unavailable"
)

// Approves reports whether v lets the call run.
func (v Verdict) Approves() bool {
	return v == Approved || v == ApprovedForSession || v == ApprovedForServingSession
}

// SourceKind says what kind of authority decided.
type SourceKind string

// The kinds of a Source, as the forwarding wire names them.
const (
	ByUser               SourceKind = "user"
	ByAuthorizer         SourceKind = "authorizer"
	ByRule               SourceKind = "rule"
	BySessionApproval    SourceKind = "session_approval"
	ByYolo               SourceKind = "yolo"
	ByInfrastructureRead SourceKind = "infrastructure_read"
	ByUnavailable        SourceKind = "unavailable"
	ByGateError          SourceKind = "gate_error"
	ByForwarded          SourceKind = "forwarded"
)

// DecisionSource is what decided, and why. Which fields mean something depends
// on Kind; the forwarding room writes and validates the JSON form.
type DecisionSource struct {
	Kind    SourceKind
	Via     string // user: dialog or select
	Name    string // authorizer: the link's name
	Verdict string // authorizer: allow or deny
	Reason  string // authorizer, unavailable, gate_error
	Surface string // rule, session_approval
	Pattern string // rule, session_approval, yolo; empty means null
	Origin  Origin // rule; empty means null

	ResponderSessionID string          // forwarded; empty means null
	Decision           *DecisionSource // forwarded; nil means null
}

// Decision is the end of a walk: a verdict, its reason and what decided.
type Decision struct {
	Verdict Verdict
	Reason  string // with DeniedWithReason and Unavailable
	By      DecisionSource

	// Used are the grants that an allow of the node's own rules took, for
	// SessionRules.Used.
	Used []*SessionGrant
}
