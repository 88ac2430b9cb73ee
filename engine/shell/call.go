package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arg is one word of a simple command.
type arg struct {
	w          *syntax.Word
	raw        string // after quote removal, expansions as typed
	start, end int    // in the text
}

func (r *reading) args(c *syntax.CallExpr) []arg {
	list := make([]arg, len(c.Args))
	for i, w := range c.Args {
		list[i] = arg{w, r.raw(w), int(w.Pos().Offset()), int(w.End().Offset())}
	}
	return list
}

// textOf is the text of args as typed, with redirects between them left out.
func (r *reading) textOf(args []arg, redirs []*syntax.Redirect) string {
	first, last := args[0], args[len(args)-1]
	between := false
	for _, d := range redirs {
		at := int(d.Pos().Offset())
		between = between || at > first.start && at < last.end
	}
	if !between {
		return r.text(first.start, last.end)
	}
	var b strings.Builder
	next := 0 // of the redirects, which stand in the order of the text
	for i, a := range args {
		if i > 0 {
			gap := r.text(args[i-1].end, a.start)
			for ; next < len(redirs) && int(redirs[next].Pos().Offset()) < a.start; next++ {
				if int(redirs[next].Pos().Offset()) >= args[i-1].end {
					gap = " "
				}
			}
			b.WriteString(gap)
		}
		b.WriteString(r.text(a.start, a.end))
	}
	return b.String()
}

// call reads a simple command.
func (r *reading) call(c *syntax.CallExpr, s *syntax.Stmt, st *state, w where) {
	var floors []Floor
	for _, a := range c.Assigns {
		if f, ok := r.hijack(a); ok {
			floors = append(floors, f)
		}
	}
	if len(c.Args) == 0 {
		if len(s.Redirs) > 0 {
			r.limits.redirectOnly = true
		}
		if len(floors) > 0 {
			text := r.slice(c)
			r.add(Unit{Text: text, Words: []string{text}, Floors: floors}, w)
		}
		for _, a := range c.Assigns {
			r.assign(a, st, w, true)
		}
		return
	}
	feed := r.feed
	r.feed = nil
	args := r.args(c)
	x := execution{args: args, redirs: s.Redirs, floors: floors, feed: feed, shell: true}
	r.execute(&x, st, w)
	for _, a := range c.Assigns {
		r.assign(a, st, w, false)
		if x.after != nil && a.Name != nil && word(placing, a.Name.Value) {
			// It may go by a variable that only it is given.
			x.after = st.away
		}
	}
	for _, a := range args {
		r.inside(a.w, st, w)
	}
	if x.after != nil {
		x.after()
	}
}

// execution is one command with its words, typed or inside a wrapper.
type execution struct {
	args   []arg
	redirs []*syntax.Redirect
	floors []Floor
	feed   *string // what a pipe feeds it
	shell  bool    // it runs in the shell that reads it, so a cd counts
	behind bool    // it is behind a wrapper, so its name is no function's
	after  func()  // what it does to the shell, once its words are read
}

// execute makes a unit of x and of what it runs, and notes its operands. It
// returns the index of the unit, -1 for none.
func (r *reading) execute(x *execution, st *state, w where) int {
	args := x.args
	name := args[0].raw
	if r.limits.words += len(args); r.limits.words > maxWords {
		r.broken("it has too many commands")
		r.limits.full = true
	}
	if r.limits.full {
		return -1
	}
	u := Unit{Text: r.textOf(args, x.redirs), Floors: x.floors, Words: make([]string, len(args))}
	for i, a := range args {
		u.Words[i] = a.raw
	}
	r.spellings(&u, args, st)
	if why := r.computed(args[0].w); why != "" {
		u.Floors = append(u.Floors, Floor{FloorComputed, why})
	}
	base := baseName(name)
	if itself(name) {
		base = "bash"
	}
	at := r.add(u, w)
	if w.layers > maxLayers {
		r.broken("it has too many wrappers in each other")
		return at
	}
	in := w
	in.layers++
	if at >= 0 {
		in.wrapper = at
	}
	if g, ok := args[0].w.Parts[0].(*syntax.ExtGlob); ok && g.Op == syntax.GlobExcept {
		// Without extglob this is the negation of a subshell.
		sub := w
		sub.context = ContextSubshell
		r.payload(g.Pattern.Value, st, sub, -1, args[0].start, false)
	}
	inner := r.unwrap(base, x, u.Words, st, in, at)
	r.filledIn(args, u.Words, st, in)
	r.operands(base, args, inner, st, at)
	if x.shell {
		x.after = r.effect(base, x, st, w)
	}
	return at
}

