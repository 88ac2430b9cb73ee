package suggest

import (
	"strings"
	"testing"
)

func TestBash(t *testing.T) {
	for text, want := range map[string]string{
		"ls": "ls", "ls -l": "ls *", "git": "git", "git status": "git status*", "git status -s": "git status *",
		"GIT status -s": "GIT status *", "npm run": "npm run*", "npm run dev": "npm run dev*", "npm run dev -w": "npm run dev *",
		"aws s3 ls x": "aws s3 ls *", "aws s3": "aws s3*", "git -C d log": "git -C d log", "npm run -s x": "npm run -s x",
		"rm a*": "rm *", "git a*": "", "g?t x": "", "glob:x a": "", "": "",
	} {
		if got := Bash(strings.Fields(text), text, false); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Bash([]string{"sudo", "ls"}, "sudo ls", true); got != "sudo ls" {
		t.Errorf("exact: %q", got)
	}
	if got := Bash([]string{"sudo", "ls", "*"}, "sudo ls *", true); got != "" {
		t.Errorf("exact with a star: %q", got)
	}
}

func TestPath(t *testing.T) {
	for place, want := range map[string]string{
		"/": "/*", "/etc": "/etc", "/etc/hosts": "/etc/*", "/home/u": "/home/u", "/home/u/x": "/home/u/*", "/p/app": "/p/app", "/p/app/a": "/p/app/*",
		"C:/x": "C:/x", "C:/x/y": "C:/x/*", "/a*b/c": "", "/a/*": "/a/*", "/x*": "",
	} {
		if got := Path(place, "/home/u", "/p/app"); got != want {
			t.Errorf("%q: %q, want %q", place, got, want)
		}
	}
	for typed, want := range map[string]string{"a": "a", "a/b": "a/*", "../a": "", "a/../b": "", "~x/y": "~x/y", "$d/a": "$d/a", "*/a": ""} {
		if got := Literal(typed); got != want {
			t.Errorf("literal %q: %q, want %q", typed, got, want)
		}
	}
}

func TestMCP(t *testing.T) {
	for _, tt := range []struct{ target, server, want string }{
		{"exa:search", "", "exa:*"}, {"exa_search", "", "exa_*"}, {"search", "", "search"}, {"mcp_status", "", "mcp_status"},
		{"my_server:tool", "my_server", "my_server:*"}, {"my_server_tool", "my_server", "my_server_*"}, {"a*b:c", "", ""}, {":x", "", ":x"}, {"x:", "", "x:"},
	} {
		if got := MCP(tt.target, tt.server, false); got != tt.want {
			t.Errorf("%q of %q: %q, want %q", tt.target, tt.server, got, tt.want)
		}
	}
}
