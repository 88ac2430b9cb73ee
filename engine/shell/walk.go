package shell

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Read reads text. It returns in time bounded by the length of text and never
// fails: what it cannot read is Broken.
func (rd *Reader) Read(text string, env Env) *Program {
	p := &Program{Text: text}
	stmts, src, broken := rd.parse(text)
	p.Broken = broken
	var all struct { // what reading needs, in one piece
		reading reading
		limits  limits
		state   state
	}
	r := &all.reading
	*r = reading{rd: rd, env: env, src: src, prog: p, limits: &all.limits, offset: -1}
	all.limits.brackets = mayRunSubscripts(text)
	r.stmts(stmts, &all.state, where{wrapper: -1})
	if all.limits.subscript && all.limits.evaluates {
		r.broken("it has a subscript that runs a command if it is evaluated")
	}
	if len(stmts) == 0 && p.Broken == "" {
		p.Blank = true
	}
	if len(p.Units) == 0 && !p.Blank && p.Broken == "" {
		if r.limits.redirectOnly {
			p.Broken = "a redirect without a command"
		} else {
			t := strings.TrimSpace(text)
			p.Units = []Unit{{Text: t, Spellings: []string{t}, Wrapper: -1}}
		}
	}
	slices.SortStableFunc(p.Operands, func(a, b Operand) int { return cmp.Compare(a.offset, b.offset) })
	return p
}

// limits are counted over a whole program with its payloads.
type limits struct {
	steps        int // statements visited
	depth        int
	spelled      int // bytes of texts to be matched
	bindings     int
	choices      int  // values of words that stand for several
	payload      int  // bytes of texts that are run as programs
	nested       int  // of them, in each other
	calls        int  // functions called
	called       int  // bytes of them
	words        int  // of commands, those inside wrappers counted again
	guesses      int  // commands that may begin in a wrapper's words
	full         bool // no more is read
	parens       bool // arithmetic has parentheses that are not its own
	redirectOnly bool
	globs        globs
	brackets     bool // there may be subscripts that run a command
	subscript    bool // some text is one
	evaluates    bool // some variable is looked up by what another text says
}

const (
	maxSteps    = 200_000
	maxBindings = 2_000
	maxChoices  = 200_000
	maxPayload  = 4 << 20
	maxNested   = 40
	maxValue    = 4096 // bytes of a variable that are kept
	maxCalls    = 500
	maxCallDeep = 32

	maxRecursion = 8
	maxBodies    = 16 // of one function
	maxWords     = 2_000_000
	maxGuesses   = 128
)

// reading is one text being read: the program itself or a payload in it.
type reading struct {
	rd     *Reader
	env    Env
	src    string
	prog   *Program
	limits *limits
	offset int // of the operands of a payload, -1 in the program itself
	barest []mark
	funcs  map[string][]function
	active []activation // functions being called
	mute   int          // units are known already; only operands count
	feed   *string      // the literal text that a pipe feeds the next command
}

// where is the surroundings of a statement.
type where struct {
	context string
	whole   *compound
	wrapper int // index of the unit that runs this, or -1
	layers  int
	guess   bool
	literal bool // single quotes quote nothing here
	arith   parens
}

type compound struct {
	text  string
	outer *compound
}

func (r *reading) broken(why string) {
	if r.prog.Broken == "" {
		r.prog.Broken = why
	}
}

func (r *reading) slice(n syntax.Node) string {
	return r.text(int(n.Pos().Offset()), int(n.End().Offset()))
}

func (r *reading) text(from, to int) string {
	to = min(to, len(r.src))
	if from >= to {
		return ""
	}
	return strings.TrimSuffix(r.src[from:to], "\r")
}

func (r *reading) stmts(list []*syntax.Stmt, st *state, w where) {
	for _, s := range list {
		r.stmt(s, st, w)
	}
}

