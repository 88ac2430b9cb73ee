package peers

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sizes are the numbers of rules that are measured.
var sizes = []int{10, 100, 1000, 10_000}

// rule is one line of the policy. Its pattern has at most one star, which is
// any run of characters; a later rule beats an earlier one.
type rule struct {
	Surface, Pattern, Action string
}

// question is an intent that is ready to be matched.
type question struct {
	Surface string `json:"surface"`
	Value   string `json:"value"`
}

// answer is what an engine must say to a question. Without a rule that matches
// it is an ask with no pattern.
type answer struct {
	Action  string `json:"action"`
	Pattern string `json:"pattern"`
}

var actions = []string{"allow", "deny", "ask"}

// rules are n rules such as people and their agents write, seven of ten on
// bash.
func rules(n int) []rule {
	list := []rule{{"bash", "*", "ask"}, {"bash", "git *", "allow"}, {"bash", "git push *", "ask"}}
	kinds := []struct{ surface, pattern string }{
		{"bash", "tool%d *"}, {"bash", "run%d-*"}, {"bash", "do%d"}, {"mcp", "server%d_*"}, {"bash", "/opt/bin/x%d *"},
		{"bash", "git sub%d *"}, {"skill", "skill%d"}, {"bash", "*.ext%d"}, {"bash", "k%d * --force"}, {"fetch", "https://host%d.example/*"},
	}
	for i := 0; len(list) < n; i++ {
		k := kinds[i%len(kinds)]
		list = append(list, rule{k.surface, fmt.Sprintf(k.pattern, i), actions[i%len(actions)]})
	}
	return list
}

// early is decided by one of the first rules, so that every later one must be
// ruled out.
var early = question{"bash", "git push origin main"}

// mix are 32 questions: most are decided by rules from all over the list, some
// by the first rules or by none.
func mix(list []rule) []question {
	all := []question{early, {"bash", "git status --short"}, {"bash", "make test"}, {"fetch", "http://elsewhere.example"},
		{"bash", "tool x"}, {"mcp", "server_tool"}, {"skill", "release"}, {"edit", "main.go"}}
	for i := 0; len(all) < 32; i++ {
		r := list[i*7919%len(list)]
		all = append(all, question{r.Surface, strings.Replace(r.Pattern, "*", "now and then", 1)})
	}
	return all
}

// engine answers questions of one policy.
type engine interface {
	decide(q question) (answer, error)
}

// measure times a loop whose every turn makes so many decisions, by the
// processor time that this process takes, all of its threads together. On a
// machine that has other work too, the time of day would measure that as well.
func measure(b *testing.B, decisions int, run func()) {
	b.Helper()
	runtime.GC() // what was made before is not part of it
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processorTime(b)
	for b.Loop() {
		run()
	}
	took := processorTime(b) - start
	runtime.ReadMemStats(&after)
	all := float64(b.N) * float64(decisions)
	b.ReportMetric(float64(took)/all, "cpu-ns/decision")
	b.ReportMetric(math.Floor(float64(after.Mallocs-before.Mallocs)/all), "allocs/decision")
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// permission is the policy as Nod's and pi's files have it.
func permission(tb testing.TB, list []rule) []byte {
	tb.Helper()
	text := &strings.Builder{}
	text.WriteString(`{"permission": {"*": "ask"`)
	var surfaces []string
	for _, r := range list {
		if !slices.Contains(surfaces, r.Surface) {
			surfaces = append(surfaces, r.Surface)
		}
	}
	for _, s := range surfaces {
		fmt.Fprintf(text, ", %q: {", s)
		sep := ""
		for _, r := range list {
			if r.Surface == s {
				fmt.Fprintf(text, "%s%q: %q", sep, r.Pattern, r.Action)
				sep = ", "
			}
		}
		text.WriteString("}")
	}
	text.WriteString("}}")
	if !json.Valid([]byte(text.String())) {
		tb.Fatalf("the policy is no JSON: %s", text)
	}
	return []byte(text.String())
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := endPi(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
