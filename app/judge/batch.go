package judge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/trust"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/engine/shell"
)

// batchCase is one line of `nod check --batch`.
type batchCase struct {
	ID         json.RawMessage `json:"id"`
	AgentDir   string          `json:"agentDir"`
	Home       string          `json:"home"`
	Cwd        string          `json:"cwd"`
	Agent      *string         `json:"agent"`
	Trusted    *bool           `json:"trusted"`
	Session    []engine.Grant  `json:"session"`
	Skills     []skill         `json:"skills"`
	MCPServers []string        `json:"mcpServers"`
	Platform   string          `json:"platform"`
	ProjectDir string          `json:"projectDir"`
	Policy     json.RawMessage `json:"policy"`
	Tool       string          `json:"tool"`
	Input      json.RawMessage `json:"input"`
}

type skill struct {
	Name     string `json:"name"`
	Location string `json:"location"`
}

// answer is one line that `nod check --batch` and `--json` print. Fields that
// do not apply are null.
type answer struct {
	ID         json.RawMessage `json:"id"`
	Decision   string          `json:"decision"`
	Surface    *string         `json:"surface"`
	Pattern    *string         `json:"pattern"`
	Value      *string         `json:"value"`
	Origin     *string         `json:"origin"`
	Reason     *string         `json:"reason"`
	Context    *string         `json:"context"`
	Executes   *string         `json:"executes"`
	Suggestion *suggestion     `json:"suggestion"`
	Asks       []ask           `json:"asks"`
}

type suggestion struct {
	Grants []engine.Grant `json:"grants"`
}

type ask struct {
	Surface  string  `json:"surface"`
	Value    string  `json:"value"`
	Pattern  *string `json:"pattern"`
	Decision string  `json:"decision"`
}

// noCase is the answer to a line that is no case.
type noCase struct {
	ID    json.RawMessage `json:"id"`
	Error string          `json:"error"`
}

// Batch answers the cases on stdin, one line each and in order.
func (env Env) Batch() error {
	in := bufio.NewReaderSize(env.Stdin, 1<<16)
	out := bufio.NewWriterSize(env.Stdout, 1<<16)
	defer out.Flush()
	b := batcher{env: env, loader: policy.NewLoader(policyfile.Disk{}, false)}
	bad := false
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if !b.answer(out, line) {
				bad = true
			}
			if in.Buffered() == 0 {
				// Whoever feeds cases one by one waits for the answer.
				if err := out.Flush(); err != nil {
					return fmt.Errorf("writing answers: %w", err)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading cases: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing answers: %w", err)
	}
	if bad {
		return &exit.Error{Code: exit.Misused}
	}
	return nil
}

// batcher keeps policies from one case to the next.
type batcher struct {
	env    Env
	loader *policy.Loader
	reader shell.Reader
}

func (b *batcher) answer(out io.Writer, line []byte) (ok bool) {
	var c batchCase
	err := json.Unmarshal(line, &c)
	if err != nil {
		var id struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(line, &id) // the id, if even that can be read
		c.ID = id.ID
	} else {
		var v verdict
		if v, err = b.judge(&c); err == nil {
			a := v.answer()
			a.ID = c.ID
			return WriteJSON(out, a) == nil
		}
	}
	_ = WriteJSON(out, noCase{ID: c.ID, Error: err.Error()})
	return false
}

func (b *batcher) judge(c *batchCase) (verdict, error) {
	switch {
	case c.Tool == "":
		return verdict{}, errors.New("the case names no tool")
	case c.Cwd == "":
		return verdict{}, errors.New("the case has no cwd")
	case c.Platform != "" && c.Platform != "win32" && c.Platform != "linux" && c.Platform != "darwin":
		return verdict{}, fmt.Errorf("unknown platform %q; known are win32, linux and darwin", c.Platform)
	}
	k := &call{Reader: &b.reader, Tool: c.Tool, Input: parsed(c.Input), Cwd: c.Cwd, Home: c.Home, AgentDir: c.AgentDir, Servers: c.MCPServers, Grants: c.Session}
	if k.Home == "" {
		k.Home = b.env.Home
	}
	if k.AgentDir == "" {
		k.AgentDir = b.env.Dirs.Agent
	}
	if c.Platform == "win32" || c.Platform == "" && b.env.GOOS == "windows" {
		k.Flavour = pattern.Windows
	} else if !filepath.IsAbs(c.Cwd) {
		return verdict{}, fmt.Errorf("cwd %q is not absolute", c.Cwd)
	}
	k.Skills = c.Skills
	k.Foreign = (k.Flavour == pattern.Windows) != (b.env.GOOS == "windows")
	p := policy.Places{AgentDir: k.AgentDir, ConfigDir: b.env.Dirs.Config, Project: c.Cwd, Home: k.Home}
	if c.ProjectDir != "" {
		p.Project = c.ProjectDir
	}
	if c.Agent != nil {
		p.Agent = *c.Agent
	}
	if len(c.Policy) > 0 && string(c.Policy) != "null" {
		p.Inline = c.Policy
	}
	if c.Trusted != nil {
		p.Trusted = *c.Trusted
	} else {
		p.Trusted, _ = trust.Open(b.env.Dirs.State).Trusted(p.Project) // unreadable: not trusted
	}
	k.Policy, k.Rules = b.loader.Rules(p, engine.Options{Home: k.Home, Cwd: k.Cwd, Flavour: k.Flavour, Now: b.env.Now()})
	if b.env.Guard != nil && !k.Foreign {
		k.Guard = b.env.Guard(k.Home, k.AgentDir, p.Project)
	}
	return decide(k), nil
}
