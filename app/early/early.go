// Package early answers the plain forms of nod check and nod hook before the
// rest of the program has started.
//
// An agent waits for its hook before each tool call, and every package that is
// linked sets itself up before main: the command tree, the network, D-Bus and in
// the desktop build a whole window toolkit, none of which a decision needs. The
// language says in which order (the Go specification, "Program initialization"):
// the packages are sorted by import path, and again and again the first one in
// that list is initialized whose imports all are. So this package's init
// function runs as soon as what it imports is ready, and in particular before
// every package that stands behind it in the alphabet, or waits for one that
// does, such as net. It judges the call by the very functions that the commands
// use, and ends the process. A test of app/house keeps heavy packages out of
// what it imports.
//
// Only the plain forms are taken: those that install writes, and a tool with its
// value. All else (help, other flags, anything that cobra might take otherwise)
// is left to the commands, untouched. Only the program itself imports this
// package, so nothing happens in tests and in what else links Nod's packages.
package early

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/agents"
	_ "github.com/nod-agents/nod/app/early/stack" // before all else
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/ground"
	"github.com/nod-agents/nod/app/judge"
)

func init() {
	if len(os.Args) < 3 || os.Args[1] != "check" && os.Args[1] != "hook" {
		return
	}
	code, done := answer(ground.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
	}, &left)
	if done {
		os.Exit(code)
	}
}

// Rest is what a hook that was told of an end has left to be done, since that
// needs the network: to take back what was granted in AgentDir to Requester.
type Rest struct {
	AgentDir, Requester string
}

var left *Rest

// Left is what is left to be done; nil: nothing is, the command is to be run.
func Left() *Rest { return left }

// answer runs p's command if it has a plain form, and reports whether it did. If
// there is something left to be done after that, it is not done yet.
func answer(p ground.Process, left **Rest) (code int, done bool) {
	home := p.Getenv("HOME")
	if home == "" {
		return 0, false // only the user database knows
	}
	switch p.Args[0] {
	case "check":
		c, args := plainCheck(p.Args[1:])
		if c == nil {
			return 0, false
		}
		return p.Guarded(func() int { return exit.Report(p.Stderr, c.Run(ground.New(p, home).Judge(), args)) }), true
	case "hook":
		h := plainHook(p.Args[1:])
		if h == nil {
			return 0, false
		}
		code = p.Guarded(func() int {
			env := ground.New(p, home).Agents(func(_ context.Context, agentDir, requester string) {
				*left = &Rest{agentDir, requester}
			})
			return exit.Report(p.Stderr, env.Run(context.Background(), h.agent, h.event, h.flags))
		})
		return code, *left == nil || code != exit.Done
	}
	return 0, false
}

// plain reports whether a word can mean nothing but itself to any reader of
// command lines.
func plain(word string) bool { return word != "" && word[0] != '-' }

// plainCheck reads [--json] TOOL VALUE; nil: it is none.
func plainCheck(words []string) (c *judge.Check, args []string) {
	c = &judge.Check{}
	if words[0] == "--json" {
		c.JSON, words = true, words[1:]
	}
	if len(words) != 2 || !plain(words[0]) || !plain(words[1]) {
		return nil, nil
	}
	return c, words
}

// hook is the command line of a hook.
type hook struct {
	agent agents.Adapter
	event string
	flags agents.Flags
}

// plainHook reads AGENT [EVENT] and the flags that install writes; nil: it is
// none.
func plainHook(words []string) *hook {
	a, known := agents.Find(words[0])
	if !known {
		return nil
	}
	h := &hook{agent: a}
	words = words[1:]
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		if h.event, words = words[0], words[1:]; !plain(h.event) {
			return nil
		}
	}
	for ; len(words) > 0; words = words[2:] {
		if len(words) == 1 || !plain(words[1]) {
			return nil
		}
		value := words[1]
		switch words[0] {
		case "--mode":
			h.flags.Mode = value
		case "--unserved":
			h.flags.Unserved = value
		case "--host-timeout":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil
			}
			h.flags.Timeout = d
		default:
			return nil
		}
	}
	if h.flags.Check() != nil {
		return nil
	}
	return h
}
