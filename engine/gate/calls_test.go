package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/gate"
	"github.com/nod-agents/nod/engine/pattern"
	"github.com/nod-agents/nod/engine/policy"
)

// TestSuggestions is what "for this session" would grant.
func TestSuggestions(t *testing.T) {
	w := newWorld(t, `{"*":"ask","external_directory":"ask","path":{"*.env":"ask"}}`, "../out/s", "link -> ../out/s", "d/")
	bash := func(c string) gate.Call {
		return gate.Call{Tool: "bash", Input: map[string]any{"command": w.in(c)}}
	}
	path := func(tool, p string) gate.Call { return gate.Call{Tool: tool, Input: map[string]any{"path": w.in(p)}} }
	mcp := func(kv ...string) gate.Call {
		in := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			in[kv[i]] = kv[i+1]
		}
		return gate.Call{Tool: "mcp", Input: in}
	}
	for _, tt := range []struct {
		call gate.Call
		want []string
	}{
		{bash("git status"), []string{"bash git status*"}},
		{bash("git"), []string{"bash git"}},
		{bash("git log -3"), []string{"bash git log *"}},
		{bash("git --version"), []string{"bash git --version"}},
		{bash("npm run build"), []string{"bash npm run build*"}},
		{bash("npm exec x -- y"), []string{"bash npm exec x *"}},
		{bash("npm run --silent x"), []string{"bash npm run --silent x"}},
		{bash("pnpm exec a b"), []string{"bash pnpm exec a *"}},
		{bash("pnpm install x"), []string{"bash pnpm install *"}},
		{bash("yarn add x"), []string{"bash yarn add *"}},
		{bash("bun run a b"), []string{"bash bun run a *"}},
		{bash("deno task a b"), []string{"bash deno task a *"}},
		{bash("uv run a b"), []string{"bash uv run a *"}},
		{bash("go run ./x y"), []string{"bash go run ./x *"}},
		{bash("bundle exec a b"), []string{"bash bundle exec a *"}},
		{bash("docker image ls -a"), []string{"bash docker image ls *"}},
		{bash("docker ps -a"), []string{"bash docker ps *"}},
		{bash("podman compose up -d"), []string{"bash podman compose up *"}},
		{bash("kubectl get pods"), []string{"bash kubectl get *"}},
		{bash("aws s3 ls x"), []string{"bash aws s3 ls *"}},
		{bash("aws s3"), []string{"bash aws s3*"}},
		{bash("gcloud compute instances list"), []string{"bash gcloud compute instances *"}},
		{bash("az vm list -o t"), []string{"bash az vm list *"}},
		{bash("gh issue list -L 3"), []string{"bash gh issue list *"}},
		{bash("terraform plan -out x"), []string{"bash terraform plan *"}},
		{bash("systemctl restart x"), []string{"bash systemctl restart *"}},
		{bash("make"), []string{"bash make"}},
		{bash("ls -la"), []string{"bash ls *"}},
		{bash("DOCKER ps -a"), []string{"bash DOCKER ps *"}},
		{bash("docker -H x ps"), []string{"bash docker -H x ps"}},
		{bash("rm a; rm b"), []string{"bash rm a"}},
		{bash("rm a; rm a"), []string{"bash rm *"}},
		{bash("git add a && git commit -m x"), []string{"bash git add *"}},
		{bash("sudo rm x"), []string{"bash sudo rm x"}},
		{bash("find . -name '*.go' -exec ls {} +"), nil},
		{bash("bash -c 'ls'"), []string{"bash bash -c 'ls'"}},
		{bash("$X a"), []string{"bash $X a"}},
		{bash("cat /srv/x"), []string{"external_directory /srv/*"}},
		{bash("cat /x"), []string{"external_directory /x"}},
		{bash("ls > /srv/x"), []string{"external_directory_write /srv/*"}},
		{bash("cat < /srv/x"), []string{"external_directory_read /srv/*"}},
		{bash("cat /srv/x > /srv/y"), []string{"external_directory /srv/*"}},
		{bash("ls > /srv/y 2> /srv/z"), []string{"external_directory_write /srv/*"}},
		{bash("cat < /srv/x > /opt/a/y"), []string{"external_directory_read /srv/*", "external_directory_write /opt/a/*"}},
		{bash("ls ~"), []string{"external_directory @HOME"}},
		{bash("ls ~/a/b"), []string{"external_directory @HOME/a/*"}},
		{bash("cat link"), []string{"external_directory @ROOT/out/*"}},
		{bash("cat a.env d/b.env"), []string{"path @CWD/d/*"}},
		{bash("ls > a.env"), []string{"path_write @CWD/*"}},
		{path("read", "d/x"), []string{"read @CWD/d/*"}},
		{path("read", "x.env"), []string{"path_read @CWD/*"}},
		{path("write", "x.env"), []string{"path_write @CWD/*"}},
		{path("read", "/srv/a"), []string{"external_directory_read /srv/*"}},
		{path("edit", "/srv/a"), []string{"external_directory_write /srv/*"}},
		{path("read", "link"), []string{"external_directory_read @ROOT/out/*"}},
		{path("custom", "/srv/a"), []string{"external_directory /srv/*"}},
		{path("custom", "a"), []string{"custom *"}},
		{gate.Call{Tool: "custom"}, []string{"custom *"}},
		{gate.Call{Tool: "skill", Input: map[string]any{"name": "lib"}}, []string{"skill lib"}},
		{gate.Call{Tool: "skill", Input: map[string]any{"text": "/skill:lib x"}}, nil},
		{mcp("tool", "exa:search"), []string{"mcp exa_*"}},
		{mcp("tool", "search", "server", "exa"), []string{"mcp exa_*"}},
		{mcp("tool", "search"), []string{"mcp search"}},
		{mcp("tool", "a_b_c"), []string{"mcp a_*"}},
		{mcp("describe", "exa:search"), []string{"mcp mcp_describe"}},
		{mcp("search", "web"), []string{"mcp mcp_search"}},
		{mcp("connect", "exa"), []string{"mcp mcp_connect_exa"}},
		{mcp("server", "exa"), []string{"mcp mcp_server_exa"}},
		{mcp(), []string{"mcp mcp_status"}},
	} {
		o := w.gate.Decide(tt.call)
		if o.Action != engine.Ask {
			t.Errorf("%v: %v", tt.call, o.Action)
			continue
		}
		var got []string
		for _, g := range o.Asks()[0].Suggestion {
			got = append(got, g.Surface+" "+g.Pattern)
		}
		want := slices.Clone(tt.want)
		for i := range want {
			want[i] = w.in(want[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: want %q, got %q", tt.call, want, got)
		}
	}
}

// TestAsks lists the asks that would follow each other.
func TestAsks(t *testing.T) {
	w := newWorld(t, `{"*":"ask","path":{"*":"ask"},"bash":{"*":"ask","ls *":"allow"}}`, "f")
	for command, want := range map[string][]string{
		"cat /srv/x":             {"external_directory cat /srv/x", "path /srv/x", "bash cat /srv/x"},
		"cat f; make; ls":        {"path f", "bash cat f", "bash make"},
		"sudo make":              {"bash sudo make"},
		"command make":           {"bash command make", "bash make"},
		"time make":              {"bash time make"},
		"bash -c 'make; ninja'":  {"bash bash -c 'make; ninja'"},
		"make $(ninja)":          {"bash make $(ninja)", "bash ninja"},
		"cat /srv/x /opt/y > /z": {"external_directory cat /srv/x /opt/y > /z", "path /srv/x", "bash cat /srv/x /opt/y"},
		"make 'x":                {"bash make 'x"},
		"ls":                     nil,
	} {
		o := w.bash(command)
		var got []string
		for _, c := range o.Asks() {
			got = append(got, c.Gate+" "+c.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: want %q, got %q", command, want, got)
		}
	}
	read := w.gate.Decide(gate.Call{Tool: "read", Input: map[string]any{"path": "/srv/x"}})
	var got []string
	for _, c := range read.Asks() {
		got = append(got, c.Gate+" "+c.Surface)
	}
	if want := []string{"path path_read", "external_directory external_directory_read", "read read"}; !slices.Equal(got, want) {
		t.Errorf("read: want %q, got %q", want, got)
	}
}

// TestExplanations checks the words an answer gives for a unit.
func TestExplanations(t *testing.T) {
	w := newWorld(t, `{"bash":{"*":"allow","rm *":"deny","git push *":"ask"},"external_directory":"allow"}`)
	for _, tt := range []struct{ command, want string }{
		{"echo $(git push x)", "ask|git push *|git push x|command_substitution|"},
		{"cat <(git push)", "ask|git push *|git push|process_substitution|"},
		{"(git push)", "ask|git push *|git push|subshell|"},
		{"echo $( (git push) )", "ask|git push *|git push|subshell|"},
		{"git -C x push", "ask|git push *|git -C x push||"},
		{"/usr/bin/git push", "ask|git push *|/usr/bin/git push||"},
		{"sudo rm x", "deny|rm *|rm x||rm x"},
		{"sudo ls -l", "ask|<indirection-bash-wrapper>|sudo ls -l||ls -l"},
		{"sudo env A=1 timeout 3 ls  'a b'", "ask|<indirection-bash-wrapper>|sudo env A=1 timeout 3 ls  'a b'||ls  'a b'"},
		{"bash -c \"ls; echo\"", "ask|<opaque-bash-wrapper>|bash -c \"ls; echo\"||ls; echo"},
		{"bash -c 'sudo ls'", "ask|<opaque-bash-wrapper>|bash -c 'sudo ls'||ls"},
		{"bash -c \"$X\"", "ask|<opaque-bash-wrapper>|bash -c \"$X\"||"},
		{"find . -exec ls {} \\;", "ask|<indirection-bash-wrapper>|find . -exec ls {} \\;||ls {}"},
		{"ls | xargs -n1 echo a >o", "ask|<indirection-bash-wrapper>|xargs -n1 echo a||echo a"},
		{"$X y", "ask|<computed-bash-command>|$X y||"},
		{"ls 'x", "ask|<unparseable-bash-command>|ls 'x||"},
		{"A=1 >o git push >p -f", "ask|git push *|git push -f||"},
		{"time -p ls", "ask|<indirection-bash-wrapper>|time -p ls||ls"},
		{"time (ls; ls)", "ask|<indirection-bash-wrapper>|time (ls; ls)||(ls; ls)"},
	} {
		o := w.bash(tt.command)
		d := o.Decisive
		if got := fmt.Sprintf("%v|%s|%s|%s|%s", o.Action, d.Pattern, d.Value, d.Context, d.Executes); got != tt.want {
			t.Errorf("%s:\nwant %s\ngot  %s", tt.command, tt.want, got)
		}
	}
}

// TestToolCalls judges tools that are no shell.
func TestToolCalls(t *testing.T) {
	w := newWorld(t, `{"read":{"*":"allow","*.pem":"deny"},"write":{"*":"deny","src/*":"allow"},"grep":"allow","find":"allow","ls":{"*":"ask","d":"allow"},"custom":"allow","run":"ask",
		"mcp":{"exa:*":"allow"},"external_directory":{"*":"ask","@ROOT/ok/*":"allow"},"path":{"*":"allow","secrets/*":"deny","*.env":"deny"},"skill":{"*":"allow","lib":"ask","bad":"deny"},"bash":"allow"}`,
		"secrets/a", "d/", "src/", "src/up -> ../x.txt", "x.txt", "out -> ../far", "../far/s", "../ok/l -> ../far/s", "@HOME/.pi/agent/n", "@HOME/.pi/agent/leak -> /etc/hosts", "../skills/bad/SKILL.md", "../skills/lib/SKILL.md", "sl -> ../skills")
	w.gate.ShellTools = map[string]gate.ShellTool{"run": {Command: "cmd", Workdir: "dir"}}
	w.gate.Servers = []string{"exa", "my_srv"}
	w.gate.InfrastructureReads = []string{w.root + "/infra", "~/cache", w.root + "/v?/x"}
	w.gate.Skills = []gate.Skill{{Name: "lib", Location: w.root + "/skills/lib/SKILL.md"}, {Name: "bad", Location: w.root + "/skills/bad/SKILL.md"}}
	for _, tt := range []struct {
		tool string
		in   any
		want string
	}{
		{"read", map[string]any{"path": "a"}, "allow"}, {"read", map[string]any{"path": "a.pem"}, "deny"}, {" read ", map[string]any{"path": "a.pem"}, "deny"},
		{"read", map[string]any{"path": ""}, "allow"}, {"read", map[string]any{"path": 5}, "allow"}, {"read", nil, "allow"}, {"read", []any{1}, "allow"},
		{"read", map[string]any{"path": "'a.pem'"}, "deny"}, {"read", map[string]any{"path": "\"@a.pem\""}, "deny"}, {"read", map[string]any{"path": " @a.pem "}, "deny"},
		{"read", map[string]any{"path": "secrets/a"}, "deny"}, {"read", map[string]any{"path": "secrets"}, "allow"}, {"read", map[string]any{"path": "secrets/"}, "deny"},
		{"grep", map[string]any{"path": "secrets", "pattern": "x"}, "deny"}, {"find", map[string]any{"path": "./secrets", "pattern": "x"}, "deny"}, {"grep", map[string]any{"pattern": "x"}, "allow"},
		{"write", map[string]any{"path": "src/a"}, "allow"}, {"write", map[string]any{"path": "a"}, "deny"}, {"write", map[string]any{"path": "src/up"}, "deny"}, {"write", map[string]any{"path": "src/../a"}, "deny"}, {"write", map[string]any{"path": "d/../src/a"}, "allow"},
		{"read", map[string]any{"path": "out/s"}, "ask"}, {"read", map[string]any{"path": "out/new"}, "ask"}, {"read", map[string]any{"path": "@ROOT/ok/x"}, "allow"}, {"read", map[string]any{"path": "@ROOT/ok/../far/s"}, "ask"},
		{"read", map[string]any{"path": "@ROOT/infra/x"}, "allow"}, {"read", map[string]any{"path": "@ROOT/infra"}, "allow"}, {"read", map[string]any{"path": "@ROOT/infra2"}, "ask"}, {"read", map[string]any{"path": "~/cache/a/b"}, "allow"}, {"read", map[string]any{"path": "@ROOT/v1/x/y"}, "allow"}, {"read", map[string]any{"path": "@ROOT/v12/x/y"}, "ask"}, {"ls", map[string]any{"path": "@ROOT/infra/x"}, "ask"},
		{"read", map[string]any{"path": "~/.pi/agent/n"}, "allow"}, {"read", map[string]any{"path": "~/.pi/agent/leak"}, "ask"}, {"read", map[string]any{"path": "~/.pi/agent/../x"}, "ask"}, {"custom", map[string]any{"path": "~/.pi/agent/n"}, "ask"}, {"read", map[string]any{"path": "~/.pi/agent2/n"}, "ask"}, {"read", map[string]any{"path": ".pi/npm/x"}, "allow"},
		{"custom", map[string]any{"path": "a.env"}, "deny"}, {"custom", map[string]any{"path": "/x"}, "ask"}, {"custom", map[string]any{}, "allow"}, {"other", map[string]any{}, "ask"},
		{"mcp", map[string]any{"tool": "exa:x"}, "allow"}, {"mcp", map[string]any{"tool": "exa:x", "arguments": map[string]any{"path": "a.env"}}, "deny"}, {"mcp", map[string]any{"tool": "exa:x", "arguments": map[string]any{"path": "/x"}}, "ask"}, {"mcp", map[string]any{"tool": "exa:x", "arguments": "no"}, "allow"}, {"mcp", map[string]any{"tool": "exa_x"}, "allow"}, {"mcp", map[string]any{"tool": "x", "server": "exa"}, "allow"}, {"mcp", map[string]any{"tool": "x_exa"}, "allow"}, {"mcp", map[string]any{"tool": "o:x"}, "ask"}, {"mcp", map[string]any{"tool": "my_srv_x"}, "ask"}, {"mcp", map[string]any{}, "allow"}, {"mcp", nil, "allow"}, {"mcp", map[string]any{"connect": "o"}, "allow"}, {"mcp", map[string]any{"tool": "", "describe": "o:x"}, "allow"},
		{"skill", map[string]any{"name": "lib"}, "ask"}, {"skill", map[string]any{"name": "bad"}, "deny"}, {"skill", map[string]any{"text": "/skill:bad"}, "deny"}, {"skill", map[string]any{"text": "hello"}, "allow"}, {"skill", map[string]any{"text": "/skill: x"}, "allow"}, {"skill", map[string]any{}, "allow"},
		{"read", map[string]any{"path": "@ROOT/skills/lib/SKILL.md"}, "ask"}, {"read", map[string]any{"path": "@ROOT/skills/bad/x/y"}, "deny"}, {"read", map[string]any{"path": "sl/bad/SKILL.md"}, "deny"},
		{"run", map[string]any{"cmd": "ls"}, "ask"},
		{"run", map[string]any{"cmd": "cat s", "dir": "out"}, "ask"},
	} {
		in := tt.in
		if m, ok := in.(map[string]any); ok {
			if p, ok := m["path"].(string); ok {
				m["path"] = w.in(p)
			}
		}
		if o := w.gate.Decide(gate.Call{Tool: tt.tool, Input: in}); o.Action.String() != tt.want {
			t.Errorf("%s %v: want %s, got %s", tt.tool, tt.in, tt.want, show(o))
		}
	}
}

// TestSessionGrants checks what grants answer and what they do not.
func TestSessionGrants(t *testing.T) {
	w := newWorld(t, `{"bash":{"*":"ask","rm *":"deny"},"external_directory":"ask","read":"ask","path":{"*.env":"ask"}}`, "../o/s", "l -> ../o/s", "../o/far -> ../p/x", "../p/x")
	for _, tt := range []struct{ grants, command, want string }{
		{"bash git *", "git status", "allow"}, {"bash git *", "git status; make", "ask"}, {"bash git *", "/usr/bin/git status", "ask"}, {"bash git *", "'git' status", "allow"}, {"bash git *", "git status; rm x", "deny"}, {"bash *", "rm x", "deny"}, {"bash *", "make", "allow"},
		{"bash *", "sudo make", "ask"}, {"bash sudo *", "sudo make", "ask"}, {"bash sudo make", "sudo make", "allow"}, {"bash sudo make", "sudo  make", "allow"}, {"bash sudo make", "sudo make x", "ask"}, {"bash sudo make", "sudo make; make", "ask"}, {"bash sudo rm x", "sudo rm x", "deny"},
		{"bash bash -c 'make'", "bash -c 'make'", "allow"}, {"bash bash -c make", "bash -c 'make'", "allow"}, {"bash *", "$X", "ask"}, {"bash $X", "$X", "allow"}, {"bash *", "echo 'x", "ask"}, {"bash *", "(make)", "allow"}, {"bash make", "(make)", "allow"}, {"bash make", "make x", "ask"},
		{"bash command *", "command make", "ask"}, {"bash command *|bash make", "command make", "allow"}, {"bash time make", "time make", "allow"}, {"bash make", "make $(ninja)", "ask"},
		{"bash cat *|external_directory @ROOT/o/*", "cat @ROOT/o/s", "allow"}, {"bash cat *|external_directory @ROOT/o/*", "cat l", "allow"}, {"bash cat *|external_directory @CWD/*", "cat l", "ask"}, {"bash cat *|external_directory @ROOT/o/*", "cat @ROOT/o/far", "ask"}, {"bash cat *|external_directory_read @ROOT/o/*", "cat @ROOT/o/s", "ask"}, {"bash cat *|external_directory_read @ROOT/o/*", "cat < @ROOT/o/s", "allow"}, {"bash cat *|external_directory_write @ROOT/o/*", "cat x > @ROOT/o/n", "allow"}, {"bash cat *|external_directory_read @ROOT/o/*", "cat x > @ROOT/o/n", "ask"}, {"bash cat *|external_directory @ROOT/o/*", "cat @ROOT/o/../p/x", "ask"},
		{"bash cat *|path @CWD/*", "cat .env", "allow"}, {"bash cat *|path @CWD/d/*", "cat .env", "ask"},
	} {
		session := engine.NewSessionRules(func() time.Time { return time.Unix(1e9, 0) }, w.gate.Rules.Options())
		scope := engine.Scope{SessionID: "s"}
		for _, g := range strings.Split(tt.grants, "|") {
			surface, text, _ := strings.Cut(w.in(g), " ")
			if _, err := session.Record(engine.NewGrant{Grant: engine.Grant{Surface: surface, Pattern: text}, Scope: scope, Asked: engine.Asked{Surface: surface, Values: []string{text}}}); err != nil {
				t.Fatal(err)
			}
		}
		g := *w.gate
		g.Grants = session.View(scope)
		o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": w.in(tt.command)}})
		if o.Action.String() != tt.want {
			t.Errorf("%s with %s: want %s, got %s", tt.command, tt.grants, tt.want, show(o))
		}
	}
}

// TestYolo lets asks and floors through, and no deny.
func TestYolo(t *testing.T) {
	w := newWorld(t, `{"bash":{"*":"ask","rm *":"deny"},"external_directory":"ask"}`)
	layers, opt := w.gate.Rules.Layers(), w.gate.Rules.Options()
	opt.Yolo = true
	w.gate.Rules = engine.Compile(layers, opt)
	for command, want := range map[string]string{"make": "allow", "sudo make": "allow", "cat /x": "allow", "rm x": "deny", "sudo rm x": "deny", "echo 'x": "allow", "bash -c 'rm x'": "deny"} {
		o := w.bash(command)
		if o.Action.String() != want || want == "allow" && o.Decisive.Origin != engine.OriginYolo || len(o.Asks()) > 0 {
			t.Errorf("%s: want %s, got %s", command, want, show(o))
		}
	}
}

// TestWindows judges paths in Windows notation; nothing is looked up.
func TestWindows(t *testing.T) {
	g := &gate.Gate{Home: `C:\Users\u`, Cwd: `C:\Proj\App`, Flavour: pattern.Windows}
	layer, _, _, err := policy.Parse("p", []byte(`{"permission":{"read":"allow","bash":"allow","path":{"*":"allow","dir/file":"deny","secret\\*":"deny","~/k/*":"deny"}}}`), policy.Nod, g.Home)
	if err != nil {
		t.Fatal(err)
	}
	g.Rules = engine.Compile([]engine.Layer{layer}, engine.Options{Home: g.Home, Cwd: g.Cwd, Flavour: g.Flavour, Now: time.Unix(1e9, 0)})
	for p, want := range map[string]string{
		`c:\proj\app\X`: "allow", `C:/Proj/App/x`: "allow", `sub\x`: "allow", `C:\Proj\App`: "allow", `..\App\x`: "allow", `C:\Proj\App\a\..\b`: "allow", `C:x`: "allow",
		`C:\Proj\App2\x`: "ask", `C:\Proj`: "ask", `D:\x`: "ask", `D:x`: "ask", `..\x`: "ask", `C:\Proj\App\..\x`: "ask", `\\srv\share\x`: "ask", `\Windows`: "ask", `~\x`: "ask", `/etc`: "ask",
		`dir\file`: "deny", `DIR/FILE`: "deny", `secret/x`: "deny", `Secret\X\y`: "deny", `C:\Proj\App\dir\file`: "deny", `~\k\x`: "deny", `c:\users\U\k\x`: "deny",
	} {
		if o := g.Decide(gate.Call{Tool: "read", Input: map[string]any{"path": p}}); o.Action.String() != want {
			t.Errorf("read %s: want %s, got %s", p, want, show(o))
		}
	}
	for c, want := range map[string]string{
		"cat /c/Proj/App/x": "allow", "cat c:/proj/app/x": "allow", "cat 'C:\\Proj\\App\\x'": "allow", "ls > /dev/null": "allow", "cat sub/x": "allow", "cat 'sub\\x'": "allow", "cd sub && cat ../x": "allow", "cd /c/Proj/App && cat x": "allow",
		"cat /d/x": "ask", "cat /c/Proj/x": "ask", "cat C:/Windows/win.ini": "ask", "cat 'D:\\x'": "ask", "cat '..\\x'": "ask", "cat ../x": "ask", "cat /tmp/x": "ask", "ls > 'C:\\x'": "ask", "cd .. && ls": "ask", "cat ~/x": "ask", "cd sub && cat '..\\..\\x'": "ask",
		"cat 'dir\\file'": "deny", "cat dir/file": "deny", "cat DIR/File": "deny", "cat ./dir/file": "deny", "ls > 'secret\\x'": "deny", "cd dir && cat ./file": "deny", "cat /c/proj/app/dir/file": "deny",
	} {
		if o := g.Decide(gate.Call{Tool: "bash", Input: map[string]any{"command": c}}); o.Action.String() != want {
			t.Errorf("%s: want %s, got %s", c, want, show(o))
		}
	}
}
