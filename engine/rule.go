package engine

import (
	"fmt"
	"time"
)

// Origin names the layer a rule comes from, in the words an answer reports.
type Origin string

// The origins, from the lowest layer to the highest.
const (
	OriginBuiltin      Origin = "builtin"
	OriginBaseline     Origin = "baseline"
	OriginGlobal       Origin = "global"
	OriginProject      Origin = "project"
	OriginAgent        Origin = "agent"
	OriginProjectAgent Origin = "project-agent"
	OriginSession      Origin = "session"
	OriginYolo         Origin = "yolo"
	OriginFailClosed   Origin = "fail-closed"
)

// Position is the place of a rule in the file it was read from. Line and
// Column count from 1; a zero Position means the rule is in no file.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns file:line:column, or the empty string for the zero Position.
func (p Position) String() string {
	if p.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Rule is one line of a policy: calls on Surface whose value matches Pattern
// get Action. Surface is itself a pattern. Both are kept as written.
type Rule struct {
	Surface string
	Pattern string
	Action  Action
	Reason  string // shown and sent with a deny; at most 500 characters
	Origin  Origin
	Pos     Position
	Until   time.Time // the rule counts before this instant only; zero: always

	Examples []string // values the author says it matches
}

// Grant is what "for this session" records or proposes: one pattern on one
// surface.
type Grant struct {
	Surface string `json:"surface"`
	Pattern string `json:"pattern"`
}