func (r *reading) stmt(s *syntax.Stmt, st *state, w where) {
	l := r.limits
	l.steps++
	l.depth++
	defer func() { l.depth-- }()
	switch {
	case l.full:
		return
	case l.steps > maxSteps:
		r.broken("it has too many commands")
		l.full = true
		return
	case l.depth > maxDepth:
		r.broken("it is nested too deeply")
		return
	}
	if s.Background || s.Coprocess {
		own := *st
		st = &own
	}
	if s.Cmd == nil && len(s.Redirs) > 0 {
		l.redirectOnly = true
	}
	if len(s.Redirs) == 0 {
		r.command(s, st, w)
		return
	}
	before := *st
	unit := len(r.prog.Units)
	r.command(s, st, w)
	if unit == len(r.prog.Units) {
		unit = -1
	}
	for _, rd := range s.Redirs {
		r.redirect(rd, &before, unit, w)
	}
}

// command reads what s runs.
func (r *reading) command(s *syntax.Stmt, st *state, w where) {
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		r.call(c, s, st, w)
	case *syntax.BinaryCmd:
		r.binary(c, st, w)
	case *syntax.Subshell:
		own := *st
		in := r.within(w, c)
		in.context = ContextSubshell
		r.stmts(c.Stmts, &own, in)
	case *syntax.Block:
		r.stmts(c.Stmts, st, r.within(w, c))
	case *syntax.IfClause:
		r.branches(c, st, r.within(w, c))
	case *syntax.WhileClause:
		in := r.within(w, c)
		r.loop(st, func(st *state) {
			r.stmts(c.Cond, st, in)
			r.stmts(c.Do, st, in)
		})
	case *syntax.ForClause:
		in := r.within(w, c)
		switch it := c.Loop.(type) {
		case *syntax.WordIter:
			var vals []string
			whole := it.InPos.IsValid()
			for _, item := range it.Items {
				r.inside(item, st, w)
				r.operand(item, st, -1, operandKind{})
				for _, l := range r.values(item, st) {
					words, ok := l.braces()
					if !ok {
						r.broken("a brace expansion has too many results")
					}
					for _, e := range words {
						if len(vals) >= maxValues {
							whole = false
							break
						}
						vals = append(vals, e.text)
						if e.glob() != "" {
							whole = false
						}
					}
				}
			}
			if hijacks(it.Name.Value, "$") {
				r.broken("a loop sets " + it.Name.Value + ", which changes what a command runs")
			}
			r.bind(st, it.Name.Value, vals, whole)
		case *syntax.CStyleLoop:
			for _, x := range [...]syntax.ArithmExpr{it.Init, it.Cond, it.Post} {
				r.arithmetic(x, st, w)
			}
		}
		r.loop(st, func(st *state) { r.stmts(c.Do, st, in) })
	case *syntax.CaseClause:
		in := r.within(w, c)
		r.inside(c.Word, st, w)
		after := *st
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				r.inside(p, st, w)
			}
			own := *st
			r.stmts(item.Stmts, &own, in)
			after.join(&own, r.env.Cwd)
		}
		*st = after
	case *syntax.FuncDecl:
		if r.funcs == nil {
			r.funcs = map[string][]function{}
		}
		if c.Name != nil {
			r.define(c.Name.Value, &syntax.Stmt{Cmd: c.Body.Cmd, Redirs: append(c.Body.Redirs[:len(c.Body.Redirs):len(c.Body.Redirs)], s.Redirs...), Position: c.Body.Position})
		}
		own := *st
		r.stmt(c.Body, &own, r.within(w, c))
	case *syntax.ArithmCmd:
		r.enclosed(c, c.X, known, st, w)
	case *syntax.TestClause:
		r.test(c.X, st, w)
	case *syntax.DeclClause:
		r.declare(c, st, w)
	case *syntax.LetClause:
		r.add(Unit{Text: r.slice(c), Words: strings.Fields(r.slice(c))}, w)
		for _, x := range c.Exprs {
			r.arithmetic(x, st, w)
		}
		if text := r.slice(c); strings.Contains(text, "<(") || strings.Contains(text, ">(") {
			// Its arguments are words like others before they are arithmetic.
			r.broken("it has a process substitution in arithmetic")
			r.wordsOf(":"+strings.TrimPrefix(text, "let"), int(c.Pos().Offset()), st, w)
		}
	case *syntax.TimeClause:
		r.time(c, st, w)
	case *syntax.CoprocClause:
		own := *st
		r.stmt(c.Stmt, &own, w)
	default:
		r.broken("it has a command of a kind that is not known")
	}
}

// function is one definition of a function, and the text that it stands in.
type function struct {
	body *syntax.Stmt
	src  string
}

