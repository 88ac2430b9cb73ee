package shell

import (
	"os"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

var testEnv = Env{Home: "/home/u", Cwd: "/proj"}

// check holds a reading against what every reading promises.
func check(t *testing.T, text string, p *Program) {
	t.Helper()
	if p.Broken == "" && !p.Blank && len(p.Units) == 0 {
		t.Errorf("%.200q: something runs, but there is no unit", text)
	}
	if p.Blank && len(p.Units) > 0 {
		t.Errorf("%.200q is blank and runs %q", text, p.Units[0].Text)
	}
	for i := range p.Units {
		u := &p.Units[i]
		if u.Wrapper >= i || u.Wrapper < -1 {
			t.Errorf("%.200q: unit %d is run by unit %d", text, i, u.Wrapper)
		}
		if len(u.Spellings) == 0 || u.Spellings[0] != u.Text || len(u.Words) == 0 && u.Text != strings.TrimSpace(text) {
			t.Errorf("%.200q: unit %d has spellings %q and words %q", text, i, u.Spellings, u.Words)
		}
	}
	for i := range p.Operands {
		o := &p.Operands[i]
		if o.Text == "" || o.Unit >= len(p.Units) {
			t.Errorf("%.200q: operand %+v", text, o)
		}
	}
}

// FuzzRead reads any bytes: it never panics, and what the parser cannot read is
// marked, but for the end of the text closing a here-document, as in bash.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"git status", "cd a && ls | head > out", "sudo -u root rm x", "bash -c 'ls; rm x'", "echo \"$(cat <<E\nx\nE\n)\"", "((rm x); ls)", "cat <<E\nx", "{a,b}{c..f}", "for i in *; do cat $i; done",
		"f() { f; }; f", "x=1; y=$x$x; echo ${y%/*} ${y:-z}", "find . -exec sh -c 'ls' {} +", "eval eval eval ls", "$'\\x00a' \\", "a\x00b", "\xff\xfe", "env -S 'a b'", "case a in (b) ;; esac", "[[ a =~ (b) ]]", "A[$(x)]=1 export B=2",
		"tar cbfI 1 a 'x' y", "git clone -c a.b=c --config", "ssh -o 'ProxyCommand\tx' h -E", "sed -i.e '' -e '/a/e x' --e", "gawk -i x '{print /\"/ > (\"f\")}'", "curl -F 'a=<b,\"' --data-urlencode a@ FILE:/", "sort --o", "find -fprint", "f() { f; g; }; g() { cd a; f() { cd b; }; }; f; g", "cd() { cd; }; cd x", "eval 'f() { f $x; }'; f",
		"while cd ..; do cd ..; done", "popd; pushd +1; cd -", "trap 'x' EXIT; coproc y", "! ! ! x", "time -p", "echo {1..100000}", "${x", "<(", "'", "\"", "`", "echo ~bob ~+ ~- ~/x", "dd if=~/x of=file:///y", "cat file://", "cat file://localhost", "sed -e '/[a]/,$!{s/x/y/e;w f\n}' g", "awk '/\"/{print|\"x\"}' f", "tar cIf 'x y' z", "shopt -s dotglob globstar nocaseglob; cat **/[a]*", "cat !(a|.b)@(c|d)", "x=-c; bash $x 'y'", "declare -n a=$b; (( a[$c] ))", "git -c a=b -C c show HEAD:d",
	} {
		f.Add(s)
	}
	var rd Reader
	f.Fuzz(func(t *testing.T, text string) {
		p := rd.Read(text, testEnv)
		check(t, text, p)
		if len(text) < 1<<12 {
			_, err := syntax.NewParser().Parse(strings.NewReader(text), "")
			if err != nil && p.Broken == "" && !strings.Contains(err.Error(), "unclosed here-document") {
				t.Errorf("%q does not parse (%v), but is not broken", text, err)
			}
		}
	})
}

