// Package house holds what the packages of this module may import, and a few
// rules that no linter of ours knows. It has tests only.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the path that every package of ours starts with.
const module = "github.com/nod-agents/nod"

// root is the module's directory, seen from this package's.
const root = "../.."

// arrows says which packages of ours a package may import, by their paths below
// the module: "" is the module's own. They go down only. "engine/..." is every
// package of the engine. A new arrow is a decision: write it here.
var arrows = map[string][]string{
	"": {"app", "app/early"},
	"app": {
		"app/agents", "app/check", "app/control", "app/doctor", "app/exit", "app/ground", "app/guard", "app/hooks", "app/link", "app/node", "app/program", "app/terminal", "app/tray", "app/window", "app/window/hush",
		"app/board", "app/pipe", "app/policyfile", "app/reviewlog", "app/settings", "app/trust", "app/visible",
		"assets", "engine/...", "forwarding", "heartbeat", "notify",
	},

	// Where asks come in, where they are decided, where they are answered.
	"app/agents":      {"app/disk", "app/exit", "app/guard", "app/policyfile", "app/trust", "app/visible", "engine/...", "forwarding", "heartbeat"},
	"app/check":       {"app/disk", "app/exit", "app/judge", "app/policyfile", "app/trust", "app/visible", "assets", "engine/..."},
	"app/control":     {"app/desk", "app/pipe", "app/visible"},
	"app/doctor":      {"forwarding", "heartbeat"},
	"app/early":       {"app/agents", "app/early/stack", "app/exit", "app/ground", "app/judge"},
	"app/ground":      {"app/agents", "app/exit", "app/guard", "app/judge", "app/policyfile", "app/settings", "engine/..."},
	"app/guard":       {"engine/...", "forwarding"},
	"app/hooks":       {"app/agents", "app/exit"},
	"app/judge":       {"app/disk", "app/exit", "app/guard", "app/policyfile", "app/trust", "app/visible", "engine/..."},
	"app/link":        {"app/oneshot", "app/program", "app/visible", "engine/..."},
	"app/node":        {"app/board", "app/guard", "app/link", "app/pipe", "app/reviewlog", "engine/...", "forwarding"},
	"app/program":     {"app/board", "app/desk", "app/oneshot", "app/visible", "engine/..."},
	"app/terminal":    {"app/board", "app/desk", "app/visible", "engine/..."},
	"app/tray":        {"app/board", "app/desk", "app/pipe", "app/visible", "assets", "engine/...", "notify"},
	"app/window":      {"app/pipe", "app/window/view", "assets"},
	"app/window/hush": {},
	"app/window/view": {"app/board", "app/desk", "app/pipe", "app/visible", "assets", "engine/..."},

	// What those share.
	"app/board":       {"engine/..."},
	"app/desk":        {"app/board", "app/pipe", "app/visible", "engine/..."},
	"app/disk":        {"engine/..."},
	"app/early/stack": {},
	"app/exit":        {},
	"app/oneshot":     {"app/visible"},
	"app/pipe":        {"engine/..."},
	"app/policyfile":  {"engine/..."},
	"app/reviewlog":   {},
	"app/settings":    {"heartbeat"},
	"app/trust":       {},
	"app/visible":     {},

	// Tests of the whole.
	"app/agents/livetest": {},
	"app/e2e":             {},
	"app/house":           {},
	"app/script":          {},
	"docs":                {},

	// What knows nobody, or nearly so.
	"forwarding":        {"engine/...", "heartbeat"},
	"heartbeat":         {"engine/percent"},
	"notify":            {},
	"notify/notifytest": {},
	"assets":            {},
	"assets/gen":        {},

	"engine":         {"engine/..."},
	"engine/access":  {"engine/..."},
	"engine/gate":    {"engine/..."},
	"engine/pattern": {"engine/..."},
	"engine/percent": {},
	"engine/policy":  {"engine/..."},
	"engine/shell":   {"engine/..."},
	"engine/suggest": {"engine/..."},
}

// homes are modules that only one room may import.
var homes = []struct {
	prefix, room string
}{
	{"fyne.io/fyne", "app/window"},
	{"github.com/go-gl", "app/window"},
	{"fyne.io/systray", "app/tray"},
	{"github.com/gen2brain/beeep", "notify"},
}

// impure are what the engine must not reach for: what it decides by is handed in.
var impure = []string{"os", "os/exec", "os/user", "net", "net/http", "log", "log/slog", "syscall", "math/rand", "math/rand/v2", "crypto/rand"}

// builds are those whose imports are looked at.
var builds = []struct {
	name, tags string
	env        []string
}{
	{"desktop", "gles", nil},
	{"headless", "headless", []string{"CGO_ENABLED=0"}},
	{"windows", "gles", []string{"GOOS=windows", "CGO_ENABLED=1"}},
	{"darwin", "gles", []string{"GOOS=darwin", "CGO_ENABLED=1"}},
	{"freebsd", "headless", []string{"GOOS=freebsd", "CGO_ENABLED=0"}},
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// list runs go list in the module's directory.
func list(t *testing.T, tags string, env []string, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "-tags", tags}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaints.String())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading what go list says: %v", err)
		}
		all = append(all, p)
	}
}

// ours is the path below the module, or false for a package of somebody else.
func ours(importPath string) (string, bool) {
	rest, ok := strings.CutPrefix(importPath, module)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

// below reports whether p is dir or stands below it.
func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func mayImport(allowed []string, p string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		room, whole := strings.CutSuffix(a, "/...")
		return a == p || whole && below(p, room)
	})
}

