package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write dependencies.md anew")

// purposes says what each linked module is for. A module that is not here fails
// the test: nobody has said yet why it is linked.
var purposes = map[string]string{
	"fyne.io/fyne/v2":                          "windows",
	"fyne.io/systray":                          "the tray icon and its menu",
	"git.sr.ht/~jackmordaunt/go-toast":         "notifications on Windows (through beeep)",
	"github.com/BurntSushi/toml":               "Fyne: translations, preferences",
	"github.com/bmatcuk/doublestar/v4":         "`glob:` patterns of policy",
	"github.com/ebitengine/purego":             "Fyne: calling the system's libraries",
	"github.com/esiqveland/notify":             "linked by beeep; not used on the bus that Nod speaks itself",
	"github.com/fredbi/uri":                    "Fyne: URIs",
	"github.com/fsnotify/fsnotify":             "told when inboxes and policy files change",
	"github.com/fyne-io/image":                 "Fyne: image formats",
	"github.com/fyne-io/oksvg":                 "Fyne: SVG icons",
	"github.com/gen2brain/beeep":               "notifications without buttons, where there is no better way",
	"github.com/go-gl/gl":                      "Fyne: OpenGL",
	"github.com/go-gl/glfw/v3.3/glfw":          "Fyne: window system",
	"github.com/go-ole/go-ole":                 "notifications on Windows (through beeep)",
	"github.com/go-text/render":                "Fyne: text",
	"github.com/go-text/typesetting":           "Fyne: text",
	"github.com/godbus/dbus/v5":                "notifications and tray hosts on Linux and BSD",
	"github.com/inconshreveable/mousetrap":     "Cobra: started from the Windows Explorer",
	"github.com/jeandeaual/go-locale":          "Fyne: the user's language",
	"github.com/jsummers/gobmp":                "Fyne: image formats",
	"github.com/nfnt/resize":                   "beeep: icons",
	"github.com/nicksnyder/go-i18n/v2":         "Fyne: translations",
	"github.com/rymdport/portal":               "Fyne: desktop portals",
	"github.com/sergeymakinen/go-bmp":          "beeep: icons on Windows",
	"github.com/sergeymakinen/go-ico":          "beeep: icons on Windows",
	"github.com/spf13/cobra":                   "commands",
	"github.com/spf13/pflag":                   "flags",
	"github.com/srwiley/oksvg":                 "Fyne: SVG icons",
	"github.com/srwiley/rasterx":               "Fyne: SVG icons",
	"github.com/tadvi/systray":                 "beeep: old Windows",
	"github.com/tailscale/hujson":              "JSON with comments: settings, policy, agents' settings",
	"github.com/yuin/goldmark":                 "Fyne: rich text",
	"go.yaml.in/yaml/v3":                       "front matter of agents",
	"golang.org/x/image":                       "Fyne: image formats",
	"golang.org/x/net":                         "Fyne: HTML parts of rich text",
	"golang.org/x/sys":                         "system calls: files, watches, terminals",
	"golang.org/x/term":                        "whether there is a terminal",
	"golang.org/x/text":                        "Fyne: languages",
	"github.com/DeRuina/timberjack":            "the review log's rotation",
	"mvdan.cc/sh/v3":                           "reading shell commands",
	"github.com/santhosh-tekuri/jsonschema/v6": "the policy schema",
}

// module is a module that is linked into Nod.
type module struct {
	Path, Version, Dir string
	Systems            []string
}

// linked are the modules of the desktop build on the three systems.
func linked(t *testing.T) []module {
	t.Helper()
	found := map[string]*module{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		c := exec.Command("go", "list", "-deps", "-tags", "gles", "-json=Module", ".")
		c.Dir = ".."
		c.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=1")
		var errs bytes.Buffer
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v\n%s", system, err, &errs)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct {
					module
					Main bool
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := found[p.Module.Path]
			if m == nil {
				m = &p.Module.module
				found[m.Path] = m
			}
			if !slices.Contains(m.Systems, system) {
				m.Systems = append(m.Systems, system)
			}
		}
	}
	var list []module
	for _, m := range found {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// license names the licence in a module's directory by its SPDX identifier.
func (m *module) license() (string, error) {
	var names []string
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "licen[sc]e*", "Licen[sc]e*"} {
		found, err := filepath.Glob(filepath.Join(m.Dir, pattern))
		if err != nil {
			return "", err
		}
		names = append(names, found...)
	}
	// A nested module may lie below the licence of its repository.
	if len(names) == 0 {
		return "", fmt.Errorf("%s has no licence file in %s", m.Path, m.Dir)
	}
	ids := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		id := identify(string(text))
		if id == "" {
			return "", fmt.Errorf("%s is under a licence that is not known here: %s", m.Path, name)
		}
		ids[id] = true
	}
	var all []string
	for id := range ids {
		all = append(all, id)
	}
	slices.Sort(all)
	return strings.Join(all, " AND "), nil
}

