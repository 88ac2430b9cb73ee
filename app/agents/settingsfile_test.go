package agents

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

// layouts are settings files as people keep them.
var layouts = map[string]string{
	"empty object":        "{}",
	"empty object, line":  "{}\n",
	"open object":         "{\n}\n",
	"one member":          "{\n  \"model\": \"opus\"\n}\n",
	"on one line":         `{"model": "opus", "x": [1, 2]}`,
	"tabs":                "{\n\t\"model\": \"opus\",\n\t\"deep\": {\n\t\t\"a\": 1\n\t}\n}\n",
	"four spaces":         "{\n    \"model\": \"opus\"\n}",
	"CRLF":                "{\r\n  \"model\": \"opus\"\r\n}\r\n",
	"comments":            "// mine\n{\n  // the model\n  \"model\": \"opus\", // really\n  /* nothing more */\n}\n// end\n",
	"comment at the end":  "{\n  \"model\": \"opus\" // no comma\n  // last words\n}\n",
	"only a comment":      "{\n  // nothing yet\n}\n",
	"trailing comma":      "{\n  \"model\": \"opus\",\n}\n",
	"other hooks":         "{\n  \"hooks\": {\n    \"PostToolUse\": [\n      {\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"fmt\"}]}\n    ]\n  },\n  \"z\": 1\n}\n",
	"same event":          "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [{\"type\": \"command\", \"command\": \"audit hook\"}] // keep\n      }\n    ],\n    \"Stop\": []\n  }\n}\n",
	"same event, a line":  "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"command\": \"audit\"}]}]}}\n",
	"empty hooks":         "{\n  \"hooks\": {}\n}\n",
	"empty event":         "{\n  \"hooks\": {\"PreToolUse\": []},\n  \"a\": \"b\"\n}\n",
	"odd keys":            "{\n  \"ho\\u006fks\": {\"PreToolUse\": []},\n  \"snow ☃\": \"</script>\"\n}\n",
	"twice":               "{\n  \"hooks\": {\"PreToolUse\": [1]},\n  \"hooks\": {\"PreToolUse\": [{\"a\": 1}]}\n}\n",
	"list with a comment": "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      // none yet\n    ]\n  }\n}\n",
}

// ours is a hook as install writes it.
const oursElement = "{\n  \"matcher\": \"*\",\n  \"hooks\": [\n    {\n      \"type\": \"command\",\n      \"command\": \"/opt/nod hook claude-code\"\n    }\n  ]\n}"

var oursPath = []string{"hooks", "PreToolUse"}

// TestSpliceAndCut adds the hook to every layout and takes it out again. All
// else stays: the values, the comments, and after the cut every byte, but for
// lists that were empty before.
func TestSpliceAndCut(t *testing.T) {
	for name, src := range layouts {
		t.Run(name, func(t *testing.T) {
			f := &settingsFile{"settings.json", []byte(src)}
			if err := f.add(oursPath, oursElement); err != nil {
				t.Fatal(err)
			}
			with := string(f.text)
			if n := strings.Count(with, "/opt/nod hook"); n != 1 {
				t.Fatalf("%d hooks in\n%s", n, with)
			}
			checkHeld(t, src, with)
			found, err := f.strip(oursPath, ours("claude-code"))
			if err != nil || !found {
				t.Fatalf("%v, %v", found, err)
			}
			got := string(f.text)
			switch name {
			case "empty event", "odd keys", "twice":
				// That a list was there and empty is what install remembers.
			case "empty hooks":
				if squeeze(got) != "{}" {
					t.Errorf("left %q", got)
				}
			case "open object", "on one line", "same event, a line", "only a comment", "list with a comment":
				// Where the closing bracket stood is what install remembers.
				if squeeze(got) != squeeze(src) {
					t.Errorf("with the hook:\n%s\nafter:\n%q\nwant:\n%q", with, got, src)
				}
			default:
				if got != src {
					t.Errorf("with the hook:\n%s\nafter:\n%q\nwant:\n%q", with, got, src)
				}
			}
		})
	}
}

// squeeze is text without the space between tokens.
func squeeze(s string) string {
	v, err := hujson.Parse([]byte(s))
	if err != nil {
		return "unreadable: " + s
	}
	for each := range v.All() {
		each.BeforeExtra = bytes.TrimSpace(each.BeforeExtra)
	}
	return strings.Join(strings.Fields(v.String()), "")
}

