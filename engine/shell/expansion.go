package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// insidePattern is inside for a word in which single quotes quote even between
// double quotes: the pattern of `"${x#'y'}"`.
func (r *reading) insidePattern(x *syntax.Word, st *state, w where) {
	if x == nil {
		return
	}
	for _, p := range x.Parts {
		if _, ok := p.(*syntax.SglQuoted); !ok {
			r.part(p, st, w)
		}
	}
}

// unquoted reads the commands between single quotes that bash takes for
// letters, as it does in `"${x:-'y'}"` and in arithmetic.
func (r *reading) unquoted(p *syntax.SglQuoted, st *state, w where) {
	if !strings.ContainsAny(p.Value, "$`\"}") {
		return
	}
	if strings.ContainsAny(p.Value, "\"}") {
		// To bash the word ends in here.
		r.broken("it has single quotes in an expansion where they quote nothing")
	}
	r.again(p.Value, int(p.Pos().Offset()), func(sub *reading) {
		x, err := r.rd.word(p.Value)
		if err != nil {
			r.broken(reason(err))
			return
		}
		w.literal = true
		sub.inside(x, st, w)
	})
}

// processes reads a process substitution in a word of an expansion, which the
// parser takes for text: `${x:-<(y)}`. Between double quotes, bash takes none in
// `"${x:-<(y)}"`, but those in `"${x#<(y)}"` and `"${x?<(y)}"`.
func (r *reading) processes(x *syntax.Word, st *state, w where) {
	if x == nil {
		return
	}
	w.literal = false
	for _, p := range x.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || !strings.Contains(lit.Value, "<(") && !strings.Contains(lit.Value, ">(") {
			continue
		}
		r.broken("it has a process substitution in an expansion")
		text := r.slice(x)
		for i := 0; i+1 < len(text); i++ {
			if (text[i] == '<' || text[i] == '>') && text[i+1] == '(' {
				text = ": " + text[i:]
				break
			}
		}
		r.wordsOf(text, int(x.Pos().Offset()), st, w)
		return
	}
}

// wordsOf reads the commands in the words of the simple commands of text.
func (r *reading) wordsOf(text string, offset int, st *state, w where) {
	r.again(text, offset, func(sub *reading) {
		stmts, _ := r.rd.once(text)
		for _, s := range stmts {
			if c, ok := s.Cmd.(*syntax.CallExpr); ok {
				for _, a := range c.Args {
					sub.inside(a, st, w)
				}
			}
		}
	})
}

// again has read read text, which stands at offset of what is being read: a
// program in it, or a part that the parser took for something else. All that is
// read within each other shares its limits.
func (r *reading) again(text string, offset int, read func(sub *reading)) {
	l := r.limits
	l.nested++
	l.depth++
	defer func() { l.nested--; l.depth-- }()
	l.payload += len(text)
	if l.depth > maxDepth || l.nested > maxNested || l.payload > maxPayload {
		r.broken("it has too many programs in each other")
		return
	}
	sub := &reading{rd: r.rd, env: r.env, src: text, prog: r.prog, limits: l, offset: r.offset, mute: r.mute, active: r.active, funcs: r.funcs}
	if sub.offset < 0 {
		sub.offset = offset
	}
	read(sub)
}
