package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// separator stands between the titles for tellAlone.
const separator = "\n-----\n"

// tellAlone is a program that tells the titles in its environment through the
// real beeep: that keeps connections and settings for the whole process.
func tellAlone() int {
	n := newTelling(Config{AppName: "Nod"}, byBeeep("Nod"), "")
	defer n.Close()
	for _, title := range strings.Split(os.Getenv("TITLES"), separator) {
		if _, err := n.Show(context.Background(), Note{Key: "1", Title: title, Body: "BODY"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// hostile are texts that would do something somewhere on beeep's paths.
var hostile = []string{
	`$(calc.exe)`, "`calc`", `${env:PATH}`, `"@` + "\n" + `calc` + "\n" + `@"`, `]]><image src="\\evil\x"/>`,
	`'; calc; '`, `" & do shell script "calc" & "`, `--expire-time=1`, `-h string:x:y`, `%COMSPEC%`, `a|b>c<d&e`,
	"\u2018calc\u2019 \u201ccalc\u201d \u201e", "a\x00b\x1b]0;x\x07", "\u202etxt.exe", `\"`, "{0}", "#{x}", "!x", "~", "*", "\xff\xfe",
}

func TestPlainLetsNothingThrough(t *testing.T) {
	for _, s := range hostile {
		for _, text := range []string{s, "pi asks to run " + s, s + " trailing"} {
			checkPlain(t, text, Plain(text, plainMax))
		}
	}
}

func checkPlain(t *testing.T, from, got string) {
	t.Helper()
	for i, r := range got {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case i > 0 && strings.ContainsRune(" .,:_/-?", r):
		default:
			t.Fatalf("Plain(%q) = %q: has %q at %d", from, got, r, i)
		}
	}
	if len(got) > plainMax {
		t.Fatalf("Plain(%q) has %d characters", from, len(got))
	}
}

func TestPlain(t *testing.T) {
	for _, c := range []struct {
		in, want string
		max      int
	}{
		{"pi asks to run bash", "pi asks to run bash", 99},
		{"--help me", "help me", 99},
		{"a $(b) c", "a ?b? c", 99},
		{"a $$$ b", "a ? b", 99},
		{"line\nbreak\tand", "line break and", 99},
		{"Überfall", "berfall", 99},
		{"für alle", "f?r alle", 99},
		{"abcdef", "abc", 3},
		{"ab cd", "ab", 3},
		{"$(", "", 99},
		{"", "", 99},
	} {
		if got := Plain(c.in, c.max); got != c.want {
			t.Errorf("Plain(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkPlain(t, s, Plain(s, plainMax)) })
}

// Whatever a note holds, only Plain's characters reach the teller, and never
// the body.
func TestTellingPassesOnlyPlainText(t *testing.T) {
	var said []string
	n := newTelling(Config{AppName: `Nod "$(x)"`}, func(title, message string) error {
		said = append(said, title, message)
		return nil
	}, "why")
	defer n.Close()
	for i, s := range hostile {
		shown, err := n.Show(t.Context(), Note{Key: fmt.Sprint(i), Title: s, Body: "BODY" + s, Actions: []Action{{Key: "ok", Label: "BODY"}}})
		if err != nil || shown.Backend != ByBeeep || len(shown.Actions) > 0 || shown.Whole {
			t.Fatalf("Show = %+v, %v", shown, err)
		}
	}
	if len(said) != 2*len(hostile) {
		t.Fatalf("said %d texts for %d notes", len(said), len(hostile))
	}
	for _, s := range said {
		checkPlain(t, "…", s)
		if s == "" || strings.Contains(s, "BODY") {
			t.Errorf("said %q", s)
		}
	}
	if c := n.Capabilities(); c.Backend != ByBeeep || c.HasActions || c.Body.Fits("x") || c.Why != "why" {
		t.Errorf("capabilities %+v", c)
	}
}

func TestTellingErrors(t *testing.T) {
	broken := errors.New("broken")
	n := newTelling(Config{}, func(string, string) error { return broken }, "")
	if _, err := n.Show(t.Context(), Note{Key: "1"}); !errors.Is(err, broken) {
		t.Errorf("Show = %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if _, err := n.Show(t.Context(), Note{Key: "1"}); !errors.Is(err, ErrEnded) {
		t.Errorf("Show after Close = %v", err)
	}
	if _, open := <-n.Events(); open {
		t.Error("an event from a notifier that has none")
	}
}

func TestNoteCheck(t *testing.T) {
	good := []Action{{Key: "a", Label: "A"}, {Key: "b", Label: "B"}}
	for name, c := range map[string]struct {
		note Note
		ok   bool
	}{
		"bare":               {Note{Key: "1"}, true},
		"actions":            {Note{Key: "1", Actions: good, Click: "b"}, true},
		"no key":             {Note{}, false},
		"action without key": {Note{Key: "1", Actions: []Action{{Label: "A"}}}, false},
		"no label":           {Note{Key: "1", Actions: []Action{{Key: "a"}}}, false},
		"twice":              {Note{Key: "1", Actions: append(good[:1:1], good[0])}, false},
		"default":            {Note{Key: "1", Actions: []Action{{Key: "default", Label: "A"}}}, false},
		"click on nothing":   {Note{Key: "1", Actions: good, Click: "c"}, false},
	} {
		err := c.note.check()
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNote) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEscape(t *testing.T) {
	in := `<b>rm</b> && echo "a < b" &amp; 'x'`
	want := `&lt;b&gt;rm&lt;/b&gt; &amp;&amp; echo &quot;a &lt; b&quot; &amp;amp; 'x'`
	if got := escape(in); got != want {
		t.Errorf("escape = %s", got)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb":             "a\nb",
		"a\tb\x00\x1b\x7f": "a b\uFFFD\uFFFD\uFFFD",
		"\xff":             "\uFFFD",
		"\u0085x":          "\uFFFDx",
		"ü✓":               "ü✓",
	} {
		if got := clean(in, true); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := clean("a\nb", false); got != "a b" {
		t.Errorf("clean on one line = %q", got)
	}
	if got := title(strings.Repeat("x", 5000)); utf8.RuneCountInString(got) > titleMax || !strings.Contains(got, "…") {
		t.Errorf("title = %q", got)
	}
}
