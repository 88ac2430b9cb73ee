// Package agents lets coding agents ask Nod. Each agent calls a hook before it
// runs a tool; the hook reads what the agent sends, decides by the engine's
// rules, asks the serving node where they ask, and answers in that agent's own
// words. There is one file per agent: what it sends, what it honours, and where
// its settings are.
//
// # How hooks fail
//
// Most agents fail open: a hook that is late, broken or killed did not stop the
// call. So everything that goes wrong in here ends in a denial with its reason,
// said in time: on stdin that can't be read, in a policy that can't be, when
// nobody answers. "Ask" is not portable either, so a hook holds until the human
// has answered, and then says allow or deny.
package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nod-agents/nod/engine"
)

// Call is what an agent is about to do, as its hook tells it.
type Call struct {
	Event string // in the agent's own words, such as PreToolUse
	Tool  string // as the agent names it

	// Asks says that the agent itself asks: its own rules did not decide, and
	// it would put a question to its user now.
	Asks bool

	// Inner says that the tool touches nothing but the agent's own notes, such
	// as its list of things to do. Only a rule that names it counts then.
	Inner bool

	// Waits says that the agent's own mode forbids the tool for now, as when it
	// may only plan: no rule of Nod's must allow it over that.
	Waits bool

	// Uses is what the call does in the engine's words: one use, or one per
	// file of a patch. All must be allowed.
	Uses []Use

	Cwd       string           // where the agent is
	Root      string           // the project's directory, if the agent says; empty: Cwd
	Principal engine.Principal // the subagent where there is one, else the session
	Origin    string           // who asks, for people: the agent, its session, its subagent
	Evidence  []engine.Evidence

	snake bool // copilot: the hook goes by Claude's names and takes its answers
}

// Project is the directory whose rules count, and below which a path is inside:
// the agent's own, or where it is if that is elsewhere.
func (c *Call) Project() string {
	if c.Root == "" || !filepath.IsAbs(c.Root) {
		return c.Cwd
	}
	if rel, err := filepath.Rel(c.Root, c.Cwd); err != nil || !filepath.IsLocal(rel) {
		return c.Cwd
	}
	return filepath.Clean(c.Root)
}

// Use is one use of a tool in the engine's words: bash, read, write, edit,
// grep, find, ls, mcp, skill, or the name of any other tool.
type Use struct {
	Tool  string
	Input map[string]any // path, command, pattern, server, tool, name
	Dir   string         // where it runs, if not in the call's Cwd
}

// Say is what a hook tells its agent.
type Say int8

// What there is to say. Silence is no opinion: the agent's own rules go on.
const (
	Silence Say = iota
	Allow
	Deny
)

// String is the word in the reports of tests and logs.
func (s Say) String() string {
	switch s {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	}
	return "silence"
}

// Outcome is the end of a call.
type Outcome struct {
	Say    Say
	Reason string // with Deny: what the model reads, word for word
	// Interrupt ends the agent's whole turn. Only a human's explicit choice may
	// set it; as long as no front end offers that choice, nothing does.
	Interrupt bool
	// Unavailable says that a Deny, or a Silence, is for want of an answer.
	Unavailable bool
}

// Reply is what the hook's process ends with.
type Reply struct {
	Stdout []byte
	Stderr string // one line, without its end
	Exit   int
}

// Adapter is one agent's side of the hook.
type Adapter interface {
	// Name is what the commands call the agent.
	Name() string
	// Title is its name for people.
	Title() string
	// Parse reads what the agent sent. The event is what the command line
	// named, if anything; what the data says counts before it. An error that
	// wraps ErrNoCall means that the agent tells of something that is no tool
	// call; any other that there is one which can't be judged.
	Parse(event string, data []byte, getenv func(string) string) (*Call, error)
	// Answer puts an outcome in the agent's words.
	Answer(c *Call, o Outcome) Reply
	// Timeout is how long the agent waits for its hook where nothing else is
	// configured.
	Timeout() time.Duration
}

// ErrNoCall means that an event carries no tool call, so that there is nothing
// to judge.
var ErrNoCall = errors.New("no tool call")

// All are the agents, in the order in which they are listed.
func All() []Adapter {
	return []Adapter{Claude{}, Codex{}, Gemini{}, Copilot{}, Opencode{}, Cursor{}, Crush{}, Amp{}, Generic{}}
}

// Find returns the agent of that name.
func Find(name string) (Adapter, bool) {
	for _, a := range All() {
		if a.Name() == name {
			return a, true
		}
	}
	return nil, false
}

// Names are the names of all agents.
func Names() []string {
	var names []string
	for _, a := range All() {
		names = append(names, a.Name())
	}
	return names
}

// blocked is how a hook that couldn't read its call ends. Every agent here
// takes exit code 2 as "don't", and all but Copilot show the line on stderr to
// the model.
func blocked(reason string) Reply { return Reply{Stderr: oneLine(reason), Exit: 2} }

// reply is v as JSON on stdout. Its text is written as it is: a model reads it.
func reply(v any) Reply {
	data, err := marshal(v)
	if err != nil {
		return blocked("nod: the answer could not be written: " + err.Error())
	}
	return Reply{Stdout: data}
}

// unreadable says why what the agent sent can't be judged.
func unreadable(agent string, err error) error {
	return fmt.Errorf("what %s sent can't be judged: %w", agent, err)
}

// object reads one JSON object. Where a key stands twice its last value
// counts, as with the agents' own readers.
func object(data []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		var syntax *json.SyntaxError
		switch {
		case len(trimSpace(data)) == 0:
			return nil, errors.New("it is empty")
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("it is not JSON: %w (at byte %d)", err, syntax.Offset)
		}
		return nil, errors.New("it is no JSON object")
	}
	if m == nil {
		return nil, errors.New("it is no JSON object")
	}
	return m, nil
}

// fields reads strings out of an object and remembers the first that is none.
type fields struct {
	m   map[string]json.RawMessage
	err error
}

// text returns the string of the first of keys that is there, or "". A null
// counts as not there.
func (f *fields) text(keys ...string) string {
	for _, k := range keys {
		raw, ok := f.m[k]
		if !ok || string(raw) == "null" {
			continue
		}
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			if f.err == nil {
				f.err = fmt.Errorf("%s must be a string", k)
			}
			return ""
		}
		return s
	}
	return ""
}

// only is text for an input that the model wrote: of keys that mean the same at
// different agents it may name one. Which of two the agent reads is not known
// here.
func (f *fields) only(keys ...string) string {
	there := ""
	for _, k := range keys {
		raw, ok := f.m[k]
		switch {
		case !ok || string(raw) == "null":
		case there != "" && string(raw) != string(f.m[there]):
			if f.err == nil {
				f.err = fmt.Errorf("it names both %s and %s", there, k)
			}
			return ""
		case there == "":
			there = k
		}
	}
	s := f.text(keys...)
	if strings.Contains(s, "\x00") && f.err == nil {
		f.err = fmt.Errorf("%s has a NUL character", there)
	}
	return s
}

// inner returns the object of the first of keys that is there.
func (f *fields) inner(keys ...string) map[string]json.RawMessage {
	for _, k := range keys {
		raw, ok := f.m[k]
		if !ok || string(raw) == "null" {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) == nil { // some agents send the input as text
			raw = json.RawMessage(s)
		}
		m, err := object(raw)
		if err != nil && f.err == nil {
			f.err = fmt.Errorf("%s: %w", k, err)
		}
		return m
	}
	return nil
}