// TestBounds reads what is made to exhaust a reader. Each must end, in a
// reading or in being broken; the process must not run out of stack.
func TestBounds(t *testing.T) {
	var rd Reader
	openers := []string{
		"(", "((", "$(", "$((", "`", "\"$(", "\"${a:-", "${a:-", "<(", ">(", "{ ", "[[ ", "[[ ! ", "[[ ( ", "[[ a && ", "! ", "if ", "if a; then ", "if a; then b; elif ", "while ", "until a; do ", "for i in $(", "for i in a; do ", "case a in b) ", "select i in a; do ",
		"f() ", "f() { ", "function f { ", "time ", "coproc ", "a|", "a&&", "a||", "a;", "a&", "a\n", "a=(", "a[", "$[", "$((a?b:", "$((a=", "$((a**", "$((!", "$((~", "$((-", "((a,", "{a,", "{a,{b,", "a{b,c}", "{1..9}", "\\", "'", "\"", "$'", "<<E\n", "<<<", ">a ", "sudo ", "env ", "command ", "eval ", "bash -c ", "a=b ", "a=b;", "a=$a$a;", "cd ..;", "cd a;", "cat *;", "x() { x; x; };",
		"sudo -Q a ", "sudo -Q nice -Z ", "env -S ", "find . -exec ", "cd a||cd b;", "cd a;pushd b;", "for i in a b; do cd $i; done;", "while cd a; do cd b; done;", "x=$x/a; cat $x;", "a{b,c} ", "{a,b} ", "a<b ", ">a a ", "cat <<E\nx\nE\n", "eval 'a';", "trap 'a' x;", "${a:-${b:-c}}", "git -c a=b ", "f() { g; };g() { f; };f;", "f() { cd a; f; f; g; };g() { cd b; f; g; };f;", "f() { : a{; };f;", "~/x ", "\x00", "\xff", "#", "~", "*", "[a", "$a", "@(", "a@(b|",
		"sed '/[a/", "sed '1e a\n", "awk '\"a\"|", "x=a;find $x ", "shopt -s globstar dotglob nocaseglob; cat **/", "@(a|.b)", "tar -I a ", "git rebase -x a ", "declare -n a=b;", "alias a='b'\n", "read x;", "'a[$(' ",
	}
	// Anything that takes more than a small multiple of its length would not
	// end here before the test's own deadline. The long form tells more.
	sizes, long := []int{1_000}, 1<<16
	if os.Getenv("NOD_SOAK") != "" {
		sizes, long = []int{100, 3_000, 100_000}, maxText
	}
	for _, o := range openers {
		for _, n := range sizes {
			for _, text := range []string{strings.Repeat(o, n), strings.Repeat(o, n) + " rm x", "ls " + strings.Repeat(o, n)} {
				check(t, text, rd.Read(text, testEnv))
			}
		}
	}
	for _, o := range []string{"(", "$((", "\"$(", "ls;", "[a", "cd a;", "sudo -Q a ", "a{b,c} "} {
		text := strings.Repeat(o, long/len(o))
		check(t, text, rd.Read(text, testEnv))
	}
	if p := rd.Read("f() { : \""+strings.Repeat("a$x", 100_000)+"\"; }; "+strings.Repeat("f;", 1_000), testEnv); p.Broken == "" {
		t.Error("a long function that is called a thousand times is not broken")
	}
	if p := rd.Read("f() { "+strings.Repeat("ls $x; f; ", 3)+"}; f; g() { if f; then f; else f; fi; }; g", testEnv); p.Broken != "" {
		t.Errorf("functions that call themselves are broken: %s", p.Broken)
	}
	grow := "a=xx;" + strings.Repeat("a=$a$a;", 200) + "cat $a"
	check(t, grow, rd.Read(grow, testEnv))
	for _, n := range []int{50, 300, 5_000} {
		for _, pair := range [][2]string{{"$(", ")"}, {"(", ")"}, {"{ ", "; }"}, {"if ", "; then a; fi"}, {"\"$(", ")\""}, {"${a:-", "}"}, {"$((1+", "))"}, {"[[ ( ", " ) ]]"}, {"echo <(", ")"}} {
			text := strings.Repeat(pair[0], n) + "a" + strings.Repeat(pair[1], n)
			check(t, text, rd.Read(text, testEnv))
		}
	}
	deep := rd.Read(strings.Repeat("echo $(", 300)+"rm x"+strings.Repeat(")", 300), testEnv)
	if last := deep.Units[len(deep.Units)-1]; deep.Broken != "" || last.Text != "rm x" {
		t.Errorf("three hundred nested substitutions: %q, broken %q", last.Text, deep.Broken)
	}
	for n, broken := range map[int]bool{1_000: false, maxChoices/2 + 1: true} {
		text := "for x in a b; do ls " + strings.Repeat("$x ", n) + "; done"
		if p := rd.Read(text, testEnv); (p.Broken != "") != broken {
			t.Errorf("%d words of two values: broken %q", n, p.Broken)
		}
	}
	if p := rd.Read(strings.Repeat("a", maxText+1), testEnv); p.Broken == "" {
		t.Error("a text over the limit is not broken")
	}
	if p := rd.Read("cat > f <<'E'\n"+strings.Repeat("if (x) { y[(z)] }\n", 40_000)+"E\n", testEnv); p.Broken != "" || len(p.Units) != 1 {
		t.Errorf("a long quoted here-document is broken: %s", p.Broken)
	}
	if p := rd.Read("echo '"+strings.Repeat("((((", 100_000)+"'", testEnv); p.Broken != "" {
		t.Errorf("a long string is broken: %s", p.Broken)
	}
}
