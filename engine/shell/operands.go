package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nod-agents/nod/engine/percent"
)

// operandKind is what is known of a word's part in its command.
type operandKind struct {
	dir       Direction
	certain   bool
	redirect  bool
	recursive bool
	gateOnly  bool
	form      bool // a form's field: `k=<file` names a file as `k=@file` does
	skip      int  // bytes before the value: `--opt=`
}

// patterns is how a command takes the patterns that are no paths.
type patterns struct {
	count  int    // positional patterns, unless a flag supplies them
	flags  string // short options with a pattern
	files  string // short options with a file of patterns
	values string // short options with another value that is no path
	glued  string // short options that take the rest of their word
	longs  string // long names of flags
	none   string // long names of flags that leave no pattern to be given
	fileLongs,
	valueLongs string
}

// patternCommands are the commands whose first words are patterns or programs,
// with options from grep(1), sed(1), gawk(1), rg(1) and sd's README.
func patternCommand(name string) (patterns, bool) {
	switch name {
	case "grep", "egrep", "fgrep":
		return patterns{count: 1, flags: "e", files: "f", values: "ABCmdD", longs: "regexp", fileLongs: "file",
			valueLongs: "after-context before-context context max-count binary-files directories devices"}, true
	case "sed", "gsed":
		return patterns{count: 1, flags: "e", files: "f", values: "l", glued: "iI", longs: "expression", fileLongs: "file", valueLongs: "line-length"}, true
	case "awk", "gawk", "nawk", "mawk":
		return patterns{count: 1, flags: "e", files: "fE", values: "Fvil", glued: "dDopL", longs: "source", fileLongs: "file exec", valueLongs: "field-separator assign include load"}, true
	case "rg":
		return patterns{count: 1, flags: "e", files: "f", values: "ABCmgtTjMrEd", longs: "regexp", none: "files type-list", fileLongs: "file",
			valueLongs: "after-context before-context context max-count glob iglob type type-not threads max-columns replace encoding max-depth engine color colors sort sortr"}, true
	case "sd":
		return patterns{count: 2, values: "nf", valueLongs: "max-replacements flags"}, true
	}
	return patterns{}, false
}

// creates reports whether a command makes or replaces what its operands name.
func creates(name string) bool {
	switch name {
	case "touch", "cp", "mv", "tee", "ln", "mkdir", "install", "truncate":
		return true
	}
	return false
}

// outputs is how a command is told the file that it writes.
type outputs struct {
	shorts string // short options with the file
	longs  string // long ones
	values string // other short options with a value
	words  string // find's own
}

// outputOptions are from sort(1), shuf(1), tar(1), curl(1), wget(1), find(1) and
// git(1).
func outputOptions(name string) (outputs, bool) {
	switch name {
	case "sort":
		return outputs{shorts: "o", longs: "output", values: "kStT"}, true
	case "shuf":
		return outputs{shorts: "o", longs: "output", values: "ein"}, true
	case "tar", "gtar":
		return outputs{shorts: "f", longs: "file", values: "bCTXgIFKLNVH"}, true
	case "curl":
		return outputs{shorts: "ocD", longs: "output cookie-jar dump-header trace trace-ascii stderr hsts etag-save alt-svc libcurl", values: "AbCdEeFHKmPQrTtuUwxXyYz"}, true
	case "wget":
		return outputs{shorts: "Oao", longs: "output-document output-file append-output", values: "AbBDeiIlPQRtTUwX"}, true
	case "ssh":
		return outputs{shorts: "E", values: "BbcDeFIiJLlmOopPQRSWw"}, true
	case "find", "gfind", "bfs":
		return outputs{words: "-fprint -fprint0 -fprintf -fls"}, true
	case "git":
		return outputs{longs: "output"}, true
	case "git archive":
		return outputs{shorts: "o", longs: "output"}, true
	}
	return outputs{}, false
}

// option finds the file in the option w: skip bytes are before it, or it is the
// next word.
func (o *outputs) option(w string) (skip int, next bool) {
	if word(o.words, w) {
		return 0, true
	}
	if long, ok := strings.CutPrefix(w, "--"); ok {
		long, value, inline := strings.Cut(long, "=")
		switch {
		case !begins(o.longs, long):
		case inline && value != "":
			return len(long) + 3, false
		default:
			return 0, !inline
		}
		return 0, false
	}
	for j := 1; j < len(w) && o.shorts != ""; j++ {
		switch {
		case strings.IndexByte(o.shorts, w[j]) < 0 && strings.IndexByte(o.values, w[j]) < 0:
		case strings.IndexByte(o.values, w[j]) >= 0, w[j+1:] == "-":
			return 0, false
		case j+1 < len(w):
			return j + 1, false
		default:
			return 0, true
		}
	}
	return 0, false
}

