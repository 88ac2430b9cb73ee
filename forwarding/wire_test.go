package forwarding

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
	}
}

// TestRequestsOfRealChildren reads what children of all generations wrote.
func TestRequestsOfRealChildren(t *testing.T) {
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d sample requests, %v", len(files), err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			r, err := ParseRequest(data)
			if err != nil {
				t.Fatal(err)
			}
			if want := int(name[3] - '0'); r.Generation != want {
				t.Errorf("generation %d, want %d", r.Generation, want)
			}
			if len(r.Dropped) > 0 {
				t.Errorf("dropped %v", r.Dropped)
			}
			golden(t, "questions/"+name, r.Question(DefaultTimeout))

			// What we write of it, our reader reads alike.
			again, err := r.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			r2, err := ParseRequest(again)
			if err != nil {
				t.Fatal(err)
			}
			r2.Generation = r.Generation
			if !reflect.DeepEqual(r, r2) {
				t.Errorf("not the same after writing:\n%+v\n%+v", r, r2)
			}
		})
	}
}

func with(base string, change func(m map[string]any)) []byte {
	data, err := os.ReadFile(filepath.Join("testdata", "requests", base))
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		panic(err)
	}
	change(m)
	data, err = json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

func TestRequestCoreIsRequired(t *testing.T) {
	for _, field := range []string{"id", "createdAt", "requesterSessionId", "targetSessionId", "requesterAgentName"} {
		for _, bad := range []any{nil, true, []any{}, map[string]any{}, "gone"} {
			if bad == "gone" {
				bad = struct{}{}
			}
			data := with("gen3-bash-chain.json", func(m map[string]any) {
				if bad == (struct{}{}) {
					delete(m, field)
				} else {
					m[field] = bad
				}
			})
			_, err := ParseRequest(data)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", field)) {
				t.Errorf("%s = %v: error %v", field, bad, err)
			}
		}
	}
}

func TestRequestText(t *testing.T) {
	good := `{"id":"r","createdAt":1,"requesterSessionId":"c","targetSessionId":"t","requesterAgentName":"a"%s}`
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"plain":                {fmt.Sprintf(good, ""), true},
		"blank around":         {" \r\n\t" + fmt.Sprintf(good, "") + "\n ", true},
		"unknown field":        {fmt.Sprintf(good, `,"new":{"deep":[1,{"x":null}]}`), true},
		"float time":           {strings.Replace(fmt.Sprintf(good, ""), ":1,", ":1.5e12,", 1), true},
		"negative time":        {strings.Replace(fmt.Sprintf(good, ""), ":1,", ":-5,", 1), true},
		"upper-case key":       {strings.Replace(fmt.Sprintf(good, ""), `"id"`, `"ID"`, 1), false},
		"escaped key":          {strings.Replace(fmt.Sprintf(good, ""), `"id"`, `"\u0069d"`, 1), true},
		"duplicate core":       {fmt.Sprintf(good, `,"id":"x"`), false},
		"duplicate by escape":  {fmt.Sprintf(good, `,"\u0069d":"r"`), false},
		"duplicate unknown":    {fmt.Sprintf(good, `,"x":1,"x":1`), false},
		"trailing":             {fmt.Sprintf(good, "") + "{}", false},
		"trailing comma":       {fmt.Sprintf(good, ","), false},
		"comment":              {"// no\n" + fmt.Sprintf(good, ""), false},
		"BOM":                  {"\ufeff" + fmt.Sprintf(good, ""), false},
		"truncated":            {fmt.Sprintf(good, "")[:40], false},
		"empty":                {"", false},
		"blank":                {"  ", false},
		"array":                {"[" + fmt.Sprintf(good, "") + "]", false},
		"null":                 {"null", false},
		"string":               {`"x"`, false},
		"invalid UTF-8":        {fmt.Sprintf(good, ",\"value\":\"\xff\""), false},
		"NUL":                  {fmt.Sprintf(good, "") + "\x00", false},
		"time out of range":    {strings.Replace(fmt.Sprintf(good, ""), ":1,", ":1e400,", 1), false},
		"time beyond a Date":   {strings.Replace(fmt.Sprintf(good, ""), ":1,", ":8.65e15,", 1), false},
		"time as string":       {strings.Replace(fmt.Sprintf(good, ""), ":1,", `:"1",`, 1), false},
		"time leading zero":    {strings.Replace(fmt.Sprintf(good, ""), ":1,", `:01,`, 1), false},
		"deep nesting":         {fmt.Sprintf(good, `,"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)), false},
		"deep unclosed":        {strings.Repeat(`{"a":`, 100_000), false},
		"lone surrogate":       {fmt.Sprintf(good, `,"value":"\ud800"`), true},
		"proto is only a name": {fmt.Sprintf(good, `,"__proto__":{"id":1}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRequest([]byte(c.text))
			if (err == nil) != c.ok {
				t.Fatalf("error %v, want ok %t", err, c.ok)
			}
			if err == nil && (r.ID != "r" || r.RequesterSessionID != "c" || r.Generation != 1 || r.Source != "tool_call") {
				t.Errorf("read %+v", r)
			}
		})
	}
}

