package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
)

// Dialect says which features a policy file may use.
type Dialect uint8

// The dialects. Peer files are also read by the agent's own permission
// package, so they may hold only what that understands.
const (
	Peer Dialect = iota
	Nod
)

// MaxReason is the longest reason of a rule, in characters.
const MaxReason = 500

// topKeys are the keys of a policy file. The order is that of the manual.
var topKeys = [...]string{
	"permission", "yoloMode", "shellTools", "piInfrastructureReadPaths", "authorizerChain",
	"forwardingTimeoutMs", "debugLog", "permissionReviewLog", "reviewLogFieldMaxWidth",
	"links", "legacyRequests",
	"$schema", "doublePressToConfirm", "permissionDialogKeys", "promptNotifications", "promptMaxRows",
	"promptFieldMaxWidth", "toolInputPreviewMaxLength", "toolTextSummaryMaxLength",
}

// checker validates one file and collects what is wrong with it.
type checker struct {
	dialect Dialect
	origin  engine.Origin
	home    string
	errs    Errors
	warn    Errors
}

func (c *checker) fail(pos engine.Position, key, problem, remedy string) {
	if len(c.errs) < 100 {
		c.errs = append(c.errs, &Error{Pos: pos, Key: key, Problem: problem, Remedy: remedy})
	}
}

// config validates a whole policy file.
func (c *checker) config(v value) ([]engine.Section, set) {
	var sections []engine.Section
	var s set
	if v.kind != object {
		c.fail(v.pos, "", "the file holds "+v.kind.String(), `it must hold an object such as {"permission": {"bash": "ask"}}`)
		return nil, s
	}
	for _, m := range v.keys {
		c.noteTwice(m, m.key)
		switch m.key {
		case "permission":
			sections = c.permission(m.val)
		case "yoloMode":
			s.yolo = c.boolean(m)
		case "debugLog":
			s.debugLog = c.boolean(m)
		case "permissionReviewLog":
			s.reviewLog = c.boolean(m)
		case "shellTools":
			s.shellTools = c.shellTools(m)
		case "piInfrastructureReadPaths":
			s.infrastructure, s.hasInfrastructure = c.strings(m.val, m.key)
		case "authorizerChain":
			s.chain, s.hasChain = c.strings(m.val, m.key)
		case "forwardingTimeoutMs":
			s.timeoutMs = c.positive(m.val, m.key)
		case "reviewLogFieldMaxWidth":
			s.fieldWidth = c.positive(m.val, m.key)
		case "links":
			if c.nodOnly(m.pos, m.key) {
				s.links = c.links(m)
			}
		case "legacyRequests":
			if c.nodOnly(m.pos, m.key) {
				s.legacy = m.val.text
				if m.val.kind != text || s.legacy != "ask" && s.legacy != "resolve" {
					c.fail(m.val.pos, m.key, "it is none of ask, resolve", `write "ask" or "resolve"`)
				}
			}
		case "$schema", "doublePressToConfirm", "permissionDialogKeys", "promptNotifications", "promptMaxRows",
			"promptFieldMaxWidth", "toolInputPreviewMaxLength", "toolTextSummaryMaxLength":
		default:
			c.unknown(m, "", topKeys[:])
		}
	}
	return sections, s
}

// unknown reports a key that means nothing, with the key that was likely meant.
func (c *checker) unknown(m member, under string, choices []string) {
	if c.dialect == Peer {
		var known []string
		for _, k := range choices {
			if !isNodKey(k) {
				known = append(known, k)
			}
		}
		choices = known
	}
	key := m.key
	if under != "" {
		key = under + "." + key
	}
	remedy := "known keys are " + strings.Join(choices, ", ")
	if near, ok := Nearest(m.key, choices); ok {
		remedy = fmt.Sprintf("did you mean %q?", near)
	} else if near != "" {
		remedy = fmt.Sprintf("remove it; the nearest known key is %q", near)
	}
	c.fail(m.pos, key, "unknown key", remedy)
}

func isNodKey(key string) bool {
	switch key {
	case "links", "legacyRequests", "match", "not_match", "until":
		return true
	}
	return false
}