// activation is a call of a function that is not over, and where it was called.
type activation struct {
	name string
	place
}

// define notes one more body of the function name.
func (r *reading) define(name string, body *syntax.Stmt) {
	list := r.funcs[name]
	for _, f := range list {
		if f.body.Cmd == body.Cmd {
			return // it is read again
		}
	}
	if len(list) == maxBodies {
		r.broken("it defines a function too many times")
		return
	}
	r.funcs[name] = append(list, function{body, r.src})
}

// within is w inside the compound n.
func (r *reading) within(w where, n syntax.Node) where {
	w.whole = &compound{text: r.slice(n), outer: w.whole}
	return w
}

func (r *reading) binary(c *syntax.BinaryCmd, st *state, w where) {
	switch c.Op {
	case syntax.AndStmt:
		r.stmt(c.X, st, w)
		r.stmt(c.Y, st, w)
	case syntax.OrStmt:
		before := *st
		r.stmt(c.X, st, w)
		if sameDirs(&before, st) {
			// The right side runs only if the left failed, and so does its cd.
			if r.stmt(c.Y, st, w); !sameDirs(&before, st) {
				st.join(&before, r.env.Cwd)
			}
			return
		}
		// The right side runs if the left failed, so perhaps its cd did.
		right := *st
		right.join(&before, r.env.Cwd)
		start := right
		r.stmt(c.Y, &right, w)
		if !sameDirs(&start, &right) {
			st.join(&right, r.env.Cwd)
		}
	default: // a pipe: every stage has a shell of its own
		left := *st
		r.stmt(c.X, &left, w)
		right := *st
		r.feed = printed(r, c.X)
		r.stmt(c.Y, &right, w)
		r.feed = nil
	}
}

// branches reads an if with its elifs.
func (r *reading) branches(c *syntax.IfClause, st *state, w where) {
	var after *state
	done := func(s state) {
		if after == nil {
			after = &s
			return
		}
		after.join(&s, r.env.Cwd)
	}
	last := false
	for ; c != nil; c = c.Else {
		if c.ThenPos.IsValid() {
			r.stmts(c.Cond, st, w)
		} else {
			last = true
		}
		own := *st
		r.stmts(c.Then, &own, w)
		done(own)
	}
	if !last {
		done(*st)
	}
	*st = *after
}

// loop reads a body that may run any number of times: again, for its operands
// only, as long as where it stands changes.
func (r *reading) loop(st *state, body func(*state)) {
	in := *st
	for round := 0; ; round++ {
		out := in
		body(&out)
		if round == 0 {
			r.mute++
		}
		next := in
		next.join(&out, r.env.Cwd)
		if sameDirs(&next, &in) && (round > 0 || next.vars == in.vars) {
			*st = next
			break
		}
		if round == 3 {
			next.lost = true
			body(&next)
			next.lost = true
			*st = next
			break
		}
		in = next
	}
	r.mute--
}

func (r *reading) bind(st *state, name string, values []string, whole bool) {
	r.limits.bindings++
	if r.limits.bindings > maxBindings {
		r.broken("it sets too many variables")
		return
	}
	st.set(name, values, whole)
}

// assign reads one assignment outside a declaration or in one.
func (r *reading) assign(a *syntax.Assign, st *state, w where, keep bool) {
	if a.Index != nil {
		r.arithmetic(a.Index, st, w)
	}
	var values []string
	whole := true
	word := func(x *syntax.Word) {
		if x == nil {
			return
		}
		if r.runsSubscript(x, st) {
			r.broken("a variable holds a subscript that runs a command when it is evaluated")
		}
		r.inside(x, st, w)
		if !keep {
			return
		}
		for _, l := range r.values(x, st) {
			l, _, placed := r.tilde(l, st)
			values = append(values, l.text)
			for _, m := range l.marks {
				whole = whole && m != unknown
			}
			whole = whole && placed
		}
	}
	word(a.Value)
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				if expandsAgain(e.Index) {
					r.broken("it assigns an array by a subscript that is expanded twice")
				}
				r.arithmetic(e.Index, st, w)
			}
			word(e.Value)
		}
	}
	if !keep || a.Name == nil || a.Naked {
		return
	}
	if a.Value == nil && a.Array == nil {
		values = []string{""}
	}
	if !whole {
		// What is known only in part tells nothing.
		values = nil
	}
	if old := st.get(a.Name.Value); old != nil && (a.Append || a.Index != nil) {
		if a.Append && a.Array == nil {
			var sums []string
			for _, o := range old.values {
				for _, v := range values {
					if len(sums) < maxValues {
						sums = append(sums, o+v)
					}
				}
			}
			values = sums
		} else {
			values = append(append([]string(nil), old.values...), values...)
		}
		whole = whole && old.whole
	}
	if len(values) > maxValues {
		values, whole = values[:maxValues], false
	}
	for _, v := range values {
		r.limits.subscript = r.limits.subscript || r.limits.brackets && subscriptRuns(v)
		if len(v) > maxValue {
			values, whole = nil, false
			break
		}
	}
	r.bind(st, a.Name.Value, values, whole)
}

