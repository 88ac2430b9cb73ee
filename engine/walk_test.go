package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
)

type fixed Judgment

func (f fixed) Judge(*Question) Judgment { return Judgment(f) }

// later answers ask at first and deny from then on.
type later struct{ asked bool }

func (l *later) Judge(*Question) Judgment {
	if l.asked {
		return Judgment{Action: Deny, Reason: "new rule", By: DecisionSource{Kind: ByRule}}
	}
	l.asked = true
	return Judgment{Action: Ask}
}

type link struct {
	name  string
	say   string
	err   error
	panic bool
}

func (l link) Name() string { return l.name }

func (l link) Review(context.Context, *Question) (LinkVerdict, error) {
	if l.panic {
		panic("boom")
	}
	return LinkVerdict{Say: l.say, Reason: "because"}, l.err
}

type terminal struct {
	d     Decision
	err   error
	panic bool
}

func (t terminal) Authorize(context.Context, *Question) (Decision, error) {
	if t.panic {
		panic("boom")
	}
	return t.d, t.err
}

func bashQuestion() *Question {
	return &Question{Surface: "bash", Value: "ls", Intent: &Intent{Surface: "bash", MatchValues: []string{"ls"}}}
}

func TestWalk(t *testing.T) {
	human := terminal{d: Decision{Verdict: Approved, By: DecisionSource{Kind: ByUser}}}
	asks := fixed{Action: Ask}
	tests := []struct {
		name    string
		rules   Rules
		links   []Link
		term    Terminal
		verdict Verdict
		by      SourceKind
		link    string
	}{
		{"a rule allows", fixed{Action: Allow, By: DecisionSource{Kind: ByRule}}, []Link{link{name: "a", say: "deny"}}, human, Approved, ByRule, ""},
		{"a rule denies", fixed{Action: Deny, By: DecisionSource{Kind: ByRule}}, []Link{link{name: "a", say: "allow"}}, human, Denied, ByRule, ""},
		{"a rule denies with its reason", fixed{Action: Deny, Reason: "no", By: DecisionSource{Kind: ByRule}}, nil, human, DeniedWithReason, ByRule, ""},
		{"no links: the terminal", asks, nil, human, Approved, ByUser, ""},
		{"configured order wins", asks, []Link{link{name: "a", say: "allow"}, link{name: "b", say: "deny"}}, human, Approved, ByAuthorizer, "a"},
		{"defer goes on", asks, []Link{link{name: "a", say: "defer"}, link{name: "b", say: "deny"}}, human, DeniedWithReason, ByAuthorizer, "b"},
		{"a failing link defers", asks, []Link{link{name: "a", err: errors.New("slow")}}, human, Approved, ByUser, ""},
		{"a failing link's allow does not count", asks, []Link{link{name: "a", say: "allow", err: errors.New("slow")}}, terminal{d: Decision{Verdict: Denied, By: DecisionSource{Kind: ByUser}}}, Denied, ByUser, ""},
		{"a panicking link defers", asks, []Link{link{name: "a", panic: true}, link{name: "b", say: "deny"}}, human, DeniedWithReason, ByAuthorizer, "b"},
		{"nonsense defers", asks, []Link{link{name: "a", say: "ALLOW"}}, human, Approved, ByUser, ""},
		{"the terminal fails", asks, nil, terminal{err: errors.New("gone")}, Denied, ByGateError, ""},
		{"the terminal panics", asks, nil, terminal{panic: true}, Denied, ByGateError, ""},
		{"nobody to ask", asks, nil, Denying("nobody serves"), Unavailable, ByUnavailable, ""},
		{"a deny that comes while a human thinks", &later{}, nil, human, DeniedWithReason, ByRule, ""},
		{"a deny that comes while a link thinks", &later{}, []Link{link{name: "a", say: "allow"}}, human, DeniedWithReason, ByRule, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := Walk{Rules: tt.rules, Links: tt.links, Terminal: tt.term}
			d := w.Decide(context.Background(), bashQuestion())
			if d.Verdict != tt.verdict || d.By.Kind != tt.by || d.By.Name != tt.link {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestEveryLinkIsReported(t *testing.T) {
	var told []string
	w := Walk{
		Rules:    fixed{Action: Ask},
		Links:    []Link{link{name: "a", err: errors.New("x")}, link{name: "b", say: "defer"}, link{name: "c", say: "deny"}, link{name: "d", say: "allow"}},
		Terminal: Denying(""),
		Reviewed: func(_ *Question, name string, v LinkVerdict, err error) {
			if err != nil {
				v.Say = "error"
			}
			told = append(told, name+" "+v.Say)
		},
	}
	w.Decide(context.Background(), bashQuestion())
	if want := []string{"a error", "b defer", "c deny"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

func TestLinkAllowIsCapped(t *testing.T) {
	on := func(surface string) *Question {
		return &Question{Surface: surface, Intent: &Intent{Surface: surface, MatchValues: []string{"x"}}}
	}
	with := func(f func(*Question)) *Question {
		q := bashQuestion()
		f(q)
		return q
	}
	tests := []struct {
		name string
		q    *Question
		cap  bool
	}{
		{"bash", bashQuestion(), false},
		{"read", on("read"), false},
		{"a tool whose name starts like a path surface", on("pathfinder"), false},
		{"path", on("path"), true},
		{"path_read", on("path_read"), true},
		{"path_write", on("path_write"), true},
		{"external_directory", on("external_directory"), true},
		{"external_directory_read", on("external_directory_read"), true},
		{"external_directory_write", on("external_directory_write"), true},
		{"unknown surface", on(""), true},
		{"no facts: the surface is only the tool's name", &Question{Surface: "read"}, true},
		{"external path beside a command", with(func(q *Question) { q.Evidence = []Evidence{{Label: "external path", Text: "/x"}} }), true},
		{"full command beside a unit", with(func(q *Question) { q.Evidence = []Evidence{{Label: "full command", Text: "ls; ls"}} }), false},
		{"kind of an external directory", with(func(q *Question) { q.Kind = "bash_external_directory" }), true},
		{"facts and display disagree", with(func(q *Question) { q.Surface = "external_directory" }), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := Walk{Rules: fixed{Action: Ask}, Links: []Link{link{name: "a", say: "allow"}}, Terminal: Denying("nobody")}
			d := w.Decide(context.Background(), tt.q)
			if got := d.Verdict == Unavailable; got != tt.cap {
				t.Errorf("capped %v, got %+v", tt.cap, d)
			}
			// A deny is never capped.
			w.Links = []Link{link{name: "a", say: "deny"}}
			if d := w.Decide(context.Background(), tt.q); d.Verdict != DeniedWithReason {
				t.Errorf("a link's deny got %+v", d)
			}
		})
	}
}
