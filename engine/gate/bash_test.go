package gate_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
)

var programs = flag.Int("programs", 250, "how many random programs are run by a real bash")

// TestAgainstBash runs random programs in a real bash whose only commands are
// stand-ins: whatever a denied command's stand-in saw run must not have been
// allowed, and must have been denied if the program could be read.
func TestAgainstBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	pieces := []string{
		"rm x", "rm x", "rm", " ", " ", "; ", " && ", " || ", " | ", " & ", "\n", "\n", "$(", ")", "`", "\"", "'", "\\", "(", ")", "{ ", "; }", "if ", "; then ", "; fi", "; else ",
		"while ", "; do ", "; break; done", "for i in a; do ", "; done", "cat <<E\n", "\nE\n", "cat <<'E'\n", "#", "ls", "echo ", "${x:-", "}", "((", "))", "$((", "[[ -n ", " ]]", "case a in a) ", ";; esac",
		"! ", " >f ", "=", "A=", "$'", "$\"", "<<<", "<(", "x", "1", "f() ", "f", "command ", "eval ", "exec ", "r", "m", "{rm,x}", "\\\n", "\t", "$X", "X=rm; ", "* ", "~", "trap '", "' EXIT", "bash -c '", "builtin ", "coproc ", "select ", "until ", "time ",
	}
	w := newWorld(t, denyRm)
	bin := w.root + "/bin"
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"rm": "echo ran >>$RAN", "ls": "exit 0", "cat": "exit 0"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!"+bash+"\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(bash, bin+"/bash"); err != nil {
		t.Fatal(err)
	}
	// The same programs every time, so that a build does not fail by chance;
	// others in a long run.
	seed := uint64(1)
	if os.Getenv("NOD_SOAK") != "" {
		seed = uint64(time.Now().UnixNano())
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	ran := 0
	for i := range *programs {
		text := grown(rnd, 3)
		if i%3 == 0 {
			var b strings.Builder
			for range 2 + rnd.IntN(9) {
				b.WriteString(pieces[rnd.IntN(len(pieces))])
			}
			text = b.String()
		}
		// Each program has a log of its own: some leave a child behind.
		dir := filepath.Join(w.root, "play", strconv.Itoa(i))
		log := dir + ".ran"
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", text)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + bin, "HOME=" + w.home, "RAN=" + log}
		cmd.WaitDelay = time.Second
		_ = cmd.Run() // most programs are nonsense
		cancel()
		if _, err := os.Stat(log); err != nil {
			continue
		}
		ran++
		o := w.bash(text)
		if o.Action == engine.Allow || o.Action == engine.Ask && o.Program.Broken == "" && len(o.Decisive.Pattern) > 0 && o.Decisive.Pattern[0] != '<' {
			t.Errorf("seed %d, program %d ran rm: %q: %s", seed, i, text, show(o))
		}
		if o.Action == engine.Ask {
			t.Logf("asked only: %q: %s", text, show(o))
		}
	}
	t.Logf("%d of %d programs ran the command", ran, *programs)
	if *programs > 1000 && ran < *programs/10 {
		t.Errorf("only %d of %d programs ran the command", ran, *programs)
	}
}

