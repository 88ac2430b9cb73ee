package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
)

// Files is where policy files are read from. Names are absolute paths.
type Files interface {
	// Identify tells one state of a file from another. For a file that does
	// not exist the error is fs.ErrNotExist.
	Identify(name string) (Identity, error)
	// Read returns the whole file.
	Read(name string) ([]byte, error)
}

// Identity is the same as long as a file is untouched.
type Identity struct {
	Device, Inode uint64
	Size          int64 // bytes
	ModTime       int64 // Unix ns
	Change        int64 // Unix ns of the last change of the inode; 0 if unknown
}

// Places says where the policy of one agent in one project is read from.
type Places struct {
	AgentDir  string // the agents' own directory, such as ~/.pi/agent
	ConfigDir string // Nod's, which holds policy.jsonc; empty: none
	Project   string // the working directory; empty: no project scopes
	Trusted   bool   // an untrusted project's files are not read
	Agent     string // the agent's name; empty: none
	Home      string // for `~` in examples

	// Global replaces the files of the global scope by one file.
	Global string
	// Inline replaces the files of the global scope by a policy given as
	// JSON: a whole file, or the value of its permission key alone.
	Inline []byte
}

// Names of policy files, below the directories of Places.
const (
	peerConfig = "extensions/pi-permission-system/config.json"
	nodPolicy  = "policy.jsonc"
)

// Status is what became of one file of a policy.
type Status struct {
	Name   string
	Origin engine.Origin
	Exists bool
	Err    error // Errors, or the reason it could not be read
	// Stale says that Err is about the file as it is now, while the rules are
	// those of its last good state.
	Stale    bool
	Warnings Errors
}

// Policy is all files of Places, read and validated.
type Policy struct {
	Layers   []engine.Layer
	Settings Settings
	Files    []Status // every file that was looked for, lowest scope first
	// Untrusted says that the project has policy files which were not read
	// because it is not trusted.
	Untrusted bool

	parts []*parsed // what the layers were made from
}

// Err is everything wrong in the files, nil if nothing is.
func (p *Policy) Err() error {
	var all []error
	for i := range p.Files {
		if p.Files[i].Err != nil {
			all = append(all, p.Files[i].Err)
		}
	}
	return errors.Join(all...)
}

// Names lists the files that the policy depends on, also those that do not
// exist: when one of them changes, the policy must be loaded again.
func (p *Policy) Names() []string {
	names := make([]string, 0, len(p.Files))
	for i := range p.Files {
		if filepath.IsAbs(p.Files[i].Name) {
			names = append(names, p.Files[i].Name)
		}
	}
	return names
}

// Ruleset compiles the policy. opt.Yolo is set from the settings.
func (p *Policy) Ruleset(opt engine.Options) *engine.Ruleset {
	opt.Yolo = p.Settings.Yolo
	return engine.Compile(p.Layers, opt)
}

// Loader reads policies and keeps every file's validated form for as long as
// the file is untouched. It is safe for concurrent use.
type Loader struct {
	files    Files
	keepGood bool

	mu    sync.Mutex
	cache map[source]*parsed
	ready map[readyKey]*ready
}

// readyKey is what a compiled policy depends on besides its files.
type readyKey struct {
	agentDir, configDir, project, agent, global string
	trusted                                     bool
	home, cwd                                   string
	flavour                                     pattern.Flavour
}

// ready is a compiled policy with the files it was made from.
type ready struct {
	parts  []*parsed
	policy *Policy
	rules  *engine.Ruleset
}

// source is a file in the role it plays.
type source struct {
	name    string
	dialect Dialect
	origin  engine.Origin
	home    string
}

// parsed is one file's validated form.
type parsed struct {
	id       Identity
	layer    engine.Layer
	set      set
	errs     error
	warnings Errors
	good     *parsed // the last state without errors, if this one has some
}

// cacheLimit bounds how many files a Loader keeps.
const cacheLimit = 4096

// NewLoader returns a Loader over files. With keepGood, a file that breaks
// while the Loader lives keeps counting in its last good state.
func NewLoader(files Files, keepGood bool) *Loader {
	return &Loader{files: files, keepGood: keepGood, cache: make(map[source]*parsed), ready: make(map[readyKey]*ready)}
}

