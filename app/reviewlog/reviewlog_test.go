package reviewlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestMask(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`git status`, `git status`},
		{`API_TOKEN=abc123 ./deploy`, `API_TOKEN=[masked] ./deploy`},
		{`curl --password hunter2 x`, `curl --password [masked] x`},
		{`curl --password=hunter2 x`, `curl --password=[masked] x`},
		{`{"apiKey": "k-1", "name": "n"}`, `{"apiKey": "[masked]", "name": "n"}`},
		{`curl -H "Authorization: Bearer abc.def" u`, `curl -H "Authorization: [masked]" u`},
		{`git clone https://me:s3cret@host/x.git`, `git clone https://me:[masked]@host/x.git`},
		{`https://host:8080/x`, `https://host:8080/x`},
		{`client_secret: "a \" b" rest`, `client_secret: "[masked]" rest`},
		{`path=src tokenizer=fast author=me`, `path=src tokenizer=fast author=me`},
		{`export AWS_SECRET_ACCESS_KEY='q w'`, `export AWS_SECRET_ACCESS_KEY='[masked]'`},
		{`password=`, `password=`},
		{`TOKEN=ab'c d'"e f"g run`, `TOKEN=[masked] run`},
		{`TOKEN='ab'"cd" run`, `TOKEN=[masked] run`},
		{`TOKEN=a,b}c run`, `TOKEN=[masked] run`},
		{`TOKEN+=ab run`, `TOKEN+=[masked] run`},
		{"curl --password\thunter2 x", "curl --password\t[masked] x"},
		{"curl --password \\\n hunter2 x", "curl --password \\\n [masked] x"},
		{`curl -d "{\"token\": \"abc\", \"n\": 1}" u`, `curl -d "{\"token\": \"[masked]\", \"n\": 1}" u`},
		{`curl -d '{"token": "abc", "n": 1}' u`, `curl -d '{"token": "[masked]", "n": 1}' u`},
		{`sh -c "curl -d \"{\\\"token\\\":\\\"a\\\\\\\"b\\\"}\""`, `sh -c "curl -d \"{\\\"token\\\":\\\"[masked]\\\"}\""`},
		{`curl -H "Cookie: a=b; c=d" u`, `curl -H "Cookie: [masked]" u`},
		{`curl -H 'Authorization: Digest username="u", response="r"' u`, `curl -H 'Authorization: [masked]' u`},
		{"GET / HTTP/1.1\r\nCookie: a=b; c=d\r\nAccept: x", "GET / HTTP/1.1\r\nCookie: [masked]\r\nAccept: x"},
		{`{"authorization": "Bearer abc", "n": 1}`, `{"authorization": "[masked]", "n": 1}`},
		{"auth: Bearer abc\nnext: x", "auth: [masked]\nnext: x"},
		{`authorization=Basic abc run`, `authorization=[masked] run`},
		{`echo "TOKEN=abc" done`, `echo "TOKEN=[masked]" done`},
		{`env "TOKEN=it's" run`, `env "TOKEN=[masked]" run`},
		{`it's TOKEN=abc and`, `it's TOKEN=[masked] and`},
		{`sh -c "export TOKEN=\"abc\" && run"`, `sh -c "export TOKEN=\"[masked]\" && run"`},
	} {
		if got := Mask(c.in); got != c.want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("TOKEN=a --token b \"token\": \"c")
	f.Add("a://b:c@d")
	f.Add(`{\"token\": \"abc\"} 'x' "y" Cookie: a=b; c`)
	f.Fuzz(func(t *testing.T, s string) {
		if got := Mask("password=" + s); len(s) > 0 && isWord(s[0]) && !strings.HasPrefix(got, "password="+mask) {
			t.Errorf("Mask left %q", got)
		}
	})
}

// TestMaskLeavesNothing writes a secret in every way in which a shell joins the
// parts of a word, wherever a name binds it: none of it is left.
func TestMaskLeavesNothing(t *testing.T) {
	const part = "Zq7"
	parts := []string{part, `'` + part + `'`, `"` + part + `"`, `' ` + part + ` '`, `" ` + part + `\" "`, `\ ` + part, `\'` + part, `\"` + part, part + `,` + part, part + `}`, part + `$x`}
	var values []string
	for _, a := range parts {
		for _, b := range append(parts, "") {
			for _, c := range append(parts, "") {
				values = append(values, a+b+c)
			}
		}
	}
	for _, form := range []string{"TOKEN=%s", "export TOKEN=%s; ls", "TOKEN+=%s ls", "run --password %s -v", "run --password=%s -v", "a && TOKEN=%s ls || b", "A='x y' TOKEN=%s ls", `A="it's" TOKEN=%s ls`} {
		for _, v := range values {
			in := strings.Replace(form, "%s", v, 1)
			if got := Mask(in); strings.Contains(got, part) {
				t.Fatalf("Mask(%s) = %s", in, got)
			} else if rest := form[strings.Index(form, "%s")+2:]; !strings.HasSuffix(got, rest) {
				t.Fatalf("Mask(%s) = %s, without %q", in, got, rest)
			}
		}
	}
}