// old finds the word of the file that letters in tar's old style ask for; 0 if
// there is none.
func (o *outputs) old(letters string) int {
	at := 1
	for i := range len(letters) {
		switch {
		case strings.IndexByte(o.shorts, letters[i]) >= 0:
			return at + 1
		case strings.IndexByte(o.values, letters[i]) >= 0:
			at++
		}
	}
	return 0
}

// recursive reports whether a command goes into directories that it is given.
func recursive(name string, args []arg) bool {
	switch name {
	case "rg", "find", "fd", "fdfind", "tar", "rsync", "mv", "tree", "ag", "ack":
		return true
	case "cp", "rm", "grep", "egrep", "fgrep", "scp", "chmod", "chown", "chgrp", "zip", "diff":
	default:
		return false
	}
	for _, a := range args[1:] {
		o := a.raw
		if o == "--" {
			break
		}
		switch {
		case o == "--recursive" || o == "--archive" || o == "--dereference-recursive":
			return true
		case len(o) > 1 && o[0] == '-' && o[1] != '-' && (strings.ContainsAny(o, "rR") || name == "cp" && strings.Contains(o, "a")):
			return true
		}
	}
	return false
}

// operands notes the words of a command that may name files.
func (r *reading) operands(name string, args []arg, inner used, st *state, unit int) {
	if r.prog.Broken != "" && len(r.prog.Operands) >= maxOperands {
		return
	}
	k := operandKind{certain: creates(name), form: name == "curl"}
	if len(args) > 1 {
		k.recursive = recursive(name, args)
	}
	if (name == "cd" || name == "chdir") && !hasOperand(args[1:]) && r.env.Home != "" {
		// A bare cd goes home.
		r.note(Operand{Text: r.env.Home, Typed: "~", Shape: ShapeBoundary | ShapePath, Unit: unit, offset: args[0].start}, st)
		return
	}
	pats, has := patternCommand(name)
	left := 0
	if has {
		left = pats.count
		if pats.supplied(args) {
			left = 0
		}
	}
	gitSub := ""
	if name == "git" {
		gitSub = gitCommand(args)
	}
	out, writes := outputOptions(name)
	if gitSub == "archive" {
		out, _ = outputOptions("git archive")
	}
	archive := 0
	options := true
	for i := 1; i < len(args); i++ {
		if i >= inner.from && i < inner.to {
			continue
		}
		a := args[i]
		if options && a.raw == "--" {
			options = false
			continue
		}
		if options && len(a.raw) > 1 && a.raw[0] == '-' {
			if has {
				skip, next := pats.option(a.raw)
				if skip == patternValue && next && i+1 < len(args) {
					i++ // its value is the next word, and no path
					continue
				}
				if skip == patternValue {
					if isSed(name) && a.raw == "-i" && i+1 < len(args) && args[i+1].raw == "" {
						i++
					}
					continue
				}
				if isSed(name) && a.raw == "-i" && i+1 < len(args) && args[i+1].raw == "" {
					i++ // BSD: no backup suffix
					continue
				}
				if skip == fileValue && next && i+1 < len(args) {
					i++
					r.operand(args[i].w, st, unit, k)
					continue
				}
			}
			if writes {
				o := operandKind{certain: true}
				skip, next := out.option(a.raw)
				if o.skip = skip; skip > 0 {
					r.operand(a.w, st, unit, o)
					continue
				}
				if next && i+1 < len(args) {
					if i++; args[i].raw != "-" {
						r.operand(args[i].w, st, unit, o)
					}
					continue
				}
			}
			if v := optionValue(a.raw); v > 0 {
				k := k
				k.skip, k.certain = v, false
				r.operand(a.w, st, unit, k)
			}
			continue
		}
		if left > 0 {
			left--
			continue
		}
		if name == "dd" && (strings.HasPrefix(a.raw, "if=") || strings.HasPrefix(a.raw, "of=")) {
			k := k
			k.skip, k.certain = 3, true
			r.operand(a.w, st, unit, k)
			continue
		}
		if i == 1 && writes && (name == "tar" || name == "gtar") {
			// The old style: values follow in the order of the letters.
			if archive = out.old(a.raw); archive > 0 {
				continue
			}
		}
		if i > 1 && i == archive {
			if a.raw != "-" {
				r.operand(a.w, st, unit, operandKind{certain: true})
			}
			continue
		}
		if k.form && args[i-1].raw == "--data-urlencode" {
			if at := strings.IndexByte(a.raw, '@'); at > 0 && !strings.Contains(a.raw[:at], "=") {
				k := k
				k.skip = at + 1
				r.operand(a.w, st, unit, k)
				continue
			}
		}
		if gitSub != "" && revisions(gitSub) {
			r.revision(a, st, unit)
		}
		r.operand(a.w, st, unit, k)
	}
}