// TestOptionalFieldsAreDroppedWhole holds every optional field to the rule: a
// malformed one is as if it were not there, and judges nothing.
func TestOptionalFieldsAreDroppedWhole(t *testing.T) {
	type m = map[string]any
	intent := func(change func(in m)) func(m) {
		return func(r m) { change(r["accessIntent"].(m)) }
	}
	payload := func(change func(p m)) func(m) {
		return func(r m) { change(r["payload"].(m)) }
	}
	approval := func(a any) func(m) { return func(r m) { r["sessionApproval"] = a } }
	for name, c := range map[string]struct {
		change  func(r m)
		dropped string // the field, or empty
		judged  bool   // the intent is left to rules
		grants  int
	}{
		"untouched": {func(m) {}, "", true, 1},

		"intent null":               {func(r m) { r["accessIntent"] = nil }, "", false, 1},
		"intent string":             {func(r m) { r["accessIntent"] = "bash" }, "accessIntent", false, 1},
		"intent without surface":    {intent(func(in m) { delete(in, "surface") }), "accessIntent", false, 1},
		"intent empty surface":      {intent(func(in m) { in["surface"] = "" }), "accessIntent", false, 1},
		"intent no values":          {intent(func(in m) { in["matchValues"] = []any{} }), "accessIntent", false, 1},
		"intent value no string":    {intent(func(in m) { in["matchValues"] = []any{"git status", 1} }), "accessIntent", false, 1},
		"intent values a string":    {intent(func(in m) { in["matchValues"] = "git status" }), "accessIntent", false, 1},
		"intent no boundary":        {intent(func(in m) { delete(in, "boundaryValue") }), "accessIntent", false, 1},
		"intent boundary a number":  {intent(func(in m) { in["boundaryValue"] = 1 }), "accessIntent", false, 1},
		"intent no cwd":             {intent(func(in m) { delete(in, "requesterCwd") }), "accessIntent", false, 1},
		"intent no principal":       {intent(func(in m) { delete(in, "principal") }), "accessIntent", false, 1},
		"intent half a principal":   {intent(func(in m) { in["principal"] = m{"sessionId": "x"} }), "accessIntent", false, 1},
		"intent with unknown field": {intent(func(in m) { in["more"] = m{"x": 1} }), "", true, 1},

		"payload gone":                {func(r m) { delete(r, "payload") }, "", true, 1},
		"payload array":               {func(r m) { r["payload"] = []any{} }, "payload", false, 1},
		"payload unknown kind":        {payload(func(p m) { p["kind"] = "rocket" }), "payload", false, 1},
		"payload no request":          {payload(func(p m) { delete(p, "request") }), "payload", false, 1},
		"payload no evidence":         {payload(func(p m) { delete(p, "evidence") }), "payload", false, 1},
		"payload evidence no text":    {payload(func(p m) { p["evidence"] = []any{m{"label": "full command"}} }), "payload", false, 1},
		"payload evidence bad detail": {payload(func(p m) { p["evidence"] = []any{m{"label": "x", "text": "y", "detail": 7}} }), "payload", false, 1},
		"payload bad annotation":      {payload(func(p m) { p["annotations"] = []any{"x"} }), "payload", false, 1},
		"payload value a number":      {payload(func(p m) { p["request"].(m)["value"] = 5 }), "payload", false, 1},
		"payload bad context":         {payload(func(p m) { p["request"].(m)["commandContext"] = "heredoc" }), "payload", false, 1},
		"payload no annotations":      {payload(func(p m) { delete(p, "annotations") }), "", true, 1},
		"payload unknown field":       {payload(func(p m) { p["colour"] = "red" }), "", true, 1},

		"approval null":             {approval(nil), "", true, 0},
		"approval empty grants":     {approval(m{"grants": []any{}}), "", true, 0},
		"approval empty patterns":   {approval(m{"surface": "bash", "patterns": []any{}}), "", true, 0},
		"approval two patterns":     {approval(m{"surface": "bash", "patterns": []any{"a", "b"}}), "", true, 2},
		"approval no surface":       {approval(m{"patterns": []any{"a"}}), "sessionApproval", true, 0},
		"approval number":           {approval(m{"surface": "bash", "patterns": []any{"a", 1}}), "sessionApproval", true, 0},
		"approval empty pattern":    {approval(m{"grants": []any{m{"surface": "bash", "pattern": ""}}}), "sessionApproval", true, 0},
		"approval half a grant":     {approval(m{"grants": []any{m{"surface": "bash", "pattern": "a"}, m{"surface": "bash"}}}), "sessionApproval", true, 0},
		"approval both, grants bad": {approval(m{"surface": "bash", "patterns": []any{"a"}, "grants": "x"}), "sessionApproval", true, 0},
		"approval string":           {approval("bash"), "sessionApproval", true, 0},

		"message a number": {func(r m) { r["message"] = 1 }, "message", true, 1},
		"source unknown":   {func(r m) { r["source"] = "rumour" }, "source", true, 1},
		"value an object":  {func(r m) { r["value"] = m{} }, "value", true, 1},
		"surface null":     {func(r m) { r["surface"] = nil }, "", true, 1},

		// Without a payload, what else an approval would run is not known.
		"no payload, longer command in the message": {func(r m) {
			delete(r, "payload")
			r["message"] = "Current agent requested bash command 'git status' (full command: 'git status && rm -rf build'). Allow?"
		}, "", false, 1},
		"no payload, longer command in other letters": {func(r m) {
			delete(r, "payload")
			r["message"] = "Current agent requested bash command 'git status' (Full  Command: 'git status && rm -rf build'). Allow?"
		}, "", false, 1},
		"no payload, bash asks for paths": {func(r m) {
			delete(r, "payload")
			r["accessIntent"].(m)["surface"] = "external_directory"
		}, "", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRequest(with("gen3-bash-chain.json", c.change))
			if err != nil {
				t.Fatal(err)
			}
			dropped := ""
			for _, d := range r.Dropped {
				dropped += d.Field
			}
			if dropped != c.dropped {
				t.Errorf("dropped %q, want %q", dropped, c.dropped)
			}
			q := r.Question(DefaultTimeout)
			if (q.Intent != nil) != c.judged {
				t.Errorf("intent %v, want judged %t", q.Intent, c.judged)
			}
			if len(q.Suggestion) != c.grants {
				t.Errorf("suggestion %v, want %d", q.Suggestion, c.grants)
			}
			if c.dropped == "payload" {
				shown := false
				for _, e := range q.Evidence {
					shown = shown || e.Label == labelUnread
				}
				if !shown {
					t.Error("the unread payload is not shown to the human")
				}
			}
			if q.Source != "tool_call" || q.Tool != "bash" {
				t.Errorf("source %q tool %q", q.Source, q.Tool)
			}
		})
	}
}

