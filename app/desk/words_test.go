package desk_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/engine"
)

func ptr(s string) *string { return &s }

func of(q engine.Question) *board.Ask { return &board.Ask{Question: &q} }

func TestFactsAreTheWhole(t *testing.T) {
	tests := []struct {
		name string
		ask  *board.Ask
		want []desk.Fact
	}{
		{
			"a command",
			of(engine.Question{Tool: "bash", Surface: "bash", Value: "ls -la", RequesterCwd: "/home/dev", Intent: &engine.Intent{Surface: "bash", MatchValues: []string{"ls -la"}}}),
			[]desk.Fact{{Text: "ls -la"}, {Label: "in", Text: "/home/dev"}},
		},
		{
			"a part of a line, with the line",
			of(engine.Question{Value: "git status", Evidence: []engine.Evidence{{Label: "full command", Text: "git status && rm -rf build"}}}),
			[]desk.Fact{{Text: "git status"}, {Label: "full command", Text: "git status && rm -rf build"}},
		},
		{
			"a line that is its own full command is said once",
			of(engine.Question{Value: "ls", Evidence: []engine.Evidence{{Label: "full command", Text: "ls"}}}),
			[]desk.Fact{{Text: "ls"}},
		},
		{
			"external paths in both forms",
			of(engine.Question{
				Kind: "bash_external_directory", Value: "cat etc/hostname > /tmp/out", RequesterCwd: "/home/dev",
				Intent: &engine.Intent{Surface: "external_directory", Boundary: ptr("/etc/hostname")},
				Evidence: []engine.Evidence{
					{Label: "working directory", Text: "/home/dev"},
					{Label: "external path", Text: "/home/dev/etc/hostname", Detail: ptr("/etc/hostname")},
					{Label: "external path", Text: "/tmp/out"},
				},
			}),
			[]desk.Fact{
				{Text: "cat etc/hostname > /tmp/out"},
				{Label: "external path", Text: "/home/dev/etc/hostname"},
				{Label: "external path, really", Text: "/etc/hostname"},
				{Label: "external path", Text: "/tmp/out"},
				{Label: "in", Text: "/home/dev"},
			},
		},
		{
			"a working directory that is not the requester's stays",
			of(engine.Question{Value: "ls", RequesterCwd: "/a", Evidence: []engine.Evidence{{Label: "working directory", Text: "/b"}}}),
			[]desk.Fact{{Text: "ls"}, {Label: "working directory", Text: "/b"}, {Label: "in", Text: "/a"}},
		},
		{
			"a path that only the intent knows",
			of(engine.Question{Tool: "edit", Value: "edit", Intent: &engine.Intent{Surface: "edit", Boundary: ptr("/home/dev/a.txt")}}),
			[]desk.Fact{{Text: "edit"}, {Label: "path", Text: "/home/dev/a.txt"}},
		},
		{
			"generation 1 says all in its message",
			of(engine.Question{Generation: 1, Value: "git status", Message: "run git status && rm -rf /"}),
			[]desk.Fact{{Text: "git status"}, {Label: "message", Text: "run git status && rm -rf /"}},
		},
		{
			"only a message",
			of(engine.Question{Generation: 1, Message: "may I?"}),
			[]desk.Fact{{Text: "may I?"}},
		},
		{
			"a wrapper's inner command and where it stands",
			of(engine.Question{Value: "sudo sh -c 'rm x'", ExecutedUnit: "rm x", CommandContext: "command_substitution"}),
			[]desk.Fact{{Text: "sudo sh -c 'rm x'"}, {Label: "runs", Text: "rm x"}, {Label: "inside", Text: "command substitution"}},
		},
		{
			"model-written text comes last, and is told apart; our own notes are no facts",
			&board.Ask{Notes: []string{"the link failed"}, Question: &engine.Question{Value: "ls", Annotations: []engine.Annotation{{Source: "intent", Text: "safe, promise"}}}},
			[]desk.Fact{{Text: "ls"}, {Label: "intent", Text: "safe, promise", Model: true}},
		},
		{
			"a message of generation 1 that only repeats the command",
			of(engine.Question{Value: "pwd", Principal: engine.Principal{AgentName: "scout"}, Message: "Agent 'scout' requested bash command 'pwd'. Allow this command?"}),
			[]desk.Fact{{Text: "pwd"}},
		},
		{
			"the same of an agent without a name",
			of(engine.Question{Value: "demo", Principal: engine.Principal{AgentName: "unknown"}, Message: "Current agent requested skill 'demo'. Allow loading this skill?"}),
			[]desk.Fact{{Text: "demo"}},
		},
		{
			"a message that names another agent",
			of(engine.Question{Value: "pwd", Principal: engine.Principal{AgentName: "scout"}, Message: "Agent 'root' requested bash command 'pwd'. Allow this command?"}),
			[]desk.Fact{{Text: "pwd"}, {Label: "message", Text: "Agent 'root' requested bash command 'pwd'. Allow this command?"}},
		},
		{
			"a message that says more than the command",
			of(engine.Question{Value: "pwd", Message: "Current agent requested bash command 'pwd' (full command: 'pwd; rm x'). Allow this command?"}),
			[]desk.Fact{{Text: "pwd"}, {Label: "message", Text: "Current agent requested bash command 'pwd' (full command: 'pwd; rm x'). Allow this command?"}},
		},
		{"nothing but a tool", of(engine.Question{Tool: "deploy"}), []desk.Fact{{Text: "deploy"}}},
		{"nothing at all", of(engine.Question{}), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := desk.Facts(tt.ask); !slices.Equal(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	a := &board.Ask{Adopted: true, Notes: []string{"the link\nfailed"}, Question: &engine.Question{Value: "ls"}}
	want := []string{"Nobody else serves this session, so Nod answers for it.", `the link\nfailed`}
	if got := desk.Notes(a); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	a.Adopted, a.Notes = false, nil
	if got := desk.Notes(a); len(got) != 0 {
		t.Errorf("got %q, want none", got)
	}
}

// Whatever is judged of an ask must be among its facts: a view shows those.
func TestNoJudgedTextIsLeftOut(t *testing.T) {
	q := engine.Question{
		Value: "v", Message: "m", ExecutedUnit: "u", RequesterCwd: "/c",
		Intent:   &engine.Intent{Boundary: ptr("/b")},
		Evidence: []engine.Evidence{{Label: "full command", Text: "f"}, {Label: "external path", Text: "p", Detail: ptr("d")}, {Label: "external path", Text: "p2"}},
	}
	var all []string
	for _, f := range desk.Facts(of(q)) {
		all = append(all, f.Text)
	}
	for _, want := range []string{"v", "m", "u", "/c", "/b", "f", "p", "d", "p2"} {
		if !slices.Contains(all, want) {
			t.Errorf("%q is in no fact", want)
		}
	}
}

func TestPlain(t *testing.T) {
	tests := []struct {
		name string
		q    engine.Question
		want bool
	}{
		{"plain", engine.Question{Value: "ls -la", Principal: engine.Principal{AgentName: "scout"}}, true},
		{"line breaks in the value", engine.Question{Value: "ls\nrm x"}, true},
		{"a line break in the name", engine.Question{Value: "ls", Principal: engine.Principal{AgentName: "a\nb"}}, false},
		{"a carriage return", engine.Question{Value: "rm -rf /\rls"}, false},
		{"bidi", engine.Question{Value: "ls \u202Efdp.x"}, false},
		{"an escape in the evidence", engine.Question{Value: "ls", Evidence: []engine.Evidence{{Label: "full command", Text: "ls\x1b[2K"}}}, false},
		{"in a label", engine.Question{Value: "ls", Evidence: []engine.Evidence{{Label: "full\u200bcommand", Text: "x"}}}, false},
		{"in what the model wrote", engine.Question{Value: "ls", Annotations: []engine.Annotation{{Text: "\u2066"}}}, false},
		{"in the directory", engine.Question{Value: "ls", RequesterCwd: "/a\u00a0b"}, false},
	}
	for _, tt := range tests {
		if got := desk.Plain(of(tt.q)); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestTitles(t *testing.T) {
	scout := engine.Principal{SessionID: "0198c0de-0000", AgentName: "scout"}
	tests := []struct {
		q    engine.Question
		want string
	}{
		{engine.Question{Principal: scout, Surface: "bash", Tool: "bash", Kind: "bash"}, "scout wants to run a command"},
		{engine.Question{Principal: scout, Surface: "external_directory", Tool: "bash", Kind: "bash_external_directory"}, "scout wants to reach outside its directory"},
		{engine.Question{Principal: engine.Principal{SessionID: "0198c0de-0000", AgentName: "unknown"}, Tool: "read", Surface: "read"}, "agent 0198c0de wants to read a file"},
		{engine.Question{Tool: "edit"}, "an agent wants to edit a file"},
		{engine.Question{Principal: scout, Tool: "write"}, "scout wants to write a file"},
		{engine.Question{Principal: scout, Kind: "mcp", Tool: "mcp"}, "scout wants to call an MCP tool"},
		{engine.Question{Principal: scout, Source: "skill_read", Tool: "read", Surface: "skill"}, "scout wants to use a skill"},
		{engine.Question{Principal: scout, Tool: "deploy\x1b[2J"}, `scout wants to use the tool deploy\x1B[2J`},
		{engine.Question{Principal: engine.Principal{AgentName: "a\nNod: all is well"}}, `a\nNod: all is well asks for permission`},
	}
	for _, tt := range tests {
		if got := desk.Title(&tt.q); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	long := desk.Title(&engine.Question{Principal: engine.Principal{AgentName: strings.Repeat("x", 500)}})
	if len([]rune(long)) > 80 {
		t.Errorf("a title of %d characters", len([]rune(long)))
	}
}

func TestHow(t *testing.T) {
	tests := []struct {
		e    board.End
		want string
	}{
		{board.End{Withdrawn: true, Why: "the child went"}, "withdrawn: the child went"},
		{board.End{Decision: engine.Decision{Verdict: engine.Approved}, View: "terminal"}, "allowed once (terminal)"},
		{board.End{Decision: engine.Decision{Verdict: engine.Approved}, View: "rules"}, "allowed once by a rule"},
		{board.End{Decision: engine.Decision{Verdict: engine.ApprovedForServingSession}}, "allowed for the whole session"},
		{board.End{Decision: engine.Decision{Verdict: engine.ApprovedForSession}}, "allowed for this session, this subagent only"},
		{board.End{Decision: engine.Decision{Verdict: engine.DeniedWithReason, Reason: "no\x07"}, View: "dialog"}, `denied (dialog): no\x07`},
		{board.End{Decision: engine.Decision{Verdict: engine.Unavailable, Reason: "it failed"}, View: "exec"}, "unavailable: it failed"},
	}
	for _, tt := range tests {
		if got := desk.How(tt.e); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestPatience(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		deadline time.Time
		want     string
	}{
		{time.Time{}, ""},
		{now.Add(588*time.Second + 700*time.Millisecond), "9m48s"},
		{now.Add(-time.Hour), "0s"},
	} {
		if got := desk.Patience(&engine.Question{Deadline: tt.deadline}, now); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
