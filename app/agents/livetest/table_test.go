//go:build linux

package livetest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/agents.md anew")

// need skips a test of real agents where they were not asked for.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("NOD_AGENTS") == "" {
		t.Skip("NOD_AGENTS is not set: real agents are not driven")
	}
}

// notes are what was seen, by agent and row.
var notes = struct {
	sync.Mutex
	m map[string]map[string]string
}{m: map[string]map[string]string{}}

func note(c *client, row, what string) {
	notes.Lock()
	defer notes.Unlock()
	if notes.m[row] == nil {
		notes.m[row] = map[string]string{}
	}
	notes.m[row][c.name] = what
}

const (
	tableStart = "<!-- seen: begin (written by the tests of app/agents/livetest) -->\n"
	tableEnd   = "<!-- seen: end -->\n"
)

// table is what was seen, as docs/agents.md has it.
func table() string {
	notes.Lock()
	defer notes.Unlock()
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range clients {
		fmt.Fprintf(&b, " %s %s |", c.title, c.version)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(clients)) + "\n")
	rows := []string{}
	for _, s := range scenarios {
		rows = append(rows, s.name)
	}
	for _, row := range append(rows, "subagents", "advise", "own rules", "hook not trusted") {
		fmt.Fprintf(&b, "| %s |", row)
		for _, c := range clients {
			what := notes.m[row][c.name]
			if what == "" {
				what = "–"
			}
			fmt.Fprintf(&b, " %s |", what)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestZTable holds docs/agents.md against what this run has seen. It comes last
// by its name's place in the file order, and needs a run of all agents.
func TestZTable(t *testing.T) {
	need(t)
	if len(notes.m) == 0 {
		t.Skip("no agent was driven in this run")
	}
	path := filepath.Join("..", "..", "..", "docs", "agents.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(data, []byte(tableStart))
	old, tail, ok2 := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := table()
	if string(old) == want {
		return
	}
	if !*update {
		t.Fatalf("%s says\n%s\nseen was\n%s", path, old, want)
	}
	text := string(head) + tableStart + want + tableEnd + string(tail)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
