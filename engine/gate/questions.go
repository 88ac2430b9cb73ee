package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/nod-agents/nod/engine"
)

// Asker is whose call was judged, for the asks that it brings.
type Asker struct {
	Principal engine.Principal
	Tool      string    // the call's
	Cwd       string    // where the agent is, absolute
	Now       time.Time // when it asks
}

// Questions are the asks of a call, in the order in which they must be
// approved: one for each gate that asks, the paths that the call touches, the
// places outside, the tool itself. Each is a request of its own, since no answer
// stands for another. The parts of a shell line that ask are one, which shows the
// line whole and proposes a grant for each part. A call that is denied or
// allowed has none.
func (o *Outcome) Questions(by Asker) []*engine.Question {
	var list []*engine.Question
	var line *engine.Question
	for _, c := range o.Asks() {
		if line != nil && c.Gate == engine.SurfaceBash {
			line.Line = true
			line.Evidence = append(line.Evidence, engine.Evidence{Label: "also runs", Text: c.Value})
			for _, g := range c.Suggestion {
				if !slices.Contains(line.Suggestion, g) {
					line.Suggestion = append(line.Suggestion, g)
				}
			}
			continue
		}
		q := o.question(c, by)
		if c.Gate == engine.SurfaceBash {
			line = q
		}
		list = append(list, q)
	}
	return list
}

func (o *Outcome) question(c *Check, by Asker) *engine.Question {
	in := &engine.Intent{Surface: c.Intent.Surface, MatchValues: c.Intent.MatchValues, RequesterCwd: by.Cwd, Principal: by.Principal}
	if c.Intent.Boundary != "" {
		in.Boundary = &c.Intent.Boundary
	}
	q := &engine.Question{
		CreatedAt: by.Now, Principal: by.Principal, RequesterCwd: by.Cwd, Source: "tool_call",
		Tool: by.Tool, Surface: c.Intent.Surface, Value: c.Value, Pattern: c.Pattern,
		CommandContext: c.Context, ExecutedUnit: c.Executes,
		Intent: in, Suggestion: slices.Clone(c.Suggestion), Generation: 3,
	}
	q.Evidence = append(q.Evidence, o.Evidence(c, by.Cwd)...)
	if c.Why != "" {
		q.Evidence = append(q.Evidence, engine.Evidence{Label: "why it asks", Text: c.Why})
	}
	return q
}

// Refusal says in a sentence why a call of the tool is denied, for the agent: a
// rule's own reason as it is, else which rule it was. Of a call that is not
// denied it is empty.
func (o *Outcome) Refusal(tool string) string {
	c := o.Decisive
	switch {
	case o.Action != engine.Deny || c == nil:
		return ""
	case c.Reason != "":
		return c.Reason
	case c.Pattern == "" || c.Pattern == "*":
		return fmt.Sprintf("Denied by the rule on %s (%s policy).", c.Surface, c.Origin)
	case c.Gate == tool:
		return fmt.Sprintf("Denied by the rule %q on %s (%s policy).", c.Pattern, c.Surface, c.Origin)
	}
	return fmt.Sprintf("Denied by the rule %q on %s (%s policy): %s", c.Pattern, c.Surface, c.Origin, c.Value)
}
