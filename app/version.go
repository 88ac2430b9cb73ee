package app

import (
	"encoding/json"
	"io"
	"runtime/debug"
	"strings"

	"github.com/nod-agents/nod/app/visible"
)

// version is the module's version, with the commit where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(v, s.Value[:12]) {
			v += " " + s.Value[:12]
		}
	}
	return v
}

// newEncoder writes JSON as it is read by people: without HTML escapes, and
// with nothing that a terminal obeys.
func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(visible.JSONWriter(w))
	e.SetEscapeHTML(false)
	return e
}