func hasOperand(args []arg) bool {
	for _, a := range args {
		if len(a.raw) < 2 || a.raw[0] != '-' {
			return true
		}
	}
	return false
}

func gitCommand(args []arg) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a.raw
	}
	if plain, ok := plainGit(words); ok {
		words = plain
	}
	if len(words) < 2 {
		return ""
	}
	return words[1]
}

// revisions reports whether a git command takes `REV:path`.
func revisions(sub string) bool {
	switch sub {
	case "push", "fetch", "pull", "clone", "remote", "ls-remote", "submodule", "config", "commit", "init":
		return false
	}
	return true
}

// revision notes the path of git's `REV:path`, a file as it once was.
func (r *reading) revision(a arg, st *state, unit int) {
	rev, file, ok := strings.Cut(a.raw, ":")
	if !ok || file == "" || strings.HasPrefix(file, "//") || strings.Contains(rev, "/") && strings.Contains(rev, "@") && !strings.Contains(rev, "@{") {
		return
	}
	o := Operand{Text: file, Typed: file, Shape: ShapePath, GateOnly: true, Certain: true, Unit: unit, offset: a.start}
	if strings.HasPrefix(file, "(") || strings.HasPrefix(file, "!") {
		return // a pathspec with magic
	}
	r.note(o, st)
}

// what an option of a pattern command carries.
const (
	noValue = iota
	patternValue
	fileValue
)

// option says what o carries, and whether in the next word.
func (p *patterns) option(o string) (carries int, next bool) {
	if strings.HasPrefix(o, "--") {
		name, _, inline := strings.Cut(o[2:], "=")
		switch {
		case begins(p.longs, name), word(p.valueLongs, name):
			return patternValue, !inline
		case begins(p.fileLongs, name):
			return fileValue, !inline
		}
		return noValue, false
	}
	for j := 1; j < len(o); j++ {
		c := o[j : j+1]
		switch {
		case strings.Contains(p.flags, c), strings.Contains(p.values, c):
			return patternValue, j+1 == len(o)
		case strings.Contains(p.files, c):
			return fileValue, j+1 == len(o)
		case strings.Contains(p.glued, c):
			return noValue, false
		}
	}
	return noValue, false
}

// supplied reports whether a flag supplies the pattern, or none is needed.
func (p *patterns) supplied(args []arg) bool {
	for i := 1; i < len(args); i++ {
		o := args[i].raw
		if o == "--" {
			return false
		}
		if len(o) < 2 || o[0] != '-' {
			continue
		}
		if name, ok := strings.CutPrefix(o, "--"); ok {
			name, _, inline := strings.Cut(name, "=")
			if begins(p.longs, name) || word(p.none, name) || begins(p.fileLongs, name) {
				return true
			}
			if word(p.valueLongs, name) && !inline {
				i++
			}
			continue
		}
		for j := 1; j < len(o); j++ {
			c := o[j : j+1]
			if strings.Contains(p.flags, c) || strings.Contains(p.files, c) {
				return true
			}
			if strings.Contains(p.glued, c) {
				break
			}
			if strings.Contains(p.values, c) {
				if j+1 == len(o) {
					i++
				}
				break
			}
		}
	}
	return false
}

// begins reports whether name is one of the space-separated words of list, or the
// beginning of one, as getopt_long(3) takes it.
func begins(list, name string) bool {
	return name != "" && (strings.HasPrefix(list, name) || strings.Contains(list, " "+name))
}

// optionValue finds where the value of an option begins that may be a path:
// `--opt=value`, `-o=value`, and `-C/etc`, `-o../x`, `-f.env`, `-d~/x`. It
// returns 0 if there is none.
func optionValue(o string) int {
	if strings.HasPrefix(o, "--") {
		if i := strings.IndexByte(o, '='); i > 0 && i+1 < len(o) {
			return i + 1
		}
		return 0
	}
	i := 1
	for i < len(o) && (o[i]|0x20 >= 'a' && o[i]|0x20 <= 'z' || o[i] >= '0' && o[i] <= '9') {
		i++
	}
	if i == 1 || i >= len(o) {
		return 0
	}
	switch o[i] {
	case '/', '~', '.', '@':
		return i
	case '=':
		if i+1 < len(o) {
			return i + 1
		}
	case '$':
		return i
	}
	return 0
}