// Rules loads the policy at p and compiles it for opt. As long as no file
// changes and no rule's lifetime ends before opt.Now, it returns the same
// Policy and Ruleset again.
func (l *Loader) Rules(p Places, opt engine.Options) (*Policy, *engine.Ruleset) {
	loaded := l.Load(p)
	if p.Inline != nil {
		return loaded, loaded.Ruleset(opt)
	}
	key := readyKey{
		agentDir: p.AgentDir, configDir: p.ConfigDir, project: p.Project, agent: p.Agent, global: p.Global, trusted: p.Trusted,
		home: opt.Home, cwd: opt.Cwd, flavour: opt.Flavour,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.ready[key]; r != nil && slices.Equal(r.parts, loaded.parts) && r.policy.Untrusted == loaded.Untrusted {
		if until := r.rules.Expires(); until.IsZero() || until.After(opt.Now) {
			return r.policy, r.rules
		}
	}
	if len(l.ready) >= cacheLimit {
		clear(l.ready)
	}
	r := &ready{parts: loaded.parts, policy: loaded, rules: loaded.Ruleset(opt)}
	l.ready[key] = r
	return r.policy, r.rules
}

// Load reads the policy at p. It never fails: what is wrong is in the layers,
// which then fail closed, and in Policy.Files.
func (l *Loader) Load(p Places) *Policy {
	out := &Policy{}
	switch {
	case p.Inline != nil:
		out.add(Status{Name: "<policy>", Origin: engine.OriginGlobal, Exists: true}, readInline(p.Inline, p.Home), l.keepGood)
	case p.Global != "":
		l.load(out, source{p.Global, Nod, engine.OriginGlobal, p.Home}, true)
	default:
		if p.AgentDir != "" {
			l.load(out, source{filepath.Join(p.AgentDir, peerConfig), Peer, engine.OriginGlobal, p.Home}, false)
		}
		if p.ConfigDir != "" {
			l.load(out, source{filepath.Join(p.ConfigDir, nodPolicy), Nod, engine.OriginGlobal, p.Home}, false)
		}
	}
	agentFile, named := agentFile(p.Agent)
	project := p.Project != "" && p.Trusted
	if p.Project != "" {
		names := []source{
			{filepath.Join(p.Project, ".pi", peerConfig), Peer, engine.OriginProject, p.Home},
			{filepath.Join(p.Project, ".nod", nodPolicy), Nod, engine.OriginProject, p.Home},
		}
		for _, s := range names {
			if project {
				l.load(out, s, false)
			} else if _, err := l.files.Identify(s.name); err == nil {
				out.Untrusted = true
			}
		}
	}
	if p.Agent == "" {
		return out
	}
	if !named {
		out.add(Status{Name: "<agent>", Origin: engine.OriginAgent}, &parsed{errs: fmt.Errorf("the agent name %q cannot name a file; write what stands below agents, without .md", clip(p.Agent))}, false)
		return out
	}
	if p.AgentDir != "" {
		l.load(out, source{filepath.Join(p.AgentDir, agentFile), Peer, engine.OriginAgent, p.Home}, false)
	}
	if p.Project != "" {
		s := source{filepath.Join(p.Project, ".pi", agentFile), Peer, engine.OriginProjectAgent, p.Home}
		if project {
			l.load(out, s, false)
		} else if _, err := l.files.Identify(s.name); err == nil {
			out.Untrusted = true
		}
	}
	return out
}

// agentFile is the path of an agent's file below an agent directory. It
// reports false for a name that would lead elsewhere.
func agentFile(name string) (string, bool) {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\\\x00") {
			return "", false
		}
	}
	return filepath.Join("agents", filepath.FromSlash(name)+".md"), true
}

func (l *Loader) load(out *Policy, s source, must bool) {
	status := Status{Name: s.name, Origin: s.origin, Exists: true}
	id, err := l.files.Identify(s.name)
	if errors.Is(err, fs.ErrNotExist) && !must {
		status.Exists = false
		out.Files = append(out.Files, status)
		l.mu.Lock()
		delete(l.cache, s)
		l.mu.Unlock()
		return
	}
	l.mu.Lock()
	old := l.cache[s]
	l.mu.Unlock()
	if err == nil && old != nil && old.id == id {
		out.add(status, old, l.keepGood)
		return
	}
	var p *parsed
	var data []byte
	if err == nil {
		data, err = l.files.Read(s.name)
	}
	if err != nil {
		p = &parsed{errs: fmt.Errorf("reading %s: %w; make it a file that you can read, or remove it", s.name, err)}
	} else {
		p = read(s, data)
	}
	p.id = id
	if p.errs != nil && old != nil {
		p.good = old
		if old.errs != nil {
			p.good = old.good
		}
	}
	if err == nil || p.good != nil {
		l.mu.Lock()
		if len(l.cache) >= cacheLimit {
			clear(l.cache)
		}
		l.cache[s] = p
		l.mu.Unlock()
	}
	out.add(status, p, l.keepGood)
}

