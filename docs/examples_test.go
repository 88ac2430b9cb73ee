package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nod-agents/nod/app/settings"
	"github.com/nod-agents/nod/engine/policy"
)

// TestExamplesLoad holds that every file which the documents show is one that
// Nod reads without an error or a warning, copied as it stands.
func TestExamplesLoad(t *testing.T) {
	block := regexp.MustCompile("(?s)\n```jsonc\n(.*?)```")
	count := 0
	for _, doc := range []string{"../README.md", "policy.md", "usage.md", "agents.md"} {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(data), -1) {
			count++
			path := filepath.Join(t.TempDir(), "example.jsonc")
			if !strings.Contains(m[1], `"permission"`) {
				if err := os.WriteFile(path, []byte(m[1]), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := settings.Read(path, settings.Place{Home: t.TempDir()}); err != nil {
					t.Errorf("%s: %v in:\n%s", doc, err, m[1])
				}
				continue
			}
			_, _, warnings, err := policy.Parse(path, []byte(m[1]), policy.Nod, "/home/someone")
			if err != nil || len(warnings) > 0 {
				t.Errorf("%s: %v %v in:\n%s", doc, err, warnings, m[1])
			}
		}
	}
	if count < 5 {
		t.Errorf("only %d examples were found", count)
	}
}
