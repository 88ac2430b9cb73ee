package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func TestOneBurstIsOneKeyOrText(t *testing.T) {
	ch := func(r rune) input { return input{key: key{r: r}} }
	special := func(n name) input { return input{key: key{name: n}} }
	text := func(s string) input { return input{text: s} }
	tests := []struct {
		name   string
		bursts []string
		want   []input
	}{
		{"a key", []string{"y"}, []input{ch('y')}},
		{"keys one by one", []string{"s", "1"}, []input{ch('s'), ch('1')}},
		{"a letter of several bytes", []string{"é", "語"}, []input{ch('é'), ch('語')}},
		{"enter", []string{"\r", "\n"}, []input{special(enter), special(enter)}},
		{"escape", []string{"\x1b"}, []input{special(escape)}},
		{"backspace", []string{"\x7f", "\b"}, []input{special(backspace), special(backspace)}},
		{"erase", []string{"\x15"}, []input{special(eraseLine)}},
		{"an arrow", []string{"\x1b[A", "\x1bOB", "\x1b[1;5C", "\x1b[3~"}, []input{special(other), special(other), special(other), special(other)}},
		{"alt and a key is not the key", []string{"\x1by"}, []input{special(other)}},
		{"a control key", []string{"\x01"}, []input{special(other)}},
		{"half a letter", []string{"\xc3"}, []input{special(other)}},

		{"two keys", []string{"yy"}, []input{text("yy")}},
		{"a key and enter", []string{"y\n"}, []input{text("y")}},
		{"an arrow and a key", []string{"\x1b[Ay"}, []input{text("[Ay")}},
		{"escape, then quickly a key of a sequence", []string{"\x1b[y"}, []input{special(other)}},
		{"nothing but blanks", []string{"\n\n"}, nil},
		{"a null and a key", []string{"\x00y"}, []input{text("y")}},

		{"a paste of one key", []string{"\x1b[200~y\x1b[201~"}, []input{text("y")}},
		{"a paste in pieces", []string{"\x1b[200~", "y", "\n", "y", "\x1b[201~"}, []input{text("y y")}},
		{"its end mark in two", []string{"\x1b[200~y\x1b[20", "1~", "n"}, []input{text("y"), ch('n')}},
		{"what looks like an end mark", []string{"\x1b[200~y\x1b[20", "0~ n\x1b[201~"}, []input{text("y[200~ n")}},
		{"a key right behind a paste", []string{"\x1b[200~a\x1b[201~y"}, []input{text("ay")}},
		{"a key right before a paste", []string{"y\x1b[200~a\x1b[201~"}, []input{text("ya")}},
		{"an empty paste", []string{"\x1b[200~\x1b[201~", "y"}, []input{ch('y')}},
		{"an end without a beginning", []string{"\x1b[201~", "y"}, []input{special(other), ch('y')}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var k keys
			var got []input
			for _, b := range tt.bursts {
				if in, ok := k.feed([]byte(b)); ok {
					got = append(got, in)
				}
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %+v, want %+v", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("input %d: got %+v, want %+v", i, got[i], tt.want[i])
				}
			}
		})
	}
}

func TestAnEndlessPasteIsBounded(t *testing.T) {
	var k keys
	k.feed(pasteBegins)
	for range 100 {
		k.feed([]byte(strings.Repeat("y", 4096)))
	}
	if len(k.paste) > maxText || len(k.tail) > len(pasteEnds) {
		t.Errorf("%d bytes are kept", len(k.paste))
	}
	in, ok := k.feed(pasteEnds)
	if !ok || len(in.text) != maxText {
		t.Errorf("%v, %d", ok, len(in.text))
	}
}

// Whatever arrives, a character counts as a key only if it arrived alone, and
// never from within a paste.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("y"), []byte("\x1b[200~"), []byte("y"))
	f.Add([]byte("\x1b[200~y\x1b[20"), []byte("1~"), []byte("y\n"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		var k keys
		for _, burst := range [][]byte{a, b, c} {
			before := k.pasting
			in, ok := k.feed(bytes.Clone(burst))
			if !ok {
				continue
			}
			if (in.text != "") == (in.key != key{}) {
				t.Errorf("%q gave %+v", burst, in)
			}
			if in.key.r != 0 && (before || string(burst) != string(in.key.r)) {
				t.Errorf("%q in a paste (%v) gave the key %q", burst, before, in.key.r)
			}
			if len(in.text) > maxText || strings.ContainsAny(in.text, "\n\r\x1b\x00") {
				t.Errorf("%q gave the text %q", burst, in.text)
			}
		}
	})
}