// floor adds a reason to ask to the unit at.
func (r *reading) floor(at int, pattern, why string) {
	if at >= 0 {
		u := &r.prog.Units[at]
		u.Floors = append(u.Floors, Floor{pattern, why})
	}
}

func baseName(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	return strings.TrimSuffix(name, ".exe")
}

// itself reports whether name is the program of the shell that runs it.
func itself(name string) bool {
	return strings.HasPrefix(name, "/proc/") && strings.HasSuffix(name, "/exe")
}

// computed says why the name of a command is known only when it runs.
func (r *reading) computed(w *syntax.Word) string {
	if _, ok := plain(w); ok {
		return ""
	}
	for _, p := range w.Parts {
		if why := computedPart(p, false); why != "" {
			return why
		}
	}
	l := r.values(w, &state{})[0]
	if l.glob() != "" {
		return "its name has a wildcard"
	}
	if words, ok := l.braces(); !ok || len(words) > 1 {
		return "its name has a brace expansion"
	}
	return ""
}

func computedPart(p syntax.WordPart, inQuotes bool) string {
	switch p := p.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
		return ""
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			if why := computedPart(q, true); why != "" {
				return why
			}
		}
		return ""
	case *syntax.ParamExp:
		return "its name comes from a variable"
	case *syntax.CmdSubst, *syntax.ProcSubst:
		return "its name comes from another command"
	}
	return "its name is computed"
}

// spaced reports whether text is words with one space between them.
func spaced(text string, words []string) bool {
	for i, w := range words {
		if i > 0 {
			if text == "" || text[0] != ' ' {
				return false
			}
			text = text[1:]
		}
		rest, ok := strings.CutPrefix(text, w)
		if !ok {
			return false
		}
		text = rest
	}
	return text == ""
}

// spellings fills u's forms.
func (r *reading) spellings(u *Unit, args []arg, st *state) {
	r.limits.spelled += len(u.Text)
	u.Spellings = make([]string, 1, 2)
	u.Spellings[0] = u.Text
	if !spaced(u.Text, u.Words) {
		r.spell(&u.Spellings, strings.Join(u.Words, " "))
	}

	simple := true
	for _, a := range args {
		if _, ok := plain(a.w); !ok {
			simple = false
			break
		}
	}
	strict := func(words []string) {
		if len(words) == 0 {
			return
		}
		s := strings.Join(words, " ")
		for _, have := range u.Spellings {
			if have == s {
				return
			}
		}
		r.spell(&u.Strict, s)
	}
	derive := func(words []string) {
		if len(words) == 0 {
			return
		}
		base := baseName(words[0])
		if base != words[0] {
			words = append([]string{base}, words[1:]...)
			strict(words)
		}
		if base == "git" && len(words) > 1 && strings.HasPrefix(words[1], "-") {
			if plain, ok := plainGit(words); ok {
				strict(plain)
			}
		}
	}
	if simple {
		derive(u.Words)
		return
	}

	// The words with the home directory in its three forms, with the values of
	// variables, and with braces expanded.
	home := r.env.Home
	forms := [3][]string{} // as a path, as ~, as $HOME
	anyHome := false
	known := make([]string, 0, len(args))
	var spliced []string
	var choices [][]string // per word, if it has braces
	differs, braced := false, false
	for i, a := range args {
		vals := r.values(a.w, st)
		l, isHome, _ := r.tilde(vals[0], st)
		if home != "" && (isHome || homeVariable(a.w)) && strings.HasPrefix(l.text, home) {
			anyHome = true
			rest := l.text[len(home):]
			forms[0] = append(forms[0], home+rest)
			forms[1] = append(forms[1], "~"+rest)
			forms[2] = append(forms[2], "$HOME"+rest)
		} else {
			for f := range forms {
				forms[f] = append(forms[f], a.raw)
			}
		}
		text := l.text
		for _, m := range l.marks {
			if m == unknown {
				text = a.raw
				break
			}
		}
		known = append(known, text)
		differs = differs || text != a.raw
		words, ok := vals[0].braces()
		if !ok {
			r.broken("a brace expansion has too many results")
			words = vals[:1]
		}
		var texts []string
		for _, e := range words {
			texts = append(texts, e.text)
		}
		if len(words) > 1 {
			braced = true
		}
		choices = append(choices, texts)
		for _, t := range texts {
			if t != "" || len(texts) == 1 {
				spliced = append(spliced, t)
			}
		}
		_ = i
	}
	if anyHome {
		for _, f := range forms {
			r.spell(&u.Spellings, strings.Join(f, " "))
		}
	}
	derive(u.Words)
	if differs {
		strict(known)
		derive(known)
		if strings.ContainsAny(known[0], " \t") {
			// A variable that holds a command with its arguments is split.
			words := strings.Fields(strings.Join(known, " "))
			strict(words)
			derive(words)
		}
	}
	if braced {
		strict(spliced)
		derive(spliced)
		combos := [][]string{make([]string, 0, len(choices))}
		for _, c := range choices {
			if len(combos)*len(c) > maxResults {
				// All results together are spelled above; each of them with
				// each other would be too many.
				for i := range combos {
					combos[i] = append(combos[i], c[i%len(c)])
				}
				continue
			}
			for i, n := 0, len(combos); i < n; i++ {
				for _, t := range c[1:] {
					combos = append(combos, append(append(make([]string, 0, len(choices)), combos[i]...), t))
				}
				combos[i] = append(combos[i], c[0])
			}
		}
		for _, c := range combos {
			strict(c)
			derive(c)
		}
	}
}