// nodOnly reports whether a feature of Nod's own may be used here.
func (c *checker) nodOnly(pos engine.Position, key string) bool {
	if c.dialect == Nod {
		return true
	}
	c.fail(pos, key, "only Nod knows this, and the agent's own permission package reads this file too", "move it to Nod's policy.jsonc")
	return false
}

func (c *checker) noteTwice(m member, key string) {
	if m.twice.Line > 0 {
		c.warn = append(c.warn, &Error{Pos: m.pos, Key: key, Problem: fmt.Sprintf("written twice; the one on line %d does not count", m.twice.Line), Remedy: "remove one of them"})
	}
}

// permission validates the surfaces and their rules.
func (c *checker) permission(v value) []engine.Section {
	if v.kind != object {
		c.fail(v.pos, "permission", "it is "+v.kind.String(), `it must be an object such as {"bash": "ask"}`)
		return nil
	}
	sections := make([]engine.Section, 0, len(v.keys))
	for _, m := range v.keys {
		key := "permission." + m.key
		c.noteTwice(m, key)
		if m.key == "" {
			c.fail(m.pos, "permission", "a surface has an empty name", "name the tool or surface it is for")
			continue
		}
		s := engine.Section{Surface: m.key, Pos: m.pos}
		switch m.val.kind {
		case text:
			s.Text = true
			r := engine.Rule{Surface: m.key, Pattern: "*", Origin: c.origin, Pos: m.pos}
			if c.action(m.val, key, &r.Action) {
				s.Rules = []engine.Rule{r}
			}
		case object:
			s.Rules = make([]engine.Rule, 0, len(m.val.keys))
			for _, p := range m.val.keys {
				if r, ok := c.rule(m.key, p); ok {
					s.Rules = append(s.Rules, r)
				}
			}
			s.Rules = keepIntegers(s.Rules)
		default:
			c.fail(m.val.pos, key, "it is "+m.val.kind.String(), "write allow, ask or deny, or an object of patterns")
		}
		sections = append(sections, s)
	}
	return sections
}

// keepIntegers guards integer-like patterns. A program in JavaScript that reads
// and writes a policy file moves such keys to the front of their object, below
// a catch-all that they were written after; so their place cannot lift what
// they say. One that is stricter than the rules after it goes to the end.
func keepIntegers(rules []engine.Rule) []engine.Rule {
	var moved []engine.Rule
	kept := rules[:0:0]
	later := latest{rules: rules}
	for i := range rules {
		r := &rules[i]
		if isIndex(r.Pattern) && (r.Action == engine.Deny || r.Action == engine.Ask && later.after(i, r.Pattern) == engine.Allow) {
			if moved == nil {
				kept = append(kept, rules[:i]...)
			}
			moved = append(moved, *r)
		} else if moved != nil {
			kept = append(kept, rules[i])
		}
	}
	if moved == nil {
		return rules
	}
	return append(kept, moved...)
}

const (
	maxBehind = 1000      // rules that one value is held against
	maxLooks  = 2_000_000 // and all values together
)

// latest finds the last rule that matches a value.
type latest struct {
	rules    []engine.Rule
	at       []int // of the rules with wildcards, the last first
	patterns []pattern.Pattern
	looks    int
}

func (l *latest) compile() {
	l.patterns = []pattern.Pattern{}
	for i := len(l.rules) - 1; i >= 0; i-- {
		if text := l.rules[i].Pattern; !pattern.IsLiteral(text) {
			l.at = append(l.at, i)
			l.patterns = append(l.patterns, pattern.Compile(text, pattern.Posix))
		}
	}
}

// after is what the last rule behind rule i says that matches a literal value,
// and deny if none does or it takes too long to tell.
func (l *latest) after(i int, value string) engine.Action {
	if l.patterns == nil {
		l.compile()
	}
	for n, at := range l.at {
		if at <= i || n == maxBehind {
			break
		}
		if l.looks == maxLooks {
			break
		}
		l.looks++
		if l.patterns[n].Match(value) {
			return l.rules[at].Action
		}
	}
	return engine.Deny
}

// isIndex reports whether key is one that JavaScript orders as a number: a
// whole number below 2³²-1, without leading zeros.
func isIndex(key string) bool {
	if key == "" || len(key) > 10 || key[0] == '0' && key != "0" {
		return false
	}
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return false
		}
	}
	n, err := strconv.ParseUint(key, 10, 64)
	return err == nil && n < math.MaxUint32
}

