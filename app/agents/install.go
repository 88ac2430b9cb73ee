package agents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/exit"
)

// site is where one agent's hooks are written.
type site struct {
	Home    string
	Project string // the project's directory; empty: for the user
	Config  string // Nod's configuration directory, for what an agent starts
	Getenv  func(string) string
}

// path is below the user's directory, or below the project.
func (s site) path(env, user, project string, rest ...string) string {
	dir := filepath.Join(s.Home, user)
	if v := s.Getenv(env); env != "" && filepath.IsAbs(v) {
		dir = v
	}
	if s.Project != "" {
		dir = filepath.Join(s.Project, project)
	}
	return filepath.Join(append([]string{dir}, rest...)...)
}

// setup is what install puts in place for an agent.
type setup struct {
	file  string
	whole func() string // the file is Nod's own, with this text; else
	fresh string        // what a file that is not there starts as
	parts []part
	// helper is a further file of Nod's own that the settings name.
	helper     string
	helperText string
	notes      []string // what the user must know or do
	strict     bool     // the agent takes JSON without comments only
}

// unread says that an agent will not read its settings, if so.
func (s *setup) unread(title string, text []byte) string {
	if !s.strict || emptyText(text) || json.Valid(text) {
		return ""
	}
	return fmt.Sprintf("%s has comments or trailing commas, which %s does not take: it passes over the whole file, hooks and permissions included; remove them", s.file, title)
}

// part is one element for the list at path of a settings file.
type part struct {
	path    []string
	element any
}

// installer is an agent whose settings Nod can write. command is the hook's
// command line for an event, which may be empty.
type installer interface {
	Adapter
	setup(s site, mode Mode, command func(event string, hostTimeout time.Duration) []string) setup
}

// hookFor is how long an agent is told to wait for its hook, so that a person
// has ten minutes.
const hookFor = 600 * time.Second

// shellLine is a command as a shell reads it.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// ours says whether a string in an agent's settings is what install wrote: a
// command of some nod, then `hook`, then the agent's name; or the helper that
// runs it.
func ours(agent string) func(string) bool {
	return func(text string) bool {
		if filepath.Base(text) == "nod-"+agent {
			return true
		}
		program, rest, ok := strings.Cut(text, " hook "+agent)
		return ok && (rest == "" || rest[0] == ' ') && strings.HasPrefix(filepath.Base(strings.Trim(program, `"'`)), "nod")
	}
}

// record is what install remembers of a file, so that uninstall can put it back
// as it was.
type record struct {
	Agent  string    `json:"agent"`
	File   string    `json:"file"`
	Backup string    `json:"backup"` // a copy of the file before; empty: there was none
	Wrote  string    `json:"wrote"`  // SHA-256 of what install left, in hex
	Made   []string  `json:"made"`   // directories that install made, outermost first
	At     time.Time `json:"at"`
}

// ledger keeps the records and backups in Nod's state directory.
type ledger struct{ dir string }

func (l ledger) name(file string) string {
	sum := sha256.Sum256([]byte(file))
	return filepath.Join(l.dir, hex.EncodeToString(sum[:8])+".json")
}

func (l ledger) read(file string) (*record, error) {
	data, err := os.ReadFile(l.name(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what install remembers: %w", err)
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.File != file {
		return nil, nil // of no use: the settings are put back piece by piece
	}
	return &r, nil
}

func (l ledger) write(r *record, before []byte) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("making the directory for backups: %w", err)
	}
	if before != nil {
		r.Backup = strings.TrimSuffix(l.name(r.File), ".json") + "-" + r.At.UTC().Format("20060102T150405.000") + ".backup"
		if err := os.WriteFile(r.Backup, before, 0o600); err != nil {
			return fmt.Errorf("backing up %s: %w", r.File, err)
		}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("remembering %s: %w", r.File, err)
	}
	if err := replace(l.name(r.File), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("remembering %s: %w", r.File, err)
	}
	return nil
}

