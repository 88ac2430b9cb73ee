package gate

import (
	"slices"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/shell"
)

// Served is what a node that serves a forwarded ask judges it by. Rules are
// those for the principal's agent name.
type Served struct {
	Rules  *engine.Ruleset
	Guard  *engine.Ruleset // what it denies is denied, whatever Rules and Grants say; nil: none
	Grants engine.Grants   // nil: none
	Shell  *shell.Reader   // nil: one is made for each ask
	// ResolveLegacy also decides asks of generation 1 without facts, where the
	// surface is no path surface.
	ResolveLegacy bool
}

// Serve judges a forwarded ask by the facts that the child fixed (records 0005
// and 0008): the match values as they are, no path derived anew. A shell
// command is portable, so it is read here.
//
// One ask can stand for more than its value: approving it runs the whole line.
// An allow therefore stands only if every unit of the full command and every
// outside path, in both forms, is allowed as well; a deny of any part denies;
// anything else asks.
func Serve(q *engine.Question, s Served) engine.Judgment {
	v := &served{Served: s, result: engine.Judgment{Action: engine.Allow}, work: engine.NewWork()}
	if v.Shell == nil {
		v.Shell = &shell.Reader{}
	}
	switch {
	case q.Intent != nil:
		v.judge(q)
	case s.ResolveLegacy && q.Generation == 1:
		v.legacy(q)
	default:
		v.ask()
	}
	if !v.any {
		v.ask()
	}
	v.guardServed(q)
	if v.result.Action == engine.Ask && s.Rules.Yolo() && !v.unknown && !v.limited {
		v.result.Action = engine.Allow
		v.result.By = engine.DecisionSource{Kind: engine.ByYolo, Pattern: v.result.By.Pattern}
	}
	v.result.Limited = v.limited
	if v.result.Action == engine.Allow {
		v.result.Used = v.used
	}
	return v.result
}

// served collects the judgments of an ask's parts.
type served struct {
	Served
	result  engine.Judgment
	any     bool // a part was judged
	unknown bool // a part is not known, so not even yolo may allow
	limited bool // nor was each held against all rules
	lines   int  // command lines that were read
	used    []*engine.SessionGrant
	work    *engine.Work
}

// take holds one part against the rest: the strictest counts, the first of
// equals.
func (v *served) take(a engine.Action, reason string, by engine.DecisionSource, g *engine.SessionGrant) {
	if g != nil && !slices.Contains(v.used, g) {
		v.used = append(v.used, g)
	}
	if v.any && !a.Stricter(v.result.Action) {
		return
	}
	v.any = true
	v.result = engine.Judgment{Action: a, By: by}
	if a == engine.Deny {
		v.result.Reason = reason
	}
}

// ask leaves the question to the links and the human: facts are missing.
func (v *served) ask() {
	v.unknown = true
	v.take(engine.Ask, "", engine.DecisionSource{}, nil)
}

func (v *served) match(m *engine.Match) {
	by := engine.DecisionSource{Kind: engine.ByRule, Surface: m.Surface, Pattern: m.Pattern, Origin: m.Origin}
	if m.Grant != nil {
		by = engine.DecisionSource{Kind: engine.BySessionApproval, Surface: m.Grant.Surface, Pattern: m.Grant.Pattern}
	}
	v.limited = v.limited || m.Limited
	v.take(m.Action, m.Reason(), by, m.Grant)
}

func (v *served) value(q *engine.Query) {
	q.Grants, q.Work = v.Grants, v.work
	m := v.Rules.Resolve(q)
	v.match(&m)
}

// maxServed is how many command lines of one ask are read. An ask has one, in a
// few forms.
const maxServed = 64

// command judges every unit of a text as a shell would run it.
func (v *served) command(text string) {
	if v.lines++; v.lines > maxServed {
		v.limited = true
		v.ask()
		return
	}
	p := v.Shell.Read(text, shell.Env{Home: v.Rules.Options().Home})
	j := judging{v.Rules, v.Grants, v.work}
	checks := j.program(nil, p, engine.SurfaceBash)
	if len(checks) == 0 {
		v.ask()
		return
	}
	for i := range checks {
		c := &checks[i]
		by := engine.DecisionSource{Kind: engine.ByRule, Surface: c.Surface, Pattern: c.Pattern, Origin: c.Origin}
		if c.Grant != nil {
			by = engine.DecisionSource{Kind: engine.BySessionApproval, Surface: c.Grant.Surface, Pattern: c.Grant.Pattern}
		}
		v.limited = v.limited || c.Limited
		v.take(c.Action, c.Reason, by, c.Grant)
	}
}