// checkHeld checks that with holds what src does, the hook aside, and that its
// comments are all there, in order.
func checkHeld(t *testing.T, src, with string) {
	t.Helper()
	for line := range strings.Lines(src) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "//") && !strings.Contains(with, line) {
			t.Errorf("lost %q in\n%s", line, with)
		}
	}
	var before, after map[string]any
	for text, to := range map[string]*map[string]any{src: &before, with: &after} {
		plain, err := hujson.Standardize([]byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if err := json.Unmarshal(plain, to); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for key, value := range before {
		if key == "hooks" {
			continue
		}
		a, _ := json.Marshal(value)
		b, _ := json.Marshal(after[key])
		if string(a) != string(b) {
			t.Errorf("%s changed from %s to %s", key, a, b)
		}
	}
	hooks, _ := after["hooks"].(map[string]any)
	list, _ := hooks["PreToolUse"].([]any)
	if len(list) == 0 {
		t.Fatalf("no hook in\n%s", with)
	}
	data, _ := json.Marshal(list[len(list)-1])
	if !strings.Contains(string(data), "/opt/nod hook claude-code") {
		t.Errorf("the last hook is %s in\n%s", data, with)
	}
	if strings.Contains(src, "\r\n") && strings.Count(with, "\n") != strings.Count(with, "\r\n") {
		t.Errorf("mixed line ends: %q", with)
	}
}

// TestAddedText pins how what is added looks.
func TestAddedText(t *testing.T) {
	for name, want := range map[string]string{
		"one member": `{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/opt/nod hook claude-code"
          }
        ]
      }
    ]
  }
}
`,
		"comment at the end": `{
  "model": "opus", // no comma
  // last words
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/opt/nod hook claude-code"
          }
        ]
      }
    ]
  }
}
`,
		"trailing comma": `{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/opt/nod hook claude-code"
          }
        ]
      }
    ]
  },
}
`,
		"same event": `{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [{"type": "command", "command": "audit hook"}] // keep
      },
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/opt/nod hook claude-code"
          }
        ]
      }
    ],
    "Stop": []
  }
}
`,
	} {
		f := &settingsFile{"settings.json", []byte(layouts[name])}
		if err := f.add(oursPath, oursElement); err != nil {
			t.Fatal(err)
		}
		if string(f.text) != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, f.text, want)
		}
	}
}

// TestCutLeavesWhatOthersAdded checks the cut where somebody put more into
// Nod's group, or around it.
func TestCutLeavesWhatOthersAdded(t *testing.T) {
	for src, want := range map[string]string{
		`{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"command": "nod hook claude-code"}, {"command": "mine"}]}]}}`:                                 `{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [ {"command": "mine"}]}]}}`,
		`{"hooks": {"PreToolUse": [{"hooks": [{"command": "mine"}, {"command": "nod hook claude-code"}]}]}}`:                                                 `{"hooks": {"PreToolUse": [{"hooks": [{"command": "mine"}]}]}}`,
		`{"hooks": {"PreToolUse": [{"hooks": [{"command": "nod hook claude-code"}]}, 1], "Stop": []}}`:                                                       `{"hooks": {"PreToolUse": [ 1], "Stop": []}}`,
		`{"hooks": {"PreToolUse": [{"hooks": [{"command": "nod hook claude-code"}]}, {"hooks": [{"command": "'/a b/nod' hook claude-code --mode gate"}]}]}}`: `{}`,
		`{"hooks": {"PreToolUse": [{"hooks": [{"command": "nod hook codex"}]}, {"hooks": [{"command": "echo nod hook claude-codex"}]}]}}`:                    `{"hooks": {"PreToolUse": [{"hooks": [{"command": "nod hook codex"}]}, {"hooks": [{"command": "echo nod hook claude-codex"}]}]}}`,
	} {
		f := &settingsFile{"settings.json", []byte(src)}
		if _, err := f.strip(oursPath, ours("claude-code")); err != nil || string(f.text) != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", src, f.text, err, want)
		}
	}
}

func TestSettingsThatCannotBeRead(t *testing.T) {
	for src, want := range map[string]string{
		"{\n  \"a\": 1,,\n}":              "settings.json:2:10: ",
		"{\n  \"hooks\": \"off\"\n}":      "settings.json:2:12: hooks is no object: nothing was changed",
		"{\"hooks\": {\"PreToolUse\":1}}": "settings.json:1:25: hooks.PreToolUse is no list: nothing was changed",
		"[]":                              "settings.json:1:1: the file is no object: nothing was changed",
		"\ufeff{}":                        "settings.json:1:1: ",
		"{":                               "settings.json:1:2: ",
	} {
		f := &settingsFile{"settings.json", []byte(src)}
		err := f.add(oursPath, oursElement)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
		if string(f.text) != src {
			t.Errorf("%q became %q", src, f.text)
		}
	}
}

// FuzzSettingsFile splices the hook into any text and cuts it out again.
func FuzzSettingsFile(f *testing.F) {
	for _, src := range layouts {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file := &settingsFile{"settings.json", bytes.Clone(src)}
		if found, err := file.strip(oursPath, ours("claude-code")); found || err != nil {
			return
		}
		if err := file.add(oursPath, oursElement); err != nil {
			if !bytes.Equal(file.text, src) && !emptyText(src) {
				t.Fatalf("%v, and yet %q became %q", err, src, file.text)
			}
			return
		}
		if _, err := hujson.Parse(file.text); err != nil {
			t.Fatalf("%q became %q: %v", src, file.text, err)
		}
		if found, err := file.strip(oursPath, ours("claude-code")); !found || err != nil {
			t.Fatalf("the hook is not found in %q: %v", file.text, err)
		}
		if bytes.Contains(file.text, []byte("/opt/nod hook claude-code")) && !bytes.Contains(src, []byte("/opt/nod hook claude-code")) {
			t.Fatalf("left in %q", file.text)
		}
		if _, err := hujson.Parse(file.text); err != nil {
			t.Fatalf("cut to %q: %v", file.text, err)
		}
	})
}
