package policy

import (
	"fmt"
	"strings"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
)

// Lint tells what is valid in a policy but likely not meant: rules that can
// never count, a permissive default that covers bash, allow rules wider than
// they look, and examples that another rule decides.
func (p *Policy) Lint(opt engine.Options) Errors {
	var out Errors
	for i := range p.Files {
		out = append(out, p.Files[i].Warnings...)
	}
	for i := range p.Layers {
		out = append(out, shadowed(&p.Layers[i])...)
	}
	out = append(out, p.openBash(opt)...)
	for i := range p.Layers {
		for _, s := range p.Layers[i].Sections {
			for j := range s.Rules {
				if w := wide(&s.Rules[j]); w != nil {
					out = append(out, w)
				}
			}
		}
	}
	return append(out, p.unreachable(opt)...)
}

// shadowed finds rules of one file that a later rule of it always overrules.
func shadowed(l *engine.Layer) Errors {
	var all []*engine.Rule
	for i := range l.Sections {
		if pattern.IsBare(l.Sections[i].Surface) {
			continue // the universal key is lowest, wherever it stands
		}
		for j := range l.Sections[i].Rules {
			all = append(all, &l.Sections[i].Rules[j])
		}
	}
	// Only a later rule with a wildcard, or the same text, can cover an
	// earlier one, so most pairs need no look. A file with so many that it
	// would take long is written by a program, and enough is said of it.
	const most = 2_000_000
	var out Errors
	var covering []*engine.Rule
	looks := 0
	for i := len(all) - 1; i >= 0 && looks < most; i-- {
		r := all[i]
		for _, later := range covering {
			if looks++; later.Until.IsZero() && Covers(later.Surface, r.Surface) && Covers(later.Pattern, r.Pattern) && !yields(later, r) {
				out = append(out, &Error{
					Pos: r.Pos, Key: keyOf(r),
					Problem: fmt.Sprintf("it never counts: %q on line %d comes later and matches all it matches", later.Pattern, later.Pos.Line),
					Remedy:  "move it below that rule, or remove it",
				})
				break
			}
		}
		if !pattern.IsLiteral(r.Pattern) || !pattern.IsLiteral(r.Surface) {
			covering = append(covering, r)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// yields reports whether later lets an earlier rule count though it matches all
// that it matches: on mcp a bare star decides only if nothing else does.
func yields(later, earlier *engine.Rule) bool {
	return pattern.IsBare(later.Pattern) && !pattern.IsBare(earlier.Pattern) &&
		(earlier.Surface == engine.SurfaceMCP || engine.PatternMatches("", earlier.Surface, engine.SurfaceMCP, engine.Options{}))
}

// Covers reports whether pattern a certainly matches all that b matches. The
// bare path names cover their directions.
func Covers(a, b string) bool {
	if a == b || pattern.IsBare(a) {
		return true
	}
	if a == engine.SurfacePath || a == engine.SurfaceExternalDirectory {
		return b == a+"_read" || b == a+"_write"
	}
	if pattern.IsGlob(a) || pattern.IsGlob(b) || strings.Contains(a, "?") {
		return false
	}
	p := pattern.Compile(a, pattern.Posix)
	if !p.Match(b) {
		return false // b's own wildcards must fall under a star of a
	}
	short, optional := strings.CutSuffix(b, " *")
	return !optional || p.Match(short)
}

func keyOf(r *engine.Rule) string { return "permission." + r.Surface + "." + r.Pattern }

// openBash warns where the universal default lets every command run.
func (p *Policy) openBash(opt engine.Options) Errors {
	rules := p.Ruleset(opt)
	m := rules.Resolve(&engine.Query{Surface: engine.SurfaceBash, Values: []string{"\x00"}})
	if m.Action != engine.Allow || m.Explicit || m.Rule == nil {
		return nil
	}
	for _, s := range rules.Rules(engine.SurfaceBash) {
		if !s.Universal {
			return nil
		}
	}
	return Errors{&Error{
		Pos: m.Rule.Pos, Key: "permission.*",
		Problem: "it allows every shell command, since no rule is about bash",
		Remedy:  `add "bash": "ask", or patterns for the commands you mean`,
	}}
}

// runners are programs whose arguments are another program's text or name, so
// that allowing them with any arguments allows anything.
const runners = " awk bash bun bunx busybox cargo dash deno docker env eval fish find gawk gdb git-bash ksh kubectl lua make nice node nohup npx parallel perl php pnpm podman powershell pwsh python python2 python3 ruby rush sed sh ssh sudo tclsh time timeout uv uvx vim watch xargs yarn zsh "

// wide tells what makes an allow rule wider than it looks.
func wide(r *engine.Rule) *Error {
	if r.Action != engine.Allow || pattern.IsBare(r.Surface) || pattern.IsBare(r.Pattern) {
		return nil
	}
	problem, remedy := "", ""
	switch {
	case r.Surface == engine.SurfaceBash:
		word, rest, _ := strings.Cut(r.Pattern, " ")
		switch {
		case strings.HasPrefix(r.Pattern, "*"):
			problem, remedy = "it allows any program whose command line ends so", "name the program"
		case strings.HasSuffix(word, "*") && rest == "":
			problem = fmt.Sprintf("it also allows every program whose name starts with %q", strings.TrimRight(word, "*"))
			remedy = fmt.Sprintf("write %q", strings.TrimRight(word, "*")+" *")
		case strings.Contains(runners, " "+word+" ") && pattern.IsBare(rest):
			problem, remedy = fmt.Sprintf("%s can run any other program or code", word), "allow the invocations you mean"
		case strings.Contains(strings.TrimSuffix(rest, "*"), "*"):
			problem, remedy = "a star inside matches any text, further options and words too", "allow the invocations you mean"
		}
	case engine.IsBoundarySurface(r.Surface) && (r.Pattern == "/*" || r.Pattern == "~/*" || r.Pattern == "$HOME/*" || r.Pattern == "${HOME}/*"):
		problem, remedy = "it opens all of "+strings.TrimSuffix(r.Pattern, "*")+", keys and credentials too", "name the directories you mean"
	}
	if problem == "" {
		return nil
	}
	return &Error{Pos: r.Pos, Key: keyOf(r), Problem: problem, Remedy: remedy}
}

// unreachable finds examples that their rule matches and another one decides.
func (p *Policy) unreachable(opt engine.Options) Errors {
	var out Errors
	rules := p.Ruleset(opt)
	for i := range p.Layers {
		for _, s := range p.Layers[i].Sections {
			for j := range s.Rules {
				r := &s.Rules[j]
				for _, ex := range r.Examples {
					values := []string{pattern.ExpandHome(ex, opt.Home)}
					var m engine.Match
					if s.Surface == engine.SurfaceMCP {
						m = rules.ResolveGroups(s.Surface, [][]string{values}, nil, nil)
					} else {
						m = rules.Resolve(&engine.Query{Surface: s.Surface, Values: values})
					}
					if m.Rule == nil || m.Rule == r || m.Rule.Pos == r.Pos || !pattern.IsLiteral(s.Surface) {
						continue
					}
					out = append(out, &Error{
						Pos: r.Pos, Key: keyOf(r),
						Problem: fmt.Sprintf("its example %q is decided by %q (%s, %s)", ex, m.Pattern, m.Action, m.Rule.Pos),
						Remedy:  "move this rule below that one, or drop the example",
					})
				}
			}
		}
	}
	return out
}
