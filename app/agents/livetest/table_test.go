//go:build linux

package livetest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/agents.md anew")

// need skips a test of real agents where they were not asked for.
func need(t *testing.T) {
	t.Helper()
	if os.Getenv("NOD_E2E") != "1" && !everything() {
		t.Skip("drives real agents: runs with NOD_E2E=1, and with all of them where NOD_AGENTS=1 as well")
	}
}

// everything says that the slow agents are driven too.
func everything() bool { return os.Getenv("NOD_AGENTS") != "" }

// notes are what was seen, by row and agent.
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
	nothing    = "–" // what there is to see of an agent that does not know such a thing
)

// rows are the rows of the table: the scenarios, and what other tests note.
func rows() []string {
	var all []string
	for _, s := range scenarios {
		all = append(all, s.name)
	}
	return append(all, "what the model reads", "subagents", "subagents within its process", "subagents it doesn't serve", "advise", "own rules", "hook not trusted", "never called", "the hook")
}

// cells are the table, by row and column. The first row are the titles.
type cells map[string][]string

// readCells reads the table of a page.
func readCells(text string) cells {
	all := cells{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "| ---") || !strings.HasPrefix(line, "|") {
			continue
		}
		parts := strings.Split(strings.Trim(line, "|"), " | ")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		all[parts[0]] = parts[1:]
	}
	return all
}

// column is where an agent is, -1 if it is not there.
func (all cells) column(c *client) int {
	return slices.IndexFunc(all[""], func(title string) bool { return strings.HasPrefix(title, c.title+" ") })
}

// table is the page's table as it must be: what this run has seen, and of the
// agents that it has not driven, or not wholly, what the page says already.
func table(old cells, driven []*client) string {
	notes.Lock()
	defer notes.Unlock()
	var b strings.Builder
	b.WriteString("| |")
	for i := range clients {
		fmt.Fprintf(&b, " %s %s |", clients[i].title, clients[i].version)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(clients)) + "\n")
	for _, row := range rows() {
		fmt.Fprintf(&b, "| %s |", row)
		for i := range clients {
			c := &clients[i]
			what := notes.m[row][c.name]
			if at := old.column(c); what == "" && !slices.Contains(driven, c) && at >= 0 && at < len(old[row]) {
				what = old[row][at]
			}
			if what == "" {
				what = nothing
			}
			fmt.Fprintf(&b, " %s |", what)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// page is docs/agents.md: what is before, in and behind the table.
func page(t *testing.T) (path, head, old, tail string) {
	t.Helper()
	path = filepath.Join("..", "..", "..", "docs", "agents.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(data, []byte(tableStart))
	middle, after, ok2 := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	return path, string(before), string(middle), string(after)
}

// TestZTable holds docs/agents.md against what this run has seen. It comes last
// by its file's place in the order, after the tests whose notes it reads; of a
// run of some tests only it tells nothing.
func TestZTable(t *testing.T) {
	need(t)
	driven := chosen()
	if f := flag.Lookup("test.run"); f != nil && f.Value.String() != "" {
		if !*update {
			t.Skip("not all tests are run")
		}
		driven = nil // what was not seen this time stays
	}
	path, head, old, tail := page(t)
	want := table(readCells(old), driven)
	if old == want {
		return
	}
	if !*update {
		t.Fatalf("%s says\n%s\nseen was\n%s", path, old, want)
	}
	if err := os.WriteFile(path, []byte(head+tableStart+want+tableEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestVersions holds that the page, the tests and what is installed mean the
// same versions of the agents. It runs everywhere.
func TestVersions(t *testing.T) {
	_, _, old, _ := page(t)
	script, err := os.ReadFile(filepath.Join("..", "..", "..", ".ci", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	titles := readCells(old)[""]
	if len(titles) != len(clients) {
		t.Fatalf("the table has columns %q", titles)
	}
	for i := range clients {
		c := &clients[i]
		if titles[i] != c.title+" "+c.version {
			t.Errorf("the column of %s %s is called %q", c.title, c.version, titles[i])
		}
		if !strings.Contains(string(script), "@"+c.version+" ") {
			t.Errorf("%s %s is not what .ci/clients installs", c.title, c.version)
		}
	}
	for row, list := range readCells(old) {
		if row != "" && (!slices.Contains(rows(), row) || len(list) != len(clients)) {
			t.Errorf("the table has a row %q of %d cells", row, len(list))
		}
	}
}
