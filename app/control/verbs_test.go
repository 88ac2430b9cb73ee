//go:build unix

package control_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/control"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/engine"
)

// verbs are the constants of type Verb in the source, so that none can be
// added without being met here.
func verbs(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "control.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Verb" {
				continue
			}
			for _, value := range v.Values {
				word, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, word)
			}
		}
	}
	return list
}

// TestNoVerbApproves sends every verb that there is, with everything that an
// answer could need beside it, while an ask waits: the ask goes on waiting, no
// grant is added, and a pause is not ended.
func TestNoVerbApproves(t *testing.T) {
	all := verbs(t)
	if len(all) < 6 || !slices.Contains(all, string(control.VerbRevoke)) {
		t.Fatalf("found the verbs %q", all)
	}
	p, dir := place(t), t.TempDir()
	n := &node{board: board.New(time.Now), paused: true, grants: []pipe.Grant{{ID: "1", Surface: "bash", Pattern: "ls *"}}}
	a, done := n.board.Add(board.Ask{Hash: "h", Question: &engine.Question{Value: "rm -rf /", Suggestion: []engine.Grant{{Surface: "bash", Pattern: "*"}}}})
	serve(t, p, control.Service{Node: n, Show: func() error { return nil }}, dir)
	conn, err := net.Dial("unix", socketOf(t, p))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for _, verb := range all {
		fmt.Fprintf(conn, `{"verb":%q,"ids":["1",%q],"key":%q,"hash":"h","verdict":"approved","state":"approved","approved":true,"on":false,"paused":false,`+
			`"grants":[{"id":"2","surface":"bash","pattern":"*"}],"decision":{"verdict":"approved"}}`+"\n", verb, a.Key, a.Key)
		if !lines.Scan() {
			t.Fatalf("%s ended the connection: %v", verb, lines.Err())
		}
		var r control.Response
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Errorf("%s was answered %s", verb, lines.Text())
		}
		if n.board.Get(a.Key) == nil || len(done) > 0 {
			t.Errorf("%s ended the ask", verb)
		}
		if !n.Paused() {
			t.Errorf("%s ended the pause", verb)
		}
		if len(n.Grants()) > 1 {
			t.Errorf("%s added a grant", verb)
		}
	}
}
