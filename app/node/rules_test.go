package node

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
)

// hasty is a disk on which something happens right after a file was read.
type hasty struct {
	policy.Files
	once sync.Once
	then func()
}

func (h *hasty) Read(name string) ([]byte, error) {
	data, err := h.Files.Read(name)
	h.once.Do(h.then)
	return data, err
}

// TestAPolicyWrittenWhileItIsRead: what was read before does not count as what
// is there now.
func TestAPolicyWrittenWhileItIsRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.jsonc")
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"permission": {"*": "ask", "bash": {"make *": "allow"}}}`)
	files := &hasty{Files: policyfile.Disk{}, then: func() { write(`{"permission": {"*": "ask", "bash": {"make *": "deny"}}}`) }}
	n := New(Config{ConfigDir: dir, Home: dir, Files: files, Now: time.Now})
	j := judge{n, Inbox{AgentDir: filepath.Join(dir, "agent"), SessionID: "desk"}}
	who := engine.Principal{SessionID: "child", AgentName: "scout"}
	q := &engine.Question{Principal: who, Tool: "bash", Surface: "bash", Kind: "bash", Value: "make a",
		Intent: &engine.Intent{Surface: "bash", MatchValues: []string{"make a"}, RequesterCwd: dir, Principal: who}}
	j.Judge(q) // at the latest this one may still go by what was there
	if d, ok := j.Judge(q).Decision(); !ok || d.Verdict.Approves() {
		t.Errorf("decided %t: %+v", ok, d)
	}
}
