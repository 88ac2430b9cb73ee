package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nod-agents/nod/engine/pattern"
	"pgregory.net/rapid"
)

var (
	words    = []string{"a", "b", "ab", "git", "git push", "a/b", "/p/a", "rm"}
	patterns = []string{"*", "a", "b", "a*", "*b", "git *", "git push *", "*/b", "a/?", "?", "??", "* push", "/p/*", "**", "rm", "ab*"}
	surfaces = []string{"bash", "path", "path_read", "path_write", "mcp", "tool"}
	keys     = []string{"bash", "path", "path_read", "mcp", "tool", "*", "pa*", "b*", "t?ol", "external_directory"}
	actions  = []string{"allow", "ask", "deny"}
)

func drawSection(t *rapid.T, surface string) Section {
	if rapid.Bool().Draw(t, "text") {
		return section(surface, rapid.SampledFrom(actions).Draw(t, "action"))
	}
	list := rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 0, 5, rapid.ID[string]).Draw(t, "patterns")
	var pairs []string
	for _, p := range list {
		pairs = append(pairs, p, rapid.SampledFrom(actions).Draw(t, "action"))
	}
	if len(pairs) == 0 {
		return Section{Surface: surface}
	}
	return section(surface, pairs...)
}

func drawLayer(t *rapid.T, origin Origin) Layer {
	var sections []Section
	for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 5, rapid.ID[string]).Draw(t, "surfaces") {
		sections = append(sections, drawSection(t, k))
	}
	return layer(origin, sections...)
}

func drawLayers(t *rapid.T) []Layer {
	all := []Origin{OriginGlobal, OriginGlobal, OriginProject, OriginAgent, OriginProjectAgent}
	var layers []Layer
	for _, o := range all[:rapid.IntRange(1, len(all)).Draw(t, "layers")] {
		layers = append(layers, drawLayer(t, o))
	}
	return layers
}

func drawQuery(t *rapid.T) Query {
	q := Query{
		Surface: rapid.SampledFrom(surfaces).Draw(t, "surface"),
		Values:  rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, "values"),
	}
	if q.Surface == "bash" {
		q.Strict = rapid.SliceOfN(rapid.SampledFrom(words), 0, 2).Draw(t, "strict")
		q.Whole = rapid.SliceOfN(rapid.SampledFrom(words), 0, 1).Draw(t, "whole")
	}
	return q
}

var testOptions = Options{Home: "/home/u", Cwd: "/p"}

func clone(layers []Layer) []Layer {
	out := slices.Clone(layers)
	for i := range out {
		out[i].Sections = slices.Clone(out[i].Sections)
		for j := range out[i].Sections {
			out[i].Sections[j].Rules = slices.Clone(out[i].Sections[j].Rules)
		}
	}
	return out
}

// TestADenyNeverWidens puts one more deny anywhere into any policy.
func TestADenyNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		q := drawQuery(t)
		before := Compile(layers, testOptions).Resolve(&q)
		more := clone(layers)
		l := &more[rapid.IntRange(0, len(more)-1).Draw(t, "layer")]
		deny := Rule{Pattern: "a" + rapid.SampledFrom(patterns).Draw(t, "deny"), Action: Deny, Origin: l.Origin}
		var maps []int
		for i := range l.Sections {
			if !l.Sections[i].Text {
				maps = append(maps, i)
			}
		}
		if len(maps) == 0 {
			return
		}
		s := &l.Sections[rapid.SampledFrom(maps).Draw(t, "section")]
		if slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Pattern == deny.Pattern }) {
			return
		}
		deny.Surface = s.Surface
		s.Rules = slices.Insert(s.Rules, rapid.IntRange(0, len(s.Rules)).Draw(t, "place"), deny)
		after := Compile(more, testOptions).Resolve(&q)
		if before.Action.Stricter(after.Action) {
			t.Fatalf("%s before, %s after a deny of %q on %s", before.Action, after.Action, deny.Pattern, deny.Surface)
		}
	})
}

// TestUnrelatedRulesDoNotMatter adds rules that match nothing of the query.
func TestUnrelatedRulesDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		q := drawQuery(t)
		before := Compile(layers, testOptions).Resolve(&q)
		more := clone(layers)
		for i := range more {
			for j := range more[i].Sections {
				s := &more[i].Sections[j]
				if s.Text {
					continue
				}
				for n := range rapid.IntRange(0, 3).Draw(t, "more") {
					r := Rule{Surface: s.Surface, Pattern: fmt.Sprintf("zz%d%d*", i, n), Action: Action(rapid.IntRange(0, 2).Draw(t, "action")), Origin: more[i].Origin}
					if s.Surface == "mcp" && r.Action == Allow {
						continue // any mcp allow frees the looking operations
					}
					s.Rules = slices.Insert(s.Rules, rapid.IntRange(0, len(s.Rules)).Draw(t, "place"), r)
				}
			}
			more[i].Sections = append(more[i].Sections, layer(more[i].Origin, section("elsewhere", "deny")).Sections...)
		}
		after := Compile(more, testOptions).Resolve(&q)
		if before.Action != after.Action || before.Pattern != after.Pattern || before.Origin != after.Origin {
			t.Fatalf("%v %q before, %v %q after", before.Action, before.Pattern, after.Action, after.Pattern)
		}
	})
}