func (l ledger) forget(file string) error {
	err := os.Remove(l.name(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// read returns the file's text, nil if it is not there.
func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if l, lerr := os.Lstat(path); lerr == nil && l.Mode()&fs.ModeSymlink != 0 {
			return nil, 0, fmt.Errorf("%s is a symbolic link to nothing", path)
		}
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no regular file", path)
	}
	data, err := os.ReadFile(path)
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, info.Mode().Perm(), err
}

// replace puts data at path in one step, so that nobody reads half of it. Where
// path is a symbolic link, the file that it leads to is replaced.
func replace(path string, data []byte, mode fs.FileMode) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".nod-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// makeDirs makes dir and returns the directories that were not there.
func makeDirs(dir string) ([]string, error) {
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || filepath.Dir(d) == d {
			break
		}
		made = append([]string{d}, made...)
	}
	return made, os.MkdirAll(dir, 0o755)
}

// stripped is the file without anything of Nod's: as it was before install,
// byte for byte, if nobody changed it since. A nil text means no file.
func stripped(agent, file string, now []byte, whole bool, parts []part, r *record) ([]byte, error) {
	if now == nil {
		return nil, nil
	}
	if r != nil && r.Wrote == sum(now) {
		if r.Backup == "" {
			return nil, nil
		}
		before, err := os.ReadFile(r.Backup)
		if err == nil {
			return before, nil
		}
		// The backup is gone; the pieces are still known.
	}
	if whole {
		return nil, nil
	}
	f := &settingsFile{file, now}
	seen := map[string]bool{}
	for _, p := range parts {
		key := strings.Join(p.path, "\x00")
		if seen[key] {
			continue
		}
		seen[key] = true
		if _, err := f.strip(p.path, ours(agent)); err != nil {
			return nil, err
		}
	}
	return f.text, nil
}

// install returns what must be written for s, and what the file was before.
func (s *setup) install(agent string, r *record) (now, before, want []byte, mode fs.FileMode, err error) {
	now, mode, err = read(s.file)
	if err != nil {
		return nil, nil, nil, 0, fmt.Errorf("reading the settings: %w", err)
	}
	if s.whole != nil {
		before, err = stripped(agent, s.file, now, true, nil, r)
		return now, before, []byte(s.whole()), mode, err
	}
	parts := append(s.parts, everywhere(s.parts)...)
	if before, err = stripped(agent, s.file, now, false, parts, r); err != nil {
		return nil, nil, nil, 0, err
	}
	f := &settingsFile{s.file, bytes.Clone(before)}
	if emptyText(f.text) && s.fresh != "" {
		f.text = []byte(s.fresh)
	}
	for _, p := range s.parts {
		element, err := indented(p.element)
		if err != nil {
			return nil, nil, nil, 0, err
		}
		if err := f.add(p.path, element); err != nil {
			return nil, nil, nil, 0, err
		}
	}
	return now, before, f.text, mode, nil
}

// everywhere are the other events under which an older Nod may have written.
func everywhere(parts []part) []part {
	var more []part
	for _, p := range parts {
		if len(p.path) != 2 {
			continue
		}
		for _, event := range []string{"PreToolUse", "PermissionRequest", "SessionEnd", "SubagentStop", "BeforeTool", "preToolUse", "permissionRequest", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"} {
			more = append(more, part{path: []string{p.path[0], event}})
		}
		break
	}
	return more
}

func indented(v any) (string, error) {
	data, err := marshal(v)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(data), "", "  "); err != nil {
		return "", err
	}
	return b.String(), nil
}

// Where says whose settings are meant: the user's, or those of the project in the
// working directory.
type Where struct{ Project bool }

func (env Env) site(w Where) (site, error) {
	s := site{Home: env.Home, Config: env.Dirs.Config, Getenv: env.Getenv}
	if w.Project {
		if env.Cwd == "" {
			return s, exit.Usage("--project: the working directory can't be found")
		}
		s.Project = env.Cwd
	}
	return s, nil
}

