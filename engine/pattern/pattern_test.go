package pattern

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, value string
		want           bool
	}{
		{"a", "a", true},
		{"a", "A", false},
		{"A*", "abc", false},
		{"*", "", true},
		{"*", "a\nb/c", true},
		{"**", "x/y", true},
		{"a*", "b\na", false},
		{"*a", "a\nb", false},
		{"abc", "abc\n", false},
		{"x-*", "x-", true},
		{"x-*", "x", false},
		{"git *", "git", true},
		{"git *", "git ", true},
		{"git *", "git  s", true},
		{"git *", "gitk", false},
		{"git *", "git\ts", false},
		{"git *", " git s", false},
		{"git **", "git", true},
		{"git *", "gi", false},
		{"git st *", "git st", true},
		{"git st *", "git", false},
		{"git*", "gitk", true},
		{"g*t", "g", false},
		{"g*t", "gt", true},
		{"a * b", "a  b", true},
		{"a * b", "a b", false},
		{"a * *", "a", false},
		{"a * *", "a b", true},
		{"a * *", "a ", true},
		{"* *", "abc", true},
		{" *", "", true},
		{" *", " x", true},
		{" *", "x", false},
		{"git  *", "git", false},
		{"git  *", "git ", true},
		{"* ", "x", false},
		{" x", "x", false},
		{"?", "", false},
		{"?", "\u2028", true},
		{"??", "a", false},
		{"?*", "", false},
		{"*?", "", false},
		{"*?", "é", true},
		{"*??", "€", false},
		{"*??", "€a", true},
		{"?", "😀", true},
		{"????", "😀😀", false},
		{"caf?", "cafe\u0301", false},
		{"?", "\xff", true},
		{"*\xff", "a\xff", true},
		{"a?b", "a\x00b", true},
		{"a.b", "axb", false},
		{"[ab]", "a", false},
		{"{a,b}", "a", false},
		{`\*`, `\anything`, true},
		{`\?`, "?", false},
		{"src/**/x", "src/x", false},
		{"src/**/x", "src/a/b/x", true},
		{"*.env", ".env", true},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "aXbXbXc", true},
		{"a*b*c", "aXbXbX", false},
		{"*ab", "aab", true},
		{"*a?b*", "aaxab", false},
		{"*a?b*", "aaxaxb", true},
		{"?*?", "é", false},
		{"?*?", "éé", true},
		{"*" + strings.Repeat("a*", 6) + "b", strings.Repeat("a", 80), false},
		{strings.Repeat("*ab", 8) + "*", strings.Repeat("ab", 40), true},
		{"glob:src/*.go", "src/a.go", true},
		{"glob:src/*.go", "src/a/b.go", false},
		{"glob:src/**/*.go", "src/b.go", true},
		{"glob:**/*.{pem,key}", "a/b/c.key", true},
		{"glob:[a-c]x", "bx", true},
		{"glob:[a-c]x", "dx", false},
	}
	for _, tt := range tests {
		p := Compile(tt.pattern, Posix)
		if got := p.Match(tt.value); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.value, got, tt.want)
		}
	}
}