// add puts one file's validated form on top of the policy.
func (p *Policy) add(status Status, f *parsed, keepGood bool) {
	status.Err, status.Warnings = f.errs, f.warnings
	p.parts = append(p.parts, f)
	if f.errs != nil && keepGood && f.good != nil {
		status.Stale = true
		f = f.good
	}
	p.Files = append(p.Files, status)
	layer := f.layer
	layer.Origin, layer.File = status.Origin, status.Name
	layer.Broken = f.errs
	p.Layers = append(p.Layers, layer)
	if f.errs == nil {
		p.Settings.apply(&f.set)
	}
}

// read validates the bytes of one file.
func read(s source, data []byte) *parsed {
	c := checker{dialect: s.dialect, origin: s.origin, home: s.home}
	p := &parsed{}
	if s.origin == engine.OriginAgent || s.origin == engine.OriginProjectAgent {
		v, found, bad := frontMatter(s.name, data)
		if found {
			p.layer.Sections = c.permission(v)
		}
		if bad != nil {
			c.errs = append(Errors{bad}, c.errs...)
		}
	} else if v, bad := jsonc(s.name, data); bad != nil {
		c.errs = append(c.errs, bad)
	} else {
		p.layer.Sections, p.set = c.config(v)
	}
	return c.finish(p)
}

// finish puts what is wrong into p. Of a broken file nothing counts but the
// denials of front matter that could be made out.
func (c *checker) finish(p *parsed) *parsed {
	p.warnings = c.warn
	if len(c.errs) > 0 {
		p.errs = c.errs
		p.set = set{}
		if c.origin == engine.OriginGlobal || c.origin == engine.OriginProject {
			p.layer.Sections = nil
		} else {
			p.layer.Sections = denials(p.layer.Sections)
		}
	}
	return p
}

func denials(all []engine.Section) []engine.Section {
	var kept []engine.Section
	for _, s := range all {
		var rules []engine.Rule
		for _, r := range s.Rules {
			if r.Action == engine.Deny {
				rules = append(rules, r)
			}
		}
		if len(rules) > 0 {
			s.Rules = rules
			kept = append(kept, s)
		}
	}
	return kept
}

func readInline(data []byte, home string) *parsed {
	c := checker{dialect: Nod, origin: engine.OriginGlobal, home: home}
	p := &parsed{}
	v, bad := jsonc("<policy>", data)
	switch {
	case bad != nil:
		c.errs = append(c.errs, bad)
	case isFlat(v):
		p.layer.Sections = c.permission(v)
	default:
		p.layer.Sections, p.set = c.config(v)
	}
	return c.finish(p)
}

// isFlat reports whether v is the value of a permission key rather than a
// whole file: none of its keys is a file's.
func isFlat(v value) bool {
	if v.kind != object {
		return false
	}
	for _, m := range v.keys {
		for _, k := range topKeys {
			if m.key == k {
				return false
			}
		}
	}
	return true
}

// Parse validates one file by itself: an agent's front matter if its name ends
// in .md, else a policy file. Its errors are Errors.
func Parse(name string, data []byte, d Dialect, home string) (engine.Layer, Settings, Errors, error) {
	origin := engine.OriginGlobal
	if strings.HasSuffix(name, ".md") {
		origin, d = engine.OriginAgent, Peer
	}
	p := read(source{name, d, origin, home}, data)
	var s Settings
	s.apply(&p.set)
	p.layer.Origin, p.layer.File, p.layer.Broken = origin, name, p.errs
	return p.layer, s, p.warnings, p.errs
}

// Expires is the earliest end of a rule's lifetime after now; zero if none.
func (p *Policy) Expires(now time.Time) time.Time {
	return engine.Compile(p.Layers, engine.Options{Now: now}).Expires()
}