// homeVariable reports whether w starts with $HOME or ${HOME}.
func homeVariable(w *syntax.Word) bool {
	p := w.Parts[0]
	if q, ok := p.(*syntax.DblQuoted); ok && len(q.Parts) > 0 {
		p = q.Parts[0]
	}
	e, ok := p.(*syntax.ParamExp)
	return ok && e.Param != nil && e.Param.Value == "HOME" && e.Exp == nil && e.Repl == nil && e.Slice == nil && !e.Length && !e.Excl
}

// used is which words of a command are its own, once what it runs is known.
type used struct {
	from, to int // the words of the inner command: not the wrapper's operands
}

// unwrap reads what a wrapper runs.
func (r *reading) unwrap(base string, x *execution, words []string, st *state, in where, at int) used {
	args := x.args
	r.evaluated(base, args, words, st, in, at)
	r.texts(base, args, words, 1, st, in, at)
	r.scripts(base, args, words, st, in, at)
	switch {
	case base == "git":
		r.gitConfig(args, words, st, in, at)
		return used{}
	case base == "command" || base == "builtin" || base == "exec":
		if i := transparent(base, words); i > 0 {
			r.inner(x, i, len(args), st, in, at, x.shell)
			return used{i, len(args)}
		}
		return used{}
	case base == "busybox" || base == "toybox":
		if len(args) > 1 && !strings.HasPrefix(words[1], "-") {
			r.inner(x, 1, len(args), st, in, at, false)
			return used{1, len(args)}
		}
		return used{}
	case base == "eval":
		r.floor(at, FloorOpaque, "eval runs a text as a program")
		i := 1
		if i < len(words) && words[i] == "--" {
			i++
		}
		if i < len(words) {
			r.payload(strings.Join(words[i:], " "), st, in, at, args[i].start, x.shell)
		}
		return used{1, len(args)}
	case base == "trap":
		return r.trap(args, words, st, in, at)
	case base == "source" || base == ".":
		i := 1
		if len(args) > 1 && words[1] == "--" {
			i++
		}
		if i < len(args) && r.fed(args[i], st) {
			r.floor(at, FloorOpaque, base+" runs what another command or its input says")
			r.fedText(x, i, st, in, at, x.shell)
		}
		return used{}
	case isShell(base):
		return r.shell(base, x, words, st, in, at)
	case base == "find" || base == "gfind" || base == "bfs":
		return r.find(x, words, st, in, at)
	case base == "fd" || base == "fdfind":
		return r.fd(base, x, words, st, in, at)
	}
	g, ok := wrapper(base)
	if !ok {
		return used{}
	}
	o := g.open(words)
	if !g.bare || o.command > 0 || o.program > 0 {
		r.floor(at, FloorIndirection, base+" runs another command")
	}
	if base == "strace" {
		for _, i := range o.own {
			// strace -o '|command', or with a `!`.
			_, text, _ := strings.Cut(words[i], "=")
			for _, v := range [...]string{words[i], strings.TrimPrefix(words[i], "-o"), text} {
				if len(v) > 1 && (v[0] == '|' || v[0] == '!') {
					r.payload(v[1:], st, in, -1, args[i].start, false)
					break
				}
			}
		}
	}
	switch {
	case o.program > 0:
		a := args[o.program]
		text := a.raw[min(o.skip, len(a.raw)):]
		if base == "env" {
			text = splitString(text)
		}
		r.payload(text, st, in, at, a.start, false)
		if base == "env" && o.program+1 < len(args) {
			// env -S puts what follows behind the words of the string.
			all := []string{text}
			for _, w := range words[o.program+1:] {
				all = append(all, requoted(w))
			}
			r.payload(strings.Join(all, " "), st, in, -1, a.start, false)
		}
		return used{o.program, o.program + 1}
	case o.command == 0:
		return used{}
	case o.guess:
		// Each further word may be where the inner command begins.
		guess := in
		guess.guess = true
		for i := o.command; i < o.end && i < o.command+32; i++ {
			if r.limits.guesses++; r.limits.guesses > maxGuesses {
				r.broken("where the command begins that " + base + " runs is not known")
				break
			}
			if !strings.HasPrefix(words[i], "-") {
				y := execution{args: args[i:o.end], redirs: x.redirs}
				r.mutedOperands(func() { r.execute(&y, st, guess) })
			}
		}
		return used{}
	case g.joined && !o.exec:
		r.payload(strings.Join(words[o.command:o.end], " "), st, in, at, args[o.command].start, false)
	default:
		r.inner(x, o.command, o.end, st, in, at, false)
	}
	return used{o.command, o.end}
}