func TestWindows(t *testing.T) {
	p := Compile(`Src\*.TS`, Windows)
	for value, want := range map[string]bool{`src\A.ts`: true, "SRC/a.ts": true, "lib/a.ts": false} {
		if got := p.Match(Windows.Fold(value)); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func TestExpandHome(t *testing.T) {
	for in, want := range map[string]string{
		"~": "/h", "~/x": "/h/x", "$HOME": "/h", "$HOME/x": "/h/x", "${HOME}": "/h", "${HOME}/x": "/h/x",
		"~bob/x": "~bob/x", "${HOME:-/tmp}/x": "${HOME:-/tmp}/x", "$HOMEX": "$HOMEX", "a~": "a~", "": "",
	} {
		if got := ExpandHome(in, "/h"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := ExpandHome("~/x", "/"); got != "/x" {
		t.Errorf("home is the root: %q", got)
	}
	if got := ExpandHome("~/x", ""); got != "~/x" {
		t.Errorf("no home: %q", got)
	}
}

func TestCheck(t *testing.T) {
	for text, ok := range map[string]bool{"a": true, "": false, "glob:": false, "glob:[a": false, "glob:{a": false, "glob:a/**": true, "[a": true,
		"glob:" + strings.Repeat("{a,b}", 8): true, "glob:" + strings.Repeat("{a,aa}", 9): false, "glob:" + strings.Repeat("{a,aa}", 1000): false, "glob:**/*.{c,h,cc,hh,cpp,hpp}": true} {
		if err := Check(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// reference is the meaning of a pattern, written for clarity and not for
// speed.
func reference(pat, s []rune) bool {
	if len(pat) == 0 {
		return len(s) == 0
	}
	switch pat[0] {
	case '*':
		for i := 0; i <= len(s); i++ {
			if reference(pat[1:], s[i:]) {
				return true
			}
		}
		return false
	case '?':
		return len(s) > 0 && reference(pat[1:], s[1:])
	}
	return len(s) > 0 && s[0] == pat[0] && reference(pat[1:], s[1:])
}

func means(pat, s string) bool {
	if reference([]rune(pat), []rune(s)) {
		return true
	}
	body := []rune(oneStar(pat))
	n := len(body)
	return n >= 2 && body[n-1] == '*' && body[n-2] == ' ' && reference(body[:n-2], []rune(s))
}

func TestMatchMeansWhatTheReferenceSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]string{"a", "b", " ", "é", "€", "/", "\n"})
		text := rapid.SliceOfN(letters, 0, 9).Draw(t, "value")
		pat := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", " ", "é", "€", "/", "*", "*", "?", " *"}), 0, 7).Draw(t, "pattern")
		p, s := strings.Join(pat, ""), strings.Join(text, "")
		c := Compile(p, Posix)
		if got, want := c.Match(s), means(p, s); got != want {
			t.Fatalf("%q matches %q: %v, want %v", p, s, got, want)
		}
	})
}

func TestHeadAndTailAreNecessary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", " ", "*", "?", " *", "é"}), 0, 6).Draw(t, "pattern"), "")
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", " ", "é"}), 0, 6).Draw(t, "value"), "")
		c := Compile(p, Posix)
		if c.Match(s) && (!strings.HasPrefix(s, c.Head()) || !strings.HasSuffix(s, c.Tail()) && !c.optional) {
			t.Fatalf("%q matches %q without its ends %q, %q", p, s, c.Head(), c.Tail())
		}
	})
}

func TestLiteralsAreNecessary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", " ", "*", "?", " *", "/", "**/", "{a,b}", "[ab]", `\*`, "glob:"}), 0, 7).Draw(t, "pattern"), "")
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", " ", "/", "*"}), 0, 7).Draw(t, "value"), "")
		c := Compile(p, Posix)
		ok := c.Match(s)
		has, rest := true, s
		c.Literals(func(text string) {
			var found bool
			if _, rest, found = strings.Cut(rest, text); !found {
				has = false
			}
		})
		if ok && !has {
			t.Fatalf("%q matches %q without its texts", p, s)
		}
		if text, sure := c.Contains(); sure && strings.Contains(s, text) != ok {
			t.Fatalf("%q does not match just what has %q: %q", p, text, s)
		}
		left := rapid.IntRange(0, 60).Draw(t, "left")
		before := left
		if within := c.MatchWithin(s, &left); within != ok && left >= 0 || within && !ok || left > before {
			t.Fatalf("%q matches %q: %v, within a limit %v", p, s, ok, within)
		}
	})
}

func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"git *", "git"}, {"*a*?b", "xaéb"}, {"glob:**/*.{a,b}", "x/y.a"}, {"\xff?*", "\xffab"}, {"a\x00*", "a\x00"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pat, s string) {
		if Check(pat) != nil {
			return
		}
		p := Compile(pat, Posix)
		got := p.Match(s)
		p.Literals(func(text string) {
			if got && !strings.Contains(s, text) {
				t.Errorf("%q matches %q without %q", pat, s, text)
			}
		})
		if IsGlob(pat) {
			return
		}
		if IsLiteral(pat) && got != (pat == s) {
			t.Errorf("literal %q matches %q: %v", pat, s, got)
		}
		if IsBare(pat) && !got {
			t.Errorf("%q does not match %q", pat, s)
		}
		if len(pat) < 12 && len(s) < 12 && utf8.ValidString(pat) && utf8.ValidString(s) && got != means(pat, s) {
			t.Errorf("%q matches %q: %v", pat, s, got)
		}
		if got && !strings.HasPrefix(s, p.Head()) {
			t.Errorf("%q matches %q without %q", pat, s, p.Head())
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, bm := range []struct{ name, pattern, value string }{
		{"literal", "git status", "git status"},
		{"words", "git push *", "git push origin main"},
		{"suffix", "*.env", "/home/user/project/src/config/.env"},
		{"worst", "*a*a*a*a*a*a*b", strings.Repeat("a", 80)},
		{"worst-question", "*a?a*a?a*a?a*b", strings.Repeat("a", 80)},
		{"long", "*b*c", strings.Repeat("a", 1<<20)},
	} {
		p := Compile(bm.pattern, Posix)
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Match(bm.value)
			}
		})
	}
}
