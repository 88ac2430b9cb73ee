package program

import (
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/engine"
)

// Ask is what a program reads: one JSON object. A fact that is not known is
// an empty string, an empty list or null, never left out.
type Ask struct {
	ID                 string      `json:"id"`
	SessionID          string      `json:"sessionId"` // the serving session
	CreatedAt          int64       `json:"createdAt"` // Unix time, ms
	AgentName          string      `json:"agentName"`
	RequesterSessionID string      `json:"requesterSessionId"`
	RequesterCwd       string      `json:"requesterCwd"`
	Surface            string      `json:"surface"`
	Tool               string      `json:"tool"`
	Value              string      `json:"value"`
	MatchValues        []string    `json:"matchValues"`
	MatchedPattern     *string     `json:"matchedPattern"` // null: no rule matched
	Source             string      `json:"source"`
	Evidence           []Evidence  `json:"evidence"`
	Suggestion         *Suggestion `json:"suggestion"` // null: no session to approve for
}

// Evidence is one further fact of an ask: approving approves it too.
type Evidence struct {
	Label  string `json:"label"`
	Text   string `json:"text"`
	Detail string `json:"detail,omitempty"` // an external path's resolved form, where it differs
}

// Suggestion is what "for this session" would grant.
type Suggestion struct {
	Grants []engine.Grant `json:"grants"`
}

// Describe puts q into the shape that programs read.
func Describe(q *engine.Question) Ask {
	a := Ask{
		ID: q.ID, SessionID: q.SessionID,
		AgentName: q.Principal.AgentName, RequesterSessionID: q.Principal.SessionID, RequesterCwd: q.RequesterCwd,
		Surface: q.Surface, Tool: q.Tool, Value: q.Value, Source: q.Source,
		MatchValues: []string{}, Evidence: []Evidence{},
	}
	if !q.CreatedAt.IsZero() {
		a.CreatedAt = q.CreatedAt.UnixMilli()
	}
	if q.Intent != nil {
		a.MatchValues = append(a.MatchValues, q.Intent.MatchValues...)
	}
	if q.Pattern != "" {
		a.MatchedPattern = &q.Pattern
	}
	for _, e := range q.Evidence {
		v := Evidence{Label: e.Label, Text: e.Text}
		if e.Detail != nil {
			v.Detail = *e.Detail
		}
		a.Evidence = append(a.Evidence, v)
	}
	if said := desk.Sentence(q); said != "" { // generation 1 carries the full command only here
		a.Evidence = append(a.Evidence, Evidence{Label: "message", Text: said})
	}
	if len(q.Suggestion) > 0 {
		a.Suggestion = &Suggestion{Grants: q.Suggestion}
	}
	return a
}