// splitString is the text of env -S as a shell has it. Its words are env's own.
func splitString(text string) string {
	text = strings.ReplaceAll(text, `\_`, " ")
	if strings.HasPrefix(strings.TrimLeft(text, " \t"), "-") {
		return "env " + text
	}
	return text
}

// requoted is a word that bash reads as s.
func requoted(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,+@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// mutedOperands runs f and drops the operands it notes.
func (r *reading) mutedOperands(f func()) {
	n := len(r.prog.Operands)
	f()
	r.prog.Operands = r.prog.Operands[:n]
}

// filledIn reads once more a command that runs others, with what is known of its
// variables put in and its braces expanded: `find . $X rm {} +` may run rm. If
// that tells nothing new, it leaves nothing behind.
func (r *reading) filledIn(args []arg, words []string, st *state, in where) {
	if r.mute > 0 || !slices.ContainsFunc(args, func(a arg) bool { return variable(a.w) }) {
		return
	}
	values := make([][]letters, len(args))
	values[0] = r.values(args[0].w, st)
	if !slices.ContainsFunc(values[0], func(l letters) bool {
		results, _ := l.braces()
		for _, l := range results {
			if fields := l.split(); len(fields) > 0 {
				return runsOthers(baseName(fields[0]))
			}
		}
		return false
	}) {
		return
	}
	variants := 1
	for i, a := range args {
		if i > 0 {
			values[i] = r.values(a.w, st)
		}
		variants = max(variants, len(values[i]))
	}
	for v := range variants {
		var out []string
		differs := false
		for i, a := range args {
			l := values[i][min(v, len(values[i])-1)]
			if slices.Contains(l.marks, unknown) {
				out = append(out, `"$_"`)
				continue
			}
			results, _ := l.braces()
			differs = differs || len(results) > 1
			for _, l := range results {
				fields := l.split()
				differs = differs || len(fields) != 1 || fields[0] != a.raw
				for _, f := range fields {
					out = append(out, requoted(f))
				}
			}
		}
		if !differs || len(out) == 0 || !runsOthers(baseName(out[0])) {
			continue
		}
		n := len(r.prog.Units)
		again := func() { r.payload(strings.Join(out, " "), st, in, -1, args[0].start, false) }
		if base := baseName(out[0]); base == "eval" || isShell(base) && slices.ContainsFunc(out, func(w string) bool { return switches(w, "c") }) {
			again() // the text may name files that no word does
		} else {
			r.mutedOperands(again)
		}
		if len(r.prog.Units) == n+1 && len(r.prog.Units[n].Floors) == 0 {
			r.prog.Units = r.prog.Units[:n]
		}
	}
}

// variable reports whether w may be another word than the one that is typed, or
// several: it has a variable or braces.
func variable(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.ParamExp:
			return true
		case *syntax.Lit:
			if strings.IndexByte(p.Value, '{') >= 0 && p.Value != "{}" {
				return true
			}
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if _, ok := q.(*syntax.ParamExp); ok {
					return true
				}
			}
		}
	}
	return false
}