func (env Env) ledger() ledger { return ledger{filepath.Join(env.Dirs.State, "hooks")} }

func findInstaller(name string) (installer, error) {
	a, err := FindOr(name)
	if err != nil {
		return nil, err
	}
	i, ok := a.(installer)
	if !ok {
		return nil, exit.Usage("%s has no settings that Nod knows: have the agent run `nod hook %s` before each tool", name, name)
	}
	return i, nil
}

// setup is what install would write for a.
func (env Env) setup(a installer, w Where, f Flags) (setup, error) {
	at, err := env.site(w)
	if err != nil {
		return setup{}, err
	}
	program, err := env.Executable()
	if err != nil {
		return setup{}, &exit.Error{Code: exit.Internal, Err: fmt.Errorf("finding this program: %w", err)}
	}
	mode := f.setting(env.Setting(a.Name())).Mode
	return a.setup(at, mode, func(event string, host time.Duration) []string {
		words := []string{program, "hook", a.Name()}
		if event != "" {
			words = append(words, event)
		}
		if f.Mode != "" {
			words = append(words, "--mode", f.Mode)
		}
		if f.Unserved != "" {
			words = append(words, "--unserved", f.Unserved)
		}
		if host != a.Timeout() {
			words = append(words, "--host-timeout", fmt.Sprintf("%gs", host.Seconds()))
		}
		return words
	}), nil
}

// Install puts the hook into the settings of the agent of that name, and has the
// agent trust it if so asked, where it knows such a thing.
func (env Env) Install(ctx context.Context, name string, w Where, f Flags, trusted bool) error {
	a, err := findInstaller(name)
	if err != nil {
		return err
	}
	if err := f.Check(); err != nil {
		return err
	}
	t, canTrust := a.(truster)
	if trusted && !canTrust {
		return exit.Usage("--trust: %s knows no trust in single hooks", a.Title())
	}
	s, err := env.setup(a, w, f)
	if err != nil {
		return err
	}
	changed, err := env.install(a.Name(), &s)
	if err != nil {
		return err
	}
	if changed {
		fmt.Fprintf(env.Stdout, "%s: the hook is in %s\n", a.Title(), s.file)
	} else {
		fmt.Fprintf(env.Stdout, "%s: the hook was in %s already\n", a.Title(), s.file)
	}
	notes := s.notes
	if text, _, err := read(s.file); err == nil {
		if warning := s.unread(a.Title(), text); warning != "" {
			notes = append([]string{warning}, notes...)
		}
	}
	if trusted {
		if err := t.trust(ctx, env, s.file); err != nil {
			return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("the hook is in place, but %s does not trust it: %w", a.Title(), err)}
		}
		fmt.Fprintf(env.Stdout, "%s trusts it\n", a.Title())
	} else if canTrust {
		notes = append(notes, t.untrusted())
	}
	for _, n := range notes {
		fmt.Fprintln(env.Stderr, "nod: note: "+n)
	}
	return nil
}

// truster is an agent that runs a hook only after its user trusted it.
type truster interface {
	trust(ctx context.Context, env Env, file string) error
	untrusted() string
	doubts(file string) string
}

