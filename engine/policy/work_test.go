package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nod-agents/nod/engine"
)

// Very many whole-number keys with very many rules behind them are read in
// bounded work, and those that are not looked at keep their place.
func TestIntegerKeysTakeBoundedWork(t *testing.T) {
	const keys, behind = 20_000, 3000
	var rules []engine.Rule
	for i := range keys {
		rules = append(rules, engine.Rule{Pattern: fmt.Sprint(i), Action: engine.Ask})
	}
	rules = append(rules, engine.Rule{Pattern: "1*", Action: engine.Allow})
	for i := range behind {
		rules = append(rules, engine.Rule{Pattern: fmt.Sprintf("x%d*", i), Action: engine.Allow})
	}
	l := latest{rules: rules}
	for i := range keys {
		if got := l.after(i, rules[i].Pattern); got != engine.Deny {
			t.Fatalf("%s: %v", rules[i].Pattern, got)
		}
	}
	if l.looks != maxLooks {
		t.Errorf("%d looks, not %d", l.looks, maxLooks)
	}
	if kept := keepIntegers(rules); len(kept) != len(rules) || kept[0].Pattern != "0" {
		t.Errorf("%d rules, the first %q", len(kept), kept[0].Pattern)
	}
	near := latest{rules: rules[:keys+1]}
	if got := near.after(1, "1"); got != engine.Allow {
		t.Errorf("1 is followed by %v", got)
	}
}

// BenchmarkParse is the reading of policies of a hundred thousand rules.
func BenchmarkParse(b *testing.B) {
	for _, kind := range []struct{ name, head, each, tail string }{
		{"commands", `{"permission":{"bash":{"*":"ask"`, `,"tool%d run *":"deny"`, `}}}`},
		{"wildcards", `{"permission":{"bash":{"*":"ask"`, `,"*a%d*b*":"allow"`, `}}}`},
		{"numbers", `{"permission":{"bash":{"*":"ask"`, `,"%d":"ask"`, `,"1*":"allow"}}}`},
		{"surfaces", `{"permission":{"*":"ask"`, `,"b*%d*":{"x":"deny"}`, `}}`},
	} {
		b.Run(kind.name, func(b *testing.B) {
			var text strings.Builder
			text.WriteString(kind.head)
			for i := range 100_000 {
				fmt.Fprintf(&text, kind.each, i)
			}
			text.WriteString(kind.tail)
			b.ReportAllocs()
			for b.Loop() {
				layer, _, _, err := Parse("policy.json", []byte(text.String()), Nod, "/home/u")
				if err != nil {
					b.Fatal(err)
				}
				engine.Compile([]engine.Layer{layer}, engine.Options{}).Resolve(&engine.Query{Surface: "bash", Values: []string{"git status"}})
			}
		})
	}
}
