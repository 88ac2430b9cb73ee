// Package settings reads what a user sets for Nod itself: which inboxes it
// serves, and how. What agents may do is the policy's, not the settings'.
//
// The file is <config dir>/nod/settings.jsonc. A missing file means the
// defaults; a broken one is an error that names file, line and remedy, and
// nothing is served under settings half read.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/nod-agents/nod/heartbeat"
)

// The front ends that Settings.Frontend and --frontend may name.
const (
	Auto     = "auto"     // the desktop where there is a display, else the terminal where there is one
	Desktop  = "desktop"  // tray, notifications and windows
	Terminal = "terminal" // this terminal
	None     = "none"     // only rules, links and --exec decide
)

// Settings of Nod.
type Settings struct {
	Sessions  []string `json:"sessions"`  // session ids to serve
	AgentDirs []string `json:"agentDirs"` // agent directories to serve them in; ~ is the home directory
	Frontend  string   `json:"frontend"`  // auto, desktop, terminal or none
	Session   string   `json:"session"`   // where nod ask and hooks send an ask if the environment names no parent

	// Adopt has Nod serve the inboxes in AgentDirs that nobody else serves.
	Adopt        bool `json:"adopt"`
	AdoptDelayMs *int `json:"adoptDelayMs"` // how long an old peer may answer first; nil: 3000

	// SelfProtection set to false lets policy decide about Nod's own files too.
	SelfProtection *bool `json:"selfProtection"`

	Hooks map[string]Hook `json:"hooks"` // by agent, such as claude-code; "*" is every agent that is not named
}

// Hook is what a user sets for the hook of an agent. An empty field is not set.
type Hook struct {
	Mode     string `json:"mode"`     // gate: Nod decides; advise: it denies or is silent, and asks where the agent would
	Unserved string `json:"unserved"` // what becomes of an ask while no Nod runs: deny, or defer to the agent's own prompt
}

// SelfProtects reports whether agents' tools are kept from what decides about
// agents. Only an explicit false says no.
func (s *Settings) SelfProtects() bool { return s.SelfProtection == nil || *s.SelfProtection }

// Hook is what is set for an agent.
func (s *Settings) Hook(agent string) Hook {
	h, ok := s.Hooks[agent]
	if !ok {
		return s.Hooks["*"]
	}
	return h
}

func (h Hook) check() error {
	switch h.Mode {
	case "", "gate", "advise":
	default:
		return fmt.Errorf("mode %q is none of gate, advise", h.Mode)
	}
	switch h.Unserved {
	case "", "deny", "defer":
	default:
		return fmt.Errorf("unserved %q is none of deny, defer", h.Unserved)
	}
	return nil
}

// Read reads the file at path and fills in the defaults.
func Read(path string, place Place) (Settings, error) {
	s := Settings{}
	data, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err): // errors.Is takes a hundredth of a check here
	case err != nil:
		return s, fmt.Errorf("reading the settings: %w", err)
	default:
		if s, err = parse(path, data); err != nil {
			return s, err
		}
	}
	if len(s.Sessions) == 0 {
		s.Sessions = []string{"desktop"}
	}
	if len(s.AgentDirs) == 0 {
		s.AgentDirs = []string{place.AgentDir}
	}
	for i, d := range s.AgentDirs {
		s.AgentDirs[i] = place.Expand(d)
	}
	if s.Frontend == "" {
		s.Frontend = Auto
	}
	if s.Session == "" {
		s.Session = s.Sessions[0]
	}
	return s, nil
}

func parse(path string, data []byte) (Settings, error) {
	var s Settings
	doc, err := hujson.Parse(data)
	if err != nil {
		at, said := "", strings.TrimPrefix(err.Error(), "hujson: ")
		var line, column int
		if n, _ := fmt.Sscanf(said, "line %d, column %d:", &line, &column); n == 2 {
			_, said, _ = strings.Cut(said, ": ")
			at = fmt.Sprintf(":%d:%d", line, column)
		}
		return s, fmt.Errorf("%s%s: %s: mend the syntax", path, at, said)
	}
	if err := noneTwice(path, data, &doc); err != nil {
		return s, err
	}
	doc.Standardize()
	plain := doc.Pack()
	if bytes.Equal(bytes.TrimSpace(plain), []byte("null")) {
		return s, fmt.Errorf("%s: null is no object: write the settings in { }", path)
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, explain(path, plain, d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("%s:%d: text after the settings: remove it", path, line(plain, d.InputOffset()))
	}
	for _, id := range append([]string{s.Session}, s.Sessions...) {
		if id == "" && s.Session == "" {
			continue
		}
		if _, err := heartbeat.CheckSession(id); err != nil {
			return s, fmt.Errorf("%s: %w", path, err)
		}
	}
	if ms := s.AdoptDelayMs; ms != nil && (*ms < 0 || *ms > 600_000) {
		return s, fmt.Errorf("%s: adoptDelayMs: %d is not from 0 to 600000", path, *ms)
	}
	for agent, h := range s.Hooks {
		if err := h.check(); err != nil {
			return s, fmt.Errorf("%s: hooks: %s: %w", path, agent, err)
		}
	}
	if err := CheckFrontend(s.Frontend); s.Frontend != "" && err != nil {
		return s, fmt.Errorf("%s: frontend: %w", path, err)
	}
	return s, nil
}

// CheckFrontend reports a name that is no front end.
func CheckFrontend(name string) error {
	switch name {
	case Auto, Desktop, Terminal, None:
		return nil
	}
	return fmt.Errorf("%q is none of auto, desktop, terminal, none", name)
}

// noneTwice refuses a setting of doc, which data is, that is written twice, in
// letters of whatever case: only one of the two could count.
func noneTwice(path string, data []byte, doc *hujson.Value) error {
	for v := range doc.All() {
		object, ok := v.Value.(*hujson.Object)
		if !ok {
			continue
		}
		seen := map[string]int{}
		for _, m := range object.Members {
			name, ok := m.Name.Value.(hujson.Literal)
			if !ok {
				continue
			}
			at, key := line(data, int64(m.Name.StartOffset)), strings.ToLower(name.String())
			if first := seen[key]; first != 0 {
				return fmt.Errorf("%s:%d: %q is set twice, in line %d first: remove one", path, at, name.String(), first)
			}
			seen[key] = at
		}
	}
	return nil
}

func explain(path string, data []byte, offset int64, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("%s:%d: this is no object but a JSON %s: write the settings in { }", path, line(data, wrong.Offset), wrong.Value)
		}
		return fmt.Errorf("%s:%d: %s: a JSON %s stands where %s is meant", path, line(data, wrong.Offset), wrong.Field, wrong.Value, meant(wrong.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("%s:%d: unknown setting %s: the settings are %s", path, line(data, offset), name, strings.Join(keys(), ", "))
	}
	return fmt.Errorf("%s:%d: %w: mend the syntax", path, line(data, offset), err)
}

// meant says in JSON's words what is read into t.
func meant(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list of strings"
	}
	return "an object"
}

func keys() []string {
	t := reflect.TypeFor[Settings]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

func line(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}

// Place is what paths in the settings are resolved against.
type Place struct {
	Home     string
	AgentDir string // the default agent directory
}

// Expand makes path absolute where it starts with ~.
func (p Place) Expand(path string) string {
	if path == "~" {
		return p.Home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(p.Home, rest)
	}
	return path
}

// Path is the settings file in Nod's configuration directory.
func Path(configDir string) string { return filepath.Join(configDir, "settings.jsonc") }
