package engine

import "github.com/nod-agents/nod/engine/pattern"

// PatternMatches reports whether a pattern, as written under surface, matches
// value. On a path surface both are brought into the form of access paths as
// far as their text allows.
func PatternMatches(surface, text, value string, opt Options) bool {
	r := Ruleset{opt: opt}
	e := entry{rule: &Rule{Pattern: text}}
	path := IsPathSurface(surface) || pattern.IsGlob(text)
	r.compile(&e, path)
	if path {
		value = normalPattern(value, opt).text
		value = opt.Flavour.Fold(value)
		return e.match(value) || e.match(place(value))
	}
	if e.match(value) {
		return true
	}
	home := pattern.ExpandHome(value, opt.Home) // of a command both forms count
	return surface == SurfaceBash && home != value && e.match(home)
}