// TestNestedDuplicateKeysDropTheField: two readers could read it differently.
func TestNestedDuplicateKeysDropTheField(t *testing.T) {
	data, err := os.ReadFile("testdata/requests/gen3-bash-chain.json")
	if err != nil {
		t.Fatal(err)
	}
	twice := strings.Replace(string(data), `"boundaryValue": null,`, `"boundaryValue": null, "surface": "read",`, 1)
	if twice == string(data) {
		t.Fatal("the sample has changed")
	}
	r, err := ParseRequest([]byte(twice))
	if err != nil || r.Intent != nil || len(r.Dropped) != 1 {
		t.Errorf("intent %v dropped %v error %v", r.Intent, r.Dropped, err)
	}
}

// TestNewestShapeIsReadByOlderNodes checks what a node of the first generation
// needs: a message, and surface with patterns.
func TestNewestShapeIsReadByOlderNodes(t *testing.T) {
	q := &engine.Question{
		Principal: engine.Principal{SessionID: "c", AgentName: "scout"}, Tool: "bash", Surface: "bash", Value: "git status",
		Intent:   &engine.Intent{Surface: "bash", MatchValues: []string{"git status"}, Principal: engine.Principal{SessionID: "c", AgentName: "scout"}},
		Evidence: []engine.Evidence{{Label: LabelFullCommand, Text: "git status && rm -rf <x>"}},
		Suggestion: []engine.Grant{{Surface: "bash", Pattern: "git status*"}, {Surface: "path_read", Pattern: "/etc/*"},
			{Surface: "bash", Pattern: "rm *"}},
	}
	r := NewRequest("id-1", q, engine.Principal{SessionID: "c"}, "desk", time.UnixMilli(1795979153781))
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "written/newest.json", json.RawMessage(data))
	back, err := ParseRequest(data)
	if err != nil || back.Generation != 3 || len(back.Dropped) > 0 {
		t.Fatalf("%+v, %v", back, err)
	}
	if got := back.Question(0); !reflect.DeepEqual(got.Suggestion, q.Suggestion) || !reflect.DeepEqual(got.Intent, q.Intent) ||
		!reflect.DeepEqual(got.Evidence, q.Evidence) || got.Kind != "bash" || got.Value != q.Value {
		t.Errorf("came back as %+v", got)
	}
}

