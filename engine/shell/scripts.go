package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Programs of sed and awk are no paths, but some of their commands run a command
// or open a file, and say which in so many words: `sed '1e x'`, `awk '{print |
// "x"}'`. Those are read here. What such a program computes is not.

func isSed(name string) bool { return word("sed gsed", name) }

// hasScript reports whether a command is given a program that is read here.
func hasScript(name string) bool { return isSed(name) || word("awk gawk nawk mawk", name) }

// scripts reads the programs that sed and awk are given.
func (r *reading) scripts(base string, args []arg, words []string, st *state, in where, at int) {
	if !hasScript(base) {
		return
	}
	p, _ := patternCommand(base)
	sed := isSed(base)
	one := func(i int, text string) {
		if text == "" {
			return
		}
		s := script{r: r, text: text, arg: args[i], st: st, in: in, at: at}
		if sed {
			s.unseen = r.unseen(args[i], len(text))
			s.sed()
		} else {
			s.awk()
		}
	}
	// A program that is put together as the command runs is in no file.
	file := func(name string) {
		if name == "-" || strings.HasPrefix(name, "<(") || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
			r.floor(at, FloorOpaque, base+" runs a text as a program")
		}
	}
	given := p.supplied(args)
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case sed && w == "" && i == 2 && words[1] == "-i":
			continue // BSD: no backup suffix
		case len(w) < 2 || w[0] != '-':
			if given && sed {
				continue // options may follow the files
			}
			if !given {
				one(i, w)
			}
			return
		case w == "--":
			if !given && i+1 < len(words) {
				one(i+1, words[i+1])
			}
			return
		case strings.HasPrefix(w, "--"):
			name, value, inline := strings.Cut(w[2:], "=")
			switch {
			case begins(p.longs, name) && inline:
				one(i, value)
			case begins(p.longs, name) && i+1 < len(words):
				i++
				one(i, words[i])
			case begins(p.fileLongs, name) && inline:
				file(value)
			case begins(p.fileLongs, name) && i+1 < len(words):
				i++
				file(words[i])
			case begins(p.valueLongs, name) && !inline:
				i++
			}
			continue
		}
		for j := 1; j < len(w); j++ {
			c := w[j : j+1]
			if strings.Contains(p.glued, c) {
				break
			}
			own, from := strings.Contains(p.flags, c), strings.Contains(p.files, c)
			if !own && !from && !strings.Contains(p.values, c) {
				continue
			}
			value := w[j+1:]
			if value == "" {
				if i++; i == len(words) {
					break
				}
				value = words[i]
			}
			switch {
			case own:
				one(i, value)
			case from:
				file(value)
			}
			break
		}
	}
}

// script is a program of sed or awk being read.
type script struct {
	r    *reading
	text string
	at   int // the unit
	arg  arg
	st   *state
	in   where
	// unseen is where an expansion of the shell begins in text, and ends.
	unseen map[int]int
}

// unseen is where the expansions of a begin in its last size bytes, each with its
// end; their own text is none of a program.
func (r *reading) unseen(a arg, size int) map[int]int {
	if _, ok := plain(a.w); ok {
		return nil
	}
	var b strings.Builder
	spans := map[int]int{}
	var add func(p syntax.WordPart, inQuotes bool)
	add = func(p syntax.WordPart, inQuotes bool) {
		from := b.Len() - (len(a.raw) - size)
		switch q := p.(type) {
		case *syntax.DblQuoted:
			for _, p := range q.Parts {
				add(p, true)
			}
			return
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
			r.rawPart(&b, p, inQuotes)
			spans[from] = b.Len() - (len(a.raw) - size)
			return
		}
		r.rawPart(&b, p, inQuotes)
	}
	for _, p := range a.w.Parts {
		add(p, false)
	}
	return spans
}

func (s *script) runs(text string) {
	s.r.payload(text, s.st, s.in, s.at, s.arg.start, false)
}

func (s *script) opens(file string, d Direction) {
	if file != "" {
		s.r.value(letters{text: file}, file, s.arg.w, s.st, s.at, operandKind{dir: d, certain: true, redirect: true})
	}
}

