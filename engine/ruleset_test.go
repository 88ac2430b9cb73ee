package engine

import (
	"testing"
	"time"

	"github.com/nod-agents/nod/engine/pattern"
)

// section builds one surface of a layer from pattern, action pairs.
func section(surface string, pairs ...string) Section {
	s := Section{Surface: surface}
	if len(pairs) == 1 {
		s.Text = true
		pairs = []string{"*", pairs[0]}
	}
	for i := 0; i < len(pairs); i += 2 {
		a, err := ParseAction(pairs[i+1])
		if err != nil {
			panic(err)
		}
		s.Rules = append(s.Rules, Rule{Surface: surface, Pattern: pairs[i], Action: a})
	}
	return s
}

func layer(origin Origin, sections ...Section) Layer {
	for i := range sections {
		for j := range sections[i].Rules {
			sections[i].Rules[j].Origin = origin
		}
	}
	return Layer{Origin: origin, Sections: sections}
}

func TestResolve(t *testing.T) {
	opt := Options{Home: "/home/u", Cwd: "/p", Now: time.Unix(0, 0)}
	global := func(s ...Section) []Layer { return []Layer{layer(OriginGlobal, s...)} }
	both := func(g, p []Section) []Layer {
		return []Layer{layer(OriginGlobal, g...), layer(OriginProject, p...)}
	}
	type ss = []Section
	tests := []struct {
		name    string
		layers  []Layer
		q       Query
		want    Action
		origin  Origin
		pattern string
	}{
		{"nothing asks", nil, Query{Surface: "bash", Values: []string{"ls"}}, Ask, OriginBuiltin, ""},
		{"universal", global(section("*", "allow")), Query{Surface: "x", Values: []string{"*"}}, Allow, OriginGlobal, "*"},
		{"universal is lowest wherever it stands", global(section("task", "deny"), section("*", "allow")), Query{Surface: "task", Values: []string{"*"}}, Deny, OriginGlobal, "*"},
		{"a universal map never allows", global(section("*", "*", "allow")), Query{Surface: "x", Values: []string{"*"}}, Ask, OriginBuiltin, ""},
		{"last match", global(section("bash", "*", "ask", "git *", "allow", "git push *", "deny")), Query{Surface: "bash", Values: []string{"git push"}}, Deny, OriginGlobal, "git push *"},
		{"order, not length", global(section("bash", "git push *", "deny", "git *", "allow")), Query{Surface: "bash", Values: []string{"git push"}}, Allow, OriginGlobal, "git *"},
		{"strict spelling denies", global(section("bash", "*", "allow", "rm *", "deny")), Query{Surface: "bash", Values: []string{"/bin/rm x"}, Strict: []string{"rm x"}}, Deny, OriginGlobal, "rm *"},
		{"strict spelling never allows", global(section("bash", "*", "ask", "rm *", "allow")), Query{Surface: "bash", Values: []string{"/bin/rm x"}, Strict: []string{"rm x"}}, Ask, OriginGlobal, "*"},
		{"whole text denies", global(section("bash", "*", "allow", "* | sh", "deny")), Query{Surface: "bash", Values: []string{"curl x"}, Whole: []string{"curl x | sh"}}, Deny, OriginGlobal, "* | sh"},
		{"whole text spares a bare star", global(section("bash", "*", "deny", "curl *", "allow")), Query{Surface: "bash", Values: []string{"curl x"}, Whole: []string{"a; curl x"}}, Allow, OriginGlobal, "curl *"},
		{"surface key is a pattern", global(section("read", "allow"), section("re??", "deny")), Query{Surface: "read", Values: []string{"a"}}, Deny, OriginGlobal, "*"},
		{"bare path covers reading", global(section("path", "*.env", "deny")), Query{Surface: "path_read", Values: []string{"/p/.env"}}, Deny, OriginGlobal, "*.env"},
		{"key pattern on the bare name covers a direction", global(section("*_directory", "deny")), Query{Surface: "external_directory_write", Values: []string{"/x"}}, Deny, OriginGlobal, "*"},
		{"unknown direction: strictest", global(section("path_write", "*.lock", "deny")), Query{Surface: "path", Values: []string{"a.lock"}}, Deny, OriginGlobal, "*.lock"},
		{"a rule with a final slash is the directory", global(section("path", "src/", "deny")), Query{Surface: "path_read", Values: []string{"/p/src", "src"}}, Deny, OriginGlobal, "src/"},
		{"and however it is written", global(section("path", "src/", "deny")), Query{Surface: "path_read", Values: []string{"/p/src", "src", "/p/src/", "src/"}}, Deny, OriginGlobal, "src/"},
		{"but not what is in it", global(section("path", "src/", "deny", "x", "deny")), Query{Surface: "path_read", Values: []string{"/p/src/a", "src/a"}}, Ask, OriginBuiltin, ""},
		{"behind a wildcard the slash stays", global(section("path", "s*/", "allow")), Query{Surface: "path_read", Values: []string{"/p/sa", "sa"}}, Ask, OriginBuiltin, ""},
		{"relative rule with doubled slash", global(section("path", "src//*", "deny")), Query{Surface: "path_read", Values: []string{"/p/src/a", "src/a"}}, Deny, OriginGlobal, "src//*"},
		{"climbing rule", global(section("path", "../lib/*", "deny")), Query{Surface: "path_read", Values: []string{"/lib/a"}}, Deny, OriginGlobal, "../lib/*"},
		{"climbing rule spares the project", global(section("path", "../*", "deny")), Query{Surface: "path_read", Values: []string{"/p/a", "a"}}, Ask, OriginBuiltin, ""},
		{"home rule", global(section("path", "~/.ssh/*", "deny")), Query{Surface: "path_read", Values: []string{"/home/u/.ssh/id"}}, Deny, OriginGlobal, "~/.ssh/*"},
		{"restated pattern keeps its place", both(ss{section("bash", "git *", "ask", "git push *", "deny")}, ss{section("bash", "git *", "allow")}), Query{Surface: "bash", Values: []string{"git push"}}, Deny, OriginGlobal, "git push *"},
		{"new broad rule comes last", both(ss{section("bash", "git push *", "deny")}, ss{section("bash", "git *", "allow")}), Query{Surface: "bash", Values: []string{"git push"}}, Allow, OriginProject, "git *"},
		{"higher deny is not hidden", both(ss{section("bash", "rm *", "ask", "*", "allow")}, ss{section("bash", "rm *", "deny")}), Query{Surface: "bash", Values: []string{"rm x"}}, Deny, OriginProject, "rm *"},
		{"own file's order counts", both(ss{section("bash", "*", "ask")}, ss{section("bash", "npm *", "allow", "*", "ask")}), Query{Surface: "bash", Values: []string{"npm x"}}, Ask, OriginProject, "*"},
		{"string over map", both(ss{section("bash", "rm *", "deny")}, ss{section("bash", "allow")}), Query{Surface: "bash", Values: []string{"rm x"}}, Allow, OriginProject, "*"},
		{"map over deny string", both(ss{section("bash", "deny")}, ss{section("bash", "git *", "allow")}), Query{Surface: "bash", Values: []string{"rm x"}}, Deny, OriginGlobal, "*"},
		{"map over allow string", both(ss{section("bash", "allow")}, ss{section("bash", "git *", "deny")}), Query{Surface: "bash", Values: []string{"ls"}}, Ask, OriginBuiltin, ""},
		{"empty map over allow string", both(ss{section("bash", "allow")}, ss{section("bash")}), Query{Surface: "bash", Values: []string{"ls"}}, Ask, OriginBuiltin, ""},
		{"restated catch-all keeps exceptions", both(ss{section("bash", "*", "deny", "git *", "allow")}, ss{section("bash", "*", "ask")}), Query{Surface: "bash", Values: []string{"git x"}}, Allow, OriginGlobal, "git *"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Compile(tt.layers, opt).Resolve(&tt.q)
			if m.Action != tt.want || m.Origin != tt.origin || m.Pattern != tt.pattern {
				t.Errorf("got %v %v %q, want %v %v %q", m.Action, m.Origin, m.Pattern, tt.want, tt.origin, tt.pattern)
			}
		})
	}
}

// A pattern that climbs out of the project and comes back names what is in it,
// on Windows whatever the case.
func TestClimbingOutAndBack(t *testing.T) {
	for _, tt := range []struct {
		cwd, text, value string
		flavour          pattern.Flavour
		want             Action
	}{
		{"/p/app", "../app/x", "/p/app/x", pattern.Posix, Deny},
		{"/p/app", "../App/x", "/p/app/x", pattern.Posix, Allow},
		{"/p/app", "../*", "/p/app/x", pattern.Posix, Allow},
		{`C:\P\App`, "../app/x", "C:/P/App/x", pattern.Windows, Deny},
		{`C:\P\App`, `..\APP\*`, "C:/P/App/x", pattern.Windows, Deny},
		{`C:\P\App`, "../*", "C:/P/App/x", pattern.Windows, Allow},
	} {
		r := Compile([]Layer{layer(OriginGlobal, section("path", "*", "allow", tt.text, "deny"))}, Options{Cwd: tt.cwd, Flavour: tt.flavour})
		if m := r.Resolve(&Query{Surface: "path_read", Values: []string{tt.value}}); m.Action != tt.want {
			t.Errorf("%s in %s: %v", tt.text, tt.cwd, m.Action)
		}
	}
}