// declare reads export, declare, local and their like. It is a unit: its name
// is a builtin's.
func (r *reading) declare(c *syntax.DeclClause, st *state, w where) {
	words := []string{c.Variant.Value}
	var floors []Floor
	for _, a := range c.Args {
		switch {
		case a.Name == nil && a.Value != nil:
			words = append(words, r.raw(a.Value))
		case a.Value != nil && a.Name != nil && a.Index == nil:
			op := "="
			if a.Append {
				op = "+="
			}
			words = append(words, a.Name.Value+op+r.raw(a.Value))
		default:
			words = append(words, r.slice(a))
		}
		if f, ok := r.hijack(a); ok {
			floors = append(floors, f)
		}
	}
	if makesArray(words) && slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return a.Value != nil && expands(a.Value) }) {
		floors = append(floors, Floor{FloorOpaque, c.Variant.Value + " makes an array of a text that it expands"})
	}
	at := r.add(Unit{Text: r.slice(c), Words: words, Floors: floors}, w)
	r.limits.evaluates = r.limits.evaluates || strings.HasPrefix(strings.Join(words[1:], " "), "-")
	for i, a := range c.Args {
		if a.Name == nil && a.Value != nil {
			r.setsText(words[1+i], a.Value, st, at)
		}
	}
	if refers(words) {
		r.references(words, at)
	}
	for _, a := range c.Args {
		r.assign(a, st, w, true)
	}
}

func (r *reading) hijack(a *syntax.Assign) (Floor, bool) {
	if a.Name == nil || a.Naked {
		return Floor{}, false
	}
	value := ""
	if a.Value != nil {
		value = r.raw(a.Value)
	}
	if !hijacks(a.Name.Value, value) {
		return Floor{}, false
	}
	return Floor{FloorIndirection, "setting " + a.Name.Value + " changes what a command runs"}, true
}

// time is the reserved word.
func (r *reading) time(c *syntax.TimeClause, st *state, w where) {
	to := int(c.Time.Offset()) + len("time")
	if c.PosixFormat {
		to = min(len(r.src), to)
		if i := strings.Index(r.src[to:], "-p"); i >= 0 {
			to += i + 2
		}
	}
	inner := c.Stmt
	if inner != nil && inner.Cmd != nil {
		to = int(inner.Cmd.End().Offset())
	}
	text := r.text(int(c.Time.Offset()), to)
	words := []string{"time"}
	var call *syntax.CallExpr
	if inner != nil {
		if call, _ = inner.Cmd.(*syntax.CallExpr); call != nil && !inner.Negated {
			args := r.args(call)
			text = "time"
			if c.PosixFormat {
				text, words = "time -p", append(words, "-p")
			}
			if len(args) > 1 && len(call.Assigns) == 0 && args[0].raw == "--" {
				// The end of time's options, which the parser takes for a command.
				text, words, args = text+" --", append(words, "--"), args[1:]
				short, behind := *call, *inner
				short.Args = call.Args[1:]
				behind.Cmd, behind.Position = &short, short.Pos()
				inner = &behind
			}
			for _, a := range args {
				words = append(words, a.raw)
			}
			if len(args) > 0 {
				text += " " + r.textOf(args, inner.Redirs)
			}
		}
	}
	at := r.add(Unit{Text: text, Words: words, Floors: []Floor{{FloorIndirection, "time runs another command"}}}, w)
	if inner == nil {
		return
	}
	first := len(r.prog.Units)
	in := w
	if at >= 0 {
		in.wrapper = at
	}
	r.stmt(inner, st, in)
	if at < 0 {
		return
	}
	if call == nil && inner.Cmd != nil {
		r.prog.Units[at].Executes = r.slice(inner.Cmd)
	} else if first < len(r.prog.Units) {
		r.prog.Units[at].Executes = innermost(&r.prog.Units[first])
	}
}