// install writes s and reports whether that changed anything.
func (env Env) install(agent string, s *setup) (bool, error) {
	l := env.ledger()
	r, err := l.read(s.file)
	if err != nil {
		return false, err
	}
	now, before, want, mode, err := s.install(agent, r)
	if err != nil {
		return false, &exit.Error{Code: exit.Misused, Err: err}
	}
	changed := false
	if s.helper != "" {
		if have, _, err := read(s.helper); err != nil || string(have) != s.helperText {
			if err := os.MkdirAll(filepath.Dir(s.helper), 0o700); err != nil {
				return false, fmt.Errorf("making %s: %w", filepath.Dir(s.helper), err)
			}
			if err := replace(s.helper, []byte(s.helperText), 0o700); err != nil {
				return false, fmt.Errorf("writing %s: %w", s.helper, err)
			}
			changed = true
		}
	}
	if now != nil && bytes.Equal(now, want) {
		return changed, nil
	}
	made, err := makeDirs(filepath.Dir(s.file))
	if err != nil {
		return false, fmt.Errorf("making %s: %w", filepath.Dir(s.file), err)
	}
	if r != nil {
		made = append(r.Made, made...)
	}
	// The backup first: nothing is changed that could not be put back.
	if err := l.write(&record{Agent: agent, File: s.file, Wrote: sum(want), Made: made, At: env.Now()}, before); err != nil {
		return false, err
	}
	if err := replace(s.file, want, mode); err != nil {
		return false, fmt.Errorf("writing the settings: %w", err)
	}
	return true, nil
}

// Uninstall takes the hook out of the settings of the agent of that name.
func (env Env) Uninstall(name string, w Where) error {
	a, err := findInstaller(name)
	if err != nil {
		return err
	}
	s, err := env.setup(a, w, Flags{})
	if err != nil {
		return err
	}
	changed, err := env.uninstall(a.Name(), &s)
	switch {
	case err != nil:
		return err
	case !changed:
		fmt.Fprintf(env.Stdout, "%s: there is no hook of Nod's in %s\n", a.Title(), s.file)
	default:
		fmt.Fprintf(env.Stdout, "%s: the hook is out of %s\n", a.Title(), s.file)
	}
	return nil
}

func (env Env) uninstall(agent string, s *setup) (bool, error) {
	l := env.ledger()
	r, err := l.read(s.file)
	if err != nil {
		return false, err
	}
	now, mode, err := read(s.file)
	if err != nil {
		return false, fmt.Errorf("reading the settings: %w", err)
	}
	if s.whole != nil && now != nil {
		if commands, err := written(agent, s.file, now, true); err != nil || len(commands) == 0 {
			return false, exit.Usage("%s is not as Nod wrote it: remove it yourself if it is not needed", s.file)
		}
	}
	before, err := stripped(agent, s.file, now, s.whole != nil, append(s.parts, everywhere(s.parts)...), r)
	if err != nil {
		return false, &exit.Error{Code: exit.Misused, Err: err}
	}
	changed := false
	if s.helper != "" {
		err := os.Remove(s.helper)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("removing %s: %w", s.helper, err)
		}
		changed = err == nil
	}
	// A file that install made and that holds nothing else goes as well.
	if r != nil && r.Backup == "" && before != nil && (emptyObject(before) || string(bytes.TrimSpace(before)) == strings.TrimSpace(s.fresh)) {
		before = nil
	}
	switch {
	case now == nil || before != nil && bytes.Equal(now, before):
	case before == nil:
		if err := os.Remove(s.file); err != nil {
			return false, fmt.Errorf("removing the settings: %w", err)
		}
		changed = true
	default:
		if err := replace(s.file, before, mode); err != nil {
			return false, fmt.Errorf("writing the settings: %w", err)
		}
		changed = true
	}
	if r != nil && before == nil {
		for i := len(r.Made) - 1; i >= 0; i-- {
			_ = os.Remove(r.Made[i]) // only if it is empty
		}
	}
	return changed, l.forget(s.file)
}

// emptyObject reports whether text is {} and nothing else.
func emptyObject(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) >= 2 && text[0] == '{' && text[len(text)-1] == '}' && len(bytes.TrimSpace(text[1:len(text)-1])) == 0
}