// operand notes w, in each of its values.
func (r *reading) operand(w *syntax.Word, st *state, unit int, k operandKind) {
	if s, ok := plain(w); ok {
		r.value(letters{text: s}, s, w, st, unit, k)
		return
	}
	raw := r.raw(w)
	for _, v := range r.values(w, st) {
		words, ok := v.braces()
		if !ok {
			r.broken("a brace expansion has too many results")
			words = []letters{v}
		}
		for _, l := range words {
			typed := raw
			if len(words) > 1 {
				typed = l.text
			}
			r.value(l, typed, w, st, unit, k)
			if strings.ContainsAny(l.text, " \t\n") && l.marks != nil {
				r.fields(l, typed, w, st, unit, k)
			}
		}
	}
}

// fields notes the words that an unquoted variable is split into.
func (r *reading) fields(l letters, typed string, w *syntax.Word, st *state, unit int, k operandKind) {
	from, split := 0, false
	for i := 0; i <= len(l.text); i++ {
		if i < len(l.text) && (l.marks[i] != filled || !strings.ContainsRune(" \t\n", rune(l.text[i]))) {
			continue
		}
		if i == len(l.text) && !split {
			return
		}
		split = true
		if i > from {
			k := k
			k.skip = 0
			r.value(l.slice(from, i), typed, w, st, unit, k)
		}
		from = i + 1
	}
}

// value notes one value of a word, if it can be a path.
func (r *reading) value(l letters, typed string, w *syntax.Word, st *state, unit int, k operandKind) {
	if k.skip > 0 {
		if k.skip >= len(l.text) {
			return
		}
		if l.marks != nil {
			l = l.slice(k.skip, len(l.text))
		} else {
			l.text = l.text[k.skip:]
		}
		typed = typed[min(k.skip, len(typed)):]
	}
	if l.text == "" {
		return
	}
	o := Operand{Typed: typed, Dir: k.dir, Certain: k.certain, Redirect: k.redirect, Recursive: k.recursive, GateOnly: k.gateOnly, Unit: unit, offset: int(w.Pos().Offset())}
	home, placed := false, true
	opaque := false
	if l.marks != nil {
		l, home, placed = r.tilde(l, st)
		opaque = l.marks[0] == unknown
	}
	text := l.text
	if !k.redirect {
		switch {
		case len(text) > 6 && strings.EqualFold(text[:6], "file:/"):
			if text = fileURL(text); text == "" {
				return
			}
			typed = text
			o.Typed = text
		case isURL(text):
			return
		case !home && assigned(text):
			// `k=@file` names a file; `k=/x` is a value.
			_, v, _ := strings.Cut(text, "=")
			if !strings.HasPrefix(v, "@") && !(k.form && strings.HasPrefix(v, "<")) || len(v) < 2 {
				return
			}
			text = v[1:]
			if file, _, ok := strings.Cut(text, ";"); ok && file != "" {
				text = file // curl's `;type=`
			}
			if k.form {
				files := strings.Split(text, ",")
				for i, f := range files {
					if f = strings.Trim(f, `"`); f == "" {
						f = "-"
					}
					if files[i] = f; i > 0 {
						r.value(letters{text: f}, f, w, st, unit, operandKind{dir: k.dir})
					}
				}
				text = files[0]
			}
			o.Typed = text
			l.marks = nil
		}
		if len(text) > 1 && text[0] == '@' && (l.marks == nil || l.marks[0] < starred) {
			rest := text[1:]
			if c := rest[0]; c != '/' && c != '.' && c != '~' {
				if strings.Contains(rest, "/") {
					return // a scoped package
				}
				text, o.Typed = rest, rest
				l.marks = nil
			} else {
				text, o.Typed = rest, rest
				l.marks = nil
				if strings.HasPrefix(rest, "~/") && r.env.Home != "" {
					text = r.env.Home + rest[1:]
				}
			}
		}
	}
	o.Text = text
	if l.marks != nil && text == l.text {
		o.Glob = l.glob()
	}
	o.Dynamic = slices.Contains(l.marks, unknown)
	o.Shape = r.shape(text)
	if home {
		o.Shape |= ShapeBoundary | ShapePath
	}
	if !placed {
		o.Shape |= ShapeBoundary | ShapePath
		o.Unplaced = true
	}
	if opaque && k.redirect && k.dir != Read {
		o.Unplaced = true
	}
	if !k.redirect && !k.certain && o.Glob == "" && o.Shape != 0 && regex(r.slashes(text)) {
		o.Shape = 0
	}
	if opaque && climbs(text) {
		o.Unplaced = true
	}
	r.note(o, st)
	if o.Glob != "" && r.limits.globs != 0 && len(r.prog.Operands) < maxOperands {
		for _, g := range variants(o.Glob, r.limits.globs) { // note knows o already
			p := o
			p.Glob = g
			r.note(p, st)
		}
	}
	// `-v ../x:/y` and its like: the first of two places.
	if head, _, ok := strings.Cut(text, ":"); ok && !k.redirect && head != "" && strings.IndexByte("./~", head[0]) >= 0 {
		p := o
		p.Text, p.Typed, p.Glob = head, head, ""
		if r.env.Home != "" && (head == "~" || strings.HasPrefix(head, "~/")) {
			p.Text = r.env.Home + head[1:]
		}
		p.Shape = r.shape(p.Text)
		r.note(p, st)
	}
}

