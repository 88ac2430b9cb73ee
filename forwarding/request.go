package forwarding

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nod-agents/nod/engine"
)

// Request is one forwarded ask as it stands on the wire, of any generation.
type Request struct {
	ID                 string
	CreatedAt          int64 // ms since 1970, by the child's clock
	RequesterSessionID string
	TargetSessionID    string
	RequesterAgentName string // "unknown" if the child has none

	Message string         // the child's own sentence, display only
	Source  string         // tool_call, skill_input or skill_read
	Surface *string        // display projection: the tool's name
	Value   *string        // display projection
	Grants  []engine.Grant // the child's suggested session grant; empty if none
	Intent  *engine.Intent // nil if absent or malformed
	Payload *Payload       // nil if absent or malformed

	// Additions of Nod's that other readers ignore.
	Hops    []string // session ids the ask was relayed through, nearest last
	Origin  string   // of a relayed ask: the session that first asked; accessIntent counts before it
	OneShot bool     // the child forgets: a grant for this subagent must be kept here
	Line    bool     // Intent is the first part of a line: it stands as lineIntent, not as accessIntent

	Generation int       // 1, 2 or 3; not on the wire
	Dropped    []Dropped // optional fields that were there but malformed
}

// Dropped is an optional field that was written but could not be used.
type Dropped struct {
	Field string
	Raw   string // the JSON as it stood
}

// Payload is the structured prompt of generations 2 and 3.
type Payload struct {
	Kind           string
	RequesterAgent *string
	Forwarded      bool
	RequesterID    *string
	Surface        *string
	Tool           *string
	InvokedTool    *string
	Value          *string
	MatchedPattern *string
	CommandContext *string // command_substitution, process_substitution, subshell or nil
	ExecutedUnit   *string
	Evidence       []engine.Evidence
	Annotations    []engine.Annotation
}

// kinds are the payload kinds of the convention.
var kinds = []string{"bash", "mcp", "tool", "path", "external_directory", "bash_external_directory", "skill", "skill_read", "forwarded"}

// contexts are the command contexts of the convention.
var contexts = []string{"command_substitution", "process_substitution", "subshell"}

// The labels of evidence that is judged too.
const (
	LabelFullCommand  = "full command"
	LabelExternalPath = "external path"
	labelUnread       = "unreadable part of the request"
)

// InvalidError says why bytes are no request or response. Nothing of them is
// used.
type InvalidError struct {
	What    string // request or response
	Field   string // the core field at fault; empty if the whole text is
	Problem string // "is missing", "must be a string", "is not valid JSON: …"
}

// Error names the field and what is wrong with it.
func (e *InvalidError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("the %s %s", e.What, e.Problem)
	}
	return fmt.Sprintf("the %s's field %q %s", e.What, e.Field, e.Problem)
}

// Syntax reports whether the text as a whole could not be read, as when its
// writer has not finished.
func (e *InvalidError) Syntax() bool { return e.Field == "" }