// Installed is one agent's hook: a line of `nod hook status --json`.
type Installed struct {
	Agent    string   `json:"agent"`
	File     string   `json:"file"`
	State    string   `json:"state"` // absent, installed, outdated or unreadable
	Problem  string   `json:"problem,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Status says how the hooks of the agents of those names stand, or each agent's
// if there are none. A named one that is not in place is an error.
func (env Env) Status(names []string, w Where, asJSON bool) error {
	var list []installer
	for _, a := range All() {
		if i, ok := a.(installer); ok && len(names) == 0 {
			list = append(list, i)
		}
	}
	for _, name := range names {
		i, err := findInstaller(name)
		if err != nil {
			return err
		}
		list = append(list, i)
	}
	all := true
	for _, a := range list {
		st, err := env.state(a, w)
		if err != nil {
			return err
		}
		all = all && st.State == "installed"
		if asJSON {
			data, err := marshal(st)
			if err != nil {
				return fmt.Errorf("writing the status: %w", err)
			}
			if _, err := env.Stdout.Write(data); err != nil {
				return fmt.Errorf("writing the status: %w", err)
			}
			continue
		}
		fmt.Fprintf(env.Stdout, "%-12s %-10s %s\n", a.Name(), st.State, st.File)
		for _, text := range append([]string{st.Problem}, st.Warnings...) {
			if text != "" {
				fmt.Fprintln(env.Stdout, "             "+oneLine(text))
			}
		}
	}
	if !all && len(names) > 0 {
		return &exit.Error{Code: exit.Denied}
	}
	return nil
}

// Installed is how the hooks stand that are in the user's settings. What can't
// be found out is left out.
func (env Env) Installed() []Installed {
	var list []Installed
	for _, a := range All() {
		if i, ok := a.(installer); ok {
			if st, err := env.state(i, Where{}); err == nil && st.State != "absent" {
				list = append(list, st)
			}
		}
	}
	return list
}

func (env Env) state(a installer, w Where) (Installed, error) {
	s, err := env.setup(a, w, Flags{})
	if err != nil {
		return Installed{}, err
	}
	st := Installed{Agent: a.Name(), File: s.file, State: "absent"}
	now, _, err := read(s.file)
	if err != nil {
		st.State, st.Problem = "unreadable", err.Error()
		return st, nil
	}
	commands, err := written(a.Name(), s.file, now, s.whole != nil)
	switch {
	case err != nil:
		st.State, st.Problem = "unreadable", err.Error()
	case len(commands) > 0:
		st.State = "installed"
		for _, c := range commands {
			if p := programOf(c); p != "" {
				if info, err := os.Stat(p); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
					st.State = "outdated"
					st.Problem = fmt.Sprintf("it runs %s, which is not there: run nod hook install %s again", p, a.Name())
				}
			}
		}
		if warning := s.unread(a.Title(), now); warning != "" {
			st.Warnings = append(st.Warnings, warning)
		}
		if t, ok := a.(truster); ok && !w.Project {
			if doubt := t.doubts(s.file); doubt != "" {
				st.Warnings = append(st.Warnings, doubt)
			}
		}
	}
	return st, nil
}

// written are the commands of Nod's in a settings file.
func written(agent, file string, text []byte, whole bool) ([]string, error) {
	if emptyText(text) {
		return nil, nil
	}
	if whole && !json.Valid(text) { // a plugin
		_, rest, ok := bytes.Cut(text, []byte("const command = "))
		line, _, _ := bytes.Cut(rest, []byte(";\n"))
		var words []string
		if !ok || json.Unmarshal(line, &words) != nil || len(words) == 0 {
			return nil, nil
		}
		return []string{shellLine(words)}, nil
	}
	f := &settingsFile{file, text}
	v, err := f.root()
	if err != nil {
		return nil, err
	}
	var list []string
	for each := range v.All() {
		if s, ok := stringOf(each); ok && ours(agent)(s) {
			list = append(list, s)
		}
	}
	return list, nil
}

// programOf is the first word of a command that install wrote.
func programOf(command string) string {
	if rest, ok := strings.CutPrefix(command, "'"); ok {
		word, _, ok := strings.Cut(rest, "' ")
		if !ok {
			return ""
		}
		return strings.ReplaceAll(word, `'\''`, "'")
	}
	word, _, _ := strings.Cut(command, " ")
	return word
}