func innermost(u *Unit) string {
	if u.Executes != "" {
		return u.Executes
	}
	return u.Text
}

// inside reads the commands in a word.
func (r *reading) inside(x *syntax.Word, st *state, w where) {
	if x == nil {
		return
	}
	if r.limits.brackets && !r.limits.subscript && r.subscriptIn(x, st) {
		r.limits.subscript = true
	}
	if len(x.Parts) == 1 && w.arith == 0 {
		if _, ok := x.Parts[0].(*syntax.Lit); ok {
			return
		}
	}
	for _, p := range x.Parts {
		r.part(p, st, w)
	}
}

func (r *reading) part(p syntax.WordPart, st *state, w where) {
	switch p := p.(type) {
	case *syntax.Lit:
		r.limits.parens = r.limits.parens || w.arith != 0 && strings.ContainsAny(p.Value, "()")
	case *syntax.SglQuoted:
		if w.literal {
			r.unquoted(p, st, w)
		}
	case *syntax.DblQuoted:
		w.literal = true
		for _, q := range p.Parts {
			r.part(q, st, w)
		}
	case *syntax.CmdSubst:
		own := *st
		in := w
		in.context, in.whole, in.literal, in.arith = ContextCommandSubstitution, nil, false, 0
		if w.arith == counted || w.arith != 0 && p.Backquotes {
			r.limits.parens = r.limits.parens || !matched(r.text(int(p.Left.Offset()), int(p.Right.Offset())+1))
		}
		if p.TempFile || p.ReplyVar {
			r.stmts(p.Stmts, st, in)
			return
		}
		r.stmts(p.Stmts, &own, in)
	case *syntax.ProcSubst:
		own := *st
		in := w
		in.context, in.whole, in.literal, in.arith = ContextProcessSubstitution, nil, false, 0
		r.stmts(p.Stmts, &own, in)
	case *syntax.ParamExp:
		r.limits.evaluates = r.limits.evaluates || p.Excl
		r.arithmetic(p.Index, st, w)
		if p.Slice != nil {
			r.arithmetic(p.Slice.Offset, st, w)
			r.arithmetic(p.Slice.Length, st, w)
		}
		if p.Repl != nil {
			r.insidePattern(p.Repl.Orig, st, w)
			r.insidePattern(p.Repl.With, st, w)
			r.processes(p.Repl.Orig, st, w)
			r.processes(p.Repl.With, st, w)
		}
		if p.Exp != nil {
			if p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && r.raw(p.Exp.Word) == "P" {
				r.broken("it expands what a variable holds, as @P does")
			}
			if p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) && p.Exp.Word != nil && hijacks(p.Param.Value, r.raw(p.Exp.Word)) {
				r.broken("it sets " + p.Param.Value + ", which changes what a command runs")
			}
			switch p.Exp.Op {
			case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull,
				syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
				if !w.literal {
					r.processes(p.Exp.Word, st, w)
				}
				r.inside(p.Exp.Word, st, w)
			case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
				r.processes(p.Exp.Word, st, w)
				r.inside(p.Exp.Word, st, w)
			default:
				r.processes(p.Exp.Word, st, w)
				r.insidePattern(p.Exp.Word, st, w)
			}
		}
		if p.NestedParam != nil {
			r.part(p.NestedParam, st, w)
		}
	case *syntax.ArithmExp:
		r.enclosed(p, p.X, counted, st, w)
	case *syntax.ExtGlob:
		r.limits.parens = r.limits.parens || w.arith != 0
		if strings.ContainsAny(p.Pattern.Value, "$`<>") {
			r.broken("it has an extended pattern with an expansion in it")
		}
	default:
		r.broken("it has a word of a kind that is not known")
	}
}