// TestLineIntentIsForNodesThatJudgeTheLine checks that an ask which stands for
// more than its first part shows its facts only to a node that knows so: another
// one finds no accessIntent, and asks its human.
func TestLineIntentIsForNodesThatJudgeTheLine(t *testing.T) {
	q := &engine.Question{
		Principal: engine.Principal{SessionID: "c", AgentName: "scout"}, Tool: "bash", Surface: "bash", Value: "npm test", Line: true,
		Intent:   &engine.Intent{Surface: "bash", MatchValues: []string{"npm test"}, Principal: engine.Principal{SessionID: "c", AgentName: "scout"}},
		Evidence: []engine.Evidence{{Label: LabelFullCommand, Text: "npm test && rm -rf x"}},
	}
	data, err := NewRequest("id-1", q, engine.Principal{SessionID: "c"}, "desk", time.UnixMilli(1)).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || raw["accessIntent"] != nil || raw["lineIntent"] == nil {
		t.Fatalf("%v: %s", err, data)
	}
	back, err := ParseRequest(data)
	if err != nil || len(back.Dropped) > 0 {
		t.Fatalf("%+v, %v", back, err)
	}
	if got := back.Question(0); !got.Line || !reflect.DeepEqual(got.Intent, q.Intent) {
		t.Errorf("came back as %+v", got)
	}
	both := bytes.Replace(data, []byte(`"lineIntent"`), []byte(`"accessIntent":`+string(raw["lineIntent"])+`,"lineIntent"`), 1)
	if back, err = ParseRequest(both); err != nil || back.Line || len(back.Dropped) != 1 {
		t.Errorf("both: %+v, %v", back, err)
	}
}

func TestResponses(t *testing.T) {
	base := `{"approved":%s,"state":%s,"responderSessionId":"desk"%s}`
	for name, c := range map[string]struct {
		text  string
		state engine.Verdict // empty: unreadable
	}{
		"approved":             {fmt.Sprintf(base, "true", `"approved"`, ""), engine.Approved},
		"session":              {fmt.Sprintf(base, "true", `"approved_for_session"`, `,"sessionGrantWidth":"both"`), engine.ApprovedForSession},
		"denied":               {fmt.Sprintf(base, "false", `"denied"`, `,"respondedAt":"late"`), engine.Denied},
		"reason":               {fmt.Sprintf(base, "false", `"denied_with_reason"`, `,"denialReason":"no"`), engine.DeniedWithReason},
		"contradiction":        {fmt.Sprintf(base, "true", `"denied"`, ""), ""},
		"contradiction 2":      {fmt.Sprintf(base, "false", `"approved_for_session"`, ""), ""},
		"unknown state":        {fmt.Sprintf(base, "true", `"approved_forever"`, ""), ""},
		"internal state":       {fmt.Sprintf(base, "true", `"approved_for_serving_session"`, ""), ""},
		"unavailable state":    {fmt.Sprintf(base, "false", `"unavailable"`, ""), ""},
		"approved as string":   {fmt.Sprintf(base, `"true"`, `"approved"`, ""), ""},
		"approved as number":   {fmt.Sprintf(base, "1", `"approved"`, ""), ""},
		"state null":           {fmt.Sprintf(base, "true", "null", ""), ""},
		"no responder":         {`{"approved":true,"state":"approved"}`, ""},
		"no approved":          {`{"state":"approved","responderSessionId":"d"}`, ""},
		"twice":                {fmt.Sprintf(base, "true", `"approved"`, `,"approved":true`), ""},
		"case of the key":      {`{"Approved":true,"state":"approved","responderSessionId":"d"}`, ""},
		"not JSON":             {"approved", ""},
		"bad decider dropped":  {fmt.Sprintf(base, "true", `"approved"`, `,"decidedBy":{"kind":"rumour"}`), engine.Approved},
		"half decider dropped": {fmt.Sprintf(base, "true", `"approved"`, `,"decidedBy":{"kind":"forwarded","responderSessionId":"x","decision":{"kind":"user","via":"smoke"}}`), engine.Approved},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseResponse([]byte(c.text))
			if (err == nil) != (c.state != "") {
				t.Fatalf("error %v, want state %q", err, c.state)
			}
			if err == nil && (r.State != c.state || r.DecidedBy != nil) {
				t.Errorf("read %+v", r)
			}
		})
	}
}

