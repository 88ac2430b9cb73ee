package engine

import "time"

// Principal is who asks: the originating child, never a node it passed through.
type Principal struct {
	SessionID string `json:"sessionId"`
	AgentName string `json:"agentName"` // "unknown" if the child has none
}

// Intent is the child-fixed facts of an ask: every form of the value that the
// child's own gate would recognise. A node matches its rules against these
// strings as they are and derives no path anew (record 0008).
type Intent struct {
	Surface      string    `json:"surface"`
	MatchValues  []string  `json:"matchValues"`   // absolute, project-relative, canonical and as-typed forms of a path; one value otherwise
	Boundary     *string   `json:"boundaryValue"` // canonical form on a path surface, nil otherwise
	RequesterCwd string    `json:"requesterCwd"`  // provenance and display only
	Principal    Principal `json:"principal"`
}

// Evidence is one further fact of an ask, shown to the human and, where its
// label says so ("full command", "external path"), judged too.
type Evidence struct {
	Label  string  `json:"label"`
	Text   string  `json:"text"`
	Detail *string `json:"detail"` // for an external path: its resolved form
}

// Annotation is model-written text; a view must say so wherever it shows one.
type Annotation struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

// Question is one ask with all its facts, as the walk, the links and every
// front end see it. It is immutable once built.
type Question struct {
	ID        string    // the request's own id
	SessionID string    // the session that serves it
	CreatedAt time.Time // when the child wrote it
	Deadline  time.Time // when the child gives up; zero if unknown

	Principal    Principal
	RequesterCwd string
	Source       string // tool_call, skill_input or skill_read

	Tool    string // the tool's name, as the agent calls it
	Surface string // the gate that asks; empty if unknown
	Value   string // what is to run or be touched, whole, as typed
	Pattern string // the rule that asked, as written; empty if none matched

	CommandContext string // command_substitution, process_substitution, subshell or empty
	ExecutedUnit   string // the inner command of a wrapper, or empty

	Message     string  // generation 1: the child's own sentence, display only
	Intent      *Intent // nil: facts are missing, so only a human (or link) decides
	Kind        string  // payload kind, such as bash or bash_external_directory; empty if no payload
	Evidence    []Evidence
	Annotations []Annotation
	Suggestion  []Grant // what "for this session" would grant; empty: no scope to offer

	// Line says that the ask stands for a whole command line of which Intent is
	// only the first part that asks. A node that does not judge the full command
	// must not decide it by facts, so on the wire such a node finds none.
	Line bool

	Generation int      // of the request's shape: 1, 2 or 3
	Hops       []string // session ids the ask was relayed through, nearest last
}
