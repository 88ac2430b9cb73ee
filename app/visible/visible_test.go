package visible_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/nod-agents/nod/app/visible"
)

func TestBlock(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"plain", "git status && ls -la", "git status && ls -la"},
		{"lines stay", "a\nb\n", "a\nb\n"},
		{"tab to the next stop", "a\tb\n\tc", "a       b\n        c"},
		{"tab after an escape", "\x1b\tx", `\x1B    x`},
		{"carriage return", "safe\rrm -rf /", `safe\rrm -rf /`},
		{"ANSI colour", "\x1b[31mred\x1b[0m", `\x1B[31mred\x1B[0m`},
		{"OSC title", "\x1b]0;x\x07", `\x1B]0;x\x07`},
		{"NUL", "a\x00b", `a\x00b`},
		{"C1", "a\u0085b\u009bc", `a\x85b\x9Bc`},
		{"delete", "a\x7fb", `a\x7Fb`},
		{"bidi override", "a\u202egpj.exe", `a\u202Egpj.exe`},
		{"bidi isolate", "\u2066x\u2069", `\u2066x\u2069`},
		{"zero width", "g\u200bi\u200ct\u2060\ufeff", `g\u200Bi\u200Ct\u2060\uFEFF`},
		{"tags", "x\U000e0041\U000e007f", `x\U000E0041\U000E007F`},
		{"no-break space", "rm\u00a0-rf", `rm\xA0-rf`},
		{"soft hyphen", "a\u00adb", `a\xADb`},
		{"line separator", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"fillers", "\u3164\u115f\u1160\uffa0\u2800", `\u3164\u115F\u1160\uFFA0\u2800`},
		{"variation selector", "a\ufe0f\U000e0100", `a\uFE0F\U000E0100`},
		{"private use", "\ue000\U000f0000", `\uE000\U000F0000`},
		{"unassigned", "\U0003ffff", `\U0003FFFF`},
		{"bad UTF-8", "a\xff\xc0b", `a\xFF\xC0b`},
		{"surrogate bytes", "\xed\xa0\x80", `\xED\xA0\x80`},
		{"replacement character is one", "\ufffd", "\ufffd"},
		{"other scripts stay", "日本語 한국어 привет Ελλάδα שלום مرحبا ไทย हिन्दी", "日本語 한국어 привет Ελλάδα שלום مرحبا ไทย हिन्दी"},
		{"emoji", "✅ 🚀", "✅ 🚀"},
		{"decomposed letter", "cafe\u0301", "cafe\u0301"},
		{"mark on a blank", " \u0301", ` \u0301`},
		{"mark first", "\u0301a", `\u0301a`},
		{"piled marks", "a" + strings.Repeat("\u0301", 6), "a" + strings.Repeat("\u0301", 4) + `\u0301\u0301`},
		{"struck out", "r\u0336m\u0338", `r\u0336m\u0338`},
		{"enclosed", "1\u20e3", `1\u20E3`},
		{"Cyrillic i in git", "g\u0456t status", `g\u0456t status`},
		{"Latin e in a Cyrillic word", "прив\u0065т", `\u043F\u0440\u0438\u0432e\u0442`},
		{"a Cyrillic word like a Latin one", "сор file", `\u0441\u043E\u0440 file`},
		{"a Cyrillic preposition", "дом с окном", "дом с окном"},
		{"Greek o", "d\u03bfcker", `d\u03BFcker`},
		{"file beside other alphabets", "иван/file_дом-2.txt", "иван/file_дом-2.txt"},
		{"mathematical letters", "𝗀𝗂𝗍", `\U0001D5C0\U0001D5C2\U0001D5CD`},
		{"wide letters", "ｒｍ", `\uFF52\uFF4D`},
		{"like a slash", "a\u2215b\u2044c", `a\u2215b\u2044c`},
		{"like a hyphen", "rm \u2010rf", `rm \u2010rf`},
		{"Greek question mark", "ls\u037e rm", `ls\u037E rm`},
		{"prose dashes and quotes stay", "“so” – it’s — fine…", "“so” – it’s — fine…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := visible.Block(tc.in); got != tc.want {
				t.Errorf("Block(%q)\n got %s\nwant %s", tc.in, got, tc.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   string
		max  int
		want string
	}{
		{"short", "abc", 10, "abc"},
		{"exact", "0123456789", 10, "0123456789"},
		{"no limit", strings.Repeat("x", 500), 0, strings.Repeat("x", 500)},
		{"line breaks", "a\n\tb\r\n", 0, `a\n\tb\r\n`},
		{"cut", "head" + strings.Repeat(".", 100) + "tail", 24, "head." + " … 98 more … " + ".tail"},
		{"too small for a number", "head" + strings.Repeat(".", 100) + "tail", 9, "head…tail"},
		{"three", "abcdef", 3, "a…f"},
		{"two", "abcdef", 2, "a…"},
		{"one", "abcdef", 1, "…"},
		{"an escape at the end stays whole", strings.Repeat("-", 1000) + "\u202e", 28, "------- … 993 more … " + `\u202E`},
		{"an escape at both ends", "\u202e" + strings.Repeat("-", 100) + "\u202e", 13, `\u202E…\u202E`},
		{"no escape is cut in two", "aaa\u202e" + strings.Repeat(".", 100) + "\u202ezz", 9, "aaa…zz"},
		{"no mark hangs on the cut", "aaaaaaaaaaaaaae\u0301zzz", 9, "aaaa…zzz"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := visible.Line(tc.in, tc.max); got != tc.want {
				t.Errorf("Line(%q, %d)\n got %s\nwant %s", tc.in, tc.max, got, tc.want)
			}
		})
	}
}