// runsOthers reports whether a command runs what its words say.
func runsOthers(name string) bool {
	switch name {
	case "git", "command", "builtin", "exec", "busybox", "toybox", "eval", "trap", "source", ".", "find", "gfind", "bfs", "fd", "fdfind":
		return true
	}
	if _, ok := wrapper(name); ok || isShell(name) {
		return true
	}
	_, ok := takesTexts(name)
	return ok || hasScript(name)
}

// inner reads the command in args[from:to] and tells its wrapper, the unit at.
func (r *reading) inner(x *execution, from, to int, st *state, in where, at int, shell bool) {
	y := execution{args: x.args[from:to], redirs: x.redirs, shell: shell, behind: true, feed: x.feed}
	i := r.execute(&y, st, in)
	if y.after != nil {
		x.after = y.after
	}
	if i >= 0 && at >= 0 && r.prog.Units[at].Executes == "" {
		r.prog.Units[at].Executes = innermost(&r.prog.Units[i])
	}
}

// payload reads a text that the unit at runs as a program. If own, it runs in
// the shell that reads it.
func (r *reading) payload(text string, st *state, in where, at, offset int, own bool) {
	if r.limits.full || strings.TrimSpace(text) == "" {
		return
	}
	r.again(text, offset, func(sub *reading) {
		stmts, src, broken := r.rd.parse(text)
		sub.src = src
		to := st
		if own {
			if r.funcs == nil {
				r.funcs = map[string][]function{}
			}
			sub.funcs = r.funcs
		} else {
			sub.funcs = nil
			copied := *st
			to = &copied
		}
		in.whole = nil
		first := len(r.prog.Units)
		sub.stmts(stmts, to, in)
		if at < 0 || r.prog.Units[at].Executes != "" {
			return
		}
		executes := strings.TrimSpace(text)
		if broken == "" && len(stmts) == 1 && first < len(r.prog.Units) && only(stmts[0]) {
			executes = innermost(&r.prog.Units[first])
		}
		r.prog.Units[at].Executes = executes
	})
}

// only reports whether s is one simple command and nothing else.
func only(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Assigns) == 0 && len(s.Redirs) == 0 && !s.Negated && !s.Background
}

// transparent finds the command that command, builtin or exec runs; 0 if none.
func transparent(base string, words []string) int {
	i := 1
	for ; i < len(words) && strings.HasPrefix(words[i], "-") && words[i] != "-"; i++ {
		if words[i] == "--" {
			i++
			break
		}
		if base == "command" && strings.ContainsAny(words[i], "vV") {
			return 0
		}
		if base == "exec" && strings.HasSuffix(words[i], "a") {
			i++
		}
	}
	if i >= len(words) {
		return 0
	}
	return i
}

func (r *reading) trap(args []arg, words []string, st *state, in where, at int) used {
	i := 1
	if i < len(words) && strings.HasPrefix(words[i], "-") && len(words[i]) > 1 {
		if words[i] != "--" {
			return used{} // -l, -p, -P only print
		}
		i++
	}
	if len(words)-i < 2 || words[i] == "-" || words[i] == "" || strings.Trim(words[i], "0123456789") == "" {
		return used{} // a reset, or a signal to be ignored
	}
	r.floor(at, FloorOpaque, "trap keeps a text to run as a program")
	r.payload(words[i], st, in, at, args[i].start, false)
	return used{i, i + 1}
}

// fed reports whether a names what another command or the input says: a
// substitution or the standard input.
func (r *reading) fed(a arg, st *state) bool {
	for _, p := range a.w.Parts {
		if q, ok := p.(*syntax.DblQuoted); ok {
			for _, p := range q.Parts {
				if _, ok := p.(*syntax.CmdSubst); ok {
					return true
				}
			}
		}
		switch p.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return true
		}
	}
	return r.isInput(a.raw, st)
}

// isInput reports whether name is the standard input or a descriptor, wherever
// the shell may stand.
func (r *reading) isInput(name string, st *state) bool {
	is := func(p string) bool {
		p = path.Clean(p)
		return p == "/dev/stdin" || p == "/dev/tty" || strings.HasPrefix(p, "/dev/fd/") || strings.HasPrefix(p, "/proc/") && strings.Contains(p, "/fd/")
	}
	if strings.HasPrefix(name, "/") || name == "" {
		return is(name)
	}
	if st.dirs == nil && !strings.Contains(name, "..") && !strings.HasPrefix(r.env.Cwd, "/dev") {
		return false
	}
	for _, dir := range st.places(r.env.Cwd) {
		if is(dir + "/" + name) {
			return true
		}
	}
	return false
}

