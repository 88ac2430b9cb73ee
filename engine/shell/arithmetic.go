package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parens is what bash knows of the parentheses of the arithmetic that it looks
// for the end of.
type parens uint8

const (
	known   parens = iota + 1 // `((…))`: those of `$(…)` are not its own
	counted                   // `$((…))`: nothing
)

// enclosed reads n, which is x in `((…))` or `$((…))`. Bash takes that for
// arithmetic only if the parentheses match, for which it does not look at what
// the parser knows: in `((rm -rf /x + ${y#)}))` they do not, and it is rm in two
// subshells. So where not all of them are the arithmetic's own, it is read as
// subshells, too.
func (r *reading) enclosed(n syntax.Node, x syntax.ArithmExpr, in parens, st *state, w where) {
	outer := r.limits.parens
	r.limits.parens = false
	w.arith = in
	r.arithmetic(x, st, w)
	if r.limits.parens {
		r.broken("it only looks like arithmetic")
		text := r.slice(n)
		if i := strings.Index(text, "(("); i >= 0 {
			text = text[:i+1] + " " + text[i+1:]
		}
		w.literal, w.arith = false, 0
		own := *st
		r.again(text, int(n.Pos().Offset()), func(sub *reading) {
			stmts, _ := r.rd.once(text)
			sub.stmts(stmts, &own, w)
		})
	}
	r.limits.parens = outer || r.limits.parens
}

// matched reports whether the parentheses in a substitution match for bash, which
// may take other parts of it for quoted than the parser does.
func matched(text string) bool {
	text = strings.Trim(text, "`")
	if inner, ok := strings.CutPrefix(text, "$("); ok {
		text = strings.TrimSuffix(inner, ")")
	}
	switch {
	case strings.ContainsAny(text, `\#`) || strings.Contains(text, "<<"):
		return false
	case !strings.ContainsAny(text, "()"):
		return true
	case strings.ContainsAny(text, "'\"`"):
		return false
	}
	open := 0
	for i := 0; i < len(text) && open >= 0; i++ {
		switch text[i] {
		case '(':
			open++
		case ')':
			open--
		}
	}
	return open == 0
}

// arithmetic reads the commands in x.
func (r *reading) arithmetic(x syntax.ArithmExpr, st *state, w where) {
	w.literal = true
	defer r.shallower()
	if !r.deeper() {
		return
	}
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		r.limits.evaluates = true
		if r.runsSubscript(x, st) {
			r.broken("its arithmetic runs what stands in a subscript")
		}
		r.inside(x, st, w)
	case *syntax.BinaryArithm:
		r.arithmetic(x.X, st, w)
		r.arithmetic(x.Y, st, w)
	case *syntax.UnaryArithm:
		r.arithmetic(x.X, st, w)
	case *syntax.ParenArithm:
		r.arithmetic(x.X, st, w)
	default:
		r.broken("it has arithmetic of a kind that is not known")
	}
}
