//go:build unix

package link

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script writes an executable shell script.
func script(t *testing.T, body string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "judge")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func chain(t *testing.T, body string, timeoutMs int) engine.Link {
	t.Helper()
	s := policy.Settings{
		AuthorizerChain: []string{"judge"},
		Links:           map[string]policy.Link{"judge": {Command: []string{script(t, body), "arg with space"}, TimeoutMs: timeoutMs}},
	}
	return New(Config{}).Chain(s)[0]
}

func TestReview(t *testing.T) {
	tests := []struct {
		name, body string
		want       engine.LinkVerdict
		err        string
	}{
		{"allow", `echo '{"verdict": "allow"}'`, engine.LinkVerdict{Say: "allow"}, ""},
		{"deny with a reason", `echo '{"verdict": "deny", "reason": "not today"}'`, engine.LinkVerdict{Say: "deny", Reason: "not today"}, ""},
		{"defer", `echo '{"verdict": "defer"}'`, engine.LinkVerdict{Say: "defer"}, ""},
		{"it does not read its input", `exec echo '{"verdict": "defer"}'`, engine.LinkVerdict{Say: "defer"}, ""},
		{"it gets its argument", `test "$1" = "arg with space" && echo '{"verdict": "allow"}'`, engine.LinkVerdict{Say: "allow"}, ""},
		{"it fails", `echo '{"verdict": "allow"}'; echo oops >&2; exit 3`, engine.LinkVerdict{}, "oops"},
		{"no output", `true`, engine.LinkVerdict{}, "no JSON object"},
		{"another word", `echo '{"verdict": "yes"}'`, engine.LinkVerdict{}, "none of allow, deny, defer"},
		{"no verdict", `echo '{"decision": "allow"}'`, engine.LinkVerdict{}, "no verdict"},
		{"two answers", `echo '{"verdict": "allow"}{"verdict": "deny"}'`, engine.LinkVerdict{}, "followed by"},
		{"a list", `echo '["allow"]'`, engine.LinkVerdict{}, "no JSON object"},
		{"a flood", `yes | head -c 200000`, engine.LinkVerdict{}, "longer than"},
		{"killed", `kill -9 $$`, engine.LinkVerdict{}, "killed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := chain(t, tt.body, 10000).Review(t.Context(), &engine.Question{ID: "r1", Value: "ls"})
			if v != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

func TestSlowLinkEndsWithAllItStarted(t *testing.T) {
	_, err := chain(t, `sleep 60 & sleep 60`, 200).Review(t.Context(), &engine.Question{})
	if err == nil || !strings.Contains(err.Error(), "it took more than 200ms") {
		t.Errorf("got %v", err)
	}
}

func TestWithdrawnAskEndsTheLink(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("withdrawn"))
	if _, err := chain(t, `sleep 60`, 60000).Review(ctx, &engine.Question{}); err == nil || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("got %v", err)
	}
}

func TestMissingProgramAndMissingLink(t *testing.T) {
	s := policy.Settings{
		AuthorizerChain: []string{"gone", "nobody", "gone"},
		Links:           map[string]policy.Link{"gone": {Command: []string{filepath.Join(t.TempDir(), "none")}}},
	}
	links := New(Config{}).Chain(s)
	if len(links) != 3 || links[0].Name() != "gone" || links[1].Name() != "nobody" {
		t.Fatalf("got %v", links)
	}
	if _, err := links[0].Review(t.Context(), &engine.Question{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing program: %v", err)
	}
	if _, err := links[1].Review(t.Context(), &engine.Question{}); !errors.Is(err, ErrUnregistered) {
		t.Errorf("a missing link: %v", err)
	}
}

func TestFacts(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "facts.json")
	l := chain(t, `cat > `+seen+`; echo '{"verdict":"defer"}'`, 10000)
	canonical := "/real/x"
	q := &engine.Question{
		ID: "r1", SessionID: "s", Surface: "bash", Value: "sudo ls\x00", Pattern: "<indirection-bash-wrapper>", ExecutedUnit: "ls",
		Intent:      &engine.Intent{Surface: "bash", MatchValues: []string{"sudo ls"}, Boundary: &canonical},
		Annotations: []engine.Annotation{{Source: "model", Text: "harmless"}},
		Suggestion:  []engine.Grant{{Surface: "bash", Pattern: "sudo ls"}},
	}
	if _, err := l.Review(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	var f Facts
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if f.ID != "r1" || f.Link != "judge" || f.Value != "sudo ls\x00" || *f.Executes != "ls" || *f.BoundaryValue != canonical || f.FactsMissing || len(f.Annotations) != 1 || f.CommandContext != nil {
		t.Errorf("got %s", data)
	}
}
