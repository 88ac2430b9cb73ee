package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Some builtins run a text that the shell itself has not read: a callback, an
// alias, and a subscript, which bash expands once more when it looks the
// variable up. So `unset 'a[$(rm x)]'` runs rm. It expands the elements of an
// array once more, too, that are declared by a text, as by `declare -a
// 'x=($(rm x))'`, and the subscripts of all that are assigned at once.

// evaluated reads the texts that a builtin keeps or runs.
func (r *reading) evaluated(base string, args []arg, words []string, st *state, in where, at int) {
	switch base {
	case "mapfile", "readarray", "complete", "compgen":
		for i := 1; i < len(words); i++ {
			w := words[i]
			if len(w) < 2 || w[0] != '-' || w[1] == '-' {
				continue
			}
			flag := strings.IndexAny(w, "CW")
			if flag < 0 || w[flag] == 'W' && base[0] != 'c' {
				continue
			}
			text := w[flag+1:]
			if text == "" && i+1 < len(words) {
				i++
				text = words[i]
			}
			if w[flag] == 'C' {
				r.floor(at, FloorOpaque, base+" -C runs a text as a program")
				r.payload(text, st, in, at, args[i].start, false)
			} else if substitutes(literal(args[i].w)) {
				r.floor(at, FloorOpaque, base+" -W expands a text")
			}
		}
	case "alias":
		for i := 1; i < len(words); i++ {
			_, text, ok := strings.Cut(words[i], "=")
			if r.dynamic(args[i].w) || ok && r.opens(text) {
				r.floor(at, FloorOpaque, "alias keeps a text to run as a program")
			}
			if ok {
				r.payload(text, st, in, at, args[i].start, false)
			}
		}
	case "fc":
		if !slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "l") }) {
			r.floor(at, FloorOpaque, "fc runs what was typed before, changed")
		}
	case "set":
		for i, w := range words {
			if switches(w, "H") || i > 1 && w == "histexpand" && words[i-1] == "-o" {
				r.floor(at, FloorOpaque, "set "+w+" puts what was typed before into commands")
			}
			if w == "--" {
				break
			}
		}
	case "hash", "enable":
		for _, w := range words[1:] {
			if switches(w, "pf") {
				r.floor(at, FloorIndirection, base+" "+w+" changes what a command runs")
				break
			}
		}
	}
	switch base {
	case "printf":
		if len(words) < 2 || !strings.HasPrefix(words[1], "-v") {
			return
		}
	case "test", "[":
		r.limits.evaluates = r.limits.evaluates || slices.Contains(words, "-v") || slices.Contains(words, "-R")
	case "mapfile", "readarray", "read", "unset", "let", "wait", "getopts",
		"declare", "typeset", "local", "export", "readonly":
		r.limits.evaluates = true
	default:
		return
	}
	for _, a := range args[1:] {
		if r.runsSubscript(a.w, st) {
			r.floor(at, FloorOpaque, base+" runs what stands in a subscript")
			return
		}
	}
	for _, name := range sets(base, words) {
		if hijacks(name, "$") {
			r.floor(at, FloorIndirection, "setting "+name+" changes what a command runs")
		}
	}
	switch base {
	case "declare", "typeset", "local", "export", "readonly":
		for i, a := range args[1:] {
			r.setsText(words[1+i], a.w, st, at)
		}
		if refers(words) {
			r.references(words, at)
		}
		if makesArray(words) && slices.ContainsFunc(args[1:], func(a arg) bool { return expands(a.w) }) {
			r.floor(at, FloorOpaque, base+" makes an array of a text that it expands")
		}
	}
}

// opens reports whether what follows an alias for text is still a command of its
// own, or can't be read with it.
func (r *reading) opens(text string) bool {
	stmts, _, broken := r.rd.parse(text + " x")
	if broken != "" || len(stmts) == 0 {
		return true
	}
	last := stmts[len(stmts)-1]
	for {
		b, ok := last.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		last = b.Y
	}
	c, ok := last.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) < 2 {
		return true
	}
	switch baseName(r.raw(c.Args[0])) {
	case "command", "builtin", "exec", "busybox", "toybox":
		return true
	}
	return false
}

// sets are the variables that a builtin gives a value that it is not told by an
// assignment: with words that are none among them.
func sets(base string, words []string) []string {
	var names []string
	if len(words) < 2 {
		return nil
	}
	switch base {
	case "read", "mapfile", "readarray", "getopts":
		names = words[1:]
	case "printf":
		names = words[1:min(3, len(words))]
	default:
		return nil
	}
	var out []string
	for _, w := range names {
		if base == "printf" {
			w = strings.TrimPrefix(w, "-v")
		}
		if w, _, _ = strings.Cut(w, "["); identifier(w) {
			out = append(out, w)
		}
	}
	return out
}

