package reviewlog

import "strings"

// mask stands where a secret stood.
const mask = "[masked]"

// words make a key sensitive when they are one of its parts: API_TOKEN,
// authToken, --client-secret.
var words = []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "credential", "credentials", "authorization", "bearer", "privatekey", "accesskey", "pat", "pwd", "auth", "cookie"}

// sensitive reports whether a key name says that its value is a secret.
func sensitive(key string) bool {
	joined := ""
	for _, part := range keyParts(key) {
		joined += part
		for _, w := range words {
			if part == w {
				return true
			}
		}
	}
	for _, w := range []string{"apikey", "accesskey", "privatekey", "secretkey", "authtoken"} {
		if strings.Contains(joined, w) {
			return true
		}
	}
	return false
}

// keyParts splits a name at case changes and at anything that is no letter or
// digit, in lower case.
func keyParts(key string) []string {
	var parts []string
	start := -1
	for i := 0; i <= len(key); i++ {
		word := i < len(key) && isWord(key[i])
		if start >= 0 && (!word || upper(key[i]) && !upper(key[i-1])) {
			parts = append(parts, strings.ToLower(key[start:i]))
			start = -1
		}
		if word && start < 0 {
			start = i
		}
	}
	return parts
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || upper(c) || c >= '0' && c <= '9'
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// Mask replaces every value that a sensitive key name binds in s, as shells,
// JSON, YAML, URLs and HTTP headers write it: NAME=value, --name value,
// "name": "value", name: value, scheme://user:value@host. A value is a word, or
// quoted text; that of a header goes on to the end of its line or quotes. Text
// that no key names stays as it is.
func Mask(s string) string {
	if !strings.ContainsAny(s, "=:") && !strings.Contains(s, "--") {
		return s
	}
	var b strings.Builder
	last := 0
	var around quoting
	for i := 0; i < len(s); {
		if !isWord(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && (isWord(s[i]) || s[i] == '_' || s[i] == '-' || s[i] == '.') {
			i++
		}
		name := s[start:i]
		flag := start >= 2 && s[start-2:start] == "--"
		from, by, ok := bound(s, i, flag)
		to := from
		switch {
		case ok && sensitive(name):
			from, to = value(s, from, by, around.at(s, from), header(name))
		case !ok:
			from, to, _ = userInfo(s, i)
		}
		if to <= from {
			continue
		}
		b.WriteString(s[last:from])
		b.WriteString(mask)
		last, i = to, to
	}
	if last == 0 {
		return s
	}
	b.WriteString(s[last:])
	return b.String()
}

// header tells the HTTP headers whose value is more than a word.
func header(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		return true
	}
	return false
}

// quoting follows in which of a shell's quotes a text is.
type quoting struct {
	read  int  // up to there
	quote byte // that is open there, or 0
}

// at returns the quote that is open at i. It must not be asked about an i
// before the last.
func (q *quoting) at(s string, i int) byte {
	for ; q.read < i; q.read++ {
		switch c := s[q.read]; {
		case c == '\\' && q.quote != '\'':
			q.read++
		case c == q.quote:
			q.quote = 0
		case q.quote == 0 && isQuote(c):
			q.quote = c
		}
	}
	return q.quote
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

// blanks is where the blanks at i end. A line that a shell continues is one.
func blanks(s string, i int) int {
	for {
		switch {
		case i < len(s) && (s[i] == ' ' || s[i] == '\t'):
			i++
		case strings.HasPrefix(s[i:], "\\\n"):
			i += 2
		default:
			return i
		}
	}
}

// opening is where the quote that begins at i ends, i if none does. In a text
// that is quoted itself it has backslashes before it.
func opening(s string, i int) int {
	k := i
	for k < len(s) && s[k] == '\\' {
		k++
	}
	if k < len(s) && isQuote(s[k]) {
		return k + 1
	}
	return i
}

// bound finds where the value begins that the name ending at i binds, and by
// what: '=', ':', or a blank after a flag.
func bound(s string, i int, flag bool) (from int, by byte, ok bool) {
	j := opening(s, i)
	k := blanks(s, j)
	switch {
	case strings.HasPrefix(s[k:], "+="):
		return blanks(s, k+2), '=', true
	case k < len(s) && (s[k] == ':' || s[k] == '=') && !strings.HasPrefix(s[k:], "://"):
		return blanks(s, k+1), s[k], true
	}
	return k, ' ', flag && k > j
}

// value is the extent of what stands at k, without the quotes around all of it.
// by binds it, and quote is open there.
func value(s string, k int, by, quote byte, header bool) (from, to int) {
	if open := opening(s, k); open > k+1 && (quote != 0 || by == ':') {
		return escaped(s, k, open)
	}
	if k < len(s) && isQuote(s[k]) && s[k] != quote {
		to = closing(s, k)
		after := min(to+1, len(s))
		if quote != 0 || after == len(s) || strings.IndexByte(" \t\r\n,;&|)}]:", s[after]) >= 0 {
			return k + 1, to
		}
		header = false
	}
	ends := " \t\r\n;&|)"
	switch {
	case header && by == ':':
		ends = "\r\n"
	case by == ':':
		ends += ",}]"
	}
	if to = word(s, k, ends, quote); to < len(s) && s[to] == ' ' && scheme(s[k:to]) {
		to = word(s, blanks(s, to), ends, quote)
	}
	return k, to
}

// word is where the word at k ends, of which a shell may have parts quoted.
func word(s string, k int, ends string, quote byte) (to int) {
	for to = k; to < len(s) && s[to] != quote && strings.IndexByte(ends, s[to]) < 0; to++ {
		switch {
		case quote == 0 && isQuote(s[to]):
			to = min(closing(s, to), len(s)-1)
		case s[to] == '\\' && quote != '\'' && to+1 < len(s):
			if quote != 0 && s[to+1] == quote {
				return to // of a quoted text within
			}
			to++
		}
	}
	return to
}

// scheme tells the words before the secret itself.
func scheme(word string) bool {
	switch strings.ToLower(word) {
	case "bearer", "basic", "token":
		return true
	}
	return false
}

// closing is where the quote at k is closed, or the end of s.
func closing(s string, k int) int {
	to := k + 1
	for ; to < len(s) && s[to] != s[k]; to++ {
		if s[to] == '\\' && s[k] == '"' && to+1 < len(s) {
			to++
		}
	}
	return to
}

// escaped is the extent of a text whose quote has backslashes before it, from k
// up to open: it ends at a quote that has no more of them.
func escaped(s string, k, open int) (from, to int) {
	slashes := 0
	for to = open; to < len(s); to++ {
		switch {
		case s[to] == '\\':
			slashes++
			continue
		case s[to] == s[open-1] && slashes < open-k:
			return open, to - slashes
		}
		slashes = 0
	}
	return open, to
}

// userInfo finds the password of scheme://user:password@host, where the scheme
// ends at i.
func userInfo(s string, i int) (from, to int, ok bool) {
	if !strings.HasPrefix(s[i:], "://") {
		return 0, 0, false
	}
	end := i + 3
	for end < len(s) && !strings.ContainsRune(" \t\r\n/?#\"'", rune(s[end])) {
		end++
	}
	authority := s[i+3 : end]
	at, colon := strings.LastIndexByte(authority, '@'), strings.IndexByte(authority, ':')
	if at < 0 || colon < 0 || colon > at {
		return 0, 0, false
	}
	return i + 3 + colon + 1, i + 3 + at, at > colon+1
}
