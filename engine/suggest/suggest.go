// Package suggest proposes what "for this session" would grant: a pattern that
// covers the ask at hand and its near relatives, and no more.
package suggest

import (
	"path"
	"strings"
)

// two are the commands whose second word is a sub-command.
const two = " git npm npx pnpm yarn bun deno pip pip3 uv cargo go bundle docker podman kubectl helm gh fly vercel wrangler bazel terraform tofu pulumi systemctl service brew apt apt-get yum dnf hg svn "

// three are the commands and two-word heads whose third word still says what
// is done.
const three = " aws az gcloud "

const threeHeads = "|npm run|npm exec|pnpm run|pnpm exec|pnpm dlx|yarn run|bun run|bun x|deno run|deno task|deno compile" +
	"|uv run|uv pip|go run|bundle exec|docker compose|docker container|docker image|docker network|docker volume" +
	"|podman compose|gh pr|gh issue|gh repo|"

// arity is how many words of a command say what it does. Case does not count.
func arity(words []string) int {
	name := strings.ToLower(words[0])
	if strings.ContainsAny(name, " |") {
		return 1
	}
	if strings.Contains(three, " "+name+" ") {
		return 3
	}
	if len(words) > 1 && !strings.ContainsAny(words[1], "|") &&
		strings.Contains(threeHeads, "|"+name+" "+strings.ToLower(words[1])+"|") {
		return 3
	}
	if strings.Contains(two, " "+name+" ") {
		return 2
	}
	return 1
}

// Bash proposes a pattern for a command, given its words after quote removal
// and its text as typed. With exact, or where an option stands in place of the
// sub-command, it is the text itself. It is empty where no pattern would be
// narrow enough: a wildcard in the text cannot be escaped.
func Bash(words []string, text string, exact bool) string {
	if len(words) == 0 || exact {
		return Exact(text)
	}
	n := min(arity(words), len(words))
	for _, w := range words[1:n] {
		if strings.HasPrefix(w, "-") {
			return Exact(text)
		}
	}
	head := strings.Join(words[:n], " ")
	if strings.ContainsAny(head, "*?") || strings.HasPrefix(head, "glob:") {
		return Exact(text)
	}
	switch {
	case len(words) > n:
		return head + " *"
	case n == 1:
		return head
	default:
		return head + "*"
	}
}

// Exact is text as a pattern for itself alone, empty if a wildcard in it would
// make it more.
func Exact(text string) string {
	if text == "" || strings.ContainsAny(text, "*?") || strings.HasPrefix(text, "glob:") {
		return ""
	}
	return text
}

// Path proposes a pattern for a place, absolute and normalised: everything in
// the directory it is in, but only the place itself where that directory is
// the root or where the place is the home directory or the project.
func Path(place, home, cwd string) string {
	if place == "/" {
		return "/*"
	}
	dir := path.Dir(place)
	if dir == "/" || place == home || place == cwd || len(dir) <= 3 && strings.HasSuffix(strings.TrimSuffix(dir, "/"), ":") {
		return Exact(place)
	}
	if strings.ContainsAny(dir, "*?") {
		return Exact(place)
	}
	return dir + "/*"
}

// Literal proposes a pattern for a path whose directory is not known.
func Literal(typed string) string {
	if strings.HasPrefix(typed, "..") || strings.Contains(typed, "/../") {
		return "" // what it climbs out of is not known
	}
	dir := path.Dir(typed)
	if dir == "." || dir == "/" || strings.ContainsAny(dir, "*?$~") {
		return Exact(typed)
	}
	return dir + "/*"
}

// MCP proposes a pattern for an MCP target: all tools of its server, where the
// target names one, else the target itself. server is the server if it is
// known.
func MCP(target, server string, operation bool) string {
	if operation || strings.HasPrefix(target, "mcp_") {
		return Exact(target)
	}
	if strings.ContainsAny(server, "*?") {
		return Exact(target)
	}
	if server != "" {
		for _, sep := range [...]string{":", "_"} {
			if strings.HasPrefix(target, server+sep) {
				return server + sep + "*"
			}
		}
	}
	for i := 1; i+1 < len(target); i++ {
		if target[i] == ':' || target[i] == '_' {
			if strings.ContainsAny(target[:i], "*?") {
				break
			}
			return target[:i+1] + "*"
		}
	}
	return Exact(target)
}
