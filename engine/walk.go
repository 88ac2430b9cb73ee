package engine

import (
	"context"
	"fmt"
	"strings"
)

// Judgment is what a node's own rules say of a question.
type Judgment struct {
	Action Action
	Reason string          // a deny rule's own reason
	By     DecisionSource  // rule, session_approval or yolo
	Used   []*SessionGrant // with an allow: the grants that it took, for SessionRules.Used

	// Limited says that not all rules were held against the question, for that
	// would take too long: one might deny it, so a link's allow does not count.
	Limited bool
}

// Decision is the end of the walk that j brings by itself. It reports false for
// an ask, which goes on to the links and the terminal.
func (j Judgment) Decision() (Decision, bool) {
	switch j.Action {
	case Allow:
		return Decision{Verdict: Approved, By: j.By, Used: j.Used}, true
	case Deny:
		return denial(j.Reason, j.By), true
	}
	return Decision{}, false
}

// Rules is a node's recorded authority: policy and session grants together.
// Judge must be safe for concurrent use and must not block.
type Rules interface {
	Judge(q *Question) Judgment
}

// LinkVerdict is what one link of the authorizer chain says.
type LinkVerdict struct {
	Say    string // allow, deny or defer
	Reason string // with deny
}

// Link is a non-terminal judge between the rules and the terminal. An error
// means that it has not decided: the walk defers and logs.
type Link interface {
	Name() string
	Review(ctx context.Context, q *Question) (LinkVerdict, error)
}

// Terminal ends a walk: it cannot defer. A human, a program, a parent node
// (the courier) and "nobody to ask" are terminals. An error becomes a denial
// decided by gate_error, never a user's. When ctx ends, the ask was withdrawn
// and the decision is not used.
type Terminal interface {
	Authorize(ctx context.Context, q *Question) (Decision, error)
}

// Walk is how every node decides an ask: its own rules, then its links in
// configured order, then its terminal (records 0005, 0007, 0008).
type Walk struct {
	Rules    Rules
	Links    []Link
	Terminal Terminal

	// Reviewed, if set, is told of each link's verdict or failure.
	Reviewed func(q *Question, link string, v LinkVerdict, err error)
}

// Decide walks q to its end. It never returns an approval that a rule of this
// node denies.
func (w *Walk) Decide(ctx context.Context, q *Question) (d Decision) {
	defer func() {
		if r := recover(); r != nil {
			d = gateError(fmt.Sprintf("the gate failed: %v", r))
		}
	}()
	if d, ok := w.unasked(ctx, q); ok {
		return d
	}
	d, err := w.Terminal.Authorize(ctx, q)
	if err != nil {
		return gateError(err.Error())
	}
	return w.unlessDenied(q, d)
}

// unasked is what the rules and the links decide.
func (w *Walk) unasked(ctx context.Context, q *Question) (Decision, bool) {
	j := w.Rules.Judge(q)
	if d, ok := j.Decision(); ok {
		return d, true
	}
	for _, l := range w.Links {
		v, err := review(ctx, l, q)
		if err == nil && v.Say == "allow" && (j.Limited || capped(q)) {
			v = LinkVerdict{Say: "defer", Reason: "a link's allow does not count here"}
		}
		if w.Reviewed != nil {
			w.Reviewed(q, l.Name(), v, err)
		}
		if err != nil {
			continue
		}
		by := DecisionSource{Kind: ByAuthorizer, Name: l.Name(), Verdict: v.Say, Reason: v.Reason}
		switch v.Say {
		case "allow":
			return w.unlessDenied(q, Decision{Verdict: Approved, By: by}), true
		case "deny":
			return denial(v.Reason, by), true
		}
	}
	return Decision{}, false
}

// unlessDenied holds an approval against the rules once more: a deny that came
// into force while somebody thought still counts.
func (w *Walk) unlessDenied(q *Question, d Decision) Decision {
	if d.Verdict.Approves() {
		if j := w.Rules.Judge(q); j.Action == Deny {
			return denial(j.Reason, j.By)
		}
	}
	return d
}

// review asks one link. What is no verdict is an error, and so is a panic: a
// broken link has not decided.
func review(ctx context.Context, l Link, q *Question) (v LinkVerdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = LinkVerdict{}, fmt.Errorf("the link failed: %v", r)
		}
	}()
	if v, err = l.Review(ctx, q); err != nil {
		return LinkVerdict{}, err
	}
	switch v.Say {
	case "allow", "deny", "defer":
		return v, nil
	}
	return LinkVerdict{}, fmt.Errorf("the link says %q, which is none of allow, deny, defer", v.Say)
}

// capped reports whether a link's allow must become defer: on the path and
// external_directory families, in any direction, for an ask that opens such a
// path beside its own value, and where it is unknown what the ask is about.
// Without facts the surface is only the name of the tool.
func capped(q *Question) bool {
	if q.Intent == nil || q.Intent.Surface == "" || boundary(q.Intent.Surface) || boundary(q.Surface) {
		return true
	}
	switch q.Kind {
	case "path", "external_directory", "bash_external_directory":
		return true
	}
	for i := range q.Evidence {
		if q.Evidence[i].Label == "external path" {
			return true
		}
	}
	return false
}

// boundary is IsBoundarySurface, and true for directions yet to come.
func boundary(surface string) bool {
	return IsBoundarySurface(surface) || strings.HasPrefix(surface, SurfacePath+"_") || strings.HasPrefix(surface, SurfaceExternalDirectory+"_")
}

func denial(reason string, by DecisionSource) Decision {
	if reason == "" {
		return Decision{Verdict: Denied, By: by}
	}
	return Decision{Verdict: DeniedWithReason, Reason: reason, By: by}
}

func gateError(reason string) Decision {
	return Decision{Verdict: Denied, Reason: reason, By: DecisionSource{Kind: ByGateError, Reason: reason}}
}

// Denying is the terminal of a node with nobody to ask: every ask is
// unavailable, for the reason it holds.
type Denying string

// Authorize returns Unavailable with the reason.
func (r Denying) Authorize(context.Context, *Question) (Decision, error) {
	return Decision{Verdict: Unavailable, Reason: string(r), By: DecisionSource{Kind: ByUnavailable, Reason: string(r)}}, nil
}
