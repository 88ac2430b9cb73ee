package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine/pattern"
	"pgregory.net/rapid"
)

// used is what has been taken from w.
func used(w *Work) int { return maxWork + spareWork - w.left - w.spare }

// policyOf is n rules on a surface behind one that allows everything.
func policyOf(surface string, n int, text func(i int) string) *Ruleset {
	pairs := make([]string, 0, 2*n+2)
	pairs = append(pairs, "*", "allow")
	for i := range n {
		pairs = append(pairs, text(i), []string{"deny", "ask"}[i%2])
	}
	return Compile([]Layer{layer(OriginGlobal, section(surface, pairs...))}, Options{Home: "/home/u", Cwd: "/p"})
}

func numbered(format string) func(int) string {
	return func(i int) string { return strings.ReplaceAll(format, "%", fmt.Sprint(i)) }
}

// tangled is a value that has the texts of `*aN*bN*cN*` for each N, and in no
// order that matches.
func tangled(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "c%dc b%db a%da b%db ", i, i, i, i)
	}
	return b.String()
}

// apart is rules for an `a` before a `b`.
func apart(i int) string { return "*a" + strings.Repeat("?", i+1) + "b*" }

// A decision takes bounded work, however many rules there are, whatever they
// say, and however long the value is.
func TestWorkIsBounded(t *testing.T) {
	const long = 1 << 20
	for _, tt := range []struct {
		name, surface, value string
		rules                int
		pattern              func(int) string
		most                 int // steps for each byte of the value; 0: maxWork in all
		limited              bool
	}{
		{"one text", "bash", strings.Repeat("ab ", long/3), 30_000, numbered("*x%*"), finderWork + 1, false},
		{"three texts", "bash", strings.Repeat("aabbcc", long/6), 30_000, numbered("*aa%*bb%*cc%*"), finderWork + 1, false},
		{"the same text", "bash", strings.Repeat("ccbbaa", long/6), 30_000, numbered("*aa*bb*cc*z%"), finderWork + 1, false},
		{"one head", "bash", "git " + strings.Repeat("y", long), 100_000, numbered("git *x%*"), finderWork + 1, false},
		{"ends", "bash", "git " + strings.Repeat("y", long), 100_000, numbered("git *x%"), finderWork + 1, false},
		{"question marks", "bash", strings.Repeat("x", long), 100_000, numbered("*?%?*?a"), finderWork + 1, false},
		{"globs", "path", "/p/" + strings.Repeat("x/", long/2), 100_000, numbered("glob:**/x%/**/*.{a,b}"), 2*(finderWork+1) + 1, false},
		{"tangled", "bash", tangled(30_000), 30_000, numbered("*a%a*b%b*c%c*"), 0, true},
		{"only question marks", "bash", strings.Repeat("x", long), 1000, func(i int) string { return strings.Repeat("?", i+1) }, 1, false},
		{"between question marks", "bash", strings.Repeat("b", long/2) + strings.Repeat("a", long/2), 1000, apart, 0, true},
		{"one glob", "path", "/p/" + strings.Repeat("x/", long/2), 1, func(int) string { return "glob:**/" + strings.Repeat("{x,y}/*/", 8) + "z" }, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := policyOf(tt.surface, tt.rules, tt.pattern)
			w := NewWork()
			m := r.Resolve(&Query{Surface: tt.surface, Values: []string{tt.value}, Work: w})
			if m.Limited != tt.limited || tt.limited && (m.Action != Ask || m.Pattern != PatternLimit || !m.Explicit) || !tt.limited && m.Pattern != "*" {
				t.Errorf("%v %q, limited: %v", m.Action, m.Pattern, m.Limited)
			}
			// Where it did not last, what a last step would have cost is not taken.
			most := maxWork + spareWork + ownWork
			if tt.most > 0 {
				most = tt.most*len(tt.value) + candidateWork*200
			}
			if n := used(w); n > most {
				t.Errorf("%d steps, at most %d", n, most)
			}
		})
	}
}