// ParseRequest reads a request of any generation. A core field that is missing
// or wrong is an *InvalidError; an optional field that is malformed is dropped
// whole and listed in Dropped; an unknown field is ignored.
func ParseRequest(data []byte) (*Request, error) {
	top, err := parseObject(data)
	if err != nil {
		return nil, &InvalidError{What: "request", Problem: err.Error()}
	}
	r := &Request{Source: "tool_call", Generation: 1}
	core := func(field string, to *string) {
		if err != nil {
			return
		}
		raw, there := top[field]
		s, ok := text(raw)
		switch {
		case !there:
			err = &InvalidError{What: "request", Field: field, Problem: "is missing"}
		case !ok:
			err = &InvalidError{What: "request", Field: field, Problem: "must be a string"}
		}
		*to = s
	}
	core("id", &r.ID)
	core("requesterSessionId", &r.RequesterSessionID)
	core("targetSessionId", &r.TargetSessionID)
	core("requesterAgentName", &r.RequesterAgentName)
	if err != nil {
		return nil, err
	}
	var ok bool
	if r.CreatedAt, ok = millis(top["createdAt"]); !ok {
		problem := "must be a time in milliseconds"
		if _, there := top["createdAt"]; !there {
			problem = "is missing"
		}
		return nil, &InvalidError{What: "request", Field: "createdAt", Problem: problem}
	}
	if r.RequesterAgentName == "" {
		r.RequesterAgentName = "unknown"
	}

	optional := func(field string, read func(raw []byte) bool) {
		raw, there := top[field]
		if there && string(raw) != "null" && !read(raw) {
			r.Dropped = append(r.Dropped, Dropped{field, string(raw)})
		}
	}
	optional("message", func(raw []byte) (ok bool) { r.Message, ok = text(raw); return ok })
	optional("source", func(raw []byte) bool {
		s, ok := text(raw)
		if !ok || s != "tool_call" && s != "skill_input" && s != "skill_read" {
			return false
		}
		r.Source = s
		return true
	})
	optional("surface", func(raw []byte) bool { s, ok := text(raw); r.Surface = pointer(s, ok); return ok })
	optional("value", func(raw []byte) bool { s, ok := text(raw); r.Value = pointer(s, ok); return ok })
	optional("sessionApproval", func(raw []byte) (ok bool) {
		var grants bool
		r.Grants, grants, ok = parseApproval(raw)
		if grants {
			r.Generation = 3
		}
		return ok
	})
	optional("accessIntent", func(raw []byte) bool {
		r.Generation = max(r.Generation, 2)
		r.Intent = parseIntent(raw)
		return r.Intent != nil
	})
	optional("lineIntent", func(raw []byte) bool {
		in := parseIntent(raw)
		if in == nil || r.Intent != nil {
			return false
		}
		r.Intent, r.Line = in, true
		return true
	})
	optional("payload", func(raw []byte) bool {
		r.Generation = max(r.Generation, 2)
		r.Payload = parsePayload(raw)
		return r.Payload != nil
	})
	optional("hops", func(raw []byte) (ok bool) { r.Hops, ok = texts(raw); return ok })
	optional("originSessionId", func(raw []byte) (ok bool) { r.Origin, ok = text(raw); return ok })
	optional("oneShot", func(raw []byte) (ok bool) { r.OneShot, ok = boolean(raw); return ok })
	return r, nil
}

func pointer(s string, ok bool) *string {
	if !ok {
		return nil
	}
	return &s
}

// parseApproval reads both shapes of sessionApproval. grants tells that it has
// the third generation's. An empty list is no suggestion, and well formed.
func parseApproval(raw []byte) (list []engine.Grant, grants, ok bool) {
	m, err := members(raw)
	if err != nil {
		return nil, false, false
	}
	if all, there := m["grants"]; there {
		each, ok := elements(all)
		if !ok {
			return nil, true, false
		}
		for _, e := range each {
			g, err := members(e)
			if err != nil {
				return nil, true, false
			}
			surface, ok1 := text(g["surface"])
			pattern, ok2 := text(g["pattern"])
			if !ok1 || !ok2 || surface == "" || pattern == "" {
				return nil, true, false
			}
			list = append(list, engine.Grant{Surface: surface, Pattern: pattern})
		}
		return list, true, true
	}
	surface, ok1 := text(m["surface"])
	patterns, ok2 := texts(m["patterns"])
	if !ok1 || !ok2 || surface == "" {
		return nil, false, false
	}
	for _, p := range patterns {
		if p == "" {
			return nil, false, false
		}
		list = append(list, engine.Grant{Surface: surface, Pattern: p})
	}
	return list, false, true
}

func parseIntent(raw []byte) *engine.Intent {
	m, err := members(raw)
	if err != nil {
		return nil
	}
	p, err := members(orNull(m["principal"]))
	if err != nil {
		return nil
	}
	boundary, there := m["boundaryValue"]
	var in engine.Intent
	var ok [6]bool
	in.Surface, ok[0] = text(m["surface"])
	in.MatchValues, ok[1] = texts(orNull(m["matchValues"]))
	in.Boundary, ok[2] = textOrNull(boundary)
	in.RequesterCwd, ok[3] = text(m["requesterCwd"])
	in.Principal.SessionID, ok[4] = text(p["sessionId"])
	in.Principal.AgentName, ok[5] = text(p["agentName"])
	if ok != [6]bool{true, true, true, true, true, true} || !there || in.Surface == "" || len(in.MatchValues) == 0 {
		return nil
	}
	if in.Principal.AgentName == "" {
		in.Principal.AgentName = "unknown"
	}
	return &in
}

func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

