//go:build !headless

package view

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"
	"pgregory.net/rapid"

	"github.com/nod-agents/nod/app/visible"
)

// lines draws a text as its lines, numbered.
func (t *text) String() string {
	var b strings.Builder
	for _, l := range t.lines {
		fmt.Fprintf(&b, "%d:%s\n", l.number, t.body[l.start:l.end])
	}
	return b.String()
}

func TestFold(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"one line", "ls", "1:ls\n"},
		{"empty", "", "1:\n"},
		{"a last line break starts no line", "a\nb\n", "1:a\n2:b\n"},
		{"two blank lines stay", "a\n\n \nb", "1:a\n2:\n3: \n4:b\n"},
		{"three are folded", "a\n\n  \n\nb", "1:a\n2:… 3 blank lines …\n5:b\n"},
		{"400 before the tail", "a" + strings.Repeat("\n", 401) + "rm -rf /", "1:a\n2:… 400 blank lines …\n402:rm -rf /\n"},
		{"tabs are blank too", "a\n\t\n\t\t\n\t\nb", "1:a\n2:… 3 blank lines …\n5:b\n"},
		{"blank lines at the end", "a\n\n\n\n\n", "1:a\n2:… 4 blank lines …\n"},
		{"only blank lines", "\n\n\n\n", "1:… 4 blank lines …\n"},
		{"spaces before the tail", "ls" + strings.Repeat(" ", 300) + "; rm -rf /", "1:ls… 300 spaces …; rm -rf /\n"},
		{"an indent stays", strings.Repeat(" ", blankSpaces-1) + "x", "1:" + strings.Repeat(" ", blankSpaces-1) + "x\n"},
		{"spaces at the end", "x" + strings.Repeat(" ", 48), "1:x… 48 spaces …\n"},
		{"two runs", "a" + strings.Repeat(" ", 50) + "b" + strings.Repeat(" ", 60) + "c", "1:a… 50 spaces …b… 60 spaces …c\n"},
		{"blank to the eye only", "a\n\u00a0\n\u3164\n\u200b\nb", "1:a\n2:\\xA0\n3:\\u3164\n4:\\u200B\n5:b\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := newText(tc.in).String(); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestTextSays(t *testing.T) {
	for _, tc := range []struct{ in, size, hint string }{
		{"ls", "", ""},
		{"a\nb", "2 lines", ""},
		{strings.Repeat("x", 4000), "4,000 characters", ""},
		{"a" + strings.Repeat("\n", 1500) + "b", "1,501 lines", ""},
		{"a\u202e", "", "1 hidden or misleading character shown as an escape"},
		{"a\u202e\x1b", "", "2 hidden or misleading characters shown as escapes"},
	} {
		x := newText(tc.in)
		if x.size() != tc.size || x.hint() != tc.hint {
			t.Errorf("%.20q says %q and %q, want %q and %q", tc.in, x.size(), x.hint(), tc.size, tc.hint)
		}
	}
}

// Folding takes nothing away but blanks, and marks what it put in.
func FuzzFold(f *testing.F) {
	for _, s := range []string{"", "a\n\n\n\nb", "\u202e" + strings.Repeat(" ", 99) + "\x1bx\n\n\n\n", strings.Repeat(" \n", 9), "… 3 blank lines …"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x := newText(s)
		var b strings.Builder
		at, escapes := 0, 0
		for _, m := range x.stretches {
			if m.start < at || m.end <= m.start || m.end > len(x.body) {
				t.Fatalf("stretch %v of %q", m, x.body)
			}
			b.WriteString(x.body[at:m.start])
			if m.kind == escaped {
				b.WriteString(x.body[m.start:m.end])
				escapes++
				if x.body[m.start] != '\\' {
					t.Fatalf("%q is no escape", x.body[m.start:m.end])
				}
			}
			at = m.end
		}
		b.WriteString(x.body[at:])
		squeeze := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
		if got, want := squeeze(b.String()), squeeze(visible.Block(s)); got != want {
			t.Fatalf("kept %q of %q", got, want)
		}
		if escapes != x.escapes {
			t.Fatalf("%d escapes are marked, %d counted", escapes, x.escapes)
		}
		want := strings.Count(strings.TrimSuffix(visible.Block(s), "\n"), "\n") + 1
		if x.count != want {
			t.Fatalf("%d lines counted of %q, want %d", x.count, s, want)
		}
		number := 0
		for _, l := range x.lines {
			if l.number <= number || l.start > l.end || l.end > len(x.body) {
				t.Fatalf("line %+v after %d", l, number)
			}
			number = l.number
		}
	})
}

func newTestSheet(t testing.TB, w, h float32, sections ...section) (*sheet, fyne.Window) {
	a := test.NewTempApp(t)
	a.Settings().SetTheme(NewSkin(1))
	s := newSheet(3)
	win := test.NewTempWindow(t, s)
	win.SetPadded(false)
	win.Resize(fyne.NewSize(w, h))
	s.show(sections)
	return s, win
}