// shell reads a call of a shell: with -c, with its program on its input, or
// with a script.
func (r *reading) shell(base string, x *execution, words []string, st *state, in where, at int) used {
	given := false // -c was
	input := false // -s was
	i := 1
	for ; i < len(words); i++ {
		o := words[i]
		if o == "--" || o == "-" {
			i++
			break
		}
		if o == "--version" || o == "--help" {
			return used{}
		}
		if v, ok := strings.CutPrefix(o, "--command"); ok && (v == "" || v[0] == '=') { // fish(1)
			given = true
			if v != "" {
				r.floor(at, FloorOpaque, base+" runs a text as a program")
				r.payload(v[1:], st, in, at, x.args[i].start, false)
				return used{i, i + 1}
			}
			continue
		}
		if strings.HasPrefix(o, "--") {
			if o == "--rcfile" || o == "--init-file" {
				i++
			}
			continue
		}
		if len(o) < 2 || o[0] != '-' && o[0] != '+' {
			break
		}
		for _, c := range o[1:] {
			switch c {
			case 'c':
				given = given || o[0] == '-'
			case 's':
				input = input || o[0] == '-'
			case 'o', 'O':
				if i++; i < len(words) {
					r.limits.globs |= globOption(words[i])
				}
			}
		}
	}
	switch {
	case given:
		r.floor(at, FloorOpaque, base+" -c runs a text as a program")
		if i < len(words) {
			if !r.dynamic(x.args[i].w) {
				r.payload(words[i], st, in, at, x.args[i].start, false)
			}
			return used{i, i + 1}
		}
	case i >= len(words) || input:
		r.floor(at, FloorOpaque, base+" runs its input as a program")
		r.inputs(x.redirs, st, in, at, false)
		if x.feed != nil {
			r.payload(*x.feed, st, in, at, x.args[0].start, false)
		}
	case r.fed(x.args[i], st):
		r.floor(at, FloorOpaque, base+" runs what another command or its input says")
		r.fedText(x, i, st, in, at, false)
	}
	return used{}
}

// inputs reads the texts that redirects hand to the unit at, which runs them.
func (r *reading) inputs(redirs []*syntax.Redirect, st *state, in where, at int, own bool) {
	for _, d := range redirs {
		if text, ok := r.given(d); ok {
			r.payload(text, st, in, at, int(d.OpPos.Offset()), own)
		}
	}
}

// given is the text that d puts on the standard input, if it is a
// here-document, a here-string, or what a process substitution plainly prints.
func (r *reading) given(d *syntax.Redirect) (text string, ok bool) {
	switch {
	case d.Op == syntax.WordHdoc:
		return r.raw(d.Word), true
	case (d.Op == syntax.Hdoc || d.Op == syntax.DashHdoc) && d.Hdoc != nil:
		return r.document(d), true
	case d.Op == syntax.RdrIn && d.Word != nil:
		return r.substituted(d.Word)
	}
	return "", false
}

// substituted is the text that w's process substitution plainly prints.
func (r *reading) substituted(w *syntax.Word) (text string, ok bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	p, ok := w.Parts[0].(*syntax.ProcSubst)
	if !ok || p.Op != syntax.CmdIn || len(p.Stmts) != 1 {
		return "", false
	}
	t := printed(r, p.Stmts[0])
	if t == nil {
		return "", false
	}
	return *t, true
}

// fedText reads the text that the word x.args[i] names, which fed reports: a
// process substitution, or the input.
func (r *reading) fedText(x *execution, i int, st *state, in where, at int, own bool) {
	if text, ok := r.substituted(x.args[i].w); ok {
		r.payload(text, st, in, at, x.args[i].start, own)
		return
	}
	if r.isInput(x.args[i].raw, st) {
		r.inputs(x.redirs, st, in, at, own)
		if x.feed != nil {
			r.payload(*x.feed, st, in, at, x.args[i].start, own)
		}
	}
}

// document is the text of a here-document.
func (r *reading) document(d *syntax.Redirect) string {
	var b strings.Builder
	for _, p := range d.Hdoc.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
			continue
		}
		b.WriteString(r.slice(p))
	}
	return b.String()
}

// dynamic reports whether w is nothing but an expansion.
func (r *reading) dynamic(w *syntax.Word) bool {
	p := w.Parts
	if len(p) == 1 {
		if q, ok := p[0].(*syntax.DblQuoted); ok {
			p = q.Parts
		}
	}
	if len(p) != 1 {
		return false
	}
	switch p[0].(type) {
	case *syntax.ParamExp, *syntax.CmdSubst:
		return true
	}
	return false
}