// A command of many parts costs no more than one, and no part spoils another.
func TestWorkIsSharedAndNoneGoesWithout(t *testing.T) {
	r := policyOf("bash", 30_000, numbered("*a%a*b%b*c%c*"))
	w := NewWork()
	long := tangled(30_000)
	for range 5 {
		if m := r.Resolve(&Query{Surface: "bash", Values: []string{long}, Work: w}); !m.Limited {
			t.Fatalf("%v %q", m.Action, m.Pattern)
		}
	}
	if n := used(w); n > maxWork+spareWork+5*ownWork {
		t.Errorf("%d steps", n)
	}
	for value, want := range map[string]Action{"git status": Allow, "a2a b2b c2c": Deny, "a3a b3b c3c": Ask} {
		if m := r.Resolve(&Query{Surface: "bash", Values: []string{value}, Work: w}); m.Action != want || m.Limited {
			t.Errorf("%q: %v %q, limited: %v", value, m.Action, m.Pattern, m.Limited)
		}
	}
}

// So do the targets of an MCP call, which follow the path among its arguments.
func TestGroupsDrawOnTheDecisionsWork(t *testing.T) {
	r := policyOf(SurfaceMCP, 30_000, numbered("*a%a*b%b*c%c*"))
	w := NewWork()
	long := [][]string{{tangled(30_000)}}
	for range 5 {
		if m := r.ResolveGroups(SurfaceMCP, long, nil, w); !m.Limited || m.Action != Ask {
			t.Fatalf("%v %q", m.Action, m.Pattern)
		}
	}
	if n := used(w); n > maxWork+spareWork+5*ownWork {
		t.Errorf("%d steps", n)
	}
	for value, want := range map[string]Action{"a2a b2b c2c": Deny, "a3a b3b c3c": Ask} {
		if m := r.ResolveGroups(SurfaceMCP, [][]string{{"other"}, {value}}, nil, w); m.Action != want || m.Limited {
			t.Errorf("%q: %v %q, limited: %v", value, m.Action, m.Pattern, m.Limited)
		}
	}
}

// What a limit leaves out is never allowed: a decision under it is the whole
// one, a deny, or an ask that nothing answers but a person.
func TestALimitNeverSoftens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		q := drawQuery(t)
		r := Compile(layers, testOptions)
		full := r.Resolve(&q)
		q.Work = &Work{left: rapid.IntRange(0, 200).Draw(t, "work")}
		m := r.Resolve(&q)
		switch {
		case m.Limited && (m.Action != Ask || m.Grant != nil || m.Pattern != PatternLimit):
			t.Fatalf("limited: %+v", m)
		case !m.Limited && m.Action != Deny && m != full:
			t.Fatalf("%+v, without a limit %+v", m, full)
		}
	})
}

// A deny that is found counts, though there was no time for what stands behind
// it, and a grant does not answer what could not be judged.
func TestALimitKeepsADenyAndTakesNoGrant(t *testing.T) {
	long := strings.Repeat("x", 1000)
	s := NewSessionRules(time.Now, Options{})
	scope := Scope{SessionID: "s"}
	if _, err := s.Record(NewGrant{Grant: Grant{"bash", "rm *"}, Scope: scope, Asked: Asked{"bash", []string{"rm x"}}}); err != nil {
		t.Fatal(err)
	}
	for last, want := range map[string]Action{"rm *": Deny, "mv *": Ask} {
		r := Compile([]Layer{layer(OriginGlobal, section("bash", "*", "allow", last, "deny", "*a*b*", "allow"))}, Options{})
		m := r.Resolve(&Query{Surface: "bash", Values: []string{"rm " + long}, Work: &Work{left: 200}, Grants: s.View(scope)})
		if m.Action != want || m.Limited != (want == Ask) {
			t.Errorf("%s: %+v", last, m)
		}
	}
}