// identify tells a licence by sentences that only it has.
func identify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(s string) bool { return strings.Contains(text, s) }
	var ids []string
	switch {
	case has("Apache License") && has("Version 2.0"):
		ids = append(ids, "Apache-2.0")
	case has("Mozilla Public License") && has("2.0"):
		ids = append(ids, "MPL-2.0")
	case has("GNU "):
		return "" // would have to be looked at
	}
	if has("Permission is hereby granted, free of charge") {
		ids = append(ids, "MIT")
	}
	if has("Permission to use, copy, modify, and/or distribute") || has("Permission to use, copy, modify, and distribute this software for any purpose with or without fee") {
		ids = append(ids, "ISC")
	}
	if has("Redistribution and use in source and binary forms") {
		if has("Neither the name") || has("may be used to endorse or promote") || has("names of its contributors may not be used") {
			ids = append(ids, "BSD-3-Clause")
		} else {
			ids = append(ids, "BSD-2-Clause")
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, " AND ")
}

// permissive are the licences that a program under the MIT licence can be
// linked with without more than naming them.
var permissive = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// TestDependencies holds dependencies.md to what is linked. Run it with
// -update to write the file anew.
func TestDependencies(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Dependencies\n\n" +
		"The modules that are linked into the desktop build, on any of Linux, macOS and Windows (written by\n" +
		"`go test ./docs -run Dependencies -update`, and checked by the same test). The headless build links fewer, and no C.\n" +
		"Tests and tools use more; `go.mod` names them. A bill of materials is made by `make sbom`.\n\n" +
		"| module | version | licence | systems | what for |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range linked(t) {
		license, err := m.license()
		if err != nil {
			t.Error(err)
			continue
		}
		for id := range strings.SplitSeq(license, " AND ") {
			if !slices.Contains(permissive, id) {
				t.Errorf("%s is under %s, which has not been looked at", m.Path, id)
			}
		}
		purpose, known := purposes[m.Path]
		if !known {
			t.Errorf("%s is linked, and nobody has said what for", m.Path)
		}
		systems := strings.Join(m.Systems, ", ")
		if len(m.Systems) == 3 {
			systems = "all"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.Path, m.Version, license, systems, purpose)
	}
	b.WriteString(afterTable)
	if t.Failed() {
		return
	}
	const file = "dependencies.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != b.String() {
		t.Errorf("%s is stale (%v): run go test ./docs -run Dependencies -update", file, err)
	}
}

const afterTable = `
With them come the Go standard library and runtime (BSD-3-Clause), and on Linux the C libraries of the window system,
which are linked at run time: libc, libGL or libGLES, libX11, libXcursor, libXrandr, libXinerama, libXi, libXxf86vm.
Compiled in from within these modules: GLFW (Zlib, in go-gl/glfw), and from Fyne the fonts Noto Sans and Inter Symbols
(OFL-1.1), DejaVu Sans Mono (Bitstream Vera licence) and Emoji One Color (CC-BY-4.0), and the Material icons (Apache-2.0).

## Builds that can be repeated

` + "`make headless`" + ` builds with ` + "`CGO_ENABLED=0 -tags headless -trimpath -ldflags '-s -w'`" + `: a clean clone of the
same commit and the same Go version give the same bytes, wherever and by whomever it is built. ` + "`make reproducible`" + ` builds it twice, from two clones and with two
caches, and compares. The desktop build holds C code, and so depends on the C compiler and
the place it is built in: it is not promised to be the same on another machine.

## Known weaknesses

` + "`make vuln`" + ` runs govulncheck over the headless build and, where the C libraries are there, the desktop build. It needs the
vulnerability database of vuln.go.dev, or a copy of it named by VULNDB (such as ` + "`file:///srv/vulndb`" + `). Continuous
integration has neither, so it does not run there: run it before a release.
`
