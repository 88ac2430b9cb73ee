package shell

import (
	"strings"
	"testing"
)

// What a builtin or git runs of the texts that it is given asks, or is seen as a
// command; what only looks like it does not.
func TestEvaluatedTexts(t *testing.T) {
	var rd Reader
	for _, text := range []string{
		"mapfile -C 'rm x' -c 1 a < f", "readarray -tC 'rm x' a", "readarray -C'rm x' a", "complete -C 'rm x' ls", "compgen -C 'rm x'", "compgen -W '$(rm x)'",
		"printf -v 'a[$(rm x)]' y", "printf -v'a[$(rm x)]' y", "test -v 'a[$(rm x)]'", "[ -v 'a[`rm x`]' ]", "[[ -v 'a[$(rm x)]' ]]", "[[ -R 'a[$(rm x)]' ]]", "[[ 'a[$(rm x)]' -eq 1 ]]", "[[ 1 -lt 'a[$(rm x)]' ]]",
		"unset 'a[$(rm x)]'", "unset \"a[\\$(rm x)]\"", "unset a\\[\\$\\(rm\\ x\\)]", "unset 'a[$'\"(rm x)]\"", "unset $'a[\\x24(rm x)]'", "read 'a[$(rm x)]' <<< y", "read -r 'a[b[$(rm x)]]'", "let 'a[$(rm x)]=1'", "builtin let 'a[$(rm x)]=1'",
		"declare 'a[$(rm x)]=1'", "command declare 'a[$(rm x)]=1'", "export 'a[$(rm x)]=1'", "a='b[$(rm x)]'; echo $((a))", "declare a='b[$(rm x)]'", "a='$(rm x)'; echo ${a@P}", "wait -p 'a[$(rm x)]'", "getopts a 'b[$(rm x)]'",
		"set -- 'a[$(rm x)]'; (( $1 ))", "f() { echo $(( $1 + 1 )); }; f 'a[$(rm x)]'", "read x <<< 'a[$(rm x)]'; (( x ))", "read x <<'E'\na[$(rm x)]\nE\n(( x ))", "x=$(echo 'a[$(rm x)]'); [[ x -eq 1 ]]", "for x in 'a[$(rm x)]'; do let x; done", "f() { test -v $1; }; f 'a[`rm x`]'",
		"x='a['; x+='$(rm x)]'; (( x ))", "x='a['; y='$(rm x)]'; (( $x$y ))", "x='$('; y=\"a[${x}rm x)]\"; (( y ))", "k='$(rm x)'; unset \"a[$k]\"", "k='$(rm x)'; read \"a[$k]\" <<< 1", "k='$(rm x)'; printf -v \"a[$k]\" 1", "k='$(rm x)'; test -v \"a[$k]\"",
		"read -r PS4 <<< '$(rm x)'; set -x; ls", "printf -v PS4 '$(rm x)'", "printf -vPATH .", "mapfile -t PS4 < f", "read PATH", "read CDPATH <<< ..; cd x", "for PS4 in '$(rm x)'; do set -x; ls; done", "select PATH in a; do ls; done", ": ${BASH_ENV:=x}", "export \"PATH=.\"", "declare 'PS4+=$(rm x)'", "command export PATH=.", "builtin declare LD_PRELOAD=x",
		"declare -n r=PS4; r='$(rm x)'", "declare -n r; r=PS4", "f() { local -n r=$1; r=1; }; f PATH", "typeset -gn r=PATH", "command declare -n r=PATH",
		"BASH_ALIASES[z]='rm x'", "BASH_CMDS=([ls]=/bin/rm)", "alias \"$X\"", "alias c='command '", "alias e=exec", "alias a='ls;'", "alias q=\"'\"", "fc -s rm", "fc -e - x", "set -H", "set -o histexpand", "x=-c; bash $x 'ls'", "X=-exec; find . $X ls {} +",
		"hash -p /bin/rm ls", "enable -f ./x.so y", "alias ls=$X", "alias ls=\"$(x)\"",
		"git -c alias.x='!rm x' x", "git -c alias.x=push x", "git -calias.x='!rm x' x", "git -C d -c Core.SSHCommand=x fetch", "git -c core.pager='sh x' log", "git -c core.fsmonitor=./x status", "git -c core.hooksPath=h commit", "git -c core.editor='rm x' commit",
		"git -c diff.external=x diff", "git -c filter.a.clean=x add .", "git -c credential.helper='!rm x' fetch", "git -c include.path=x log", "git --config-env=alias.x=Y x", "git --config-env core.sshcommand=Y fetch", "git --exec-path=d status", "git -c gpg.program=x commit -S", "git -c difftool.a.cmd=x difftool",
	} {
		p := rd.Read(text, testEnv)
		asks := p.Broken != ""
		for i := range p.Units {
			asks = asks || len(p.Units[i].Floors) > 0
		}
		if !asks {
			t.Errorf("%q does not ask: %+v", text, p.Units)
		}
	}
	for _, text := range []string{"mapfile -C 'rm x' a", "complete -C 'rm x' ls", "alias ls='rm x'", "git -c alias.x='!rm x' x", "git -c alias.x='!a; rm x' x"} {
		p, seen := rd.Read(text, testEnv), false
		for i := range p.Units {
			seen = seen || p.Units[i].Text == "rm x"
		}
		if !seen {
			t.Errorf("%q hides rm x: %+v", text, p.Units)
		}
	}
	if p := rd.Read("git -c alias.x='push -f' x", testEnv); !strings.Contains(p.Units[len(p.Units)-1].Text, "git push -f") {
		t.Errorf("the alias hides its command: %+v", p.Units)
	}
	for _, text := range []string{
		"mapfile -t a < f", "complete -F f ls", "compgen -W 'a b' x", "printf '%s' 'a[`b`]'", "printf -v a '%s' b", "test -f 'a[1]'", "[[ a[1] -eq 1 ]]", "[[ 'see a[`b`]' == x ]]", "unset 'a[1]'", "read -p '- [ ] `x`: ' a", "let 'a[1]=2'",
		"declare -A a=([b]=c)", "export A='- [ ] run `make`'", "BODY='- [x] $(y)'", "a=${b@Q}", "hash -r", "hash ls", "enable -n test", "alias rm=ls", "alias ll='ls -l'", "echo 'a[$(rm x)]'", "git commit -m 'fix a[$(b)]'", "grep 'a[`b]' f",
		"git -c core.pager=cat log", "git -c core.editor=true rebase --continue", "git -c user.name=x commit", "git -c color.ui=always diff", "git -c core.fsmonitor=false status", "git -c credential.helper= fetch", "git -c pager.log=false log", "git -C a status", "git --exec-path", "git --git-dir=a status", "git config alias.x y",
		"n=$(wc -l < f); (( n > 3 ))", "f() { (( $1 )); }; f 3", "unset \"a[$i]\"", "read -r x; (( x ))", "cat > f <<'E'\na[$(x)]=1\nE\n(( n > 1 ))", "for i in 1 2; do unset \"a[$i]\"; done", "printf -v x y", "read -r a b", "local -n r=a", "export \"A=b\"", ": ${EDITOR:=vi}", "set -euo pipefail", "set -e -u", "fc -l", "alias g=git", "alias la='ls -a | sort'", "d=src; find $d -name '*.go'", "for f in a b; do find $f -type f; done", "find {a,b} -name x",
	} {
		p := rd.Read(text, testEnv)
		if p.Broken != "" {
			t.Errorf("%q is broken: %s", text, p.Broken)
		}
		for i := range p.Units {
			if len(p.Units[i].Floors) > 0 {
				t.Errorf("%q asks: %+v", text, p.Units[i].Floors)
			}
		}
	}
}