// What is plain at the ends of a value is found though no work is left, and
// however many rules are not, also where the layers differ.
func TestALimitKeepsWhatIsPlain(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, layers := range [][]Layer{
		{layer(OriginGlobal, section("bash", "*", "allow", "rm *", "deny", "*a*b*", "deny"))},
		{layer(OriginGlobal, section("bash", "*", "allow", "*.pem", "deny", "*a*b*", "deny"))},
		{layer(OriginGlobal, section("bash", "*", "allow", "rm*.pem", "deny", "*a*b*", "deny"))},
		{layer(OriginGlobal, section("bash", "*", "allow", "rm "+long+".pem", "deny", "*a*b*", "deny"))},
	} {
		r := Compile(layers, Options{})
		m := r.Resolve(&Query{Surface: "bash", Values: []string{"rm " + long + ".pem"}, Work: &Work{}})
		if m.Action != Deny || m.Limited {
			t.Errorf("%s: %+v", layers[0].Sections[0].Rules[1].Pattern, m)
		}
	}
	// The winner is known, a layer above it is not, and one above that is.
	s := stack{merged: newIndex(entriesOf(0, "rm *", Allow)), own: []index{newIndex(nil), newIndex(entriesOf(1, "*a*b*", Ask)), newIndex(entriesOf(2, "rm *", Deny))}}
	in := input{values: []string{"rm " + long}}
	if h := s.decide(&in, 0, &Work{left: 200}); !h.limited || !h.denies() {
		t.Errorf("%+v", h)
	}
}

func entriesOf(rank int, text string, a Action) []entry {
	return []entry{{rule: &Rule{Pattern: text, Action: a}, action: a, rank: rank, pat: pattern.Compile(text, pattern.Posix)}}
}

// A command has a share of the work for each of its bytes, which is enough for
// an ordinary policy, whatever was judged before. Paths have none.
func TestALongCommandHasItsShare(t *testing.T) {
	r := policyOf("bash", 30, numbered("*x%*y*"))
	long := strings.Repeat("z", 1<<20)
	w := &Work{own: ownWork, spare: spareWork}
	for _, v := range []string{long, long + " x0 y", long} {
		want := Allow
		if strings.HasSuffix(v, "y") {
			want = Deny
		}
		if m := r.Resolve(&Query{Surface: "bash", Values: []string{v}, Work: w}); m.Action != want || m.Limited {
			t.Errorf("%v %q, limited: %v", m.Action, m.Pattern, m.Limited)
		}
	}
	r = policyOf("path", 30, numbered("*x%*y*"))
	w = &Work{own: ownWork, spare: spareWork}
	if m := r.Resolve(&Query{Surface: "path_read", Values: []string{long}, Work: w}); !m.Limited || w.spare != spareWork {
		t.Errorf("%v %q, limited: %v, %d spared", m.Action, m.Pattern, m.Limited, w.spare)
	}
}

// A link does not allow what could not be held against all rules.
func TestALinkDoesNotAnswerALimit(t *testing.T) {
	q := &Question{Surface: "bash", Intent: &Intent{Surface: "bash", MatchValues: []string{"x"}}}
	for limited, want := range map[bool]Verdict{false: Approved, true: Unavailable} {
		w := Walk{Rules: judgment{Action: Ask, Limited: limited}, Links: []Link{says("allow")}, Terminal: Denying("nobody")}
		if d := w.Decide(context.Background(), q); d.Verdict != want {
			t.Errorf("limited: %v: %+v", limited, d)
		}
	}
}

type judgment Judgment

func (j judgment) Judge(*Question) Judgment { return Judgment(j) }

type says string

func (s says) Name() string { return "link" }

func (s says) Review(context.Context, *Question) (LinkVerdict, error) {
	return LinkVerdict{Say: string(s)}, nil
}

