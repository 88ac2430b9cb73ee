package notify

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestBudgetLines(t *testing.T) {
	b := Budget{Lines: 3, Columns: 10}
	for _, c := range []struct {
		body  string
		lines int
	}{
		{"", 1},
		{"0123456789", 1},
		{"01234567890", 2},
		{"0123456789 ", 1}, // the space hangs over
		{"0123456789 1", 2},
		{"hello good day", 2},
		{"hello goodday", 2}, // the word moves down whole
		{"a\nb\nc", 3},
		{"a\n\n\nb", 4},
		{strings.Repeat("x", 30), 3},
		{strings.Repeat("x", 31), 4},
		{"ab " + strings.Repeat("x", 20), 3}, // the long word begins on its own line
		{strings.Repeat("M", 6), 1},          // 6 × 1.6 < 10
		{strings.Repeat("M", 7), 2},
		{strings.Repeat("漢", 4), 1},
		{strings.Repeat("漢", 5), 2},
	} {
		if got := b.lines(c.body); got != c.lines {
			t.Errorf("lines(%q) = %d, want %d", c.body, got, c.lines)
		}
		if got, want := b.Fits(c.body), c.lines <= 3; got != want {
			t.Errorf("Fits(%q) = %t", c.body, got)
		}
	}
	if (Budget{}).Fits("") {
		t.Error("the zero budget shows something")
	}
}

func TestBudgetCut(t *testing.T) {
	b := Budget{Lines: 3, Columns: 40}
	if got := b.Cut("short"); got != "short" {
		t.Errorf("Cut = %q", got)
	}
	long := "curl https://example.com/" + strings.Repeat("a", 4000) + " | sh -s -- --yes"
	got := b.Cut(long)
	if !strings.HasPrefix(got, "curl https://example.com/") || !strings.HasSuffix(got, "--yes") ||
		!strings.Contains(got, "more characters") || !b.Fits(got) {
		t.Errorf("Cut = %q", got)
	}
	if n := utf8.RuneCountInString(got); n < 80 {
		t.Errorf("only %d characters of 120 are used: %q", n, got)
	}
	if got := b.Cut(strings.Repeat("\n", 100) + "x"); !b.Fits(got) || !strings.HasSuffix(got, "x") {
		t.Errorf("Cut = %q", got)
	}
}

func TestBudgetFold(t *testing.T) {
	b := Budget{Lines: 9, Columns: 10}
	for in, want := range map[string]string{
		"short words stay as they are": "short words stay as they are",
		"0123456789":                   "0123456789",
		"01234567890":                  "0123456789\n0",
		"a 012345678901234567890123":   "a 0123456789\n0123456789\n0123",
		"a\nb":                         "a\nb",
		"/home/user/a/long/path":       "/home/user/a/long/path",
		"/home/user1234567890/x":       "/home/user123456\n7890/x",
		"MMMMMMM":                      "MMMMMM\nM",
		"漢漢漢漢漢":                        "漢漢漢漢\n漢",
	} {
		if got := b.fold(in); got != want {
			t.Errorf("fold(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBudgetOfAServer(t *testing.T) {
	for _, c := range []struct {
		server  string
		urgency Urgency
		lines   int
	}{{gnome, Critical, 5}, {gnome, Normal, 1}, {xfce, Normal, 6}, {"Plasma", Critical, unknown.Lines}} {
		if got := capabilities([]string{"body"}, c.server).budget(c.urgency); got.Lines != c.lines {
			t.Errorf("%s: %+v", c.server, got)
		}
	}
	if got := capabilities([]string{"actions"}, xfce).budget(Critical); got.Fits("x") {
		t.Errorf("a server without bodies shows %+v", got)
	}
}

// Cut always fits, if the budget holds the mark, and never touches what fits.
func TestBudgetProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{Lines: rapid.IntRange(2, 8).Draw(t, "lines"), Columns: rapid.IntRange(30, 80).Draw(t, "columns")}
		body := rapid.OneOf(rapid.StringN(0, 3000, -1), rapid.StringMatching(`[ab/M漢 ]{0,900}`)).Draw(t, "body")
		got := b.Cut(body)
		if !b.Fits(got) {
			t.Fatalf("Cut(%q) = %q does not fit %+v", body, got, b)
		}
		folded := b.fold(got)
		if !b.Fits(folded) || strings.ReplaceAll(folded, "\n", "") != strings.ReplaceAll(got, "\n", "") {
			t.Fatalf("fold(%q) = %q", got, folded)
		}
		if b.Fits(body) != (got == body) {
			t.Fatalf("Cut(%q) = %q", body, got)
		}
	})
}

func FuzzBudgetCut(f *testing.F) {
	f.Add("a\nb", 3, 40)
	f.Add(strings.Repeat("x y", 1000), 1, 1)
	f.Fuzz(func(t *testing.T, body string, lines, columns int) {
		b := Budget{Lines: min(lines, 20), Columns: min(columns, 1000)} // Cut tries every length that the lines could hold
		b.Cut(body)                                                     // must end and not panic
	})
}

// However many spaces a server may let hang over, no body is whole with them.
func TestSpacesThatHangOver(t *testing.T) {
	b := Budget{Lines: 3, Columns: 10}
	if body := "ls" + strings.Repeat(" ", 1000) + "rm"; b.Fits(body) || !strings.Contains(b.Cut(body), "more characters") {
		t.Errorf("a thousand spaces count as shown: %q", b.Cut(body))
	}
}