func parsePayload(raw []byte) *Payload {
	m, err := members(raw)
	if err != nil {
		return nil
	}
	var p Payload
	var ok bool
	if p.Kind, ok = text(m["kind"]); !ok || !slices.Contains(kinds, p.Kind) {
		return nil
	}
	req, err := members(orNull(m["request"]))
	if err != nil {
		return nil
	}
	for field, to := range map[string]**string{
		"surface": &p.Surface, "toolName": &p.Tool, "invokedToolName": &p.InvokedTool, "value": &p.Value,
		"matchedPattern": &p.MatchedPattern, "commandContext": &p.CommandContext, "executedUnit": &p.ExecutedUnit,
	} {
		if *to, ok = textOrNull(req[field]); !ok {
			return nil
		}
	}
	if p.CommandContext != nil && !slices.Contains(contexts, *p.CommandContext) {
		return nil
	}
	if who, there := req["requester"]; there && string(who) != "null" {
		w, err := members(who)
		if err != nil {
			return nil
		}
		if p.RequesterAgent, ok = textOrNull(w["agentName"]); !ok {
			return nil
		}
		if p.RequesterID, ok = textOrNull(w["sessionId"]); !ok {
			return nil
		}
		if f, there := w["forwarded"]; there {
			if p.Forwarded, ok = boolean(f); !ok {
				return nil
			}
		}
	}
	list, ok := elements(orNull(m["evidence"]))
	if !ok {
		return nil // what else the ask stands for would be unknown
	}
	for _, e := range list {
		f, err := members(e)
		if err != nil {
			return nil
		}
		var ev engine.Evidence
		var ok [3]bool
		ev.Label, ok[0] = text(f["label"])
		ev.Text, ok[1] = text(f["text"])
		ev.Detail, ok[2] = textOrNull(f["detail"])
		if ok != [3]bool{true, true, true} {
			return nil
		}
		p.Evidence = append(p.Evidence, ev)
	}
	if notes, there := m["annotations"]; there && string(notes) != "null" {
		if list, ok = elements(notes); !ok {
			return nil
		}
		for _, e := range list {
			f, err := members(e)
			if err != nil {
				return nil
			}
			source, ok1 := text(f["source"])
			words, ok2 := text(f["text"])
			if !ok1 || !ok2 {
				return nil
			}
			p.Annotations = append(p.Annotations, engine.Annotation{Source: source, Text: words})
		}
	}
	return &p
}

// Age is how long before now the child wrote the request, by its own account.
// A time to come counts as now.
func (r *Request) Age(now time.Time) time.Duration {
	return max(0, now.Sub(time.UnixMilli(r.CreatedAt)))
}

// Question is the ask as the walk, the links and every view see it. patience
// is how long the child waits (forwardingTimeoutMs).
//
// Intent is nil, so that only a human or a link decides, where the facts are
// missing or do not cover all that an approval would run: a payload that was
// written but could not be read, whose text is then shown as evidence; and a
// bash request that carries no payload but says, by its message or by the
// surface that asks, that it stands for a longer command or for paths.
func (r *Request) Question(patience time.Duration) *engine.Question {
	q := &engine.Question{
		ID: r.ID, SessionID: r.TargetSessionID, CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
		Principal:  engine.Principal{SessionID: r.RequesterSessionID, AgentName: r.RequesterAgentName},
		Source:     r.Source,
		Message:    r.Message,
		Suggestion: slices.Clone(r.Grants),
		Generation: r.Generation, Hops: slices.Clone(r.Hops), Line: r.Line,
	}
	if patience > 0 {
		q.Deadline = q.CreatedAt.Add(patience)
	}
	if len(r.Hops) > 0 && r.Origin != "" {
		q.Principal.SessionID = r.Origin // whoever passes an ask on does not ask
	}
	q.Tool, q.Value = deref(r.Surface), deref(r.Value)
	q.Surface = q.Tool
	if p := r.Payload; p != nil {
		q.Kind = p.Kind
		q.Tool = first(p.Tool, r.Surface)
		q.Surface = first(p.Surface, r.Surface)
		q.Value = first(p.Value, r.Value)
		q.Pattern, q.CommandContext, q.ExecutedUnit = deref(p.MatchedPattern), deref(p.CommandContext), deref(p.ExecutedUnit)
		q.Evidence, q.Annotations = slices.Clone(p.Evidence), slices.Clone(p.Annotations)
	}
	if in := r.Intent; in != nil {
		q.Principal, q.RequesterCwd, q.Surface = in.Principal, in.RequesterCwd, in.Surface
		if r.covered(q.Tool) {
			copied := *in
			copied.MatchValues = slices.Clone(in.MatchValues)
			q.Intent = &copied
		}
	}
	for _, d := range r.Dropped {
		if d.Field == "payload" || d.Field == "accessIntent" || d.Field == "lineIntent" {
			q.Evidence = append(q.Evidence, engine.Evidence{Label: labelUnread, Text: d.Raw})
		}
	}
	return q
}

