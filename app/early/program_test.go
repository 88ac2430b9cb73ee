package early

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nod-agents/nod/app"
)

// started is what the runtime tells of each package that sets itself up.
var started = regexp.MustCompile(`(?m)^init (\S+) @.*\n`)

// TestProgramAnswersEarly builds the program and holds that the plain forms are
// answered before the rest of it starts, and as the commands answer them.
func TestProgramAnswersEarly(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	dir := home(t, worlds["rules"])
	nod := filepath.Join(t.TempDir(), "nod.exe")
	build := exec.Command("go", "build", "-tags", "headless", "-o", nod, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	symbols, err := exec.Command("go", "tool", "nm", nod).Output()
	if err != nil || !bytes.Contains(symbols, []byte(" runtime.main\n")) {
		t.Fatalf("go tool nm: %v", err)
	}
	// Where methods are looked up by names that only a run knows, as templates
	// do, the linker keeps every exported method of every type.
	if bytes.Contains(symbols, []byte("reflect.Value.MethodByName")) {
		t.Error("something looks up methods by name: find it with go build -ldflags=-dumpdep, <ReflectMethod>")
	}
	t.Chdir(filepath.Join(dir, "work"))
	payload := `{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "git status"}}`
	end := `{"hook_event_name": "SessionEnd", "session_id": "s"}`
	for _, tt := range []struct {
		args  []string
		stdin string
		early bool
	}{
		{[]string{"check", "bash", "git status"}, "", true},
		{[]string{"check", "--json", "bash", "rm x"}, "", true},
		{[]string{"check", "bash", "ls"}, "", true},
		{[]string{"hook", "claude-code"}, payload, true},
		{[]string{"hook", "codex", "--mode", "advise"}, payload, true},
		{[]string{"hook", "claude-code"}, "{", true},
		{[]string{"hook", "claude-code"}, end, false},
		{[]string{"check", "bash", "ls", "--json"}, "", false},
		{[]string{"check", "bash"}, "", false},
		{[]string{"hook", "nobody"}, payload, false},
		{[]string{"policy", "paths"}, "", false},
	} {
		c := exec.Command(nod, tt.args...)
		c.Env = []string{"HOME=" + dir, "GODEBUG=inittrace=1", "PATH=" + os.Getenv("PATH")}
		c.Stdin = strings.NewReader(tt.stdin)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); c.ProcessState == nil {
			t.Fatal(err)
		}
		var inits []string
		for _, m := range started.FindAllStringSubmatch(errs.String(), -1) {
			inits = append(inits, m[1])
		}
		if !slices.Contains(inits, "regexp") {
			t.Fatalf("the runtime does not tell what starts: %q", errs.String())
		}
		if at := slices.Index(inits, "github.com/nod-agents/nod/app/early/stack"); at < 0 || at > slices.Index(inits, "os") {
			t.Errorf("the stack grows too late: %q", inits)
		}
		for _, name := range []string{"net", "github.com/spf13/cobra", "github.com/nod-agents/nod/app"} {
			if slices.Contains(inits, name) == tt.early {
				t.Errorf("%q: %s has started: %v", tt.args, name, !tt.early)
			}
		}
		got := outcome{out.String(), started.ReplaceAllString(errs.String(), ""), c.ProcessState.ExitCode()}
		if want := process(t, tt.args, tt.stdin, []string{"HOME=" + dir}, app.Main); got != want {
			t.Errorf("%q:\nprogram:  %+v\ncommands: %+v", tt.args, got, want)
		}
	}
}
