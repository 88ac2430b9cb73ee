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
// "name": "value", name: value, scheme://user:value@host. Text that no key
// names stays as it is.
func Mask(s string) string {
	if !strings.ContainsAny(s, "=:") && !strings.Contains(s, "--") {
		return s
	}
	var b strings.Builder
	last := 0
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
		from, to, ok := bound(s, i, flag, name)
		if !ok {
			if from, to, ok = userInfo(s, i); !ok {
				continue
			}
		} else if !sensitive(name) {
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

// bound finds the value that the name ending at i binds.
func bound(s string, i int, flag bool, name string) (from, to int, ok bool) {
	j := i
	if j < len(s) && (s[j] == '"' || s[j] == '\'') {
		j++
	}
	k := j
	for k < len(s) && s[k] == ' ' {
		k++
	}
	switch {
	case k < len(s) && (s[k] == ':' || s[k] == '=') && !strings.HasPrefix(s[k:], "://"):
		k++
		for k < len(s) && s[k] == ' ' {
			k++
		}
	case flag && k > j:
	default:
		return 0, 0, false
	}
	from, to = value(s, k)
	// An HTTP header names its scheme before the secret.
	if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "proxy-authorization") {
		if rest := strings.TrimLeft(s[to:], " "); to > from && to < len(s) && s[to] == ' ' && rest != "" {
			_, to = value(s, len(s)-len(rest))
		}
	}
	return from, to, to > from
}

// value is the extent of the word or quoted text at k, without its quotes.
func value(s string, k int) (from, to int) {
	if k < len(s) && (s[k] == '"' || s[k] == '\'') {
		q := s[k]
		for to = k + 1; to < len(s) && s[to] != q; to++ {
			if s[to] == '\\' && q == '"' && to+1 < len(s) {
				to++
			}
		}
		return k + 1, to
	}
	for to = k; to < len(s) && !strings.ContainsRune(" \t\r\n,;&|)}]\"'", rune(s[to])); to++ {
		if s[to] == '\\' && to+1 < len(s) {
			to++
		}
	}
	return k, to
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