func (v *served) judge(q *engine.Question) {
	in := q.Intent
	switch {
	case len(in.MatchValues) == 0:
		v.ask()
	case in.Surface == engine.SurfaceBash:
		for _, text := range in.MatchValues {
			v.command(text)
		}
		if q.Value != in.MatchValues[0] {
			v.command(q.Value) // what the human would be shown is judged too
		}
		if q.Kind == "" && q.Message == "" {
			v.ask() // nothing tells what else runs
		}
	case engine.IsPathSurface(in.Surface) || in.Boundary != nil:
		v.path(q)
	default:
		v.value(&engine.Query{Surface: in.Surface, Values: in.MatchValues})
	}

	outside := 0
	for i := range q.Evidence {
		e := &q.Evidence[i]
		switch label := evidenceLabel(e); label {
		case "full command":
			v.command(e.Text)
		case "external path":
			outside++
			v.external(in.Surface, e)
		}
	}
	shellCall := q.Kind == "bash_external_directory" || q.Kind == engine.SurfaceBash || q.Tool == engine.SurfaceBash
	if family(in.Surface) == engine.SurfaceExternalDirectory && shellCall && outside == 0 {
		v.ask() // the paths that the line touches are not told
	}
	if family(in.Surface) == "" && in.Surface != engine.SurfaceBash && shellCall {
		v.ask() // facts of another tool say nothing about a command
	}
	if family(in.Surface) == engine.SurfacePath && shellCall && len(q.Suggestion) != 1 {
		v.ask() // the line names more paths than this one, and they are not told
	}
}

// family is the bare name of a surface of the path family, else empty.
func family(surface string) string {
	for _, f := range [...]string{engine.SurfacePath, engine.SurfaceExternalDirectory} {
		if surface == f || surface == f+"_read" || surface == f+"_write" {
			return f
		}
	}
	return ""
}

// path judges the path of an ask. On the path surface and on a tool's own, the
// canonical place is held against the rules on its own as well; a grant is for
// a place.
func (v *served) path(q *engine.Question) {
	in := q.Intent
	whole := engine.Query{Surface: in.Surface, Path: true, Values: in.MatchValues}
	if in.Boundary == nil || *in.Boundary == "" || *in.Boundary == in.MatchValues[0] {
		v.value(&whole)
		return
	}
	real := []string{*in.Boundary}
	for _, m := range in.MatchValues {
		if m != *in.Boundary && !strings.HasPrefix(m, "/") && strings.HasSuffix(*in.Boundary, "/"+m) {
			real = append(real, m)
		}
	}
	whole.Granted = real
	v.value(&whole)
	if family(in.Surface) != engine.SurfaceExternalDirectory {
		place := engine.Query{Surface: in.Surface, Path: true, Values: real, Grants: v.Grants, Work: v.work}
		m := v.Rules.Resolve(&place)
		if m.Explicit || family(in.Surface) == "" {
			v.match(&m)
		}
	}
}

// external judges an outside path of a line in both of its forms.
func (v *served) external(surface string, e *engine.Evidence) {
	if family(surface) != engine.SurfaceExternalDirectory {
		surface = engine.SurfaceExternalDirectory
	}
	if strings.TrimSpace(e.Text) == "" {
		v.ask()
		return
	}
	v.value(&engine.Query{Surface: surface, Path: true, Values: []string{e.Text}})
	if e.Detail != nil && *e.Detail != "" && *e.Detail != e.Text {
		v.value(&engine.Query{Surface: surface, Path: true, Values: []string{*e.Detail}})
	}
}

// legacy judges an ask of generation 1, which carries no facts but a surface
// and a value. Its full command is in its message only, so an ask that names
// one goes to the human, as does one whose suggestion is for another gate.
func (v *served) legacy(q *engine.Question) {
	surface := q.Surface
	if surface == "" {
		surface = q.Tool
	}
	same := len(q.Suggestion) > 0 || surface == engine.SurfaceSkill
	for _, g := range q.Suggestion {
		same = same && g.Surface == surface
	}
	message := strings.ToLower(strings.Join(strings.Fields(q.Message), " "))
	switch {
	case !same || q.Value == "":
		v.ask()
	case surface == engine.SurfaceBash:
		if message == "" || strings.Contains(message, "full command") {
			v.ask()
			return
		}
		v.command(q.Value)
	case surface == engine.SurfaceMCP, surface == engine.SurfaceSkill:
		v.value(&engine.Query{Surface: surface, Values: []string{q.Value}})
	default:
		v.ask()
	}
}
