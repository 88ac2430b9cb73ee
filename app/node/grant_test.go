package node

import (
	"testing"

	"github.com/nod-agents/nod/engine"
)

func TestWhatIsWiderThanASuggestionIsNotOffered(t *testing.T) {
	for _, c := range []struct {
		surface, value string
		good, wide     []string
	}{
		{"bash", "make test -j", []string{"make *", "make test *", "make*", "make test -j", "make test -j*"}, []string{"*", "**", "m*", "mak? *", "?ake *", "* -j", "m?k*"}},
		{"bash", "git status", []string{"git *", "git status*"}, []string{"g*", "* status"}},
		{"bash", "'r'm x", []string{"'r'm *", "'r'm x"}, []string{"*"}},
		{"external_directory", "/etc/ssl/a", []string{"/etc/ssl/*", "/etc/ssl/a", "/etc/ssl/a*"}, []string{"*", "/*", "/etc/*", "/e*", "/etc/ss*", "?etc/ssl/a", "glob:/etc/**"}},
		{"read", "/home/u/.ssh/id", []string{"~/.ssh/*", "$HOME/.ssh/*", "/home/u/.ssh/*", "glob:~/.ssh/*"}, []string{"~/*", "/home/u/*", "~*", "glob:~/{.ssh,x}/*"}},
		{"path_read", "~/.ssh/id", []string{"~/.ssh/*", "/home/u/.ssh/*"}, []string{"~/*"}},
		{"write", "src/a.go", []string{"src/*", "src/a.go"}, []string{"*", "./*", "s*", "../*"}},
		{"path", ".env", []string{".env", ".env*"}, []string{"*", ".*", "/*"}},
		{"external_directory", "/x", []string{"/x"}, []string{"/*", "/?"}},
		{"external_directory_read", "/usr/share/", []string{"/usr/*", "/usr/share/*"}, []string{"/*", "/u*"}},
		{"mcp", "exa:search", []string{"exa:*", "exa:search"}, []string{"*", "e*", "exa*"}},
		{"mcp", "exa_search", []string{"exa_*"}, []string{"*"}},
		{"mcp", "mcp_call", []string{"mcp_call"}, []string{"mcp_*", "mcp*"}},
		{"skill", "librarian", []string{"librarian"}, []string{"*", "lib*"}},
		{"web_fetch", "*", []string{"*"}, nil},
	} {
		for want, list := range map[bool][]string{false: c.good, true: c.wide} {
			for _, p := range list {
				if got := tooWide(engine.Grant{Surface: c.surface, Pattern: p}, c.value, "/home/u"); got != want {
					t.Errorf("%s %q for %q: too wide %v", c.surface, p, c.value, got)
				}
			}
		}
	}
}