// find reads find's -exec and its like.
func (r *reading) find(x *execution, words []string, st *state, in where, at int) used {
	var u used
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		if u.from == 0 {
			r.floor(at, FloorIndirection, "find "+words[i]+" runs another command")
			u = used{i, len(words)}
		}
		end := i + 1
		for end < len(words) && words[end] != ";" && (words[end] != "+" || words[end-1] != "{}") {
			end++
		}
		if end > i+1 {
			r.inner(x, i+1, end, st, in, at, false)
		}
		i = end
	}
	return u
}

// fdFlags are fd's short options without a value, from fd(1).
const fdFlags = "HIusiFapgLl0q1hVj"

// fd reads fd's -x and -X.
func (r *reading) fd(base string, x *execution, words []string, st *state, in where, at int) used {
	for i := 1; i < len(words); i++ {
		o := words[i]
		from := 0
		glued := ""
		switch {
		case o == "--":
			return used{}
		case o == "--exec" || o == "--exec-batch":
			from = i + 1
		case strings.HasPrefix(o, "--exec=") || strings.HasPrefix(o, "--exec-batch="):
			_, glued, _ = strings.Cut(o, "=")
			from = i + 1
		case len(o) > 1 && o[0] == '-' && o[1] != '-':
			k := strings.IndexAny(o, "xX")
			if k < 0 || strings.Trim(o[1:k], fdFlags) != "" {
				continue
			}
			glued = o[k+1:]
			from = i + 1
		default:
			continue
		}
		r.floor(at, FloorIndirection, base+" "+o+" runs another command")
		end := from
		for end < len(words) && words[end] != ";" {
			end++
		}
		switch {
		case glued != "":
			r.payload(strings.TrimSpace(glued+" "+strings.Join(words[from:end], " ")), st, in, at, x.args[i].start, false)
		case end > from:
			r.inner(x, from, end, st, in, at, false)
		}
		return used{i, end}
	}
	return used{}
}

// printed is the literal text that s prints, if it is a plain echo or printf,
// or a cat of a here-document.
func printed(r *reading, s *syntax.Stmt) *string {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return nil
	}
	var words []string
	for _, w := range c.Args {
		words = append(words, r.raw(w))
	}
	if words[0] == "cat" && (len(words) == 1 || len(words) == 2 && words[1] == "-") {
		for i := len(s.Redirs) - 1; i >= 0; i-- {
			if text, ok := r.given(s.Redirs[i]); ok {
				return &text
			}
		}
		return nil
	}
	if len(words) < 2 || len(s.Redirs) > 0 {
		return nil
	}
	switch words[0] {
	case "echo":
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0], "-") && strings.Trim(words[0], "-neE") == "" {
			words = words[1:]
		}
		text := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(strings.Join(words, " "))
		return &text
	case "printf":
		text := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `%s`, strings.Join(words[2:], " ")).Replace(words[1])
		return &text
	}
	return nil
}

// effect is what a command does to the shell that runs it.
func (r *reading) effect(base string, x *execution, st *state, w where) func() {
	if x.after != nil {
		return x.after
	}
	called, own := r.called(x, st, w), r.builtin(base, x.args)
	switch {
	case own == nil:
		return called
	case called == nil:
		return func() { own(st) }
	}
	return func() { // a function that may or may not have been defined
		before := *st
		called()
		own(&before)
		st.join(&before, r.env.Cwd)
	}
}

// placing are the variables that cd goes by.
const placing = "HOME OLDPWD PWD CDPATH"

// builtin is what a builtin does to the shell that runs it; nil if nothing.
func (r *reading) builtin(base string, args []arg) func(st *state) {
	switch base {
	case "cd", "chdir", "pushd", "popd":
		return func(st *state) { r.chdir(base, args[1:], st) }
	case "set":
		for i, a := range args {
			if switches(a.raw, "P") || i > 1 && a.raw == "physical" && args[i-1].raw == "-o" {
				return func(st *state) { st.real = true }
			}
		}
		return nil
	case "shopt":
		for _, a := range args[1:] {
			r.limits.globs |= globOption(a.raw)
		}
		if len(args) > 1 && slices.ContainsFunc(args[1:], func(a arg) bool { return a.raw == "cdable_vars" }) {
			return func(st *state) { r.bind(st, "CDPATH", nil, false) } // which makes it lead elsewhere as well
		}
		return nil
	case "read", "mapfile", "readarray", "getopts", "printf":
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = a.raw
		}
		if base == "printf" && (len(words) < 2 || !strings.HasPrefix(words[1], "-v")) {
			return nil
		}
		names := sets(base, words)
		if names == nil {
			return nil
		}
		return func(st *state) {
			for _, n := range names {
				if st.get(n) != nil || word(placing, n) {
					r.bind(st, n, nil, false)
				}
			}
		}
	}
	return nil
}

