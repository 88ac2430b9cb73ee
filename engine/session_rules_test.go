package engine

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newSession(t *testing.T) (*SessionRules, *clock) {
	t.Helper()
	c := &clock{t: time.Unix(1000, 0)}
	return NewSessionRules(c.now, Options{Home: "/home/u", Cwd: "/p"}), c
}

func mustRecord(t *testing.T, s *SessionRules, scope Scope, surface, pattern, asked string) *SessionGrant {
	t.Helper()
	g, err := s.Record(NewGrant{Grant: Grant{surface, pattern}, Scope: scope, Asked: Asked{surface, []string{asked}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGrantCovers(t *testing.T) {
	whole := Scope{SessionID: "s"}
	child := Scope{SessionID: "s", Requester: "c"}
	tests := []struct {
		name           string
		grant          Grant
		asked          string
		scope, ask     Scope
		surface, value string
		want           bool
	}{
		{"its own value", Grant{"bash", "ls"}, "ls", whole, child, "bash", "ls", true},
		{"an exact grant covers no arguments", Grant{"bash", "ls"}, "ls", whole, child, "bash", "ls -l", false},
		{"another surface", Grant{"mcp", "git *"}, "git x", whole, child, "bash", "git x", false},
		{"a read grant is no write grant", Grant{"read", "/p/src/*"}, "/p/src/a", whole, child, "write", "/p/src/a", false},
		{"the child's own grant", Grant{"bash", "ls"}, "ls", child, child, "bash", "ls", true},
		{"another child", Grant{"bash", "ls"}, "ls", child, Scope{SessionID: "s", Requester: "d"}, "bash", "ls", false},
		{"another session", Grant{"bash", "ls"}, "ls", whole, Scope{SessionID: "t", Requester: "c"}, "bash", "ls", false},
		{"a bare grant covers reading", Grant{"external_directory", "/o/*"}, "/o/x", whole, child, "external_directory_read", "/o/x", true},
		{"a bare grant covers writing", Grant{"external_directory", "/o/*"}, "/o/x", whole, child, "external_directory_write", "/o/x", true},
		{"a directed grant covers its direction", Grant{"external_directory_read", "/o/*"}, "/o/x", whole, child, "external_directory_write", "/o/x", false},
		{"a sibling that shares the prefix", Grant{"external_directory", "/o/*"}, "/o/x", whole, child, "external_directory_read", "/o2/x", false},
		{"home", Grant{"path", "~/x/*"}, "/home/u/x/a", whole, child, "path_read", "/home/u/x/b", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newSession(t)
			mustRecord(t, s, tt.scope, tt.grant.Surface, tt.grant.Pattern, tt.asked)
			if got := s.View(tt.ask).Find(tt.surface, []string{tt.value}) != nil; got != tt.want {
				t.Errorf("covered: %v", got)
			}
		})
	}
}

func TestGrantMeetsRules(t *testing.T) {
	s, _ := newSession(t)
	scope := Scope{SessionID: "s"}
	mustRecord(t, s, scope, "bash", "git *", "git x")
	mustRecord(t, s, scope, "external_directory_read", "/o/*", "/o/x")
	rules := Compile([]Layer{layer(OriginGlobal,
		section("bash", "*", "ask", "git push *", "deny", "* | sh", "ask"),
		section("external_directory", "ask"),
	)}, Options{})
	resolve := func(q Query) Match {
		q.Grants = s.View(scope)
		return rules.Resolve(&q)
	}
	if m := resolve(Query{Surface: "bash", Values: []string{"git status"}}); m.Action != Allow || m.Origin != OriginSession || m.Grant == nil || m.Pattern != "*" {
		t.Errorf("a grant answers an ask: %+v", m)
	}
	if m := resolve(Query{Surface: "bash", Values: []string{"git push"}}); m.Action != Deny {
		t.Errorf("a grant never beats a deny: %+v", m)
	}
	if m := resolve(Query{Surface: "bash", Values: []string{"git -C d push"}, Strict: []string{"git push"}}); m.Action != Deny {
		t.Errorf("nor a deny of another spelling: %+v", m)
	}
	if m := resolve(Query{Surface: "bash", Values: []string{"git log"}, Whole: []string{"git log | sh"}}); m.Action != Ask {
		t.Errorf("a grant for one unit does not answer for the line: %+v", m)
	}
	if m := resolve(Query{Surface: "external_directory_read", Values: []string{"/o/l", "/p/s"}, Granted: []string{"/p/s"}}); m.Action != Ask {
		t.Errorf("a grant is for a place, not for a link to another: %+v", m)
	}
	if m := resolve(Query{Surface: "external_directory", Values: []string{"/o/x"}}); m.Action != Ask || m.Surface != "external_directory_write" {
		t.Errorf("a read grant leaves the writing: %+v", m)
	}
	mustRecord(t, s, scope, "external_directory_write", "/o/*", "/o/x")
	if m := resolve(Query{Surface: "external_directory", Values: []string{"/o/x"}}); m.Action != Allow {
		t.Errorf("a read and a write grant cover both: %+v", m)
	}
}

func TestRecordRefuses(t *testing.T) {
	s, c := newSession(t)
	scope := Scope{SessionID: "s"}
	ask := Asked{"bash", []string{"npm test"}}
	for name, n := range map[string]NewGrant{
		"another command":    {Grant: Grant{"bash", "rm *"}, Scope: scope, Asked: ask},
		"another surface":    {Grant: Grant{"mcp", "*"}, Scope: scope, Asked: ask},
		"a bare path":        {Grant: Grant{"external_directory", "/a/*"}, Scope: scope, Asked: Asked{"external_directory", []string{"/b/x"}}},
		"no ask":             {Grant: Grant{"bash", "*"}, Scope: scope},
		"an empty pattern":   {Grant: Grant{"bash", ""}, Scope: scope, Asked: ask},
		"an empty surface":   {Grant: Grant{"", "npm *"}, Scope: scope, Asked: ask},
		"no session":         {Grant: Grant{"bash", "npm *"}, Asked: ask},
		"a time in the past": {Grant: Grant{"bash", "npm *"}, Scope: scope, Asked: ask, Until: c.now()},
	} {
		if _, err := s.Record(n); err == nil {
			t.Errorf("%s: recorded", name)
		}
	}
	if _, err := s.Record(NewGrant{Grant: Grant{"bash", "rm *"}, Scope: scope, Asked: ask}); !errors.Is(err, ErrForeignGrant) {
		t.Errorf("got %v", err)
	}
	if n := len(s.List()); n != 0 {
		t.Errorf("%d grants in force", n)
	}
	if _, err := s.Record(NewGrant{Grant: Grant{"external_directory_read", "/a/*"}, Scope: scope, Asked: Asked{"external_directory", []string{"/a/x"}}}); err != nil {
		t.Errorf("a directed grant answers half of an ask in both directions: %v", err)
	}
}

func TestLifetime(t *testing.T) {
	s, c := newSession(t)
	n := NewGrant{Grant: Grant{"bash", "ls"}, Scope: Scope{SessionID: "s"}, Asked: Asked{"bash", []string{"ls"}}, Until: c.now().Add(time.Minute)}
	g, err := s.Record(n)
	if err != nil {
		t.Fatal(err)
	}
	v := s.View(n.Scope)
	c.pass(59 * time.Second)
	if v.Find("bash", []string{"ls"}) == nil {
		t.Error("ended early")
	}
	if !s.Next().Equal(n.Until) {
		t.Errorf("next end %v", s.Next())
	}
	n.Until = c.now().Add(time.Hour)
	again, err := s.Record(n)
	if err != nil || again.ID != g.ID || !again.Since.Equal(g.Since) {
		t.Errorf("granting anew: %+v, %v", again, err)
	}
	c.pass(59 * time.Minute)
	if len(s.List()) != 1 {
		t.Error("the longer lifetime does not count")
	}
	c.pass(time.Minute)
	if v.Find("bash", []string{"ls"}) != nil || len(s.List()) != 0 || !s.Next().IsZero() {
		t.Error("outlived its lifetime")
	}
}

func TestUseRevokeClear(t *testing.T) {
	s, c := newSession(t)
	a := mustRecord(t, s, Scope{SessionID: "s"}, "bash", "ls", "ls")
	b := mustRecord(t, s, Scope{SessionID: "t"}, "bash", "ls", "ls")
	d := mustRecord(t, s, Scope{SessionID: "s"}, "bash", "pwd", "pwd")
	if a.ID == b.ID || b.ID == d.ID {
		t.Error("ids are not unique")
	}
	if !a.LastUse().IsZero() {
		t.Error("used before its first use")
	}
	c.pass(time.Second)
	s.Used(a, nil)
	s.Used(a)
	if a.Hits() != 2 || !a.LastUse().Equal(c.now()) || b.Hits() != 0 {
		t.Errorf("hits %d, last use %v", a.Hits(), a.LastUse())
	}
	if gone := s.Revoke(a.ID, "g99"); len(gone) != 1 || gone[0] != a {
		t.Errorf("revoked %v", gone)
	}
	if s.View(Scope{SessionID: "s"}).Find("bash", []string{"ls"}) != nil {
		t.Error("a revoked grant counts")
	}
	if again := mustRecord(t, s, Scope{SessionID: "s"}, "bash", "ls", "ls"); again.ID == a.ID || again.Hits() != 0 {
		t.Error("a revoked grant came back with its past")
	}
	if gone := s.EndSession("t"); len(gone) != 1 || gone[0] != b {
		t.Errorf("ended %v", gone)
	}
	if gone := s.Clear(); len(gone) != 2 || len(s.List()) != 0 {
		t.Errorf("cleared %v", gone)
	}
}

func TestExact(t *testing.T) {
	s, _ := newSession(t)
	scope := Scope{SessionID: "s"}
	mustRecord(t, s, scope, "bash", "sudo *", "sudo ls")
	v := s.View(scope)
	if v.FindExact("bash", []string{"sudo ls"}) != nil {
		t.Error("a wide grant is no exact one")
	}
	mustRecord(t, s, scope, "bash", "sudo ls", "sudo ls")
	if g := v.FindExact("bash", []string{"sudo ls"}); g == nil || g.Pattern != "sudo ls" {
		t.Errorf("got %+v", g)
	}
	var none *GrantView
	if none.Find("bash", []string{"ls"}) != nil {
		t.Error("no view, no grant")
	}
}

func TestConcurrentUse(t *testing.T) {
	s, _ := newSession(t)
	rules := Compile([]Layer{layer(OriginGlobal, section("bash", "*", "ask", "rm *", "deny"))}, Options{})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			scope := Scope{SessionID: "s", Requester: fmt.Sprint(w)}
			v := s.View(scope)
			for i := range 200 {
				cmd := fmt.Sprintf("cmd %d", i)
				g, err := s.Record(NewGrant{Grant: Grant{"bash", cmd}, Scope: scope, Asked: Asked{"bash", []string{cmd}}})
				if err != nil {
					t.Error(err)
					return
				}
				if m := rules.Resolve(&Query{Surface: "bash", Values: []string{cmd}, Grants: v}); m.Action != Allow {
					t.Errorf("own grant does not count: %+v", m)
					return
				}
				if m := rules.Resolve(&Query{Surface: "bash", Values: []string{"rm " + cmd}, Grants: v}); m.Action != Deny {
					t.Errorf("deny lost: %+v", m)
					return
				}
				s.Used(g)
				if i%3 == 0 {
					s.Revoke(g.ID)
				}
				s.List()
			}
		})
	}
	all.Wait()
}