// drawn are the texts on the sheet, from top to bottom.
func drawn(s *sheet) []*canvas.Text {
	var all []*canvas.Text
	for _, o := range s.page.objects {
		if x, ok := o.(*canvas.Text); ok {
			all = append(all, x)
		}
	}
	return all
}

// The rows of a text are the whole text, and none is wider than the sheet.
func TestRowsAreTheWholeText(t *testing.T) {
	s, win := newTestSheet(t, 400, 300)
	rapid.Check(t, func(rt *rapid.T) {
		raw := rapid.OneOf(
			rapid.StringOfN(rapid.RuneFrom([]rune("ab /-\n\t\u202e\x1b日é́😀")), 0, 400, -1),
			rapid.String(),
		).Draw(rt, "text")
		width := rapid.Float32Range(200, 900).Draw(rt, "width")
		win.Resize(fyne.NewSize(width, 300))
		s.show([]section{{label: "command", text: raw}, {label: "other", text: "x\n" + raw}})
		p := s.page
		got := make([]strings.Builder, len(p.texts))
		line := map[int]int{0: -1, 1: -1}
		y := float32(-1)
		for _, r := range p.rows {
			if r.y <= y {
				rt.Fatalf("rows overlap at %v", r.y)
			}
			y = r.y
			if r.line < 0 {
				continue
			}
			x := p.texts[r.section]
			if r.first != (r.line != line[r.section]) {
				rt.Fatalf("row of line %d after line %d: first is %v", r.line, line[r.section], r.first)
			}
			line[r.section] = r.line
			got[r.section].WriteString(x.body[r.start:r.end])
			if !utf8.ValidString(x.body[r.start:r.end]) {
				rt.Fatal("a rune is cut in two")
			}
			for _, m := range x.stretches {
				if m.kind == escaped && m.start < r.end && r.end < m.end && m.start > r.start {
					rt.Fatalf("the escape %q is cut in two", x.body[m.start:m.end])
				}
			}
			if end := p.gutters[r.section] + p.span(r, r.end); end > p.flowed && utf8.RuneCountInString(x.body[r.start:r.end]) > 1 {
				rt.Fatalf("row %q ends at %v of %v", x.body[r.start:r.end], end, p.flowed)
			}
		}
		for i, x := range p.texts {
			if want := strings.ReplaceAll(x.body, "\n", ""); got[i].String() != want {
				rt.Fatalf("rows hold %q of %q", got[i].String(), want)
			}
		}
	})
}

// The toolkit is not asked about more characters than it can stand, and what it
// is not asked about is still there, as an escape.
func TestManyDifferentCharacters(t *testing.T) {
	var raw strings.Builder
	all := 0
	for r := rune(0x100); r < 0x30000; r++ {
		if visible.Shown(r) {
			raw.WriteRune(r)
			all++
		}
	}
	s, _ := newTestSheet(t, 600, 300, section{label: "command", text: raw.String()})
	p := s.page
	if n := len(p.widths); n > alphabets+1 {
		t.Errorf("%d characters were measured, of %d", n, all)
	}
	x := p.texts[0]
	if x.escapes < 10_000 || !strings.Contains(x.hint(), "shown as escapes") || !strings.Contains(x.body, `\U00020000`) || !strings.Contains(x.body, "漢") {
		t.Errorf("%d escapes, told as %q", x.escapes, x.hint())
	}
}

func TestOnlyWhatIsInSightIsDrawn(t *testing.T) {
	s, _ := newTestSheet(t, 600, 300, section{label: "command", text: strings.Repeat("echo line\n", 100_000) + "rm -rf /"})
	if n := len(s.page.objects); n > 200 {
		t.Errorf("%d objects for 300 pixels", n)
	}
	if got := s.strip.Text; !strings.HasSuffix(got, "more lines below") || !s.strip.Visible() {
		t.Errorf("the strip says %q", got)
	}
	before := s.below()
	test.Tap(s.strip)
	if s.below() >= before {
		t.Error("the strip does not scroll")
	}
	s.key(fyne.KeyEnd)
	if s.below() != 0 || s.strip.Text != "the end" {
		t.Errorf("at the end %d lines are below and the strip says %q", s.below(), s.strip.Text)
	}
	last := drawn(s)[len(drawn(s))-1]
	if last.Text != "rm -rf /" {
		t.Errorf("the last line in sight is %q", last.Text)
	}
	if bottom := last.Position().Y + last.Size().Height - s.scroll.Offset.Y; bottom > s.scroll.Size().Height {
		t.Error("the last line is cut off")
	}
	s.key(fyne.KeyHome)
	if got := drawn(s)[0].Text; got != "command" {
		t.Errorf("the first text in sight is %q", got)
	}
}