func (c *checker) rule(surface string, m member) (engine.Rule, bool) {
	key := "permission." + surface + "." + m.key
	c.noteTwice(m, key)
	r := engine.Rule{Surface: surface, Pattern: m.key, Origin: c.origin, Pos: m.pos}
	before := len(c.errs)
	if err := pattern.Check(m.key); err != nil {
		c.fail(m.pos, "permission."+surface, err.Error(), "write the pattern that the action is for")
	}
	if pattern.IsGlob(m.key) && c.nodOnly(m.pos, key) && !anyPathSurface(surface) {
		c.fail(m.pos, key, "a glob is for paths only, and "+strconv.Quote(surface)+" is no path surface", "drop the glob: prefix")
	}
	switch m.val.kind {
	case text:
		c.action(m.val, key, &r.Action)
	case object:
		c.entry(key, m.val, &r)
	default:
		c.fail(m.val.pos, key, "it is "+m.val.kind.String(), `write allow, ask, deny, or {"action": "deny", "reason": "…"}`)
	}
	return r, len(c.errs) == before
}

func anyPathSurface(key string) bool {
	p := pattern.Compile(key, pattern.Posix)
	for _, s := range engine.PathSurfaces() {
		if p.Match(s) {
			return true
		}
	}
	return false
}

var entryKeys = [...]string{"action", "reason", "match", "not_match", "until"}

// entry validates a rule written as an object.
func (c *checker) entry(key string, v value, r *engine.Rule) {
	var match, notMatch []value
	hasAction := false
	for _, m := range v.keys {
		at := key + "." + m.key
		c.noteTwice(m, at)
		switch m.key {
		case "action":
			hasAction = true
			if c.action(m.val, at, &r.Action) && r.Action != engine.Deny && c.dialect == Peer {
				c.fail(m.val.pos, at, "an object's action can only be deny in this file", fmt.Sprintf("write %q instead of the object", r.Action))
			}
		case "reason":
			switch {
			case m.val.kind != text:
				c.fail(m.val.pos, at, "it is "+m.val.kind.String(), "write a string")
			case utf8.RuneCountInString(m.val.text) > MaxReason:
				c.fail(m.val.pos, at, fmt.Sprintf("it has %d characters", utf8.RuneCountInString(m.val.text)), fmt.Sprintf("use at most %d", MaxReason))
			}
			r.Reason = m.val.text
		case "match", "not_match":
			if !c.nodOnly(m.pos, at) {
				continue
			}
			if m.val.kind != list {
				c.fail(m.val.pos, at, "it is "+m.val.kind.String(), "write a list of strings")
			} else if m.key == "match" {
				match = m.val.list
			} else {
				notMatch = m.val.list
			}
		case "until":
			if c.nodOnly(m.pos, at) {
				r.Until = c.until(m.val, at)
			}
		default:
			c.unknown(m, key, entryKeys[:])
		}
	}
	if !hasAction {
		c.fail(v.pos, key, "the rule has no action", `add "action": "deny"`)
	}
	c.examples(key, r, match, true)
	c.examples(key, r, notMatch, false)
}

// examples holds a rule against the values its author says it is for.
func (c *checker) examples(key string, r *engine.Rule, list []value, want bool) {
	word := "match"
	if !want {
		word = "not_match"
	}
	for _, v := range list {
		if v.kind != text {
			c.fail(v.pos, key+"."+word, "an example is "+v.kind.String(), "write a string")
			continue
		}
		if engine.PatternMatches(r.Surface, r.Pattern, v.text, engine.Options{Home: c.home}) != want {
			problem := fmt.Sprintf("the pattern does not match %q", v.text)
			if !want {
				problem = fmt.Sprintf("the pattern matches %q", v.text)
			}
			c.fail(v.pos, key+"."+word, problem, "mend the pattern or the example")
		} else if want {
			r.Examples = append(r.Examples, v.text)
		}
	}
}

func (c *checker) until(v value, key string) time.Time {
	if v.kind == text {
		if t, err := time.Parse(time.RFC3339, v.text); err == nil {
			return t
		}
		if t, err := time.Parse(time.DateOnly, v.text); err == nil {
			return t
		}
	}
	c.fail(v.pos, key, "it is no time", `write a date such as "2030-01-31", or "2030-01-31T18:00:00Z"`)
	return time.Time{}
}

