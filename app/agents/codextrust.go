package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

func (Codex) untrusted() string {
	return "Codex skips hooks that were not trusted, and says nothing: trust them with /hooks in Codex, or run: nod hook install codex --trust"
}

// doubts says that nothing in Codex's configuration speaks of trust in the hooks
// of file. Whether the trust is still good only Codex can tell.
func (a Codex) doubts(file string) string {
	config, _, err := read(filepath.Join(filepath.Dir(file), "config.toml"))
	if err != nil {
		return ""
	}
	for _, name := range []string{file, real(file)} {
		if bytes.Contains(config, []byte(name+":pre_tool_use:")) {
			return ""
		}
	}
	return a.untrusted()
}

func real(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

// trust tells Codex that its user trusts the hooks in file, by the protocol of
// its app-server: hooks/list gives each hook's hash, config/batchWrite records
// it. Codex itself writes its configuration.
func (a Codex) trust(ctx context.Context, env Env, file string) error {
	program, err := exec.LookPath("codex")
	if err != nil {
		return fmt.Errorf("codex is not on the PATH: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	s, err := startCodex(ctx, program, env)
	if err != nil {
		return err
	}
	defer s.stop()
	hooks, err := s.hooks(env.Cwd, file)
	if err != nil {
		return err
	}
	if len(hooks) == 0 {
		return fmt.Errorf("codex does not see the hooks in %s", file)
	}
	type edit struct {
		Path  string `json:"keyPath"`
		Value string `json:"value"`
		How   string `json:"mergeStrategy"`
	}
	var edits []edit
	for _, h := range hooks {
		if h.Trust != "trusted" {
			key, _ := json.Marshal(h.Key) // a string always can be
			edits = append(edits, edit{"hooks.state." + string(key) + ".trusted_hash", h.Hash, "upsert"})
		}
	}
	if len(edits) == 0 {
		return nil
	}
	if err := s.call("config/batchWrite", map[string]any{"edits": edits, "reloadUserConfig": true}, nil); err != nil {
		return err
	}
	if hooks, err = s.hooks(env.Cwd, file); err != nil {
		return err
	}
	for _, h := range hooks {
		if h.Trust != "trusted" {
			return fmt.Errorf("codex still calls the %s hook %s", h.Event, h.Trust)
		}
	}
	return nil
}

// codexServer is a running `codex app-server`: JSON-RPC, one message a line.
type codexServer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

type codexHook struct {
	Key     string `json:"key"`
	Event   string `json:"eventName"`
	Command string `json:"command"`
	Source  string `json:"sourcePath"`
	Hash    string `json:"currentHash"`
	Trust   string `json:"trustStatus"`
}

func startCodex(ctx context.Context, program string, env Env) (*codexServer, error) {
	cmd := exec.CommandContext(ctx, program, "app-server")
	cmd.Env, cmd.Dir = env.Environ, env.Cwd
	cmd.WaitDelay = 2 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting codex: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting codex: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting codex: %w", err)
	}
	s := &codexServer{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	err = s.call("initialize", map[string]any{
		"clientInfo":   map[string]any{"name": "nod", "title": "Nod", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true},
	}, nil)
	if err == nil {
		err = s.send(map[string]any{"method": "initialized"})
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *codexServer) stop() {
	_ = s.in.Close() // it ends when its input does
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.cmd.Wait()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		_ = s.cmd.Process.Kill()
		<-done
	}
}

func (s *codexServer) send(message any) error {
	data, err := marshal(message)
	if err != nil {
		return fmt.Errorf("asking codex: %w", err)
	}
	if _, err := s.in.Write(data); err != nil {
		return fmt.Errorf("asking codex: %w", err)
	}
	return nil
}

// call waits for the answer to one request; what else codex says is passed over.
func (s *codexServer) call(method string, params, result any) error {
	s.id++
	if err := s.send(map[string]any{"id": s.id, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("codex ended before it answered %s: %w", method, err)
		}
		var m struct {
			ID     *int            `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil || *m.ID != s.id || m.Method != "" {
			continue
		}
		switch {
		case m.Error != nil:
			return fmt.Errorf("codex refuses %s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("reading codex's answer to %s: %w", method, err)
		}
		return nil
	}
}

// hooks are Nod's hooks as codex sees them.
func (s *codexServer) hooks(cwd, file string) ([]codexHook, error) {
	var list struct {
		Data []struct {
			Hooks []codexHook `json:"hooks"`
		} `json:"data"`
	}
	if err := s.call("hooks/list", map[string]any{"cwds": []string{cwd}}, &list); err != nil {
		return nil, err
	}
	if len(list.Data) == 0 {
		return nil, errors.New("codex lists no hooks")
	}
	var mine []codexHook
	for _, d := range list.Data {
		for _, h := range d.Hooks {
			if sameFile(h.Source, file) && ours("codex")(h.Command) {
				mine = append(mine, h)
			}
		}
	}
	return mine, nil
}

func sameFile(a, b string) bool { return a == b || real(a) == real(b) }
