package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is what the program has done to its shell so far: where it stands and
// which variables it has set. It is copied by value for what runs in a shell of
// its own.
type state struct {
	dirs  []string // where it may stand, absolute; nil: where it started
	lost  bool     // it may stand somewhere that is not known
	real  bool     // the last cd went by the physical directory, so `..` does too
	old   []string // where it stood before the last cd; nil: not known
	stack []place  // of pushd
	vars  *binding
}

type place struct {
	dirs []string
	lost bool
}

// binding is one assignment; the newest comes first.
type binding struct {
	name   string
	values []string
	whole  bool // the values are all there can be
	older  *binding
}

// only returns where the shell stands if that is one known place.
func (st *state) only(start string) (string, bool) {
	if st.lost {
		return "", false
	}
	if st.dirs == nil {
		return start, start != ""
	}
	if len(st.dirs) != 1 {
		return "", false
	}
	return st.dirs[0], true
}

func (st *state) set(name string, values []string, whole bool) {
	st.vars = &binding{name: name, values: values, whole: whole, older: st.vars}
}

func (st *state) get(name string) *binding {
	for b := st.vars; b != nil; b = b.older {
		if b.name == name {
			return b
		}
	}
	return nil
}

// sameDirs reports whether two states stand in the same place.
func sameDirs(a, b *state) bool { return a.lost == b.lost && slices.Equal(a.dirs, b.dirs) }

// maxStack bounds the directories that pushd keeps.
const maxStack = 64

// maxDirs bounds the places a shell may stand in; with more it is lost.
const maxDirs = 8

// join makes st the union of itself and o: either may be what happened.
func (st *state) join(o *state, start string) {
	if !sameDirs(st, o) {
		all := st.places(start)
		for _, d := range o.places(start) {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
		st.lost = st.lost || o.lost
		if len(all) > maxDirs {
			all, st.lost = all[:maxDirs], true
		}
		st.dirs = all
		st.old = nil
	}
	st.real = st.real || o.real
	if len(st.stack) != len(o.stack) {
		st.stack = nil
	}
	if st.vars == o.vars {
		return
	}
	common := st.vars
	for ; common != nil; common = common.older {
		for b := o.vars; b != nil; b = b.older {
			if b == common {
				goto found
			}
		}
	}
found:
	names := map[string]bool{}
	for _, from := range [...]*binding{st.vars, o.vars} {
		for b := from; b != common && b != nil; b = b.older {
			names[b.name] = true
		}
	}
	union := *st
	for name := range names {
		a, b := st.get(name), o.get(name)
		u := &binding{name: name, whole: a != nil && b != nil && a.whole && b.whole}
		for _, x := range [...]*binding{a, b} {
			if x == nil {
				continue
			}
			for _, v := range x.values {
				if !slices.Contains(u.values, v) && len(u.values) < maxValues {
					u.values = append(u.values, v)
				}
			}
		}
		u.older = union.vars
		union.vars = u
	}
	st.vars = union.vars
}

func (st *state) places(start string) []string {
	if st.dirs == nil {
		if start == "" {
			return nil
		}
		return []string{start}
	}
	return slices.Clone(st.dirs)
}

// cd goes to target from wherever the shell may stand.
func (st *state) cd(target string, real bool, start string) {
	from := st.places(start)
	real = real || st.real
	to := func(dir string) string {
		at := target
		if !strings.HasPrefix(target, "/") && !drive(target) {
			at = strings.TrimSuffix(dir, "/") + "/" + target
		}
		if real {
			return at
		}
		return path.Clean(at)
	}
	if strings.HasPrefix(target, "/") || drive(target) {
		st.move([]string{to("")}, false)
	} else {
		var next []string
		for _, dir := range from {
			if d := to(dir); !slices.Contains(next, d) {
				next = append(next, d)
			}
		}
		st.move(next, st.lost)
	}
	st.real = real
}

// maxPath is the longest directory that is followed, in bytes.
const maxPath = 1024

func (st *state) move(dirs []string, lost bool) {
	for _, d := range dirs {
		if len(d) > maxPath {
			dirs, lost = []string{}, true
			break
		}
	}
	if st.lost {
		st.old = nil
	} else {
		st.old = st.dirs
		if st.old == nil {
			st.old = []string{} // the start
		}
	}
	st.dirs, st.lost = dirs, lost
}

// back is `cd -`.
func (st *state) back() {
	if st.old == nil || st.get("OLDPWD") != nil {
		st.away()
		return
	}
	to := st.old
	if len(to) == 0 {
		to = nil
	}
	st.move(to, false)
}

// away goes to a place that is not known.
func (st *state) away() { st.move([]string{}, true) }

// drive reports whether s starts as `C:/` or `C:\` does.
func drive(s string) bool {
	return len(s) >= 3 && s[1] == ':' && (s[2] == '/' || s[2] == '\\') && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z'
}

// variable is what a parameter expansion can stand for; whole is false if it
// can also be something that the program does not tell.
func (r *reading) variable(p *syntax.ParamExp, st *state) (values []string, whole bool) {
	if p.Param == nil || p.Excl || p.Length || p.Width || p.Names != 0 || p.NestedParam != nil {
		return nil, false
	}
	name := p.Param.Value
	switch b := st.get(name); {
	case b != nil:
		values, whole = b.values, b.whole
	case name == "HOME" && r.env.Home != "":
		values, whole = []string{r.env.Home}, true
	case name == "PWD":
		values, whole = st.places(r.env.Cwd), !st.lost
	}
	values = slices.Clone(values)
	if p.Exp != nil {
		values, whole = r.operate(p.Exp, values, whole, st)
	}
	if p.Slice != nil || p.Repl != nil {
		// The result is some other text; the values before it still tell
		// what it is about.
		whole = false
	}
	return values, whole
}

// operate applies `${x:-y}`, `${x%y}` and their like.
func (r *reading) operate(e *syntax.Expansion, values []string, whole bool, st *state) ([]string, bool) {
	var words []string
	literal := true
	if e.Word != nil {
		for _, l := range r.values(e.Word, st) {
			if l.glob() != "" || slices.Contains(l.marks, unknown) {
				literal = false
			}
			words = append(words, l.text)
		}
	} else {
		words = []string{""}
	}
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return append(values, words...), (whole || len(values) == 0) && literal
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return append(words, ""), literal
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return values, whole
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		var out []string
		for _, v := range values {
			for _, w := range words {
				out = append(out, trimmed(v, w, e.Op))
			}
		}
		return out, whole && len(out) > 0
	}
	return values, false
}

// trimmed is `${v%pat}` and its like, for a pattern of literal text and stars.
// Other wildcards are taken as literal text.
func trimmed(v, pat string, op syntax.ParExpOperator) string {
	if len(v) > maxPath || len(pat) > maxPath {
		return v
	}
	suffix := op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix
	longest := op == syntax.RemLargeSuffix || op == syntax.RemLargePrefix
	best := -1
	for i := 0; i <= len(v); i++ {
		part := v[:i]
		if suffix {
			part = v[i:]
		}
		ok, err := path.Match(strings.ReplaceAll(pat, "/", "\x01"), strings.ReplaceAll(part, "/", "\x01"))
		if err != nil || !ok {
			continue
		}
		if best < 0 || suffix && !longest || !suffix && longest {
			best = i
		}
	}
	switch {
	case best < 0:
		return v
	case suffix:
		return v[:best]
	default:
		return v[best:]
	}
}
