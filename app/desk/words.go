package desk

import (
	"fmt"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// nameRunes is the longest agent or tool name that a sentence shows whole.
const nameRunes = 40

// Who names the agent that asks, in visible text: its name or, if it has none,
// the head of its session id.
func Who(p engine.Principal) string {
	if p.AgentName != "" && p.AgentName != "unknown" {
		return visible.Line(p.AgentName, nameRunes)
	}
	if p.SessionID == "" {
		return "an agent"
	}
	id := []rune(p.SessionID)
	if len(id) > 8 {
		id = id[:8]
	}
	return "agent " + visible.Line(string(id), nameRunes)
}

// Wish says what is asked for, in visible text that goes on from a name:
// "wants to run a command".
func Wish(q *engine.Question) string {
	switch tool := visible.Line(q.Tool, nameRunes); {
	case q.Kind == "external_directory" || q.Kind == "bash_external_directory" || strings.HasPrefix(q.Surface, "external_directory"):
		return "wants to reach outside its directory"
	case q.Surface == "bash" || q.Kind == "bash":
		return "wants to run a command"
	case q.Surface == "mcp" || q.Kind == "mcp":
		return "wants to call an MCP tool"
	case q.Surface == "skill" || strings.HasPrefix(q.Kind, "skill") || strings.HasPrefix(q.Source, "skill"):
		return "wants to use a skill"
	case q.Tool == "read":
		return "wants to read a file"
	case q.Tool == "write":
		return "wants to write a file"
	case q.Tool == "edit":
		return "wants to edit a file"
	case tool != "":
		return "wants to use the tool " + tool
	default:
		return "asks for permission"
	}
}

// Title is one sentence that names who asks, and for what, in visible text.
func Title(q *engine.Question) string { return Who(q.Principal) + " " + Wish(q) }

// Fact is one thing a human must see before answering. Label and Text are raw:
// a view makes them visible.
type Fact struct {
	Label string // empty for what is to run or be touched
	Text  string
	Model bool // model-written text; a view must say so
}

// Facts are the whole of what is asked, the value first. A view that leaves one
// out, or cuts one, must not offer to approve.
func Facts(a *board.Ask) []Fact {
	q := a.Question
	var facts []Fact
	add := func(label, text string) {
		if text == "" {
			return
		}
		for _, f := range facts {
			if f.Text == text && (f.Label == label || f.Label == "") {
				return // the same thing said twice makes no body clearer
			}
		}
		facts = append(facts, Fact{Label: label, Text: text})
	}
	add("", q.Value)
	if said := Sentence(q); said != "" {
		label := "message"
		if len(facts) == 0 {
			label = ""
		}
		add(label, said)
	}
	for _, e := range q.Evidence {
		if e.Label == "working directory" && e.Text == q.RequesterCwd {
			continue // said below
		}
		add(e.Label, e.Text)
		if e.Detail != nil && *e.Detail != e.Text {
			add(e.Label+", really", *e.Detail)
		}
	}
	add("runs", q.ExecutedUnit)
	add("inside", strings.ReplaceAll(q.CommandContext, "_", " "))
	if q.Intent != nil && q.Intent.Boundary != nil {
		seen := q.Value == *q.Intent.Boundary
		for _, f := range facts {
			seen = seen || f.Text == *q.Intent.Boundary
		}
		if !seen {
			add("path", *q.Intent.Boundary)
		}
	}
	if len(facts) == 0 {
		add("", q.Tool)
	}
	add("in", q.RequesterCwd)
	for _, n := range q.Annotations {
		facts = append(facts, Fact{Label: n.Source, Text: n.Text, Model: true})
	}
	return facts
}

// Sentence is what a child says in prose, raw, where that tells more than its
// facts do, else empty. A payload (record 0008) says in facts what the sentence
// for older nodes says.
func Sentence(q *engine.Question) string {
	if q.Kind != "" || repeats(q) {
		return ""
	}
	return q.Message
}

// repeats reports whether the sentence of a child of generation 1 says nothing
// but the agent's name and the value, word for word as that child puts them.
func repeats(q *engine.Question) bool {
	said, ok := strings.CutPrefix(q.Message, "Current agent requested ")
	if !ok {
		said, ok = strings.CutPrefix(q.Message, "Agent '"+q.Principal.AgentName+"' requested ")
	}
	if !ok {
		return false
	}
	switch v := "'" + q.Value + "'"; said {
	case "bash command " + v + ". Allow this command?", "tool " + v + ". Allow this call?", "MCP target " + v + ". Allow this call?",
		"skill " + v + ". Allow loading this skill?":
		return true
	}
	return false
}

// Notes are what a human should know beside the facts, one visible sentence
// each. None of them is part of what is asked.
func Notes(a *board.Ask) []string {
	var all []string
	if a.Adopted {
		all = append(all, "Nobody else serves this session, so Nod answers for it.")
	}
	for _, n := range a.Notes {
		all = append(all, visible.Line(n, 300))
	}
	return all
}

// Plain reports whether every string of what is asked, and who asks, stands on
// a screen as it is: nothing had to be escaped to be seen. Line breaks count
// as plain in a fact, not in a name.
func Plain(a *board.Ask) bool {
	q := a.Question
	for _, s := range []string{q.Principal.AgentName, q.Tool} {
		if visible.Line(s, 0) != s {
			return false
		}
	}
	for _, f := range Facts(a) {
		if visible.Line(f.Label, 0) != f.Label || visible.Block(f.Text) != f.Text {
			return false
		}
	}
	return true
}

// How says in one sentence how an ask ended.
func How(e board.End) string {
	if e.Withdrawn {
		return "withdrawn: " + visible.Line(e.Why, 200)
	}
	var how string
	switch e.Decision.Verdict {
	case engine.Approved:
		how = "allowed once"
	case engine.ApprovedForSession:
		how = "allowed for this session, this subagent only"
	case engine.ApprovedForServingSession:
		how = "allowed for the whole session"
	case engine.Unavailable:
		return "unavailable: " + visible.Line(e.Decision.Reason, 200)
	default:
		how = "denied"
	}
	switch e.View {
	case "":
	case "rules":
		how += " by a rule"
	case "parent":
		how += " by the session above"
	default:
		how += " (" + visible.Line(e.View, nameRunes) + ")"
	}
	if e.Decision.Verdict == engine.DeniedWithReason {
		how += ": " + visible.Line(e.Decision.Reason, 200)
	}
	return how
}

// Patience says how long the child still waits at now: "9m48s", or empty if
// that is not known.
func Patience(q *engine.Question, now time.Time) string {
	if q.Deadline.IsZero() {
		return ""
	}
	left := q.Deadline.Sub(now).Truncate(time.Second)
	if left < 0 {
		left = 0
	}
	return left.String()
}

// Count is "1 ask waits" or "7 asks wait".
func Count(n int) string {
	if n == 1 {
		return "1 ask waits"
	}
	return fmt.Sprintf("%d asks wait", n)
}