func (c *checker) action(v value, key string, a *engine.Action) bool {
	if v.kind != text {
		c.fail(v.pos, key, "the action is "+v.kind.String(), "write allow, ask or deny")
		return false
	}
	got, err := engine.ParseAction(v.text)
	if err != nil {
		remedy := "write allow, ask or deny"
		if near, ok := Nearest(v.text, []string{"allow", "ask", "deny"}); ok {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		c.fail(v.pos, key, err.Error(), remedy)
		return false
	}
	*a = got
	return true
}

func (c *checker) boolean(m member) *bool {
	if m.val.kind != boolean {
		c.fail(m.val.pos, m.key, "it is "+m.val.kind.String(), "write true or false")
		return nil
	}
	return &m.val.yes
}

func (c *checker) positive(v value, key string) int {
	n, err := strconv.ParseFloat(v.text, 64)
	if v.kind != number || err != nil || n < 1 || n != math.Trunc(n) || n > math.MaxInt32 {
		c.fail(v.pos, key, "it is no positive whole number", "write a number such as 1000")
		return 0
	}
	return int(n)
}

func (c *checker) strings(v value, key string) ([]string, bool) {
	if v.kind != list {
		c.fail(v.pos, key, "it is "+v.kind.String(), "write a list of strings")
		return nil, false
	}
	out := make([]string, 0, len(v.list))
	for _, e := range v.list {
		if e.kind != text || e.text == "" {
			c.fail(e.pos, key, "an entry is no text", "write strings that are not empty")
			continue
		}
		out = append(out, e.text)
	}
	return out, true
}

func (c *checker) shellTools(m member) map[string]ShellTool {
	if m.val.kind != object {
		c.fail(m.val.pos, m.key, "it is "+m.val.kind.String(), `write {"tool": {"commandArgument": "command"}}`)
		return nil
	}
	out := make(map[string]ShellTool, len(m.val.keys))
	for _, tool := range m.val.keys {
		key := m.key + "." + tool.key
		if tool.key == "" || tool.val.kind != object {
			c.fail(tool.val.pos, key, "a shell tool needs a name and an object", `write {"commandArgument": "command"}`)
			continue
		}
		var t ShellTool
		for _, f := range tool.val.keys {
			switch f.key {
			case "commandArgument":
				t.CommandArgument = c.word(f.val, key+"."+f.key)
			case "workdirArgument":
				t.WorkdirArgument = c.word(f.val, key+"."+f.key)
			default:
				c.unknown(f, key, []string{"commandArgument", "workdirArgument"})
			}
		}
		if t.CommandArgument == "" {
			c.fail(tool.pos, key, "commandArgument is missing", "name the argument that holds the command")
		}
		out[tool.key] = t
	}
	return out
}

func (c *checker) links(m member) map[string]Link {
	if m.val.kind != object {
		c.fail(m.val.pos, m.key, "it is "+m.val.kind.String(), `write {"judge": {"command": ["/path/to/program"]}}`)
		return nil
	}
	out := make(map[string]Link, len(m.val.keys))
	for _, link := range m.val.keys {
		key := m.key + "." + link.key
		if link.key == "" || link.val.kind != object {
			c.fail(link.val.pos, key, "a link needs a name and an object", `write {"command": ["/path/to/program"]}`)
			continue
		}
		var l Link
		for _, f := range link.val.keys {
			switch f.key {
			case "command":
				l.Command, _ = c.strings(f.val, key+"."+f.key)
			case "timeoutMs":
				l.TimeoutMs = c.positive(f.val, key+"."+f.key)
			default:
				c.unknown(f, key, []string{"command", "timeoutMs"})
			}
		}
		if len(l.Command) == 0 {
			c.fail(link.pos, key, "command is missing", "name the program and its arguments")
		}
		out[link.key] = l
	}
	return out
}

func (c *checker) word(v value, key string) string {
	if v.kind != text || v.text == "" {
		c.fail(v.pos, key, "it is no text", "write a string that is not empty")
		return ""
	}
	return v.text
}
