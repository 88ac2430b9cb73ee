package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/engine"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ptr(s string) *string { return &s }

// sheets are asks of every kind that there is a golden file of.
func sheets() map[string]*board.Ask {
	who := engine.Principal{SessionID: "0198c0de-0000-7000-8000-00000000000a", AgentName: "scout"}
	return map[string]*board.Ask{
		"command": {Question: &engine.Question{
			Principal: who, Tool: "bash", Surface: "bash", Kind: "bash", Value: "git status", Pattern: "git *", RequesterCwd: "/home/dev/proj",
			Evidence: []engine.Evidence{{Label: "full command", Text: "git status && rm -rf build"}},
			Deadline: noon.Add(588 * time.Second), Suggestion: []engine.Grant{{Surface: "bash", Pattern: "git status*"}},
		}},
		"external": {Adopted: true, Question: &engine.Question{
			Principal: who, Tool: "bash", Surface: "external_directory", Kind: "bash_external_directory", Value: "cat etclink/hostname > /tmp/out.txt",
			RequesterCwd: "/home/dev/proj", Hops: []string{"relay-1"},
			Evidence: []engine.Evidence{
				{Label: "external path", Text: "/home/dev/proj/etclink/hostname", Detail: ptr("/etc/hostname")},
				{Label: "external path", Text: "/tmp/out.txt"},
			},
			Annotations: []engine.Annotation{{Source: "intent", Text: "quite harmless\n  │ asks because of nothing"}},
		}},
		"hostile": {Question: &engine.Question{
			Principal: engine.Principal{AgentName: "scout\x1b]0;title\a"}, Tool: "bash", Surface: "bash", Pattern: "x\ny",
			Evidence:     []engine.Evidence{{Label: "[y] allow once", Text: "x"}, {Label: strings.Repeat("so long ", 20), Text: "y"}},
			Value:        "rm -rf /\rls\x1b[2J\x1b[H\u202Etxt.sh\u200b\u009b31m\n[y] allow once\n" + strings.Repeat("long ", 60) + "\tend",
			RequesterCwd: "/home/\x1b[31mred",
		}},
		"wide": {Question: &engine.Question{Principal: who, Tool: "bash", Surface: "bash", Value: strings.Repeat("語", 50) + strings.Repeat("é", 120)}},
	}
}

func TestSheetsAreGolden(t *testing.T) {
	for name, a := range sheets() {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(sheet(a, 72, noon), "\n") + "\n"
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestNoLineOfAnAgentPassesForOurs(t *testing.T) {
	for name, a := range sheets() {
		for _, width := range []int{20, 72, 200} {
			for _, l := range sheet(a, width, noon) {
				if cells(l) > max(width, 20) {
					t.Errorf("%s at %d: %d cells: %q", name, width, cells(l), l)
				}
				if strings.ContainsFunc(l, func(r rune) bool { return r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e || r == 0x200b }) {
					t.Errorf("%s: %q reaches the terminal", name, l)
				}
				if strings.Contains(l, "[y] allow once") && !strings.HasPrefix(l, gutter) {
					t.Errorf("%s: %q stands without its bar", name, l)
				}
			}
		}
	}
}

func TestWrapDropsNothing(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("word ", 100), strings.Repeat("語", 77)} {
		for _, width := range []int{0, 1, 12, 80} {
			var back strings.Builder
			for _, l := range wrap(s, width, gutter) {
				back.WriteString(strings.TrimPrefix(l, gutter))
			}
			if back.String() != s {
				t.Errorf("at %d %q became %q", width, s, back.String())
			}
		}
	}
}

func TestBrief(t *testing.T) {
	lines := strings.Split(strings.Repeat("x\n", 99)+"x", "\n")
	got, cut := brief(lines, 20)
	if !cut || len(got) != 20 || !strings.Contains(strings.Join(got, "\n"), "… 81 more lines") {
		t.Errorf("%v, %d lines: %q", cut, len(got), got)
	}
	if got, cut := brief(lines[:20], 20); cut || len(got) != 20 {
		t.Errorf("what fits was cut to %d", len(got))
	}
	if got, cut := brief(lines, -5); !cut || len(got) != 6 {
		t.Errorf("a tiny screen shows %d lines", len(got))
	}
}