func TestShortTextHasNoStrip(t *testing.T) {
	s, _ := newTestSheet(t, 600, 300, section{label: "command", text: "ls"})
	if s.strip.Visible() {
		t.Errorf("strip %q for a text that is in sight whole", s.strip.Text)
	}
}

func TestScrollWheel(t *testing.T) {
	s, win := newTestSheet(t, 600, 300, section{text: strings.Repeat("x\n", 500)})
	test.Scroll(win.Canvas(), fyne.NewPos(100, 100), 0, -120)
	if s.scroll.Offset.Y == 0 {
		t.Fatal("not scrolled")
	}
	if got := drawn(s)[0].Position().Y; got < s.scroll.Offset.Y-60 {
		t.Errorf("rows at %v are drawn though the sheet is scrolled to %v", got, s.scroll.Offset.Y)
	}
}

func TestSelectAndCopy(t *testing.T) {
	s, win := newTestSheet(t, 600, 300, section{label: "command", text: "first line\nsecond \u202eline\nthird"}, section{label: "note", text: "more"})
	p := s.page
	clip := fyne.CurrentApp().Clipboard()
	at := func(i, column int) fyne.Position {
		r := p.rows[i]
		return fyne.NewPos(p.gutters[r.section]+p.cell*float32(column)+1, r.y+2)
	}
	p.MouseDown(&desktop.MouseEvent{PointEvent: fyne.PointEvent{Position: at(1, 6)}, Button: desktop.MouseButtonPrimary})
	p.Dragged(&fyne.DragEvent{PointEvent: fyne.PointEvent{Position: at(2, 6)}})
	p.DragEnd()
	if win.Canvas().Focused() != p {
		t.Error("a click does not focus the sheet")
	}
	p.TypedShortcut(&fyne.ShortcutCopy{})
	if got := clip.Content(); got != "line\nsecond" {
		t.Errorf("copied %q", got)
	}
	// Backwards, and extended with shift.
	p.MouseDown(&desktop.MouseEvent{PointEvent: fyne.PointEvent{Position: at(3, 5)}, Button: desktop.MouseButtonPrimary})
	p.MouseDown(&desktop.MouseEvent{PointEvent: fyne.PointEvent{Position: at(2, 7)}, Button: desktop.MouseButtonPrimary, Modifier: fyne.KeyModifierShift})
	p.TypedShortcut(&fyne.ShortcutCopy{})
	if got := clip.Content(); got != `\u202Eline`+"\nthird" {
		t.Errorf("copied %q", got)
	}
	p.TypedShortcut(&fyne.ShortcutSelectAll{})
	p.TypedShortcut(&fyne.ShortcutCopy{})
	if got := clip.Content(); got != "first line\nsecond \\u202Eline\nthird\nmore" {
		t.Errorf("copied %q", got)
	}
	// Nothing selected leaves the clipboard alone.
	s.show([]section{{text: "new"}})
	p.TypedShortcut(&fyne.ShortcutCopy{})
	if got := clip.Content(); !strings.HasPrefix(got, "first") {
		t.Errorf("copied %q", got)
	}
	p.TappedSecondary(&fyne.PointEvent{})
	if win.Canvas().Overlays().Top() == nil {
		t.Error("no menu")
	}
}

func TestFitKeepsHeadAndTail(t *testing.T) {
	a := test.NewTempApp(t)
	a.Settings().SetTheme(NewSkin(1))
	f := newFit("text", colourQuiet, fyne.TextStyle{Monospace: true})
	win := test.NewTempWindow(t, f)
	win.SetPadded(false)
	f.set("head" + strings.Repeat("-", 1000) + "tail\u202e")
	for _, w := range []float32{120, 200, 333, 600, 1000} {
		win.Resize(fyne.NewSize(w, 40))
		got := f.text.Text
		if !strings.HasPrefix(got, "h") || !strings.HasSuffix(got, `\u202E`) || !strings.Contains(got, "…") {
			t.Errorf("at %v: %q", w, got)
		}
		if m := fyne.MeasureText(got, f.text.TextSize, f.style).Width; m > w {
			t.Errorf("at %v: %q is %v wide", w, got, m)
		}
	}
}

func BenchmarkSheet(b *testing.B) {
	var all strings.Builder
	for r := rune(0x100); all.Len() < 1<<20; r++ {
		all.WriteRune(r)
	}
	for name, raw := range map[string]string{
		"4k":           strings.Repeat("x", 4000),
		"1MB-one-line": strings.Repeat("x", 1<<20),
		"1MB-lines":    strings.Repeat("echo line\n", 100_000),
		"1MB-all":      all.String(),
		"1MB-hostile":  strings.Repeat("\u202e日g\u0456 ", 90_000),
	} {
		b.Run(name, func(b *testing.B) {
			s, _ := newTestSheet(b, 600, 300)
			for b.Loop() {
				s.show([]section{{label: "command", text: raw}})
			}
		})
	}
}