func TestArrowsGoDown(t *testing.T) {
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			packages := list(t, b.tags, b.env, "./...")
			if len(packages) < len(arrows)/2 {
				t.Fatalf("go list knows %d packages only", len(packages))
			}
			for _, p := range packages {
				from, _ := ours(p.ImportPath)
				allowed, known := arrows[from]
				if !known {
					t.Errorf("%s is not in arrows: say there what it may import", from)
					continue
				}
				for _, i := range p.Imports {
					to, mine := ours(i)
					if mine && !mayImport(allowed, to) {
						t.Errorf("%s must not import %s", from, to)
					}
					checkHome(t, from, i)
					if below(from, "engine") && slices.Contains(impure, i) {
						t.Errorf("%s must not import %s: the engine is handed what it decides by", from, i)
					}
				}
				checkTests(t, from, slices.Concat(p.TestImports, p.XTestImports))
			}
		})
	}
}

// checkTests: tests may look further (the engine's read real files), but those
// of the rooms that know nobody may not, and none brings windows along.
func checkTests(t *testing.T, from string, imports []string) {
	t.Helper()
	for _, room := range []string{"notify", "heartbeat", "assets"} {
		for _, i := range imports {
			if to, mine := ours(i); mine && below(from, room) && !below(to, room) {
				t.Errorf("the tests of %s must not import %s", from, to)
			}
		}
	}
	for _, i := range imports {
		checkHome(t, from, i)
	}
}

func checkHome(t *testing.T, from, importPath string) {
	t.Helper()
	for _, h := range homes {
		if below(importPath, h.prefix) && !below(from, h.room) {
			t.Errorf("%s must not import %s: only %s does", from, importPath, h.room)
		}
	}
}

// A headless build has no window library anywhere below it, and nothing to
// notify with.
func TestHeadlessHasNoWindows(t *testing.T) {
	for _, p := range list(t, "headless", []string{"CGO_ENABLED=0"}, "-deps", ".") {
		for _, h := range homes {
			if below(p.ImportPath, h.prefix) {
				t.Errorf("a headless build must not contain %s", p.ImportPath)
			}
		}
	}
}

// What decides before the rest of the program starts must not have to wait for
// the start of anything that it has no use for: see package early.
func TestEarlyIsLight(t *testing.T) {
	heavy := []string{
		"net", "net/netip", "net/url", "os/user", "crypto/tls", "text/template", "image", "flag", "compress/gzip",
		"github.com/spf13", "github.com/godbus", "github.com/gen2brain", "fyne.io", "github.com/go-gl",
	}
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			packages := list(t, b.tags, b.env, "-deps", "./app/early")
			if len(packages) < 50 {
				t.Fatalf("go list knows %d packages only", len(packages))
			}
			for _, p := range packages {
				for _, h := range heavy {
					if b.name == "windows" && below(h, "net") {
						continue // golang.org/x/sys/windows has it
					}
					if p.ImportPath == h || strings.Contains(h, ".") && below(p.ImportPath, h) {
						t.Errorf("app/early must not contain %s", p.ImportPath)
					}
				}
			}
		})
	}
}

// sources calls each with every Go file of the module, whatever system it is
// for. name is its path below the module.
func sources(t *testing.T, each func(name string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	count := 0
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := e.Name(); e.IsDir() {
			if name == "testdata" || strings.HasPrefix(name, ".") && name != "." && name != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		if path.Ext(p) != ".go" {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		count++
		each(filepath.ToSlash(name), set, f)
		return nil
	})
	if err != nil {
		t.Fatalf("reading the sources: %v", err)
	}
	if count < 100 {
		t.Fatalf("only %d Go files were found", count)
	}
}

func TestNoInit(t *testing.T) {
	sources(t, func(name string, set *token.FileSet, f *ast.File) {
		if ast.IsGenerated(f) {
			return
		}
		if below(name, "app/early") {
			return // that is its story
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d: init functions run behind everybody's back: have a caller call it", name, set.Position(fn.Pos()).Line)
			}
		}
	})
}

// The engine takes the time from its caller. A use without a call, as of a
// default, is one too.
func TestEngineReadsNoClock(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	sources(t, func(name string, set *token.FileSet, f *ast.File) {
		if !below(name, "engine") || strings.HasSuffix(name, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, s.Sel.Name) {
				t.Errorf("%s:%d: time.%s in the engine", name, set.Position(s.Pos()).Line, s.Sel.Name)
			}
			return true
		})
	})
}

// A file is named by what its story is about.
func TestNamesSaySomething(t *testing.T) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "manager", "misc", "base", "shared", "lib"}
	sources(t, func(name string, _ *token.FileSet, f *ast.File) {
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test")
		for _, word := range []string{stem, f.Name.Name, path.Base(path.Dir(name))} {
			if slices.Contains(empty, word) {
				t.Errorf("%s: the name %q says nothing", name, word)
			}
		}
	})
}

// The top level holds these, and dot-files.
func TestTopLevel(t *testing.T) {
	allowed := []string{
		"go.mod", "go.sum", "main.go", "FyneApp.toml", "README.md", "LICENSE", "Makefile",
		"app", "notify", "engine", "forwarding", "heartbeat", "assets", "docs",
		"nod", "artifacts", "dist", // what a build leaves, which git ignores
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		building := strings.HasPrefix(e.Name(), "nod.") // git ignores that, too
		if !strings.HasPrefix(e.Name(), ".") && !building && !slices.Contains(allowed, e.Name()) {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}
