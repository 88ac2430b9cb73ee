package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
)

// calls calls f with every payload that is a call, as a tree to be changed.
func calls(t *testing.T, f func(a Adapter, name string, p payload, tree map[string]any)) {
	t.Helper()
	payloads(t, func(a Adapter, name string, p payload) {
		if _, err := a.Parse(p.Event, p.Stdin, p.getenv); err != nil {
			return
		}
		var tree map[string]any
		if err := json.Unmarshal(p.Stdin, &tree); err != nil {
			t.Fatal(err)
		}
		f(a, name, p, tree)
	})
}

// sent is what the hook says to a changed payload, where rules allow all.
func sent(t *testing.T, a Adapter, p payload, event string, tree map[string]any) Reply {
	t.Helper()
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	h := hook(said{Action: engine.Allow}, &answers{})
	h.Adapter, h.Getenv = a, p.getenv
	return h.Run(t.Context(), event, bytes.NewReader(data))
}

func blocks(r Reply) bool {
	return r.Exit == 2 && len(r.Stdout) == 0 && r.Stderr != "" && !strings.ContainsAny(r.Stderr, "\r\n")
}

// judged are the keys, at any depth, by whose values a call is judged.
var judged = []string{"command", "cmd", "file_path", "filePath", "absolute_path", "path", "cwd", "server", "tool_name", "toolName", "tool"}

// spots calls f with each object in the tree that has one of keys.
func spots(tree map[string]any, keys []string, f func(in map[string]any, key string)) {
	for k, v := range tree {
		if inner, ok := v.(map[string]any); ok {
			spots(inner, keys, f)
		}
		if _, ok := v.(string); ok && slices.Contains(keys, k) {
			f(tree, k)
		}
	}
}

// TestWhatIsNoString puts other things in place of every string by which a
// call of any agent is judged: none may be taken for a call without it.
func TestWhatIsNoString(t *testing.T) {
	tried := map[string]int{}
	calls(t, func(a Adapter, name string, p payload, tree map[string]any) {
		spots(tree, judged, func(in map[string]any, key string) {
			was := in[key]
			for _, v := range []any{map[string]any{"a": 1}, []any{1}, 7, true} {
				in[key] = v
				tried[a.Name()]++
				if r := sent(t, a, p, p.Event, tree); !blocks(r) {
					t.Errorf("%s/%s: %s is %v: %+v", a.Name(), name, key, v, r)
				}
			}
			in[key] = was
		})
	})
	for _, a := range All() {
		if tried[a.Name()] < 8 {
			t.Errorf("%s: tried %d times only", a.Name(), tried[a.Name()])
		}
	}
}

// TestUnknownTools holds that a tool nobody has heard of is judged by its own
// name, and asks unless a rule says otherwise.
func TestUnknownTools(t *testing.T) {
	rules := &Rules{
		Loader: policy.NewLoader(policyfile.Disk{}, false), AgentDir: t.TempDir(), ConfigDir: t.TempDir(), Home: t.TempDir(),
		Now: hook(nil, nil).Now, Trusted: func(string) bool { return false },
	}
	tried := map[string]bool{}
	calls(t, func(a Adapter, name string, p payload, tree map[string]any) {
		spots(tree, []string{"tool_name", "toolName", "tool"}, func(in map[string]any, key string) {
			was := in[key]
			in[key] = "Frobnicate"
			data, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			c, err := a.Parse(p.Event, data, p.getenv)
			if errors.Is(err, ErrNoCall) {
				t.Errorf("%s/%s: no call: %v", a.Name(), name, err)
			}
			in[key] = was
			if err != nil {
				return
			}
			c.Cwd = t.TempDir()
			if r := rules.Judge(c); r.Action != engine.Ask || len(c.Uses) != 1 || !strings.Contains(c.Uses[0].Tool, "robnicate") && c.Uses[0].Tool != engine.SurfaceMCP {
				t.Errorf("%s/%s: %s of %+v", a.Name(), name, r.Action, c.Uses)
			}
			tried[a.Name()] = true
		})
	})
	for _, a := range All() {
		if !tried[a.Name()] && a.Name() != "amp" { // which names it in the environment
			t.Errorf("%s: not tried", a.Name())
		}
	}
}

// TestUnknownEvents sends what agents may send one day: an event of another
// name that carries a call is denied, one without gets no opinion.
func TestUnknownEvents(t *testing.T) {
	tried := map[string]int{}
	calls(t, func(a Adapter, name string, p payload, tree map[string]any) {
		named := false
		for _, key := range []string{"hook_event_name", "hookName", "event"} {
			if _, ok := tree[key]; ok {
				tree[key], named = "Dream", true
			}
		}
		if !named && p.Event == "" {
			return // this agent has one event and does not name it
		}
		if r := sent(t, a, p, "Dream", tree); !blocks(r) {
			t.Errorf("%s/%s: %+v", a.Name(), name, r)
		}
		tried[a.Name()]++
		for key := range tree {
			if strings.HasPrefix(strings.ToLower(key), "tool") || slices.Contains(append(judged, "args", "arguments", "input"), key) && key != "cwd" {
				delete(tree, key)
			}
		}
		if r := sent(t, a, p, "Dream", tree); r.Exit != 0 || len(r.Stdout) != 0 || r.Stderr == "" {
			t.Errorf("%s/%s, without its call: %+v", a.Name(), name, r)
		}
	})
	t.Log(fmt.Sprint("events of another name: ", tried))
}
