//go:build bench

package engine

import (
	"fmt"
	"strings"
	"testing"

	cedar "github.com/cedar-policy/cedar-go"
)

// cedarPolicies says the same as manyRules in Cedar: one policy per rule. A
// deny is a forbid, an allow a permit; an ask has no word there and is a
// permit with an annotation.
func cedarPolicies(b *testing.B, layers []Layer) *cedar.PolicySet {
	b.Helper()
	var text strings.Builder
	for _, l := range layers {
		for _, s := range l.Sections {
			for i, r := range s.Rules {
				effect := "permit"
				if r.Action == Deny {
					effect = "forbid"
				}
				like := strings.ReplaceAll(r.Pattern, "?", "*")
				fmt.Fprintf(&text, "@id(%q)\n@action(%q)\n%s (principal, action == Action::%q, resource) when { context.value like %q };\n",
					fmt.Sprintf("%s-%d", s.Surface, i), r.Action, effect, s.Surface, like)
			}
		}
	}
	set, err := cedar.NewPolicySetFromBytes("bench.cedar", []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	return set
}

// BenchmarkPeerCedar puts the question of BenchmarkResolve to cedar-go, in the
// same run: go test -tags bench -bench 'Resolve$|PeerCedar' ./engine
func BenchmarkPeerCedar(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			set := cedarPolicies(b, manyRules(n))
			req := cedar.Request{
				Principal: cedar.NewEntityUID("Agent", "scout"),
				Action:    cedar.NewEntityUID("Action", "bash"),
				Resource:  cedar.NewEntityUID("Tool", "bash"),
				Context:   cedar.NewRecord(cedar.RecordMap{"value": cedar.String("git push origin main")}),
			}
			if ok, d := cedar.Authorize(set, cedar.EntityMap{}, req); !ok || len(d.Errors) > 0 {
				b.Fatalf("got %v, %v", ok, d)
			}
			b.ReportAllocs()
			for b.Loop() {
				cedar.Authorize(set, cedar.EntityMap{}, req)
			}
		})
	}
}
