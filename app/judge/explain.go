package judge

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/nod-agents/nod/app/disk"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/engine/shell"
)

// How much of a list is written out.
const (
	maxChecks   = 40
	maxExamples = 8
	maxRules    = 20
)

// explain tells a person what was decided, by what, and what else there was.
func (v verdict) explain(k *call) string {
	var b strings.Builder
	b.WriteString(v.Action.String())
	if v.Yolo {
		b.WriteString(" (an ask, and yoloMode answers every ask)")
	}
	b.WriteString("\n")
	if len(v.Checks) == 0 {
		b.WriteString("  there is nothing to judge in this call\n")
		return b.String()
	}
	for i := range v.Checks {
		if i == maxChecks {
			fmt.Fprintf(&b, "  … and %d more\n", len(v.Checks)-i)
			break
		}
		v.check(&b, &v.Checks[i], k.Home)
	}
	if v.Program != nil && v.Program.Broken != "" {
		fmt.Fprintf(&b, "the command could not be read as a whole: %s\n", visible.Line(v.Program.Broken, 200))
	}
	v.others(&b, k)
	if v.Action == engine.Ask {
		v.session(&b, k)
	}
	return b.String()
}

// write adds words. Package fmt would have to start for what every check says.
func write(b *strings.Builder, words ...string) {
	for _, w := range words {
		b.WriteString(w)
	}
}

// column is an action, as wide as the widest.
func column(a engine.Action) string {
	const width = len("allow")
	s := a.String()
	return s + strings.Repeat(" ", width-len(s))
}

// check writes one check: what was judged, and by what.
func (v verdict) check(b *strings.Builder, c *gate.Check, home string) {
	mark := " "
	if c == v.Decisive {
		mark = "→"
	}
	action := c.Action
	if c.Origin == engine.OriginYolo {
		action = engine.Allow
	}
	write(b, mark, " ", column(action), "  ", visible.Line(c.Gate, 80), ": ", visible.Line(c.Value, 400), "\n",
		"         ", because(c, home), "\n")
	if c.Context != "" {
		fmt.Fprintf(b, "         found in a %s\n", strings.ReplaceAll(c.Context, "_", " "))
	}
	u := v.unit(c)
	switch {
	case u != nil && u.Wrapper >= 0:
		fmt.Fprintf(b, "         run by %s\n", visible.Line(v.Program.Units[u.Wrapper].Text, 400))
	case c.Executes != "" && c.Executes != c.Value:
		fmt.Fprintf(b, "         it executes %s\n", visible.Line(c.Executes, 400))
	}
	if u != nil && len(u.Floors) > 0 && c.Action == engine.Ask && c.Rule != nil {
		f := u.Floors[0]
		fmt.Fprintf(b, "         a rule that allows it would not do: %s %s\n", visible.Line(f.Why, 200), f.Pattern)
	}
	for i := range c.Paths {
		p := &c.Paths[i]
		if len(c.Paths) == 1 && p.Typed == c.Value && (p.Facts.Boundary == "" || p.Facts.Boundary == p.Facts.Absolute) {
			break
		}
		write(b, "         ", column(p.Match.Action), "  ", visible.Line(p.Typed, 200))
		if p.Facts.Boundary != "" && p.Facts.Boundary != p.Typed {
			fmt.Fprintf(b, ", which is %s", visible.Line(p.Facts.Boundary, 400))
		}
		if way := direction(p.Surface); way != "" {
			fmt.Fprintf(b, ", %s", way)
		}
		b.WriteString("\n")
	}
}

func direction(surface string) string {
	switch {
	case strings.HasSuffix(surface, "_read"):
		return "read"
	case strings.HasSuffix(surface, "_write"):
		return "written"
	case engine.IsBoundarySurface(surface):
		return "read or written"
	}
	return ""
}