// covered reports whether the intent can be all that the ask stands for, or
// the payload says what else.
func (r *Request) covered(tool string) bool {
	if slices.ContainsFunc(r.Dropped, func(d Dropped) bool { return d.Field == "payload" }) {
		return false
	}
	if r.Payload != nil || tool != "bash" && r.Intent.Surface != "bash" {
		return true
	}
	message := strings.ToLower(strings.Join(strings.Fields(r.Message), " "))
	return r.Intent.Surface == "bash" && !strings.Contains(message, LabelFullCommand)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func first(all ...*string) string {
	for _, s := range all {
		if s != nil && *s != "" {
			return *s
		}
	}
	return ""
}

// NewRequest puts q on the wire for target, in the newest shape. sender is the
// session that forwards it: the child itself, or a node that relays. The facts
// and the principal go as they are (record 0008).
func NewRequest(id string, q *engine.Question, sender engine.Principal, target string, now time.Time) *Request {
	agent := q.Principal.AgentName
	if agent == "" {
		agent = "unknown"
	}
	r := &Request{
		ID: id, CreatedAt: now.UnixMilli(), RequesterSessionID: sender.SessionID, TargetSessionID: target,
		RequesterAgentName: agent,
		Message:            q.Message, Source: q.Source,
		Grants: slices.Clone(q.Suggestion), Hops: slices.Clone(q.Hops), Line: q.Line, Generation: 3,
	}
	if r.Source == "" {
		r.Source = "tool_call"
	}
	if q.Tool != "" {
		r.Surface = &q.Tool
	}
	r.Value = &q.Value
	if q.Intent != nil {
		in := *q.Intent
		in.MatchValues = slices.Clone(in.MatchValues)
		r.Intent = &in
	}
	relayed := len(q.Hops) > 0
	p := &Payload{
		Kind: q.Kind, Forwarded: relayed,
		Surface: nonEmpty(q.Surface), Tool: nonEmpty(q.Tool), Value: &q.Value,
		MatchedPattern: nonEmpty(q.Pattern), CommandContext: nonEmpty(q.CommandContext), ExecutedUnit: nonEmpty(q.ExecutedUnit),
		Evidence: slices.Clone(q.Evidence), Annotations: slices.Clone(q.Annotations),
	}
	if agent != "unknown" {
		p.RequesterAgent = &agent
	}
	if relayed {
		r.Origin = q.Principal.SessionID
		p.RequesterID = nonEmpty(r.Origin)
	}
	if p.Kind == "" {
		p.Kind = kindOf(q)
	}
	// An ask of the first generation knows no more than its message. A payload
	// made up for it would claim that it stands for nothing else.
	if q.Generation != 1 {
		r.Payload = p
	}
	if r.Message == "" {
		r.Message = sentence(q, agent)
	}
	return r
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func kindOf(q *engine.Question) string {
	external := strings.HasPrefix(q.Surface, "external_directory")
	switch {
	case q.Source == "skill_read":
		return "skill_read"
	case q.Source == "skill_input", q.Surface == "skill":
		return "skill"
	case external && q.Tool == "bash":
		return "bash_external_directory"
	case external:
		return "external_directory"
	case q.Surface == "bash", q.Surface == "mcp":
		return q.Surface
	case strings.HasPrefix(q.Surface, "path"):
		return "path"
	}
	return "tool"
}

// sentence is what a node of the first generation, which requires a message
// and knows no evidence, shows its human. It holds the whole command.
func sentence(q *engine.Question, agent string) string {
	var b strings.Builder
	if agent == "unknown" {
		b.WriteString("A subagent")
	} else {
		fmt.Fprintf(&b, "Agent '%s'", agent)
	}
	fmt.Fprintf(&b, " asks to use %s: '%s'", q.Tool, q.Value)
	for _, e := range q.Evidence {
		fmt.Fprintf(&b, " (%s: '%s'", e.Label, e.Text)
		if e.Detail != nil {
			fmt.Fprintf(&b, " = '%s'", *e.Detail)
		}
		b.WriteString(")")
	}
	b.WriteString(". Allow it?")
	return b.String()
}

// The shapes on the wire, in the order in which they are written.
type (
	requestJSON struct {
		ID                 string        `json:"id"`
		CreatedAt          int64         `json:"createdAt"`
		RequesterSessionID string        `json:"requesterSessionId"`
		TargetSessionID    string        `json:"targetSessionId"`
		RequesterAgentName string        `json:"requesterAgentName"`
		Message            string        `json:"message,omitempty"`
		Source             string        `json:"source"`
		Surface            *string       `json:"surface"`
		Value              *string       `json:"value"`
		SessionApproval    *approvalJSON `json:"sessionApproval,omitempty"`
		AccessIntent       *intentJSON   `json:"accessIntent,omitempty"`
		LineIntent         *intentJSON   `json:"lineIntent,omitempty"`
		Payload            *payloadJSON  `json:"payload,omitempty"`
		Hops               []string      `json:"hops,omitempty"`
		Origin             string        `json:"originSessionId,omitempty"`
		OneShot            bool          `json:"oneShot,omitempty"`
	}
	// approvalJSON has both shapes: older nodes read the first two fields.
	approvalJSON struct {
		Surface  string         `json:"surface"`
		Patterns []string       `json:"patterns"`
		Grants   []engine.Grant `json:"grants"`
	}
	intentJSON struct {
		engine.Intent
	}
	payloadJSON struct {
		Kind        string              `json:"kind"`
		Request     promptJSON          `json:"request"`
		Evidence    []engine.Evidence   `json:"evidence"`
		Annotations []engine.Annotation `json:"annotations"`
	}
	promptJSON struct {
		Requester       requesterJSON `json:"requester"`
		Surface         *string       `json:"surface"`
		ToolName        *string       `json:"toolName"`
		InvokedToolName *string       `json:"invokedToolName"`
		Value           *string       `json:"value"`
		MatchedPattern  *string       `json:"matchedPattern"`
		CommandContext  *string       `json:"commandContext"`
		ExecutedUnit    *string       `json:"executedUnit"`
	}
	requesterJSON struct {
		AgentName *string `json:"agentName"`
		Forwarded bool    `json:"forwarded"`
		SessionID *string `json:"sessionId"`
	}
)

// Marshal writes r in the newest shape, with what older serving nodes need
// beside it. The error says that r is larger than any reader takes.
func (r *Request) Marshal() ([]byte, error) {
	j := requestJSON{
		ID: r.ID, CreatedAt: r.CreatedAt, RequesterSessionID: r.RequesterSessionID, TargetSessionID: r.TargetSessionID,
		RequesterAgentName: r.RequesterAgentName, Message: r.Message, Source: r.Source, Surface: r.Surface, Value: r.Value,
		Hops: r.Hops, Origin: r.Origin, OneShot: r.OneShot,
	}
	if len(r.Grants) > 0 {
		a := &approvalJSON{Surface: r.Grants[0].Surface, Grants: r.Grants}
		for _, g := range r.Grants {
			if g.Surface == a.Surface {
				a.Patterns = append(a.Patterns, g.Pattern)
			}
		}
		j.SessionApproval = a
	}
	switch {
	case r.Intent == nil:
	case r.Line:
		j.LineIntent = &intentJSON{*r.Intent}
	default:
		j.AccessIntent = &intentJSON{*r.Intent}
	}
	if p := r.Payload; p != nil {
		j.Payload = &payloadJSON{Kind: p.Kind, Evidence: notNil(p.Evidence), Annotations: notNil(p.Annotations), Request: promptJSON{
			Requester: requesterJSON{AgentName: p.RequesterAgent, Forwarded: p.Forwarded, SessionID: p.RequesterID},
			Surface:   p.Surface, ToolName: p.Tool, InvokedToolName: p.InvokedTool, Value: p.Value, MatchedPattern: p.MatchedPattern,
			CommandContext: p.CommandContext, ExecutedUnit: p.ExecutedUnit,
		}}
	}
	data, err := marshal(j)
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it takes %d bytes, and a request may have %d", len(data), maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("writing request %s: %w", r.ID, err)
	}
	return data, nil
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// marshal is json.Marshal with < > & as they are, as ECMAScript writes them.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(b.String()), err
}

var errID = errors.New("must be letters, digits, '.', '_' or '-', and not '.' or '..'")

// CheckID reports whether id may name a request's file.
func CheckID(id string) error {
	if id == "" || id == "." || id == ".." {
		return errID
	}
	for i := range len(id) {
		c := id[i]
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return errID
		}
	}
	return nil
}