// called is what a function of the program does that x calls; nil if it calls
// none.
func (r *reading) called(x *execution, st *state, w where) func() {
	name := x.args[0].raw
	bodies := r.funcs[name]
	if bodies == nil || x.behind || r.limits.full {
		return nil
	}
	return func() {
		own, here := 0, 0 // calls of it that are not over yet, and those in the same place
		for _, a := range r.active {
			if a.name == name {
				own++
				if a.lost == st.lost && slices.Equal(a.dirs, st.dirs) {
					here++
				}
			}
		}
		switch {
		case here > 2:
			return // it tells nothing new
		case own >= maxRecursion || len(r.active) >= maxCallDeep:
			st.away()
			return
		}
		before, src, active := *st, r.src, r.active
		r.active = append(active[:len(active):len(active)], activation{name, place{st.dirs, st.lost}})
		r.mute++
		for i, f := range bodies {
			r.limits.calls++
			if r.limits.called += int(f.body.End().Offset() - f.body.Pos().Offset()); r.limits.calls > maxCalls || r.limits.called > maxText {
				r.broken("it calls too many functions")
				break
			}
			r.src = f.src
			if i == 0 {
				r.stmt(f.body, st, w)
				continue
			}
			other := before // which definition counts is not followed
			r.stmt(f.body, &other, w)
			st.join(&other, r.env.Cwd)
		}
		r.mute--
		r.active, r.src = active, src
	}
}

// chdir follows cd, pushd and popd.
func (r *reading) chdir(base string, args []arg, st *state) {
	if base == "popd" {
		if len(st.stack) == 0 || len(args) > 0 || st.get("DIRSTACK") != nil {
			st.away()
			return
		}
		top := st.stack[len(st.stack)-1]
		st.stack = st.stack[:len(st.stack)-1]
		st.move(top.dirs, top.lost)
		return
	}
	real := false
	for len(args) > 0 && len(args[0].raw) > 1 && args[0].raw[0] == '-' {
		o := args[0].raw
		args = args[1:]
		if o == "--" {
			break
		}
		if base == "pushd" && strings.Trim(o, "-0123456789") == "" {
			st.away()
			return
		}
		real = !strings.Contains(o, "L") && (real || strings.Contains(o, "P"))
	}
	if base == "pushd" {
		if len(args) == 0 || strings.HasPrefix(args[0].raw, "+") {
			st.away()
			return
		}
		from := 0
		if len(st.stack) == maxStack {
			from = 1 // what falls out makes a popd lead to a place that is not known
		}
		st.stack = append(st.stack[from:len(st.stack):len(st.stack)], place{st.dirs, st.lost})
	}
	switch {
	case len(args) == 0:
		home := r.env.Home
		if b := st.get("HOME"); b != nil {
			home = ""
			if b.whole && len(b.values) == 1 {
				home = b.values[0]
			}
		}
		if home == "" {
			st.away()
			return
		}
		st.cd(home, real, r.env.Cwd)
		return
	case args[0].raw == "-":
		st.back()
		return
	case st.get("CDPATH") != nil:
		st.away()
		return
	}
	start := *st
	var after *state
	for _, l := range r.values(args[0].w, st) {
		l, _, placed := r.tilde(l, &start)
		next := start
		known := placed && l.glob() == ""
		for _, m := range l.marks {
			known = known && m != unknown
		}
		if words, ok := l.braces(); !ok || len(words) > 1 {
			known = false
		}
		switch {
		case !known:
			next.away()
		case l.text == "":
		default:
			next.cd(r.slashes(l.text), real, r.env.Cwd)
		}
		if after == nil {
			after = &next
		} else {
			old := after.old
			after.join(&next, r.env.Cwd)
			after.old = old
		}
	}
	*st = *after
}

// slashes makes separators slashes where backslashes separate too.
func (r *reading) slashes(s string) string {
	if r.env.Windows {
		return strings.ReplaceAll(s, `\`, "/")
	}
	return s
}