// TestOrderOfDifferentSurfacesDoesNotMatter shuffles surfaces that share no
// value.
func TestOrderOfDifferentSurfacesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sections []Section
		for _, k := range []string{"bash", "path_read", "path_write", "mcp", "tool", "*"} {
			sections = append(sections, drawSection(t, k))
		}
		q := drawQuery(t)
		before := Compile([]Layer{layer(OriginGlobal, slices.Clone(sections)...)}, testOptions).Resolve(&q)
		shuffled := rapid.Permutation(sections).Draw(t, "order")
		after := Compile([]Layer{layer(OriginGlobal, shuffled...)}, testOptions).Resolve(&q)
		if before.Action != after.Action || before.Pattern != after.Pattern {
			t.Fatalf("%v %q before, %v %q after", before.Action, before.Pattern, after.Action, after.Pattern)
		}
	})
}

// TestIndexFindsWhatALookAtEveryRuleFinds holds the index against the list.
func TestIndexFindsWhatALookAtEveryRuleFinds(t *testing.T) { rapid.Check(t, indexFinds) }

func FuzzIndex(f *testing.F) { f.Fuzz(rapid.MakeFuzz(indexFinds)) }

func indexFinds(t *rapid.T) {
	letters := []string{"a", "b", "é", "/", " ", "*", "?", " *", "ab", "{a,b}"}
	list := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(letters), 1, 6), 1, 60).Draw(t, "patterns")
	var entries []entry
	for i, p := range list {
		text := strings.Join(p, "")
		if i%5 == 0 && pattern.Check("glob:"+text) == nil {
			text = "glob:" + text
		}
		action := Action(i % 3)
		entries = append(entries, entry{
			rule: &Rule{Pattern: text, Action: action}, action: action,
			bare: pattern.IsBare(text), pat: pattern.Compile(text, pattern.Posix),
		})
	}
	v := strings.Join(rapid.SliceOfN(rapid.SampledFrom(letters[:5]), 0, 12).Draw(t, "value"), "")
	x := indexOf(entries, rapid.SampledFrom([]int{0, 2, crowd}).Draw(t, "crowd"))
	for sel := range selection(4) {
		want := -1
		for i := range entries {
			if sel&noAllow != 0 && entries[i].action == Allow || sel&noBare != 0 && entries[i].bare {
				continue
			}
			if entries[i].match(v) {
				want = i
			}
		}
		if got := x.find(v, sel, -1, NewWork(), nil); got != want {
			t.Fatalf("%q, selection %d: rule %d, want %d", v, sel, got, want)
		}
	}
}

// TestAClampNeverWidens breaks one layer more.
func TestAClampNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		q := drawQuery(t)
		before := Compile(layers, testOptions).Resolve(&q)
		broken := append(clone(layers), Layer{Origin: OriginProject, Broken: fmt.Errorf("broken")})
		after := Compile(broken, testOptions).Resolve(&q)
		if after.Action == Allow || before.Action == Deny && after.Action != Deny || before.Action == Ask && after.Action != Ask {
			t.Fatalf("%s before, %s under a clamp", before.Action, after.Action)
		}
		if before.Action == Allow && after.Origin != OriginFailClosed {
			t.Fatalf("origin %s", after.Origin)
		}
	})
}

// TestMoreSpellingsNeverSoften adds spellings that only deny and ask rules see.
func TestMoreSpellingsNeverSoften(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		q := Query{Surface: "bash", Values: []string{rapid.SampledFrom(words).Draw(t, "value")}}
		r := Compile(layers, testOptions)
		before := r.Resolve(&q)
		q.Strict = rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, "strict")
		q.Whole = rapid.SliceOfN(rapid.SampledFrom(words), 0, 2).Draw(t, "whole")
		after := r.Resolve(&q)
		if before.Action.Stricter(after.Action) {
			t.Fatalf("%s before, %s after %q %q", before.Action, after.Action, q.Strict, q.Whole)
		}
	})
}

// TestDecisionsAreTheSameEveryTime guards against the order of a map.
func TestDecisionsAreTheSameEveryTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		q := drawQuery(t)
		first := Compile(layers, testOptions).Resolve(&q)
		for range 5 {
			if m := Compile(layers, testOptions).Resolve(&q); m != first {
				t.Fatalf("%+v, then %+v", first, m)
			}
		}
	})
}