// deeper goes into an expression and reports whether that is not too deep.
// Either way shallower goes out of it.
func (r *reading) deeper() bool {
	r.limits.depth++
	if r.limits.depth > 4*maxDepth {
		r.broken("it is nested too deeply")
		return false
	}
	return true
}

func (r *reading) shallower() { r.limits.depth-- }

func (r *reading) test(x syntax.TestExpr, st *state, w where) {
	defer r.shallower()
	if !r.deeper() {
		return
	}
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		r.inside(x, st, w)
		r.operand(x, st, -1, operandKind{})
	case *syntax.BinaryTest:
		r.subscripts(x, st, x.X, x.Y)
		r.test(x.X, st, w)
		if y, ok := x.Y.(*syntax.Word); ok && x.Op == syntax.TsReMatch {
			r.inside(y, st, w)
			return
		}
		r.test(x.Y, st, w)
	case *syntax.UnaryTest:
		r.subscripts(x, st, x.X)
		r.test(x.X, st, w)
	case *syntax.ParenTest:
		r.test(x.X, st, w)
	default:
		r.broken("it has a test of a kind that is not known")
	}
}

// redirect reads one redirect. It is opened before its command runs.
func (r *reading) redirect(d *syntax.Redirect, st *state, unit int, w where) {
	r.inside(d.Word, st, w)
	if d.Hdoc != nil {
		in := w
		in.literal = true
		subscript := r.limits.subscript
		r.inside(d.Hdoc, st, in)
		if unit < 0 || !word("read mapfile readarray", r.prog.Units[unit].Words[0]) {
			r.limits.subscript = subscript // it stays text
		}
	}
	if d.Word != nil && len(d.Word.Parts) == 1 {
		if _, ok := d.Word.Parts[0].(*syntax.ProcSubst); ok {
			return // a pipe to or from another command, and no file
		}
	}
	k := operandKind{certain: true, redirect: true}
	switch d.Op {
	case syntax.RdrIn:
		k.dir = Read
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
		k.dir = Write
	case syntax.RdrInOut:
	case syntax.DplIn:
		return // from a descriptor; of anything else bash makes an error
	case syntax.DplOut:
		if descriptor(r.raw(d.Word)) {
			return
		}
		k.dir = Write
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	default:
		r.broken("it has a redirect of a kind that is not known")
		return
	}
	r.operand(d.Word, st, unit, k)
}

// descriptor reports whether s names a file descriptor: `2`, `2-` or `-`.
func descriptor(s string) bool {
	return strings.Trim(strings.TrimSuffix(s, "-"), "0123456789") == "" && s != ""
}

// add makes u a unit and returns its index, or -1 if units do not count now.
func (r *reading) add(u Unit, w where) int {
	if r.mute > 0 {
		return -1
	}
	p := r.prog
	if len(p.Units) >= maxUnits {
		r.broken("it has too many commands")
		r.limits.full = true // what is not judged need not be read
		return -1
	}
	u.Context, u.Wrapper, u.Guess = w.context, w.wrapper, w.guess
	if u.Spellings == nil {
		u.Spellings = []string{u.Text}
		r.spell(&u.Spellings, strings.Join(u.Words, " "))
	}
	for c := w.whole; c != nil; c = c.outer {
		r.limits.spelled += len(c.text)
		if r.limits.spelled > maxSpelled {
			r.broken("it is too large to match as a whole")
			break
		}
		u.Whole = append(u.Whole, c.text)
	}
	if p.Units == nil {
		p.Units = make([]Unit, 0, r.guessed())
	}
	p.Units = append(p.Units, u)
	return len(p.Units) - 1
}

// guessed is about as many commands as a text of this look has, to make room.
func (r *reading) guessed() int {
	n := 1
	for i := 0; i < len(r.src) && n < 16; i++ {
		switch r.src[i] {
		case ';', '\n', '(', '`':
			n++
		case '|', '&':
			n++
			i++ // there may be two
		}
	}
	return n
}

// spell adds a spelling that is not yet in list.
func (r *reading) spell(list *[]string, s string) {
	for _, have := range *list {
		if have == s {
			return
		}
	}
	r.limits.spelled += len(s)
	if r.limits.spelled > maxSpelled {
		r.broken("it is too large to match as a whole")
		return
	}
	*list = append(*list, s)
}