// setsText adds a floor to the unit at where w, with the text raw, is a quoted
// NAME=value that changes what a command runs.
func (r *reading) setsText(raw string, w *syntax.Word, st *state, at int) {
	name, value, ok := strings.Cut(raw, "=")
	name, _, _ = strings.Cut(strings.TrimSuffix(name, "+"), "[")
	if ok && identifier(name) && hijacks(name, value) {
		r.floor(at, FloorIndirection, "setting "+name+" changes what a command runs")
	}
}

// refers reports whether options of declare and its like make references.
func refers(words []string) bool {
	return words[0] != "export" && words[0] != "readonly" && slices.ContainsFunc(words[1:], func(w string) bool {
		return switches(w, "n")
	})
}

// references adds a floor to the unit at where a name of words, which refers
// reports, stands for a variable that changes what a command runs or that is not
// known.
func (r *reading) references(words []string, at int) {
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") || strings.HasPrefix(w, "+") {
			continue
		}
		if _, to, _ := strings.Cut(w, "="); !identifier(to) {
			r.floor(at, FloorOpaque, words[0]+" makes a name stand for a variable that is not known")
		} else if hijacks(to, "$") {
			r.floor(at, FloorIndirection, "setting "+to+" changes what a command runs")
		}
	}
}

// makesArray reports whether options of declare and its like make arrays.
func makesArray(words []string) bool {
	return slices.ContainsFunc(words[1:], func(w string) bool {
		return strings.HasPrefix(w, "-") && strings.ContainsAny(w, "aA")
	})
}

// expands reports whether x has variables or substitutions in it.
func expands(x syntax.Node) bool {
	found := false
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst:
			found = true
		}
		return !found
	})
	return found
}

// expandsAgain reports whether the subscript x of an array that is assigned at
// once may hold what runs a command.
func expandsAgain(x syntax.ArithmExpr) bool {
	if x == nil {
		return false
	}
	found := expands(x)
	syntax.Walk(x, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			found = found || substitutes(literal(w))
		}
		return !found
	})
	return found
}

// literal is what w holds as text: its expansions are left out, what is quoted
// is in.
func literal(w *syntax.Word) string {
	var b strings.Builder
	var add func(p syntax.WordPart, inQuotes bool)
	add = func(p syntax.WordPart, inQuotes bool) {
		switch p := p.(type) {
		case *syntax.Lit:
			unescape(p.Value, inQuotes, func(s string, _ bool) { b.WriteString(s) })
		case *syntax.SglQuoted:
			b.WriteString(single(p))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				add(q, true)
			}
		}
	}
	for _, p := range w.Parts {
		add(p, false)
	}
	return b.String()
}

// substitutes reports whether text would run a command if it were expanded.
func substitutes(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`")
}

// runsSubscript reports whether the text of w is a variable with a subscript
// that runs a command, or an array with an element that does.
func runsSubscript(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	if _, ok := plain(w); ok {
		return false
	}
	text := literal(w)
	if elements := strings.TrimLeft(text, " \t\n"); strings.HasPrefix(elements, "(") || strings.Contains(text, "=(") {
		return substitutes(text)
	}
	return subscriptRuns(text)
}

// subscriptRuns reports whether text is a variable with a subscript that runs a
// command.
func subscriptRuns(text string) bool {
	for i := 1; i < len(text); i++ {
		if text[i] == '[' && named(text[i-1]) {
			return substitutes(text[i:])
		}
	}
	return false
}

// runsSubscript is the function of that name for a word in which variables that
// the program sets are put in.
func (r *reading) runsSubscript(w *syntax.Word, st *state) bool {
	return r.limits.brackets && w != nil && (runsSubscript(w) || variable(w) && r.subscriptIn(w, st))
}

// subscriptIn reports whether w, with variables that the program sets put in, is
// a variable with a subscript that runs a command.
func (r *reading) subscriptIn(w *syntax.Word, st *state) bool {
	if _, ok := plain(w); ok {
		return false
	}
	return slices.ContainsFunc(r.values(w, st), func(l letters) bool {
		if strings.IndexByte(l.text, '[') < 0 {
			return false
		}
		var b strings.Builder
		for i := range len(l.text) {
			if l.marks[i] != unknown {
				b.WriteByte(l.text[i])
			}
		}
		return subscriptRuns(b.String())
	})
}

// mayRunSubscripts reports whether a text has what runsSubscript looks for,
// perhaps in parts.
func mayRunSubscripts(text string) bool {
	return strings.ContainsAny(text, "[(") && strings.ContainsAny(text, "$`\\")
}

