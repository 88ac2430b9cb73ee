package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// payload is what an agent was seen to send, or is documented to.
type payload struct {
	Version string            `json:"version"`
	Event   string            `json:"event"`
	Env     map[string]string `json:"env"`
	Stdin   json.RawMessage   `json:"stdin"`
}

// payloads calls f with every payload of an agent.
func payloads(t testing.TB, f func(a Adapter, name string, p payload)) {
	t.Helper()
	for _, a := range All() {
		files, err := filepath.Glob(filepath.Join("testdata", "payloads", a.Name(), "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no payloads: %v", a.Name(), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var p payload
			if err := json.Unmarshal(data, &p); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			f(a, strings.TrimSuffix(filepath.Base(file), ".json"), p)
		}
	}
}

func (p payload) getenv(name string) string { return p.Env[name] }

// seen is a golden file: the call as it was read, and each answer to it.
type seen struct {
	Error   string
	Call    *Call
	Answers map[string]Reply `json:",omitempty"`
}

// MarshalJSON writes stdout as text.
func (r Reply) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Stdout string `json:",omitempty"`
		Stderr string `json:",omitempty"`
		Exit   int
	}{string(r.Stdout), r.Stderr, r.Exit})
}

// TestPayloads reads every payload, and pins what was understood and what is
// answered.
func TestPayloads(t *testing.T) {
	outcomes := map[string]Outcome{
		"silence": {}, "allow": {Say: Allow}, "deny": {Say: Deny, Reason: "not <here> & not now"},
		"interrupt": {Say: Deny, Reason: "stop it all", Interrupt: true},
	}
	count := 0
	payloads(t, func(a Adapter, name string, p payload) {
		t.Run(a.Name()+"/"+name, func(t *testing.T) {
			count++
			c, err := a.Parse(p.Event, p.Stdin, p.getenv)
			got := seen{Call: c, Answers: map[string]Reply{}}
			if err != nil {
				got.Error = err.Error()
				got.Call = nil
			} else {
				for word, o := range outcomes {
					got.Answers[word] = a.Answer(c, o)
				}
			}
			if told := strings.HasPrefix(name, "Pre") || strings.HasPrefix(name, "pre") || strings.HasPrefix(name, "BeforeTool"); told && errors.Is(err, ErrNoCall) && name != "PreCompact" {
				t.Errorf("no call was seen: %v", err)
			}
			golden(t, filepath.Join(a.Name(), name+".json"), got)
		})
	})
	if count < 100 {
		t.Errorf("only %d payloads were tried", count)
	}
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	goldenText(t, name, b.Bytes())
}

func goldenText(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
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
	if !bytes.Equal(want, got) {
		t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
	}
}
