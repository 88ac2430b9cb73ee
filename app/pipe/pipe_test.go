package pipe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

func question() *engine.Question {
	detail, boundary := "/etc/passwd", "/etc"
	return &engine.Question{
		ID: "r1", SessionID: "desktop", CreatedAt: time.UnixMilli(1700000000123).UTC(), Deadline: time.UnixMilli(1700000600123).UTC(),
		Principal: engine.Principal{SessionID: "s1", AgentName: "reviewer"}, RequesterCwd: "/home/u/src",
		Source: "tool_call", Tool: "bash", Surface: "bash", Value: "ls\n\x1b[31m\u202e <&>", Pattern: "ls *",
		CommandContext: "subshell", ExecutedUnit: "ls", Message: "m", Kind: "bash",
		Intent: &engine.Intent{Surface: "bash", MatchValues: []string{"ls"}, Boundary: &boundary,
			RequesterCwd: "/home/u/src", Principal: engine.Principal{SessionID: "s1", AgentName: "reviewer"}},
		Evidence:    []engine.Evidence{{Label: "external path", Text: "../x", Detail: &detail}},
		Annotations: []engine.Annotation{{Source: "model", Text: "why"}},
		Suggestion:  []engine.Grant{{Surface: "bash", Pattern: "ls *"}},
		Generation:  3, Hops: []string{"a", "b"},
	}
}

// What one side writes is what the other reads, to the last field.
func TestRoundTrip(t *testing.T) {
	at := time.UnixMilli(1700000000000).UTC()
	downs := []pipe.Down{
		{Type: "state",
			Asks:  []pipe.Ask{{Key: "7", Hash: "h", AgentDir: "/d", Adopted: true, Since: at, Notes: []string{"n"}, Question: question()}},
			Total: 9, Grants: []pipe.Grant{{ID: "g", SessionID: "desktop", Requester: "s1", Agent: "reviewer", Surface: "bash", Pattern: "ls *", Since: at, Until: at, Hits: 3, LastUse: at}},
			Ended: []pipe.Ended{{Key: "6", Title: "t", How: "denied", At: at}}, Paused: true, Problems: []string{"p"}, Serving: []string{"s"}},
		{Type: "show", View: "ask", Key: "7", Focus: true},
		{Type: "result", Key: "7", OK: true, Message: "m"},
		{Type: "quit"},
	}
	var b bytes.Buffer
	w := pipe.NewWriter(&b)
	for _, d := range downs {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(b.String(), "\n"); got != len(downs) {
		t.Fatalf("%d lines for %d messages", got, len(downs))
	}
	var got []pipe.Down
	if err := pipe.Read(&b, func(d pipe.Down) { got = append(got, d) }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, downs) {
		t.Errorf("got  %+v\nwant %+v", got, downs)
	}

	ups := []pipe.Up{{Type: "answer", Key: "7", Hash: "h", Verdict: engine.DeniedWithReason, Reason: "a\nb"}, {Type: "revoke", Grant: "g"}, {Type: "pause", On: true}}
	b.Reset()
	for _, u := range ups {
		if err := w.Write(u); err != nil {
			t.Fatal(err)
		}
	}
	var back []pipe.Up
	if err := pipe.Read(&b, func(u pipe.Up) { back = append(back, u) }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, ups) {
		t.Errorf("got  %+v\nwant %+v", back, ups)
	}
}

func TestReadStopsAtWhatIsNoMessage(t *testing.T) {
	for _, bad := range []string{"not json", "{", `{"type":1}`, "[]x", "\x00"} {
		n := 0
		err := pipe.Read(strings.NewReader(`{"type":"ready"}`+"\n"+bad+"\n"+`{"type":"answer"}`+"\n"), func(pipe.Up) { n++ })
		if err == nil || n != 1 {
			t.Errorf("after %q: %d messages, error %v; want 1 and an error", bad, n, err)
		}
	}
}

func TestReadPassesTheReadersErrorOn(t *testing.T) {
	broken := errors.New("broken")
	err := pipe.Read(io.MultiReader(strings.NewReader("{}\n"), iotestErr{broken}), func(pipe.Up) {})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type iotestErr struct{ err error }

func (r iotestErr) Read([]byte) (int, error) { return 0, r.err }

func TestLongLine(t *testing.T) {
	q := question()
	q.Value = strings.Repeat("x", 3<<20)
	var b bytes.Buffer
	if err := pipe.NewWriter(&b).Write(pipe.Down{Type: "state", Asks: []pipe.Ask{{Question: q}}}); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := pipe.Read(&b, func(d pipe.Down) { got = d.Asks[0].Question.Value }); err != nil || got != q.Value {
		t.Errorf("%d bytes came through, error %v", len(got), err)
	}
}

// Lines of concurrent writers do not mix.
func TestConcurrentWriters(t *testing.T) {
	r, pw := io.Pipe()
	w := pipe.NewWriter(pw)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				if err := w.Write(pipe.Up{Type: "answer", Key: fmt.Sprint(i, " ", j), Reason: strings.Repeat("r", 500)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); pw.Close() }()
	seen := map[string]bool{}
	if err := pipe.Read(r, func(u pipe.Up) { seen[u.Key] = true }); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 400 {
		t.Errorf("%d of 400 messages arrived", len(seen))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"type":"show","view":"ask","key":"1"}` + "\n"))
	f.Add([]byte(`{"type":"state","asks":[{"key":"1","question":{"Value":"x"}}]}` + "\n\n"))
	f.Add([]byte("{}\n{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var all []pipe.Down
		if pipe.Read(bytes.NewReader(b), func(d pipe.Down) { all = append(all, d) }) != nil {
			return
		}
		for _, d := range all {
			if _, err := json.Marshal(d); err != nil {
				t.Errorf("%+v was read but cannot be written: %v", d, err)
			}
		}
	})
}