func nested(frames int, leaf *engine.DecisionSource) *engine.DecisionSource {
	for range frames {
		leaf = &engine.DecisionSource{Kind: engine.ByForwarded, ResponderSessionID: "s", Decision: leaf}
	}
	return leaf
}

func TestDecisionSources(t *testing.T) {
	good := []engine.DecisionSource{
		{Kind: engine.ByUser, Via: "dialog"}, {Kind: engine.ByUser, Via: "select"},
		{Kind: engine.ByAuthorizer, Name: "judge", Verdict: "deny", Reason: "no"}, {Kind: engine.ByAuthorizer, Name: "judge", Verdict: "allow"},
		{Kind: engine.ByRule, Surface: "bash", Pattern: "git *", Origin: engine.OriginGlobal}, {Kind: engine.ByRule, Surface: "bash"},
		{Kind: engine.BySessionApproval, Surface: "bash", Pattern: "x"}, {Kind: engine.ByYolo}, {Kind: engine.ByYolo, Pattern: "*"},
		{Kind: engine.ByInfrastructureRead}, {Kind: engine.ByUnavailable, Reason: "nobody"}, {Kind: engine.ByGateError, Reason: "broke"},
		{Kind: engine.ByForwarded}, {Kind: engine.ByForwarded, ResponderSessionID: "s"},
		*nested(1, &engine.DecisionSource{Kind: engine.ByUser, Via: "dialog"}), *nested(4, &engine.DecisionSource{Kind: engine.ByYolo}),
	}
	var lines []json.RawMessage
	for _, s := range good {
		data, err := MarshalSource(&s)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, data)
		if back := ParseSource(data); !reflect.DeepEqual(back, &s) {
			t.Errorf("%s came back as %+v", data, back)
		}
	}
	golden(t, "written/sources.json", lines)

	for _, s := range []*engine.DecisionSource{
		nil, {}, {Kind: "rumour"}, {Kind: engine.ByAuthorizer, Name: "j", Verdict: "defer"},
		nested(5, &engine.DecisionSource{Kind: engine.ByYolo}), nested(2, &engine.DecisionSource{Kind: "rumour"}),
	} {
		if data, err := MarshalSource(s); err != nil || strings.TrimSpace(string(data)) != "null" {
			t.Errorf("%+v written as %s, %v", s, data, err)
		}
	}
	for _, text := range []string{
		``, `null`, `[]`, `{"kind":"user"}`, `{"kind":"user","via":"notification"}`, `{"kind":"rule","pattern":"x"}`, `{"kind":"rule","surface":"b","origin":1}`,
		`{"kind":"authorizer","name":"j","verdict":"defer"}`, `{"kind":"unavailable"}`, `{"kind":"user","via":"dialog","via":"dialog"}`,
		`{"kind":"forwarded","decision":{"kind":"forwarded","decision":{"kind":"forwarded","decision":{"kind":"forwarded","decision":{"kind":"forwarded","decision":null}}}}}`,
		`{"kind":"forwarded","responderSessionId":"x","decision":"user"}`,
	} {
		if s := ParseSource([]byte(text)); s != nil {
			t.Errorf("%s read as %+v", text, s)
		}
	}
	// A view's own word never reaches the wire.
	if data, _ := MarshalSource(&engine.DecisionSource{Kind: engine.ByUser, Via: "notification"}); !bytes.Contains(data, []byte(`"dialog"`)) {
		t.Errorf("written %s", data)
	}
}