// A limit shows where a decision is explained.
func TestTraceTellsOfALimit(t *testing.T) {
	r := policyOf("bash", 2000, apart)
	steps := r.Trace(&Query{Surface: "bash", Values: []string{strings.Repeat("b", 1<<19) + strings.Repeat("a", 1<<19)}})
	if len(steps) == 0 || steps[len(steps)-1].Rule.Pattern != PatternLimit || !steps[len(steps)-1].Wins {
		t.Errorf("%d steps", len(steps))
	}
}

// The grants of a session are found by an index: the oldest in force that
// covers an ask, as when each is looked at.
func TestManyGrantsAreFoundAsFew(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewSessionRules(func() time.Time { return now }, Options{})
	scopes := []Scope{{"s", ""}, {"s", "r"}, {"other", ""}}
	for i := range 500 {
		text := fmt.Sprintf("cmd%d *", i%100)
		if i%7 == 0 {
			text = fmt.Sprintf("cmd%d x", i%100)
		}
		n := NewGrant{Grant: Grant{[]string{"bash", "path", "path_read"}[i%3], text}, Scope: scopes[i/7%3], Asked: Asked{"", []string{fmt.Sprintf("cmd%d x", i%100)}}}
		n.Asked.Surface = n.Surface
		if i%5 == 0 {
			n.Until = now.Add(time.Duration(i) * time.Second).Add(time.Second)
		}
		if _, err := s.Record(n); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(100 * time.Second)
	list := s.held.Load().all
	found := 0
	for _, scope := range []Scope{{"s", "r"}, {"s", "q"}, {"other", "r"}} {
		v := s.View(scope)
		for _, surface := range []string{"bash", "path", "path_read", "path_write", "mcp"} {
			for i := range 100 {
				for _, exact := range []bool{false, true} {
					values := []string{fmt.Sprintf("cmd%d x", i), fmt.Sprintf("cmd%d y", i+1)}
					var want *SessionGrant
					for _, g := range list {
						if g.covers(surface, bareName(surface), values, 0) && g.Scope.covers(scope) && (!exact || g.Exact()) && (g.Until.IsZero() || g.Until.After(now)) {
							want = g
							break
						}
					}
					if want != nil {
						found++
					}
					if got := v.find(surface, values, exact, NewWork()); got != want {
						t.Fatalf("%v %s %q exact %v: %+v, want %+v", scope, surface, values, exact, got, want)
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d are found", found)
	}
}

// Looking a grant up among ten thousand takes the work of a few.
func TestTenThousandGrants(t *testing.T) {
	s := NewSessionRules(time.Now, Options{})
	list := make([]*SessionGrant, 10_000)
	for i := range list {
		list[i] = s.compile("bash", fmt.Sprintf("cmd%d *", i))
		list[i].Scope = Scope{SessionID: "s"}
	}
	s.held.Store(&grantList{all: list})
	v := s.View(Scope{SessionID: "s"})
	w := NewWork()
	if g := v.find("bash", []string{"cmd9999 x"}, false, w); g != list[9999] {
		t.Errorf("got %+v", g)
	}
	if n := used(w); n > 100 {
		t.Errorf("%d steps", n)
	}
}

// BenchmarkWildcards is one long value against very many rules that only its
// middle can rule out.
func BenchmarkWildcards(b *testing.B) {
	value := strings.Repeat("aa bb cc x ", 1<<20/11)
	for name, text := range map[string]string{"one": "*x%x*", "three": "*aa%*bb%*cc%*"} {
		r := policyOf("bash", 30_000, numbered(text))
		for _, n := range []int{100, 10_000, 1 << 20} {
			b.Run(fmt.Sprintf("%s/bytes=%d", name, n), func(b *testing.B) {
				q := &Query{Surface: "bash", Values: []string{value[:min(n, len(value))]}}
				if m := r.Resolve(q); m.Action != Allow {
					b.Fatalf("%+v", m)
				}
				b.ReportAllocs()
				for b.Loop() {
					r.Resolve(q)
				}
			})
		}
	}
}
