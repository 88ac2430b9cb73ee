// Package docs_test holds the documents to what is there.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesNameTheirTests holds that every promise of security.md names a
// test, and that each test it names exists.
func TestPromisesNameTheirTests(t *testing.T) {
	data, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")
	functions := map[string]string{} // source of a package's tests
	_, promises, ok := strings.Cut(string(data), "\n## Promises\n")
	if !ok {
		t.Fatal("there are no promises")
	}
	promises, _, _ = strings.Cut(promises, "\n## ")
	rows := 0
	for line := range strings.Lines(promises) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, m := range tests {
			dir, name := m[1], m[2]
			if _, read := functions[dir]; !read {
				files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					text, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					functions[dir] += string(text)
				}
			}
			if !strings.Contains(functions[dir], "\nfunc "+name+"(") {
				t.Errorf("there is no %s in %s", name, dir)
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d promises were found", rows)
	}
}