// TestOnlyFourStatesReachDisk tries every verdict there is.
func TestOnlyFourStatesReachDisk(t *testing.T) {
	now := time.UnixMilli(1795979153781)
	var lines []json.RawMessage
	for _, d := range []engine.Decision{
		{Verdict: engine.Approved, By: byUser},
		{Verdict: engine.ApprovedForSession, By: byUser},
		{Verdict: engine.ApprovedForServingSession, By: byUser},
		{Verdict: engine.Denied, By: byUser},
		{Verdict: engine.DeniedWithReason, Reason: "not <here>", By: byRule},
		{Verdict: engine.DeniedWithReason, By: byRule},
		{Verdict: engine.Denied, Reason: "broke", By: engine.DecisionSource{Kind: engine.ByGateError, Reason: "broke"}},
		{Verdict: engine.Unavailable, Reason: "nobody", By: engine.DecisionSource{Kind: engine.ByUnavailable, Reason: "nobody"}},
		{Verdict: engine.Unavailable, Reason: "nobody"},
		{Verdict: "", By: byUser},
		{Verdict: "yes", By: byUser},
		{Verdict: engine.Approved, By: *nested(5, &byUser)},
	} {
		data, err := NewResponse(d, "desk", now).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, data)
		r, err := ParseResponse(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if back := r.Decision(); back.Verdict.Approves() != d.Verdict.Approves() || (back.Verdict == engine.Unavailable) != (d.Verdict == engine.Unavailable) {
			t.Errorf("%+v came back as %+v", d, back)
		}
	}
	golden(t, "written/responses.json", lines)
	for _, r := range []Response{{Approved: true, State: engine.ApprovedForServingSession}, {State: engine.Unavailable}, {Approved: true, State: engine.Denied}, {}} {
		if data, err := r.Marshal(); err == nil {
			t.Errorf("%+v was written: %s", r, data)
		}
	}
}

func TestCheckID(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "1795977127722-ueqwiamt-23602": true, "a.b_c-D": true, "...": true, ".a": true,
		"": false, ".": false, "..": false, "a/b": false, `a\b`: false, "a b": false, "a\x00": false, "é": false, "a\n": false, "a:b": false,
	} {
		if got := CheckID(id) == nil; got != ok {
			t.Errorf("CheckID(%q) = %t, want %t", id, got, ok)
		}
	}
}

func seeds(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzRequest: whatever is read can be written and reads the same again, and
// never has facts that were not wholly there.
func FuzzRequest(f *testing.F) {
	seeds(f, "testdata/requests/*.json")
	f.Add([]byte(`{"id":"r","createdAt":1e3,"requesterSessionId":"","targetSessionId":"t","requesterAgentName":"","payload":{"kind":"bash","request":{},"evidence":[{"label":"l","text":"t"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRequest(data)
		if err != nil {
			return
		}
		q := r.Question(DefaultTimeout)
		if q.Intent != nil && (q.Intent.Surface == "" || len(q.Intent.MatchValues) == 0) {
			t.Fatalf("half an intent: %+v", q.Intent)
		}
		again, err := r.Marshal()
		if err != nil {
			return // larger than allowed
		}
		r2, err := ParseRequest(again)
		if err != nil {
			t.Fatalf("wrote what cannot be read: %v\n%s", err, again)
		}
		r2.Dropped, r2.Generation = r.Dropped, r.Generation
		if q2 := r2.Question(DefaultTimeout); !reflect.DeepEqual(q, q2) {
			t.Fatalf("read differently:\n%+v\n%+v", q, q2)
		}
	})
}

// FuzzResponse: what is read never contradicts itself and survives writing.
func FuzzResponse(f *testing.F) {
	for _, d := range []engine.Decision{{Verdict: engine.Approved, By: byUser}, {Verdict: engine.DeniedWithReason, Reason: "no", By: byRule}, {Verdict: engine.ApprovedForSession, By: *nested(2, &byUser)}} {
		data, err := NewResponse(d, "desk", time.UnixMilli(1)).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseResponse(data)
		if err != nil {
			return
		}
		if r.Approved != r.State.Approves() || r.Decision().Verdict.Approves() != r.Approved {
			t.Fatalf("contradiction: %+v", r)
		}
		again, err := r.Marshal()
		if err != nil {
			return
		}
		r2, err := ParseResponse(again)
		if err != nil {
			t.Fatalf("wrote what cannot be read: %v\n%s", err, again)
		}
		if r.State != engine.ApprovedForSession {
			r.GrantWidth, r2.GrantWidth = "", ""
		}
		if !reflect.DeepEqual(r, r2) {
			t.Fatalf("read differently:\n%+v\n%+v", r, r2)
		}
	})
}