// because says what decided a check.
func because(c *gate.Check, home string) string {
	switch {
	case c.Origin == engine.OriginYolo:
		return "yoloMode turns the ask into an allow"
	case c.Grant != nil:
		return fmt.Sprintf("granted for the session: %s on %s", quote(c.Grant.Pattern), c.Grant.Surface)
	case strings.HasPrefix(c.Pattern, "<"):
		why := c.Why
		if why == "" {
			why = floorReason(c.Pattern)
		}
		if why == "" {
			return "it always asks: " + c.Pattern
		}
		return fmt.Sprintf("it always asks, whatever a rule allows: %s %s", visible.Line(why, 200), c.Pattern)
	case c.Rule == nil && c.Origin == engine.OriginFailClosed:
		return "no rule matches, and a policy file is broken, so it asks"
	case c.Rule == nil && c.Why != "":
		return visible.Line(c.Why, 200)
	case c.Rule == nil:
		return "no rule matches, so it asks (built in)"
	}
	s := fmt.Sprintf("by %s on %s (%s)", quote(c.Rule.Pattern), visible.Line(c.Rule.Surface, 80), ruleAt(c.Rule, home))
	if pattern.IsBare(c.Rule.Surface) {
		s = fmt.Sprintf("no rule for %s matches, so the default %s counts (%s)", visible.Line(c.Gate, 80), quote(c.Rule.Surface), ruleAt(c.Rule, home))
	}
	if c.Origin == engine.OriginFailClosed {
		s += ", which says " + c.Rule.Action.String() + ", but a policy file is broken, so it asks"
	}
	if c.Matched != "" && c.Matched != c.Value {
		s += ", as " + quote(c.Matched)
	}
	if c.Reason != "" {
		s += ": " + visible.Line(c.Reason, 0)
	}
	return s
}

// floorReason is for floors that bring no words of their own; empty: none is
// known.
func floorReason(floor string) string {
	switch floor {
	case shell.FloorIndirection:
		return "it runs another command"
	case shell.FloorOpaque:
		return "it runs a text as a program"
	case shell.FloorComputed:
		return "which program it runs is known only when it runs"
	case shell.FloorUnparseable:
		return "it cannot be read"
	}
	return ""
}

func quote(s string) string { return `"` + visible.Line(s, 400) + `"` }

// unit is the command that a check is about, nil if it is about none.
func (v verdict) unit(c *gate.Check) *shell.Unit {
	if c.Gate != engine.SurfaceBash || v.Program == nil || c.Unit < 0 || c.Unit >= len(v.Program.Units) {
		return nil
	}
	return &v.Program.Units[c.Unit]
}

// query is the question that a check put to the rules, as far as it can be put
// again.
func (v verdict) query(c *gate.Check) engine.Query {
	q := engine.Query{Surface: c.Intent.Surface, Values: c.Intent.MatchValues}
	if u := v.unit(c); u != nil {
		q.Values, q.Strict, q.Whole = u.Spellings, u.Strict, u.Whole
	}
	if !engine.IsPathSurface(q.Surface) && len(c.Paths) > 0 {
		q.Path = true
	}
	return q
}

// others lists the rules that match the decisive value and are overruled.
func (v verdict) others(b *strings.Builder, k *call) {
	c := v.Decisive
	if c == nil || len(c.Intent.MatchValues) == 0 {
		return
	}
	q := v.query(c)
	steps := k.Rules.Trace(&q)
	steps = slices.DeleteFunc(steps, func(s engine.Step) bool { return s.Rule == c.Rule || s.Rule.Pattern == engine.PatternLimit })
	if len(steps) == 0 {
		return
	}
	if len(steps) > maxRules {
		steps = steps[len(steps)-maxRules:]
	}
	fmt.Fprintf(b, "also matching %s, and overruled:\n", quote(c.Value))
	for _, s := range slices.Backward(steps) {
		fmt.Fprintf(b, "  %s", Describe(s, false, k.Home))
		if s.Via != engine.ViaValue {
			fmt.Fprintf(b, "  (it matches %s)", quote(s.Value))
		}
		b.WriteString("\n")
	}
}