func TestSpans(t *testing.T) {
	text, spans := visible.Spans("a\x1bb\\x1B\n\tg\u0456t", 0)
	var parts []string
	for _, s := range spans {
		parts = append(parts, text[s.Start:s.End])
	}
	if want := `[\x1B \u0456]`; fmt.Sprint(parts) != want {
		t.Errorf("escapes %v of %q, want %s: a typed escape is none", parts, text, want)
	}
}

// Of more different characters than a view takes, the rest is escaped, the same
// one always in the same way.
func TestSpansOfManyCharacters(t *testing.T) {
	text, spans := visible.Spans("aéøé漢字かな한글ñéø\u0301ø", 2)
	if want := `aéøé漢字かな한글\xF1éø\u0301ø`; text != want || len(spans) != 2 {
		t.Errorf("%q with %d escapes, want %q with 2", text, len(spans), want)
	}
}

// harmful reports why r must not reach a screen, or "".
func harmful(r rune, block bool) string {
	switch {
	case r == '\n':
		if block {
			return ""
		}
		return "line break"
	case r == utf8.RuneError, r == ' ':
		return ""
	case unicode.IsControl(r):
		return "control"
	case unicode.Is(unicode.Bidi_Control, r):
		return "bidi control"
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
		return "format, separator, private use or surrogate"
	case unicode.IsSpace(r), unicode.Is(unicode.Zs, r):
		return "blank"
	case unicode.Is(unicode.Variation_Selector, r):
		return "variation selector"
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return "ignorable"
	case !unicode.IsPrint(r):
		return "not printable"
	}
	return ""
}

// mark is what Line puts where it cuts.
var mark = regexp.MustCompile(`^(?: … (\d+) more … |…)`)

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "ls -la", "a\x1b[31m\x00\r\n\t", "\u202e\u2066\u200b\ufeff", "\xff\xfe", "g\u0456t сор", "e\u0301\u0301\u0301\u0301\u0301\u0301", "\u3164\u034f\U000e0041",
		strings.Repeat("\n", 400) + "tail", strings.Repeat("x\u202e", 300)} {
		f.Add(s, 20)
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		block, spans := visible.Spans(s, 0)
		if block != visible.Block(s) {
			t.Fatal("Spans and Block differ")
		}
		if !utf8.ValidString(block) {
			t.Fatalf("Block(%q) is no UTF-8", s)
		}
		for _, r := range block {
			if why := harmful(r, true); why != "" {
				t.Fatalf("Block(%q) contains %U: %s", s, r, why)
			}
		}
		if got, want := strings.Count(block, "\n"), strings.Count(s, "\n"); got != want {
			t.Fatalf("Block(%q) has %d line breaks, want %d", s, got, want)
		}
		at := 0
		for _, e := range spans {
			if e.Start < at || e.End <= e.Start || e.End > len(block) || block[e.Start] != '\\' {
				t.Fatalf("Spans(%q): bad span %v", s, e)
			}
			at = e.End
		}

		whole := visible.Line(s, 0)
		line := visible.Line(s, max)
		for _, r := range line {
			if why := harmful(r, false); why != "" {
				t.Fatalf("Line(%q, %d) contains %U: %s", s, max, r, why)
			}
		}
		n := utf8.RuneCountInString(line)
		if max <= 0 || utf8.RuneCountInString(whole) <= max {
			if line != whole {
				t.Fatalf("Line(%q, %d) = %q is not whole", s, max, line)
			}
			return
		}
		if n > max {
			t.Fatalf("Line(%q, %d) has %d runes", s, max, n)
		}
		// Head and tail of the whole are in sight, and the number says how
		// much is not. The text may hold marks of its own: one of them all is
		// the cut.
		ok := false
		for i := range line {
			m := mark.FindStringSubmatch(line[i:])
			if m == nil {
				continue
			}
			head, tail := line[:i], line[i+len(m[0]):]
			left := utf8.RuneCountInString(whole) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
			ok = ok || strings.HasPrefix(whole, head) && strings.HasSuffix(whole, tail) && left > 0 &&
				(max < 40 || head != "" && tail != "") && (m[1] == "" || m[1] == strconv.Itoa(left))
		}
		if !ok {
			t.Fatalf("Line(%q, %d) = %q does not keep head and tail, or counts wrongly", s, max, line)
		}
	})
}

func BenchmarkBlock(b *testing.B) {
	for name, s := range map[string]string{
		"plain":    strings.Repeat("git status && ls -la\n", 50_000),
		"mixed":    strings.Repeat("git status\t# привет \u202e\n", 40_000),
		"one-word": strings.Repeat("сор", 170_000),
		"marks":    strings.Repeat("\u0301", 500_000),
		"bytes":    strings.Repeat("\xff", 1<<20),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				visible.Block(s)
			}
		})
	}
}
