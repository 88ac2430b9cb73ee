package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// An input that two readers could read differently is not judged by a guess:
// the file that is judged must be the one that the agent touches.
func TestAmbiguousInputsAreRefused(t *testing.T) {
	for _, input := range [][2]string{
		{"Read", `{"file_path":"a","path":".env"}`}, {"Read", `{"filePath":".env","file_path":"a"}`}, {"Write", `{"path":"a","file_path":"b"}`},
		{"Bash", `{"command":"ls","cmd":"rm x"}`}, {"Bash", `{"command":"ls","workdir":"/a","cwd":"/b"}`}, {"Bash", `{"command":"r\u0000m x"}`},
		{"Read", `{"file_path":".env\u0000.txt"}`}, {"Skill", `{"skill":"a","name":"b"}`}, {"Glob", `{"pattern":"x\u0000"}`},
	} {
		if c, err := (Claude{}).Parse("", claude(input[0], input[1]), func(string) string { return "" }); err == nil {
			t.Errorf("%s %s is read as %+v", input[0], input[1], c.Uses)
		}
	}
	for _, input := range [][2]string{{"Read", `{"file_path":"a","path":"a"}`}, {"Read", `{"file_path":"a","path":null}`}, {"Bash", `{"command":"ls","cmd":null}`}} {
		if _, err := (Claude{}).Parse("", claude(input[0], input[1]), func(string) string { return "" }); err != nil {
			t.Errorf("%s %s: %v", input[0], input[1], err)
		}
	}
}

func TestGrepInOneFileReadsIt(t *testing.T) {
	for input, want := range map[string]string{`{"pattern":"x","glob":".env"}`: ".env", `{"pattern":"x","path":"/a/","include":".env"}`: "/a/.env", `{"pattern":"x","glob":"*.go"}`: ""} {
		c, err := (Claude{}).Parse("", claude("Grep", input), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(c.Uses) > 1 {
			got, _ = c.Uses[0].Input["path"].(string)
		}
		if got != want {
			t.Errorf("%s reads %q, want %q", input, got, want)
		}
	}
}

// Codex applies a patch that a command line hands to apply_patch without
// running the line.
func TestAPatchInACommandLineTouchesItsFiles(t *testing.T) {
	patch := "apply_patch <<'X'\n*** Begin Patch\n*** Add File: .env\n+x\n*** End Patch\nX"
	for line, dir := range map[string]string{patch: "", "cd sub && " + patch: "sub", `cd "/a b" && ` + patch: "/a b", "  cd 'x' && " + patch: "x"} {
		quoted, _ := json.Marshal(line)
		c, err := (Codex{}).Parse("", claude("Bash", fmt.Sprintf(`{"command":%s}`, quoted)), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		want := []Use{{Tool: "bash", Input: map[string]any{"command": line}}, {Tool: "write", Input: map[string]any{"path": ".env"}, Dir: dir}}
		if !reflect.DeepEqual(c.Uses, want) {
			t.Errorf("%q: %+v", line, c.Uses)
		}
	}
	quoted, _ := json.Marshal("cd $X && " + patch)
	if _, err := (Codex{}).Parse("", claude("Bash", fmt.Sprintf(`{"command":%s}`, quoted)), func(string) string { return "" }); err == nil {
		t.Error("a patch at a place that is not known is read")
	}
	quoted, _ = json.Marshal([]string{"apply_patch", "*** Begin Patch\n*** Delete File: .env\n*** End Patch"})
	if c, err := (Codex{}).Parse("", claude("shell", fmt.Sprintf(`{"command":%s}`, quoted)), func(string) string { return "" }); err != nil || len(c.Uses) != 2 {
		t.Errorf("as a list: %+v, %v", c, err)
	}
}
