package engine_test

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestManual holds docs/engine.md against the tests: each of its statements
// names at least one that would fail if it were not so, and all that it names
// exist.
func TestManual(t *testing.T) {
	known := map[string]bool{}
	functions(t, "..", known)
	cases(t, "gate/testdata/cases", known)
	page, err := os.ReadFile("../docs/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*|[a-z]+-\\d{3})`")
	cited := regexp.MustCompile(`\[[^\]]*\]`)
	statements := 0
	for _, s := range strings.Split("\n"+string(page), "\n- ")[1:] {
		s, _, _ = strings.Cut(s, "\n\n")
		statements++
		n := 0
		for _, list := range cited.FindAllString(s, -1) {
			n += len(named.FindAllString(list, -1))
		}
		if n == 0 {
			t.Errorf("no test is named for %q", s)
		}
	}
	if statements < 80 {
		t.Errorf("the page has %d statements: it is not read as it is written", statements)
	}
	for _, m := range named.FindAllStringSubmatch(string(page), -1) {
		if !known[m[1]] {
			t.Errorf("the page names %s, which does not exist", m[1])
		}
	}
}

// functions adds the test functions below dir.
func functions(t *testing.T, dir string, known map[string]bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				known[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cases adds the ids of the cases in dir.
func cases(t *testing.T, dir string, known map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var c struct{ ID string }
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			known[c.ID] = true
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}
