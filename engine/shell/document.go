package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Where a here-document ends decides what is text and what runs. In a few
// places bash ends one where the parser does not:
//
//   - A mark is quoted if any part of it is, so that backslashes in the
//     document are text; the parser looks at the last part only.
//   - In a document with an unquoted mark, a backslash at the end of a line
//     joins it to the next before the line is held against the mark.
//   - In a command or process substitution, the mark also ends the document
//     where more stands behind it, if a closing parenthesis is in it.

// documents looks for here-documents in stmts, the statements of text, that
// bash ends elsewhere. It returns a text that the parser reads as bash reads
// this one, empty if it reads it so already, and why the text is not to be
// trusted.
func documents(stmts []*syntax.Stmt, text string) (fixed, why string) {
	if !strings.Contains(text, "<<") || !strings.ContainsAny(text, "\\'\")") {
		return "", ""
	}
	a := audit{text: text, read: map[int]int{}}
	var inside []syntax.Node // what is being walked, outermost first
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if n == nil {
				inside = inside[:len(inside)-1]
				return true
			}
			inside = append(inside, n)
			if d, ok := n.(*syntax.Redirect); ok && (d.Op == syntax.Hdoc || d.Op == syntax.DashHdoc) {
				a.document(d, inside)
			}
			return true
		})
	}
	return a.apply(), a.why
}

// audit gathers changes to a text.
type audit struct {
	text  string
	edits []edit
	why   string
	ends  []int       // of the lines of text
	read  map[int]int // up to where the documents opened before a line are read
}

// lineEnd is where the line that holds text[at] ends.
func (a *audit) lineEnd(at int) int {
	if a.ends == nil {
		for i := range len(a.text) {
			if a.text[i] == '\n' {
				a.ends = append(a.ends, i)
			}
		}
		a.ends = append(a.ends, len(a.text))
	}
	i, _ := slices.BinarySearch(a.ends, at)
	return a.ends[min(i, len(a.ends)-1)]
}

// edit replaces text[at:end].
type edit struct {
	at, end int
	with    string
}

func (a *audit) apply() string {
	if len(a.edits) == 0 {
		return ""
	}
	slices.SortFunc(a.edits, func(x, y edit) int { return x.at - y.at })
	var b strings.Builder
	at := 0
	for _, e := range a.edits {
		if e.at < at {
			continue // two documents, nested in each other, want the same
		}
		b.WriteString(a.text[at:e.at])
		b.WriteString(e.with)
		at = e.end
	}
	b.WriteString(a.text[at:])
	return b.String()
}

func (a *audit) document(d *syntax.Redirect, inside []syntax.Node) {
	substituted, backquoted := false, false
	for _, n := range inside {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			backquoted = backquoted || n.Backquotes
			substituted = substituted || !n.Backquotes
		case *syntax.ProcSubst:
			substituted = true
		}
	}
	m, ok := markOf(d.Word)
	end := min(int(d.Word.End().Offset()), len(a.text))
	switch {
	case !ok, backquoted && m.quoted && !m.lastQuoted:
		a.why = "the mark of a here-document is quoted in a way that is not understood"
		return
	case m.quoted && !m.lastQuoted:
		a.edits = append(a.edits, edit{end, end, "''"})
		return
	}
	if d.Hdoc == nil {
		return
	}
	from := a.lineEnd(end) + 1
	to := min(int(d.Hdoc.End().Offset()), len(a.text))
	if from >= to {
		return
	}
	// Documents that are opened on one line follow each other.
	line := from
	from = max(from, a.read[line])
	to = a.lineEnd(to)
	if from >= to {
		return
	}
	a.read[line] = to
	if backquoted && strings.Contains(a.text[from:to], `\`) {
		// Bash takes backslashes off before it reads what is in backquotes.
		a.why = "it has a here-document with backslashes in backquotes"
	}
	if !m.quoted {
		a.joined(from, to, m.text, d.Op == syntax.DashHdoc)
	}
	if substituted {
		if at := beforeParen(a.text, from, to, m.text, d.Op == syntax.DashHdoc); at > 0 {
			a.edits = append(a.edits, edit{at, at, "\n"})
			a.why = "a line of a here-document starts with its mark"
		}
	}
}

// joined looks in text[from:to] for a line that is the mark once lines that
// end in a backslash are joined.
func (a *audit) joined(from, to int, mark string, tabs bool) {
	for from < to {
		// The joins of one line, and its text without them.
		var joins []edit
		var line strings.Builder
		i := from
		for ; i < to && a.text[i] != '\n'; i++ {
			if a.text[i] == '\\' && i+1 < to {
				if a.text[i+1] == '\n' {
					joins = append(joins, edit{at: i, end: i + 2})
					i++
					continue
				}
				line.WriteByte(a.text[i])
				i++
			}
			line.WriteByte(a.text[i])
		}
		from = i + 1
		if len(joins) > 0 && trimTabs(line.String(), tabs) == mark {
			a.edits = append(a.edits, joins...)
			a.why = "the end of a here-document is written over several lines"
			return
		}
	}
}

func trimTabs(s string, tabs bool) string {
	if tabs {
		return strings.TrimLeft(s, "\t")
	}
	return s
}

// beforeParen finds the first line in text[from:to] that starts with the mark
// and has a closing parenthesis behind it. It returns where the mark ends, 0
// if there is none.
func beforeParen(text string, from, to int, mark string, tabs bool) int {
	if mark == "" {
		return 0
	}
	for from < to {
		line, _, _ := strings.Cut(text[from:to], "\n")
		start := from + len(line) - len(trimTabs(line, tabs))
		from += len(line) + 1
		switch rest, ok := strings.CutPrefix(text[start:from-1], mark); {
		case ok && rest == "":
			return 0
		case ok && strings.Contains(rest, ")"):
			return start + len(mark)
		}
	}
	return 0
}

// markBeforeParen is beforeParen for the here-document that is opened at
// text[at:] and not closed.
func markBeforeParen(text string, at int, mark string) int {
	if at >= len(text) {
		return 0
	}
	open, _, ok := strings.Cut(text[at:], "\n")
	if !ok {
		return 0
	}
	return beforeParen(text, at+len(open)+1, len(text), mark, strings.Contains(open, "<<-"))
}

// endMark is the end mark of a here-document.
type endMark struct {
	text       string // after quote removal
	quoted     bool
	lastQuoted bool // its last part is
}

// markOf reads an end mark; ok is false if it is written in a way in which the
// parser and bash differ.
func markOf(w *syntax.Word) (m endMark, ok bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		m.lastQuoted = true
		switch p := p.(type) {
		case *syntax.Lit:
			m.lastQuoted = strings.Contains(p.Value, `\`)
			unescape(p.Value, false, func(s string, _ bool) { b.WriteString(s) })
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				return m, false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				lit, plain := q.(*syntax.Lit)
				if !plain || strings.Contains(lit.Value, `\`) {
					return m, false
				}
				b.WriteString(lit.Value)
			}
		default:
			return m, false
		}
		m.quoted = m.quoted || m.lastQuoted
	}
	m.text = b.String()
	return m, true
}