func named(c byte) bool {
	return c == '_' || c == ']' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// expandsTwice reports whether a test looks its operands up as variables or
// arithmetic.
func expandsTwice(x syntax.TestExpr) bool {
	switch x := x.(type) {
	case *syntax.UnaryTest:
		return x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			return true
		}
	}
	return false
}

// subscripts marks a test whose operands run a command when they are looked up.
func (r *reading) subscripts(x syntax.TestExpr, st *state, operands ...syntax.TestExpr) {
	if !expandsTwice(x) {
		return
	}
	r.limits.evaluates = true
	for _, o := range operands {
		if w, ok := o.(*syntax.Word); ok && r.runsSubscript(w, st) {
			r.broken("it tests a variable by a subscript that runs a command")
		}
	}
}

// gitConfig reads the settings that git is given on its command line: some name
// a program that it runs, and an alias is one.
func (r *reading) gitConfig(args []arg, words []string, st *state, in where, at int) {
	i := 1
	for ; i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		w := words[i]
		name, value, inline := strings.Cut(w, "=")
		setting := ""
		switch {
		case name == "--exec-path" && inline:
			r.floor(at, FloorIndirection, "--exec-path changes what git runs")
			continue
		case name == "--config-env" && inline:
			setting = value
		case w == "-c" || w == "--config-env":
			if i++; i >= len(words) {
				return
			}
			setting = words[i]
		case strings.HasPrefix(w, "-c"):
			setting = w[2:]
		default:
			if word(gitValues, w) {
				i++
			}
			continue
		}
		key, value, _ := strings.Cut(setting, "=")
		section, rest, _ := strings.Cut(strings.ToLower(key), ".")
		if name == "--config-env" {
			value = "?" // what the variable holds is not known
		}
		switch {
		case section == "alias":
			r.floor(at, FloorOpaque, "git runs the alias that it is given")
			if text, ok := strings.CutPrefix(value, "!"); ok {
				r.payload(text, st, in, at, args[i].start, false)
			} else {
				r.payload("git "+value, st, in, at, args[i].start, false)
			}
		case gitRuns(section, rest, value):
			r.floor(at, FloorIndirection, "setting "+key+" changes what git runs")
		}
	}
	r.gitTexts(args, words, i, st, in, at)
}

// gitRuns reports whether git-config(1) has a setting name a program that git
// runs, or a file that may. section and rest are in lower case.
func gitRuns(section, rest, value string) bool {
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	switch value {
	case "", "true", "false", "yes", "no", "on", "off", "0", "1":
		return false
	}
	switch last {
	case "hookspath":
		return value != "/dev/null" // there are none
	case "update":
		return section == "submodule" && strings.HasPrefix(value, "!") // others are its own words
	}
	switch section {
	case "pager":
		return hijacks("PAGER", value)
	case "core":
		switch last {
		case "pager", "editor":
			return hijacks("PAGER", value)
		}
		return word("sshcommand gitproxy fsmonitor askpass alternaterefscommand", last)
	case "sequence":
		return hijacks("EDITOR", value)
	case "include", "includeif":
		return true
	case "difftool", "mergetool", "browser", "man", "guitool", "lfs":
		if last == "path" {
			return true
		}
	case "sendemail":
		return last == "smtpserver" && strings.HasPrefix(value, "/") || strings.HasSuffix(last, "cmd")
	case "protocol":
		return rest == "ext.allow"
	}
	if strings.HasSuffix(last, "command") || strings.HasSuffix(last, "cmd") {
		return true
	}
	return word("external textconv driver clean smudge process helper program difffilter uploadpack receivepack vcs templatedir packobjectshook recentobjectshook browser tunnel httpd", last)
}

// gitText is the command that a setting for which gitRuns holds has git run; ok
// is false if it names another thing, such as a directory of hooks.
func gitText(section, rest, value string) (text string, ok bool) {
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	switch text, shell := strings.CutPrefix(value, "!"); {
	case word("include includeif protocol", section) || word("hookspath templatedir vcs", last):
		return "", false
	case shell:
		return text, true
	case section == "credential" && last == "helper" && !strings.HasPrefix(value, "/"):
		return "git credential-" + value, true
	}
	return value, true
}