func (r *reading) note(o Operand, st *state) {
	p := r.prog
	if len(p.Operands) >= maxOperands {
		r.broken("it names too many files")
		return
	}
	o.Bases, o.Lost = st.dirs, st.lost
	if r.offset >= 0 {
		o.offset = r.offset
	}
	if strings.HasPrefix(o.Text, "/") {
		o.Lost = false
		o.Bases = nil
	}
	for i := len(p.Operands) - 1; i >= 0 && i >= len(p.Operands)-16; i-- {
		if same(&p.Operands[i], &o) {
			return
		}
	}
	if p.Operands == nil {
		p.Operands = make([]Operand, 0, 4)
	}
	p.Operands = append(p.Operands, o)
}

func same(a, b *Operand) bool {
	if a.Text != b.Text || a.Glob != b.Glob || a.Shape != b.Shape || a.Dir != b.Dir || a.Certain != b.Certain ||
		a.Unplaced != b.Unplaced || a.Dynamic != b.Dynamic || a.Lost != b.Lost || a.Recursive != b.Recursive || a.GateOnly != b.GateOnly || len(a.Bases) != len(b.Bases) {
		return false
	}
	for i := range a.Bases {
		if a.Bases[i] != b.Bases[i] {
			return false
		}
	}
	return true
}

// shape tells by its looks whether text is a path.
func (r *reading) shape(text string) Shape {
	var s Shape
	if text[0] == '/' || drive(text) || climbs(text) {
		return ShapeBoundary | ShapePath
	}
	if r.env.Windows && (text[0] == '\\' || strings.Contains(text, `\`)) {
		s |= ShapePath
		if text[0] == '\\' || climbs(r.slashes(text)) {
			s |= ShapeBoundary
		}
	}
	if text[0] == '.' || strings.Contains(text, "/") {
		s |= ShapePath
	}
	return s
}

// climbs reports whether text has a whole `..` segment.
func climbs(text string) bool {
	if !strings.Contains(text, "..") {
		return false
	}
	for rest := text; rest != ""; {
		var seg string
		seg, rest, _ = strings.Cut(rest, "/")
		if seg == ".." {
			return true
		}
	}
	return false
}

// isURL reports whether text starts as `scheme://` does.
func isURL(text string) bool {
	i := strings.Index(text, "://")
	if i <= 0 {
		return false
	}
	for j := range i {
		c := text[j]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || j > 0 && (c >= '0' && c <= '9' || c == '+' || c == '.' || c == '-') {
			continue
		}
		return false
	}
	return true
}

func fileURL(text string) string {
	rest := text[len("file:"):]
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		rest = authority
		if i := strings.IndexByte(rest, '/'); i > 0 {
			rest = rest[i:] // a host
		}
	}
	if p, ok := percent.Decode(rest); ok && p != "" {
		return p
	}
	return rest
}

// assigned reports whether text has a `=` before any slash.
func assigned(text string) bool {
	eq := strings.IndexByte(text, '=')
	if eq < 0 || text[0] == '/' || text[0] == '.' || text[0] == '~' {
		return false
	}
	slash := strings.IndexByte(text, '/')
	return slash < 0 || eq < slash
}

// regex reports whether text is plainly a regular expression.
func regex(text string) bool {
	for _, sign := range [...]string{`.*`, `.+`, `\d`, `\w`, `\s`, `\b`, `\D`, `\W`, `\S`, `\B`, `\.`, `\/`, `(?`, `[^`} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return text[0] == '^' || len(text) > 1 && text[len(text)-1] == '$'
}