type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

func TestEntry(t *testing.T) {
	var b buffer
	l := New(&b)
	l.Limit(8)
	l.Record("forwarded_permission.prompted", slog.String("requestId", "r"), slog.String("value", "123456789"), slog.String("token", "x"))
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["event"] != "forwarded_permission.prompted" || got["stream"] != "review" || got["requestId"] != "r" {
		t.Errorf("entry %s", b.String())
	}
	if got["value"] != "12345678… (9 characters in all)" || got["token"] != mask {
		t.Errorf("entry %s", b.String())
	}
	if ts, _ := got["timestamp"].(string); len(ts) != len("2006-01-02T15:04:05.000Z") || !strings.HasSuffix(ts, "Z") {
		t.Errorf("timestamp %q", ts)
	}
	if _, ok := got["level"]; ok {
		t.Error("an entry has no level")
	}
}

func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "review.jsonl")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Record("e")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if i, err := os.Stat(p); err != nil || i.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", p, i.Mode(), err, want)
		}
	}
}

// TestRotation writes more than fits: the newest entries are in the file, the
// ones before them in .1 and so on, and the oldest are gone.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Problems(func(text string) { t.Errorf("told %q", text) })
	long := strings.Repeat("x", 1<<20)
	const perFile = maxBytes>>20 - 1 // what is around the megabyte takes the last one
	for i := range (maxOld+2)*perFile + 1 {
		l.Record("e", slog.Int("n", i), slog.String("value", long))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != maxOld+1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	next := 2 * perFile // the first two files are gone
	for _, name := range []string{".5", ".4", ".3", ".2", ".1", ""} {
		i, err := os.Stat(path + name)
		if err != nil {
			t.Fatal(err)
		}
		if i.Mode().Perm() != 0o600 || i.Size() > maxBytes {
			t.Errorf("%s: mode %v, %d bytes", i.Name(), i.Mode(), i.Size())
		}
		data, err := os.ReadFile(path + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var e struct{ N int }
			if err := json.Unmarshal(line, &e); err != nil || e.N != next {
				t.Fatalf("%s: entry %d, %v, want %d", i.Name(), e.N, err, next)
			}
			next++
		}
	}
}

// A line that a full disk or a crash cut short spoils no other.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"cut`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Record("one")
	l.Record("two")
	other, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.WriteString(`{"event":"cut`); err != nil { // by another process
		t.Fatal(err)
	}
	l.Record("three")
	if err := errors.Join(other.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if lines := strings.Split(string(data), "\n"); err != nil || len(lines) != 6 ||
		!strings.Contains(lines[1], "one") || !strings.Contains(lines[2], "two") ||
		!strings.Contains(lines[4], "three") || lines[5] != "" {
		t.Errorf("%q, %v", data, err)
	}
}

// A file that cannot be put aside takes what comes all the same, and says so
// once; older files stay what they are.
func TestNoRoomForOldFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	f := &file{path: path, full: 10, keep: 2}
	defer f.Close()
	var told []string
	f.problems(func(text string) { told = append(told, text) })
	for _, name := range []string{".1", ".2"} {
		if err := os.MkdirAll(filepath.Join(path+name, "of somebody else"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(line string) {
		t.Helper()
		if n, err := f.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	write("one, more than fits\n")
	write("two\n")
	write("three\n")
	if data, err := os.ReadFile(path); string(data) != "one, more than fits\ntwo\nthree\n" {
		t.Errorf("%q, %v", data, err)
	}
	if len(told) != 1 || !strings.Contains(told[0], path) {
		t.Errorf("told %q", told)
	}
	if err := os.RemoveAll(path + ".2"); err != nil {
		t.Fatal(err)
	}
	write("four\n")
	if data, err := os.ReadFile(path); string(data) != "four\n" || len(told) != 2 || told[1] != "" {
		t.Errorf("%q, %v, told %q", data, err, told)
	}
	if _, err := os.Stat(filepath.Join(path+".2", "of somebody else")); err != nil {
		t.Error(err)
	}
}
