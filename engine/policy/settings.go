package policy

import "time"

// File is the shape of a policy file, as JSON. It is what the published schema
// is generated from; reading goes by the ordered form, because the order of
// keys is part of a policy's meaning.
type File struct {
	Schema                    string               `json:"$schema,omitempty" doc:"Where an editor finds this schema."`
	Permission                map[string]any       `json:"permission,omitempty" doc:"Surface to action, or surface to patterns with an action each. The last match wins."`
	YoloMode                  bool                 `json:"yoloMode,omitempty" doc:"Turns every ask into an allow. A deny stays."`
	ShellTools                map[string]ShellTool `json:"shellTools,omitempty" doc:"Tools that run a shell command, by name; they are judged as bash."`
	PiInfrastructureReadPaths []string             `json:"piInfrastructureReadPaths,omitempty" doc:"Directories that read-only tools may read outside the project."`
	AuthorizerChain           []string             `json:"authorizerChain,omitempty" doc:"Names of the links that judge an ask before a human, in order."`
	ForwardingTimeoutMs       int                  `json:"forwardingTimeoutMs,omitempty" doc:"How long a forwarded ask waits, in ms."`
	DebugLog                  bool                 `json:"debugLog,omitempty" doc:"Writes a debug log."`
	PermissionReviewLog       bool                 `json:"permissionReviewLog,omitempty" doc:"Writes the review log."`
	ReviewLogFieldMaxWidth    int                  `json:"reviewLogFieldMaxWidth,omitempty" doc:"Longest field in the review log, in characters."`
	DoublePressToConfirm      any                  `json:"doublePressToConfirm,omitempty" doc:"Accepted and ignored."`
	PermissionDialogKeys      any                  `json:"permissionDialogKeys,omitempty" doc:"Accepted and ignored."`
	PromptNotifications       any                  `json:"promptNotifications,omitempty" doc:"Accepted and ignored."`
	PromptMaxRows             any                  `json:"promptMaxRows,omitempty" doc:"Accepted and ignored."`
	PromptFieldMaxWidth       any                  `json:"promptFieldMaxWidth,omitempty" doc:"Accepted and ignored."`
	ToolInputPreviewMaxLength any                  `json:"toolInputPreviewMaxLength,omitempty" doc:"Accepted and ignored."`
	ToolTextSummaryMaxLength  any                  `json:"toolTextSummaryMaxLength,omitempty" doc:"Accepted and ignored."`

	Links          map[string]Link `json:"links,omitempty" nod:"true" doc:"Programs that authorizerChain may name."`
	LegacyRequests string          `json:"legacyRequests,omitempty" nod:"true" doc:"What to do with asks of the oldest children: ask, or resolve those that are no paths."`
}

// Entry is a rule written as an object.
type Entry struct {
	Action   string   `json:"action" doc:"allow, ask or deny."`
	Reason   string   `json:"reason,omitempty" doc:"Shown and sent with a denial; at most 500 characters."`
	Match    []string `json:"match,omitempty" nod:"true" doc:"Values the pattern must match, checked when the file is read."`
	NotMatch []string `json:"not_match,omitempty" nod:"true" doc:"Values the pattern must not match, checked when the file is read."`
	Until    string   `json:"until,omitempty" nod:"true" doc:"The rule counts before this time only: a date, or RFC 3339."`
}

// ShellTool says where a tool keeps its shell command.
type ShellTool struct {
	CommandArgument string `json:"commandArgument" doc:"The argument that holds the command."`
	WorkdirArgument string `json:"workdirArgument,omitempty" doc:"The argument that holds the working directory."`
}

// Link is a program that judges asks: the facts as JSON on its stdin, its
// verdict as JSON on its stdout.
type Link struct {
	Command   []string `json:"command" doc:"The program and its arguments; no shell is involved."`
	TimeoutMs int      `json:"timeoutMs,omitempty" doc:"How long it may take, in ms; 5000 if not given."`
}

// Timeout is TimeoutMs as a duration, with its default of 5 s.
func (l Link) Timeout() time.Duration {
	if l.TimeoutMs <= 0 {
		return 5 * time.Second
	}
	return time.Duration(l.TimeoutMs) * time.Millisecond
}

// Settings are the keys of the policy files besides the rules, merged: for
// each the highest scope that sets it counts; shellTools and links are united
// by name.
type Settings struct {
	Yolo                    bool
	ShellTools              map[string]ShellTool
	InfrastructureReadPaths []string // as written
	AuthorizerChain         []string
	Links                   map[string]Link
	ForwardingTimeout       time.Duration // 0: not set
	DebugLog                bool
	PermissionReviewLog     *bool // nil: not set
	ReviewLogFieldMaxWidth  int   // characters; 0: not set
	ResolveLegacyRequests   bool
}

// set is the settings of one file, each with whether the file sets it.
type set struct {
	yolo, debugLog, reviewLog *bool
	shellTools                map[string]ShellTool
	infrastructure            []string
	hasInfrastructure         bool
	chain                     []string
	hasChain                  bool
	links                     map[string]Link
	timeoutMs, fieldWidth     int
	legacy                    string
}

func (s *Settings) apply(f *set) {
	if f.yolo != nil {
		s.Yolo = *f.yolo
	}
	if f.debugLog != nil {
		s.DebugLog = *f.debugLog
	}
	if f.reviewLog != nil {
		s.PermissionReviewLog = f.reviewLog
	}
	for name, t := range f.shellTools {
		if s.ShellTools == nil {
			s.ShellTools = make(map[string]ShellTool)
		}
		s.ShellTools[name] = t
	}
	for name, l := range f.links {
		if s.Links == nil {
			s.Links = make(map[string]Link)
		}
		s.Links[name] = l
	}
	if f.hasInfrastructure {
		s.InfrastructureReadPaths = f.infrastructure
	}
	if f.hasChain {
		s.AuthorizerChain = f.chain
	}
	if f.timeoutMs > 0 {
		s.ForwardingTimeout = time.Duration(f.timeoutMs) * time.Millisecond
	}
	if f.fieldWidth > 0 {
		s.ReviewLogFieldMaxWidth = f.fieldWidth
	}
	if f.legacy != "" {
		s.ResolveLegacyRequests = f.legacy == "resolve"
	}
}