// sed reads commands as the manual of GNU sed has them, and stops at what is none.
func (s *script) sed() {
	t, i := s.text, 0
	brackets := true
	line := func() string { // the rest of it
		from := i
		for i < len(t) && t[i] != '\n' {
			i++
		}
		return strings.TrimLeft(t[from:i], " \t")
	}
	part := func(end byte, regex bool) { // up to end, which a backslash or brackets may hide
		for ; i < len(t) && t[i] != end; i++ {
			switch {
			case t[i] == '\\':
				i++
			case t[i] == '[' && regex && brackets:
				n := bracket(t[i:])
				brackets = n > 0 // where one does not end, none does
				i += max(n-1, 0)
			}
		}
		i++
	}
	skip := func(set string) {
		for i < len(t) && strings.IndexByte(set, t[i]) >= 0 {
			i++
		}
	}
	for {
		skip(" \t\n;{}")
		for i < len(t) && (s.unseen[i] > i || strings.IndexByte("0123456789$,~+! \t/", t[i]) >= 0 || t[i] == '\\') { // addresses
			if end := s.unseen[i]; end > i {
				i = end
				continue
			}
			switch t[i] {
			case '/':
				i++
				part('/', true)
				skip("IM")
			case '\\':
				if i += 2; i > len(t) {
					return
				}
				part(t[i-1], true)
				skip("IM")
			default:
				i++
			}
		}
		if i >= len(t) {
			return
		}
		c := t[i]
		i++
		switch c {
		case '{', '}', ';', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		case 'q', 'Q', 'l', 'L':
			skip(" \t0123456789")
		case '#':
			line()
		case ':', 'b', 't', 'T', 'v':
			for i < len(t) && t[i] != '\n' && t[i] != ';' {
				i++
			}
		case 'a', 'i', 'c':
			for i < len(t) && t[i] != '\n' {
				if t[i] == '\\' {
					i++
				}
				i++
			}
		case 'r', 'R':
			s.opens(line(), Read)
		case 'w', 'W':
			s.opens(line(), Write)
		case 'e':
			if text := line(); text != "" {
				s.runs(text)
			} else {
				s.r.floor(s.at, FloorOpaque, "sed runs what it reads as a program")
			}
		case 's', 'y':
			if i >= len(t) {
				return
			}
			i++
			end := t[i-1]
			part(end, c == 's')
			part(end, false)
			for c == 's' && i < len(t) && strings.IndexByte("gpiImMew0123456789", t[i]) >= 0 {
				i++
				switch t[i-1] {
				case 'e':
					s.r.floor(s.at, FloorOpaque, "sed runs what it makes as a program")
				case 'w':
					s.opens(line(), Write)
				}
			}
		default:
			return
		}
	}
}

// bracket is how long the bracket expression is that text starts with; 0 if it
// does not end.
func bracket(text string) int {
	i := 1
	if strings.HasPrefix(text[i:], "^") {
		i++
	}
	if strings.HasPrefix(text[i:], "]") {
		i++
	}
	for ; i < len(text); i++ {
		if text[i] == ']' {
			return i + 1
		}
		if strings.HasPrefix(text[i:], "[:") {
			end := strings.Index(text[i:], ":]")
			if end < 0 {
				return 0
			}
			i += end + 1
		}
	}
	return 0
}

// awk reads the strings that stand where a command or a file does.
func (s *script) awk() {
	t := s.text
	before := func(i int) string { return strings.TrimRight(t[:i], " \t") }
	printing := false // since the statement began
	for i := 0; i < len(t); i++ {
		switch t[i] {
		case '#':
			for i+1 < len(t) && t[i+1] != '\n' {
				i++
			}
		case ';', '{', '}', '\n':
			printing = false
		case 'p':
			printing = printing || strings.HasPrefix(t[i:], "print")
		case '/':
			if b := before(i); b == "" || strings.IndexByte("(,{;!~&|\n=:?}", b[len(b)-1]) >= 0 || statement(b) {
				for i++; i < len(t) && t[i] != '/' && t[i] != '\n'; i++ {
					if t[i] == '\\' {
						i++
					}
				}
			}
		case '"':
			from := i
			for i++; i < len(t) && t[i] != '"'; i++ {
				if t[i] == '\\' {
					i++
				}
			}
			if i >= len(t) {
				return
			}
			text := t[from+1 : i]
			b, after := before(from), strings.TrimLeft(t[i+1:], " \t")
			plain := func() string {
				return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t", `\/`, "/").Replace(text)
			}
			called := strings.HasSuffix(b, "(")
			b = strings.TrimRight(b, " \t(") // parentheses around the text change nothing
			closed := strings.TrimLeft(after, " \t)")
			switch b = strings.TrimSuffix(b, "&"); {
			case strings.HasSuffix(b, "|") && !strings.HasSuffix(b, "||"),
				strings.HasPrefix(after, "|") && !strings.HasPrefix(after, "||"),
				strings.HasPrefix(closed, "|") && strings.HasPrefix(strings.TrimLeft(closed, "|& \t"), "getline"),
				called && strings.HasSuffix(b, "system"):
				s.runs(plain())
			case strings.HasSuffix(b, ">") && printing:
				s.opens(plain(), Write)
			case strings.HasSuffix(b, "<") && strings.Contains(b[max(0, len(b)-200):], "getline"):
				s.opens(plain(), Read)
			}
		}
	}
}

// statement reports whether the awk program text ends in a word behind which a
// value is due, so that a slash begins a regular expression.
func statement(text string) bool {
	for _, w := range [...]string{"print", "return", "else", "do", "in", "case", "printf", "getline"} {
		if rest, ok := strings.CutSuffix(text, w); ok && (rest == "" || !named(rest[len(rest)-1])) {
			return true
		}
	}
	return false
}