// TestGitSettings looks at what `git config` sets: a command counts as one that
// is run, and asks only where it is not known.
func TestGitSettings(t *testing.T) {
	var rd Reader
	for _, c := range []struct{ text, unit string }{
		{"git config core.pager 'rm x'", "rm x"},
		{"git config --global core.editor 'code --wait'", "code --wait"},
		{"git config filter.a.clean 'rm %f'", "rm %f"},
		{"git config credential.helper store", "git credential-store"},
		{"git config credential.helper 'cache --timeout=9'", "git credential-cache --timeout=9"},
		{"git config --global credential.https://a.helper '!rm x'", "rm x"},
		{"git config credential.helper /bin/rm", "/bin/rm"},
		{"git config submodule.a.update '!rm x'", "rm x"},
		{"git config a.b c core.sshCommand 'rm x'", "rm x"},
	} {
		p, seen := rd.Read(c.text, testEnv), false
		for i := range p.Units {
			seen = seen || p.Units[i].Text == c.unit
			if len(p.Units[i].Floors) > 0 {
				t.Errorf("%q asks: %+v", c.text, p.Units[i].Floors)
			}
		}
		if !seen {
			t.Errorf("%q hides %q: %+v", c.text, c.unit, p.Units)
		}
	}
	for _, text := range []string{"git config core.hooksPath /dev/null", "git -c core.hooksPath=/dev/null commit", "git config submodule.a.update rebase", "git config core.pager", "git config --get core.pager", "BROWSER=none npm start", "RUSTC_WRAPPER=sccache cargo build"} {
		if p := rd.Read(text, testEnv); len(p.Units) != 1 || len(p.Units[0].Floors) > 0 {
			t.Errorf("%q asks: %+v", text, p.Units)
		}
	}
	for _, text := range []string{"git config core.hooksPath h", "git config core.pager \"$P\"", "git config include.path f", "git config init.templateDir d", "git config remote.a.vcs x", "git config core.pager 'sudo rm x'", "git config core.editor sh", "BROWSER=x npm start", "PAGER=none git log", "RUSTC_WRAPPER=x cargo build"} {
		floors := 0
		p := rd.Read(text, testEnv)
		for i := range p.Units {
			floors += len(p.Units[i].Floors)
		}
		if floors == 0 {
			t.Errorf("%q does not ask: %+v", text, p.Units)
		}
	}
}

