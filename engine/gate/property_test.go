package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/pattern"
)

// piece is a command being wrapped: simple as long as it is one simple command,
// so that another may take it as its words.
type piece struct {
	text   string
	simple bool
}

func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// wrappings are ways to write a command so that it still runs.
var wrappings = []struct {
	name   string
	simple bool // needs a simple command and leaves one
	wrap   func(s string, d string) string
}{
	{"chain before", false, func(s, d string) string { return s + "; " + d }},
	{"chain after", false, func(s, d string) string { return d + " && " + s }},
	{"or", false, func(s, d string) string { return d + " || " + s }},
	{"newline", false, func(s, d string) string { return d + "\n" + s }},
	{"pipe to", false, func(s, d string) string { return d + " | { " + s + "; }" }},
	{"pipe from", false, func(s, d string) string { return "{ " + s + "; } | " + d }},
	{"background", false, func(s, d string) string { return "{ " + s + "; } & " + d }},
	{"subshell", false, func(s, _ string) string { return "( " + s + " )" }},
	{"group", false, func(s, _ string) string { return "{ " + s + "; }" }},
	{"if", false, func(s, d string) string { return "if " + d + "; then " + s + "; fi" }},
	{"condition", false, func(s, d string) string { return "if " + s + "; then " + d + "; fi" }},
	{"while", false, func(s, d string) string { return "while " + d + "; do " + s + "; done" }},
	{"for", false, func(s, _ string) string { return "for i in 1 2; do " + s + "; done" }},
	{"case", false, func(s, d string) string { return "case x in y) " + d + ";; *) " + s + ";; esac" }},
	{"function", false, func(s, _ string) string { return "f() { " + s + "; }; f" }},
	{"substitution", false, func(s, _ string) string { return "echo $( " + s + " )" }},
	{"quoted substitution", false, func(s, _ string) string { return `echo "a $( ` + s + ` )"` }},
	{"process substitution", false, func(s, _ string) string { return "cat <( " + s + " )" }},
	{"assignment", false, func(s, _ string) string { return "V=$( " + s + " )" }},
	{"default value", false, func(s, _ string) string { return "echo ${v:-$( " + s + " )}" }},
	{"here-document", false, func(s, _ string) string { return "{ cat <<E\n$( " + s + "\n)\nE\n}" }},
	{"test", false, func(s, _ string) string { return "[[ -n $( " + s + " ) ]]" }},
	{"arithmetic", false, func(s, _ string) string { return "(( v = $( " + s + " ) ))" }},
	{"array", false, func(s, _ string) string { return "A=(1 $( " + s + " ))" }},
	{"negation", false, func(s, _ string) string { return "! { " + s + "; }" }},
	{"coproc", false, func(s, _ string) string { return "coproc { " + s + "; }" }},
	{"output", false, func(s, _ string) string { return "{ " + s + "; } >out 2>&1" }},
	{"time", false, func(s, _ string) string { return "time { " + s + "; }" }},
	{"bash -c", false, func(s, _ string) string { return "bash -c " + single(s) }},
	{"sh -ec", false, func(s, _ string) string { return "sh -ec " + single(s) }},
	{"eval", false, func(s, _ string) string { return "eval " + single(s) }},
	{"trap", false, func(s, _ string) string { return "trap " + single(s) + " EXIT" }},
	{"here-string", false, func(s, _ string) string { return "bash <<< " + single(s) }},
	{"su", false, func(s, _ string) string { return "su -c " + single(s) }},
	{"watch", false, func(s, _ string) string { return "watch -n1 " + single(s) }},
	{"flock -c", false, func(s, _ string) string { return "flock f -c " + single(s) }},

	{"prefix", true, func(s, _ string) string { return "V=1 " + s }},
	{"redirect", true, func(s, _ string) string { return ">out " + s }},
	{"input", true, func(s, _ string) string { return s + " </dev/null" }},
	{"command", true, func(s, _ string) string { return "command " + s }},
	{"builtin", true, func(s, _ string) string { return "builtin command " + s }},
	{"exec", true, func(s, _ string) string { return "exec -a x " + s }},
	{"sudo", true, func(s, _ string) string { return "sudo -u root " + s }},
	{"env", true, func(s, _ string) string { return "env -u A B=1 " + s }},
	{"timeout", true, func(s, _ string) string { return "timeout -k 1 5 " + s }},
	{"nice", true, func(s, _ string) string { return "nice -n 5 " + s }},
	{"nohup", true, func(s, _ string) string { return "nohup " + s }},
	{"xargs", true, func(s, _ string) string { return "xargs -n 1 " + s }},
	{"stdbuf", true, func(s, _ string) string { return "stdbuf -oL " + s }},
	{"strace", true, func(s, _ string) string { return "strace -f " + s }},
	{"find", true, func(s, _ string) string { return "find . -exec " + s + ` \;` }},
	{"busybox", true, func(s, _ string) string { return "busybox " + s }},
	{"double blanks", true, func(s, _ string) string { return strings.Replace(s, " ", "  ", 1) }},
	{"continuation", true, func(s, _ string) string { return strings.Replace(s, " ", " \\\n ", 1) }},
}