// grown is a random program, mostly a valid one, in which the denied command
// may or may not run.
func grown(rnd *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	sub := func() string { return grown(rnd, depth-1) }
	if depth <= 0 || rnd.IntN(6) == 0 {
		name := pick("rm", "r\\m", "\\rm", "'rm'", "\"rm\"", "r''m", "r\"\"m", "$'rm'", "$'\\x72m'", "$\"rm\"", "'r'm", "rm\\\n", bin(rnd), "{rm,x}", "ls", "echo", ":", "cat")
		arg := pick("x", "'a b'", "\"$X\"", "-f", "a;b", "'a;b'", "#", "a#b", "$((1+1))", "{a,b}", "*", "~", "\\;", "''", ">f", "2>&1", "<<<x", "\"a'b\"", "'a\"b'")
		return pick("", "", "A=1 ", "A='x y' ", ">o ", "2>/dev/null ", "! ", "command ", "builtin command ", "exec ", "A= B+=1 ") + name + " " + arg
	}
	switch rnd.IntN(34) {
	case 0:
		return sub() + pick("; ", "\n", " && ", " || ", " | ", " & ", " |& ", "\n\n", " ;", " &&\n", " |\n") + sub()
	case 1:
		return "(" + sub() + ")"
	case 2:
		return "{ " + sub() + "; }"
	case 3:
		return "if " + sub() + "; then " + sub() + "; else " + sub() + "; fi"
	case 4:
		return "for i in a $(" + sub() + "); do " + sub() + "; done"
	case 5:
		return "while " + sub() + "; do " + sub() + "; break; done"
	case 6:
		return "case a in (b) " + sub() + ";; *) " + sub() + ";; esac"
	case 7:
		return "f() { " + sub() + "; }; f"
	case 8:
		return "echo $(" + sub() + ")"
	case 9:
		return "echo \"a $(" + sub() + ") b\""
	case 10:
		return "echo `" + strings.NewReplacer("`", "\\`", "\\", "\\\\").Replace(sub()) + "`"
	case 11:
		return "cat <(" + sub() + ")"
	case 12:
		return "X=$(" + sub() + ")"
	case 13:
		return "echo ${x:-$(" + sub() + ")}"
	case 14:
		return "cat <<E\n$(" + sub() + ")\nE"
	case 15:
		return "cat <<'E'\n$(" + sub() + ")\nE"
	case 16:
		return "[[ -n $(" + sub() + ") ]]"
	case 17:
		return "(( x = 1$(" + sub() + ") ))"
	case 18:
		return "bash -c '" + strings.ReplaceAll(sub(), "'", `'\\''`) + "'"
	case 19:
		return "eval '" + strings.ReplaceAll(sub(), "'", `'\\''`) + "'"
	case 20:
		return "trap '" + strings.ReplaceAll(sub(), "'", `'\\''`) + "' EXIT"
	case 21:
		return "bash <<'E'\n" + sub() + "\nE"
	case 22:
		return "# " + sub() + "\n" + sub()
	case 23:
		return "echo '" + strings.ReplaceAll(sub(), "'", "") + "'"
	case 24:
		return "coproc { " + sub() + "; }; wait"
	case 25:
		return sub() + " >o 2>&1"
	case 26:
		return "cat <<E; " + sub() + "\nrm x\nE"
	case 27:
		return "time " + sub()
	case 28:
		return "A=(1 $(" + sub() + "))"
	case 29:
		return "echo \"${x:-\"$(" + sub() + ")\"}\""
	case 30:
		return "((" + sub() + "); ls)"
	case 31:
		return "cat <<-E\n\t$(" + sub() + ")\n\tE"
	case 32:
		return "echo $((1 + $(" + sub() + ")))"
	default:
		return "! " + sub()
	}
}

// bin is the denied command by a path.
func bin(rnd *rand.Rand) string {
	return []string{"../../bin/rm", "./../../bin/rm"}[rnd.IntN(2)]
}

// TestNestedBackquotes holds that what two levels of backquotes hide behind
// backslashes is never allowed.
func TestNestedBackquotes(t *testing.T) {
	w := newWorld(t, denyRm)
	quoted := func(s string) string {
		return "echo `" + strings.NewReplacer("`", "\\`", "\\", "\\\\").Replace(s) + "`"
	}
	for _, inner := range []string{"rm x", "exec rm\\\n -f", "# builtin command 'r'm >f\nexec rm\\\n -f", "r\\m x", "\\rm x", "echo a\\\n; rm x", "ls \\# ; rm x"} {
		for level, text := 1, quoted(inner); level <= 3; level, text = level+1, quoted(text) {
			if o := w.bash(text); o.Action == engine.Allow {
				t.Errorf("level %d of %q was allowed: %q", level, inner, text)
			}
		}
	}
}
