package engine

import (
	"fmt"
	"testing"
	"time"
)

// manyRules is a policy of n rules on bash, none of which matches `git push
// origin main` but the first few.
func manyRules(n int) []Layer {
	pairs := []string{"*", "ask", "git *", "allow", "git push *", "ask"}
	kinds := []string{"tool%d *", "run%d-*", "do%d", "/opt/bin/x%d *", "git sub%d *", "*.ext%d", "k%d ? *"}
	for i := 0; len(pairs) < 2*n; i++ {
		pairs = append(pairs, fmt.Sprintf(kinds[i%len(kinds)], i), []string{"allow", "deny", "ask"}[i%3])
	}
	return []Layer{layer(OriginGlobal, section("*", "ask"), section("bash", pairs...))}
}

func BenchmarkResolve(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			r := Compile(manyRules(n), Options{Home: "/home/u", Cwd: "/p"})
			q := &Query{Surface: "bash", Values: []string{"git push origin main"}}
			if m := r.Resolve(q); m.Pattern != "git push *" {
				b.Fatalf("got %+v", m)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Resolve(q)
			}
		})
	}
}

func BenchmarkResolveLayers(b *testing.B) {
	layers := manyRules(1000)
	for _, o := range []Origin{OriginProject, OriginAgent, OriginProjectAgent} {
		layers = append(layers, layer(o, section("bash", "npm *", "allow", "git fetch *", "allow")))
	}
	r := Compile(layers, Options{})
	q := &Query{Surface: "bash", Values: []string{"git push origin main"}, Strict: []string{"git push origin main"}}
	b.ReportAllocs()
	for b.Loop() {
		r.Resolve(q)
	}
}

func BenchmarkResolvePath(b *testing.B) {
	r := Compile([]Layer{layer(OriginGlobal, section("path", "*", "allow", "*.env", "deny", "*.env.*", "deny", "*.env.example", "allow", "~/.ssh/*", "deny", "src/*", "ask"))}, Options{Home: "/home/u", Cwd: "/p"})
	q := &Query{Surface: "path_read", Values: []string{"/p/src/deep/file.go", "src/deep/file.go"}}
	b.ReportAllocs()
	for b.Loop() {
		r.Resolve(q)
	}
}

func BenchmarkResolveGranted(b *testing.B) {
	s := NewSessionRules(time.Now, Options{})
	scope := Scope{SessionID: "s"}
	for i := range 100 {
		cmd := fmt.Sprintf("cmd%d", i)
		if _, err := s.Record(NewGrant{Grant: Grant{"bash", cmd + " *"}, Scope: scope, Asked: Asked{"bash", []string{cmd}}}); err != nil {
			b.Fatal(err)
		}
	}
	r := Compile(manyRules(1000), Options{})
	q := &Query{Surface: "bash", Values: []string{"cmd99 x"}, Grants: s.View(scope)}
	if m := r.Resolve(q); m.Action != Allow {
		b.Fatalf("got %+v", m)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Resolve(q)
	}
}

func BenchmarkCompile(b *testing.B) {
	layers := manyRules(1000)
	q := &Query{Surface: "bash", Values: []string{"git push origin main"}}
	b.ReportAllocs()
	for b.Loop() {
		Compile(layers, Options{Home: "/home/u", Cwd: "/p"}).Resolve(q)
	}
}

// TestResolveAllocatesNothing holds the promise of Resolve.
func TestResolveAllocatesNothing(t *testing.T) {
	r := Compile(manyRules(1000), Options{Home: "/home/u", Cwd: "/p"})
	s := NewSessionRules(time.Now, Options{})
	v := s.View(Scope{SessionID: "s"})
	for _, q := range []*Query{
		{Surface: "bash", Values: []string{"git push origin main"}, Grants: v},
		{Surface: "bash", Values: []string{"x"}, Strict: []string{"y"}, Whole: []string{"x; y"}},
		{Surface: "path", Values: []string{"/p/a", "a"}},
		{Surface: "read", Values: []string{"/p/a", "a"}, Granted: []string{"/p/a"}, Grants: v},
	} {
		r.Resolve(q)
		if n := testing.AllocsPerRun(100, func() { r.Resolve(q) }); n != 0 {
			t.Errorf("%s: %v allocations", q.Surface, n)
		}
	}
}