func TestDotFirst(t *testing.T) {
	for text, want := range map[string]bool{
		"!(*.md)": false, "+([0-9])": false, "@(a.b|c.d)": false, "!(*.md|*.txt)": false,
		"@(.env)": true, "@(a|.env)": true, `@(\.env)`: true, "@('.env')": true, "@(a|\\\n.env)": true, "@(@(.env))": true, "@(?(a).env)": true, "@($'.env')": true,
	} {
		if dotFirst(text) != want {
			t.Errorf("%q may stand for a name with a dot in front: %v", text, !want)
		}
	}
}

// TestUnseenInTexts looks at variables in what sed and git run: their names are no
// commands of sed, and what they hold asks where it would run.
func TestUnseenInTexts(t *testing.T) {
	var rd Reader
	for _, text := range []string{"sed \"$expr\" f", "sed -e \"$expr\" f", "sed -n \"$end p\" f", "sed \"${e}d\" f", "sed -n \"$start,$end p\" f", "sed -ne\"${e}p\" f", "sed --expression=\"$edit\" f", "sed -n \"$((e+1))p\" f", "sed -n \"$wide,\\$p\" f", "git send-email --to=a@b --cc c@d f", "tar -cf a --checkpoint=1000 --checkpoint-action=dot d"} {
		if p := rd.Read(text, testEnv); len(p.Units) != 1 || len(p.Units[0].Floors) > 0 {
			t.Errorf("%q runs more: %+v", text, p.Units)
		}
	}
	for _, text := range []string{"sed '$e rm x' f", "sed \"${n}e rm x\" f", "sed \"$n e rm x\" f", "sed -n \"$a,${b}e rm x\" f", "sed -e \"$e\"'e rm x' f", "sed \"\\$e rm x\" f", "git send-email --to-cmd='rm x' f", "git send-email --to-c='rm x' f", "tar -cf a --checkpoint-a='exec=rm x' d"} {
		p, seen := rd.Read(text, testEnv), false
		for i := range p.Units {
			seen = seen || p.Units[i].Text == "rm x"
		}
		if !seen {
			t.Errorf("%q hides rm x: %+v", text, p.Units)
		}
	}
	for _, text := range []string{"git bisect run \"$@\"", "git bisect run $X"} {
		if p := rd.Read(text, testEnv); len(p.Units) < 2 || len(p.Units[1].Floors) == 0 {
			t.Errorf("%q does not ask: %+v", text, p.Units)
		}
	}
	// A program of sed or awk from the input is not seen either; one in a file is
	// the file's.
	for _, text := range []string{"sed -f - f <<< 'e rm x'", "sed -f <(echo e) f", "sed -nf- f", "sed -e p -f /dev/stdin f", "sed --file=- f", "awk -f - <<< x", "awk -f/dev/fd/3 f", "awk --file - f", "gawk -E - f"} {
		if p := rd.Read(text, testEnv); len(p.Units) < 1 || len(p.Units[0].Floors) == 0 {
			t.Errorf("%q does not ask: %+v", text, p.Units)
		}
	}
	for _, text := range []string{"sed -f s.sed -", "sed -n p -", "awk -f p.awk /dev/stdin", "awk -F - '{print}' f", "sed -i.f - f"} {
		if p := rd.Read(text, testEnv); len(p.Units) != 1 || len(p.Units[0].Floors) > 0 {
			t.Errorf("%q asks: %+v", text, p.Units)
		}
	}
}