// names are ways to write the name of a command.
var names = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return `"` + s + `"` },
	func(s string) string { return "'" + s + "'" },
	func(s string) string { return `\` + s },
	func(s string) string { return s[:1] + `''` + s[1:] },
	func(s string) string { return s[:1] + `\` + s[1:] },
	func(s string) string { return "$'" + s + "'" },
	func(s string) string { return fmt.Sprintf(`$'\x%02x%s'`, s[0], s[1:]) },
	func(s string) string { return "/usr/bin/" + s },
	func(s string) string { return "./" + s },
}

const mixed = `{"bash":{"*":"ask","echo *":"allow","cat *":"allow","ls *":"allow","true":"allow","git *":"allow","f":"allow","cd *":"allow","git push *":"ask","rm *":"deny","git reset *":"deny"},
	"external_directory":"ask","path":{"*":"allow","*.env":"deny","*.key":"ask"}}`

// TestWrappingNeverSoftens wraps commands in ways that still run them, and
// holds the verdict of the whole against that of the command.
func TestWrappingNeverSoftens(t *testing.T) {
	w := newWorld(t, mixed, "a.txt", "x.env")
	commands := [][2]string{
		{"rm", "x"}, {"rm", "-rf 'a b'"}, {"git", "reset --hard"}, {"git", "-C sub reset"}, {"git", "push origin"}, {"git", "status"}, {"make", "all"}, {"ls", "a.txt"},
		{"cat", "x.env"}, {"cat", ".env"}, {"cat", "a.key"}, {"cat", "b/a.key"}, {"ls", "/etc/hosts"}, {"cat", "../x"}, {"echo", "hi >x.env"}, {"cat", "<x.env"}, {"unknown", "a"},
	}
	wrapped := 0
	rapid.Check(t, func(t *rapid.T) {
		// Each run tries a hundred wrappings of one command.
		c := rapid.SampledFrom(commands).Draw(t, "command")
		plain := c[0] + " " + c[1]
		base := w.bash(plain)
		for range 120 {
			p := piece{rapid.SampledFrom(names).Draw(t, "name")(c[0]) + " " + c[1], !strings.ContainsAny(c[1], "<>")}
			decoy := rapid.SampledFrom([]string{"true", "echo a", "ls", "cat a.txt"}).Draw(t, "decoy")
			for range rapid.IntRange(1, 3).Draw(t, "depth") {
				i := rapid.IntRange(0, len(wrappings)-1).Draw(t, "wrapping")
				wr := wrappings[i]
				if wr.simple && !p.simple {
					continue
				}
				p.text = wr.wrap(p.text, decoy)
				p.simple = wr.simple && wr.name != "prefix" && wr.name != "redirect" && wr.name != "input" && wr.name != "find"
			}
			wrapped++
			if o := w.bash(p.text); base.Action.Stricter(o.Action) {
				t.Fatalf("%q is %v, but %q is %s", plain, base.Action, p.text, show(o))
			}
		}
	})
	if wrapped < 10_000 {
		t.Errorf("only %d wrappings were tried", wrapped)
	}
}

// randomProgram joins a few commands.
func randomProgram(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"git status", "git push -f", "git push origin main", "git -C d log", "npm run dev", "npm run build -- x", "npm install a", "npm", "ls", "ls -la", "rm a", "rm b", "make", "docker compose up -d",
		"sudo ls", "bash -c 'ls'", "find . -exec ls {} +", "cat /srv/a/x", "cat /srv/a/y /opt/b", "cat ../x", "cat .env", "cat d/.env", "echo x > /srv/o", "cat < /srv/i", "$CMD x", "echo $(make)", "(make x)", "command make y",
		"cd $D && cat a/.env", "ls *.go", "time make", "X=1 make z", "mytool --a b", "gh pr view 3", "cat ~/x", "timeout 5 make",
	}), 1, 4).Draw(t, "parts")
	return strings.Join(parts, rapid.SampledFrom([]string{"; ", " && ", "\n", " | ", " || "}).Draw(t, "operator"))
}

const asking = `{"*":"ask","path":{"*":"allow","*.env":"ask"}}`

// TestSuggestionAnswersItsAsk grants what is suggested, ask by ask: each grant
// answers the ask it was made for, covers no other unit of the line, and in
// the end nothing asks any more.
func TestSuggestionAnswersItsAsk(t *testing.T) {
	w := newWorld(t, asking)
	scope := engine.Scope{SessionID: "s"}
	rapid.Check(t, func(t *rapid.T) {
		text := randomProgram(t)
		now := func() time.Time { return time.Unix(1e9, 0) }
		session := engine.NewSessionRules(now, w.gate.Rules.Options())
		g := *w.gate
		g.Grants = session.View(scope)
		for round := 0; ; round++ {
			o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": text}})
			asks := o.Asks()
			if len(asks) == 0 {
				if o.Action != engine.Allow {
					t.Fatalf("%q: %v without an ask", text, o.Action)
				}
				return
			}
			if round > 12 {
				t.Fatalf("%q still asks: %s", text, show(o))
			}
			first := asks[0]
			if first != o.Decisive {
				t.Fatalf("%q: the first ask is not what decides", text)
			}
			if len(first.Suggestion) == 0 {
				if !strings.ContainsAny(first.Value, "*?") && !slices.ContainsFunc(first.Paths, func(p gate.PathCheck) bool { return p.Facts.Unplaced }) {
					t.Fatalf("%q: nothing is suggested for %s", text, show(o))
				}
				return
			}
			for _, s := range first.Suggestion {
				values := first.Intent.MatchValues
				for _, p := range first.Paths {
					values = append(values, p.Facts.Values()...)
				}
				if first.Unit >= 0 {
					values = append(values, o.Program.Units[first.Unit].Spellings...)
				}
				surface := first.Surface
				if _, err := session.Record(engine.NewGrant{Grant: s, Scope: scope, Asked: engine.Asked{Surface: s.Surface, Values: values}}); err != nil {
					t.Fatalf("%q: %v refused for an ask on %s: %v", text, s, surface, err)
				}
				if first.Gate == engine.SurfaceBash && first.Unit >= 0 {
					pat := pattern.Compile(s.Pattern, pattern.Posix)
					for i := range o.Program.Units {
						u := &o.Program.Units[i]
						if u.Text != o.Program.Units[first.Unit].Text && pat.Match(u.Text) {
							t.Fatalf("%q: %q for %q also covers %q", text, s.Pattern, first.Value, u.Text)
						}
					}
				}
			}
			again := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": text}})
			for _, a := range again.Asks() {
				if a.Gate == first.Gate && a.Value == first.Value && a.Unit == first.Unit && a.Pattern == first.Pattern {
					t.Fatalf("%q: %v does not answer %s", text, first.Suggestion, show(o))
				}
			}
		}
	})
}

// TestDenyNeverWidens adds a deny to a policy: no verdict becomes softer.
func TestDenyNeverWidens(t *testing.T) {
	patterns := []string{"*", "git *", "git push *", "rm *", "ls *", "* x", "npm run *", "cat *", "sudo *", "make*"}
	surfaces := []string{"bash", "path", "external_directory", "*", "path_write", "external_directory_read"}
	w := newWorld(t, `{}`, "x.env")
	rapid.Check(t, func(t *rapid.T) {
		var sections []string
		for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom(surfaces), 0, 4, rapid.ID).Draw(t, "surfaces") {
			var rules []string
			for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 1, 4, rapid.ID).Draw(t, "patterns") {
				rules = append(rules, fmt.Sprintf("%q:%q", p, rapid.SampledFrom([]string{"allow", "ask", "deny"}).Draw(t, "action")))
			}
			sections = append(sections, fmt.Sprintf("%q:{%s}", s, strings.Join(rules, ",")))
		}
		text := randomProgram(t)
		g := *w.gate
		g.Rules = w.rules(t, "{"+strings.Join(sections, ",")+"}")
		before := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": text}})
		deny := fmt.Sprintf("%q:{%q:\"deny\"}", rapid.SampledFrom([]string{"b*", "p?th*", "external_*", "ba?h"}).Draw(t, "deny surface"), rapid.SampledFrom(patterns).Draw(t, "deny pattern"))
		g.Rules = w.rules(t, "{"+strings.Join(append(sections, deny), ",")+"}")
		after := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": text}})
		if before.Action.Stricter(after.Action) {
			t.Fatalf("%q under %v is %s; with %s it is %s", text, sections, show(before), deny, show(after))
		}
	})
}