// session tells what "for this session" would grant, and what else that
// covers.
func (v verdict) session(b *strings.Builder, k *call) {
	asks := v.Asks()
	if len(asks) > 1 {
		fmt.Fprintf(b, "%d asks would come, one after the other\n", len(asks))
	}
	for _, c := range asks {
		if len(c.Suggestion) == 0 {
			fmt.Fprintf(b, "%s: %s can only be allowed once\n", c.Gate, quote(c.Value))
			continue
		}
		for _, g := range c.Suggestion {
			write(b, `"for this session" would grant `, quote(g.Pattern), " on ", g.Surface, "\n")
			for _, line := range covered(g, k) {
				write(b, "  ", line, "\n")
			}
		}
	}
}

// covered says in words, and by what is there, what a grant reaches.
func covered(g engine.Grant, k *call) []string {
	var out []string
	head, wild := strings.CutSuffix(g.Pattern, "*")
	isPath := engine.IsPathSurface(g.Surface)
	switch {
	case pattern.IsLiteral(g.Pattern):
		out = append(out, "exactly this and nothing else")
	case pattern.IsBare(g.Pattern):
		out = append(out, "every call on "+g.Surface)
	case isPath && wild && strings.HasSuffix(head, "/"):
		out = append(out, "everything below "+visible.Line(head, 400))
		if names := below(pattern.ExpandHome(head, k.Home), k); names != "" {
			out = append(out, "there now: "+names)
		}
	case wild && strings.HasSuffix(head, " "):
		word := strings.TrimSuffix(head, " ")
		out = append(out, fmt.Sprintf("%s with any further words, and %s alone", quote(word), quote(word)))
	case wild && !strings.ContainsAny(head, "*?"):
		out = append(out, "everything that starts with "+quote(head))
	default:
		out = append(out, "everything that matches "+quote(g.Pattern))
	}
	if g.Surface == engine.SurfacePath || g.Surface == engine.SurfaceExternalDirectory {
		out = append(out, "for reading and for writing")
	}
	var asks, denies []string
	for _, s := range k.Rules.Rules(g.Surface) {
		if s.Action == engine.Allow || !overlaps(g.Pattern, s.Rule.Pattern, k) {
			continue
		}
		line := fmt.Sprintf("%s (%s)", quote(s.Rule.Pattern), ruleAt(s.Rule, k.Home))
		if s.Action == engine.Deny {
			denies = append(denies, line)
		} else if !pattern.IsBare(s.Rule.Pattern) {
			asks = append(asks, line)
		}
	}
	return append(append(out, few("it would answer what asks by ", asks)...), few("still denied by ", denies)...)
}

func few(word string, list []string) []string {
	if len(list) > maxExamples {
		list = append(list[:maxExamples:maxExamples], fmt.Sprintf("… and %d more", len(list)-maxExamples))
	}
	for i := range list {
		list[i] = word + list[i]
	}
	return list
}

// overlaps reports whether two patterns can match the same value, judged by the
// literal text they start with; it errs towards yes.
func overlaps(a, b string, k *call) bool {
	if policy.Covers(a, b) || policy.Covers(b, a) {
		return true
	}
	pa := pattern.Compile(pattern.ExpandHome(a, k.Home), pattern.Posix)
	pb := pattern.Compile(pattern.ExpandHome(b, k.Home), pattern.Posix)
	return strings.HasPrefix(pa.Head(), pb.Head()) || strings.HasPrefix(pb.Head(), pa.Head())
}

// below names some of what is in a directory.
func below(dir string, k *call) string {
	if k.Foreign || !filepath.IsAbs(dir) {
		return ""
	}
	names, more := (disk.Files{}).List(dir, 200)
	if len(names) == 0 {
		return ""
	}
	sort.Strings(names)
	n := len(names)
	shown := names[:min(n, maxExamples)]
	for i := range shown {
		shown[i] = visible.Line(shown[i], 60)
	}
	s := strings.Join(shown, ", ")
	switch {
	case more:
		s += ", and more than 200 others"
	case n > len(shown):
		s += fmt.Sprintf(", and %d more", n-len(shown))
	}
	return s
}
