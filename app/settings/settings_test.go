package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, text string) (Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.jsonc")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Read(path, Place{Home: "/home/u", AgentDir: "/home/u/.pi/agent"})
	if err != nil && !strings.HasPrefix(err.Error(), path+":") {
		t.Errorf("%q: the error %q does not start with the file", text, err)
	}
	return s, err
}

func TestRead(t *testing.T) {
	s, err := read(t, "{\n  // where\n  \"agentDirs\": [\"~/a\"],\n  \"sessions\": [\"one\", \"two\"], \"hooks\": {\"*\": {\"mode\": \"advise\"}, \"codex\": {\"mode\": \"gate\"}}\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.AgentDirs[0] != "/home/u/a" || s.Session != "one" || s.Frontend != Auto || !s.SelfProtects() {
		t.Errorf("%+v", s)
	}
}

// Each error says where it is and what to do.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"frontend\": \"none\",\n\"frontend\": \"auto\"\n}":            `:3: "frontend" is set twice, in line 2 first`,
		"{\"selfProtection\": true,\n\"SELFPROTECTION\": false}":           `:2: "SELFPROTECTION" is set twice, in line 1 first`,
		"{\"hooks\": {\"*\": {\"mode\": \"gate\", \"mode\": \"advise\"}}}": `:1: "mode" is set twice`,
		"{\"hooks\": {\"\\u002a\": {\"mode\": \"gate\"},\n\"*\": {}}}":     `:2: "*" is set twice`,
		"{\n\"fronted\": \"none\"}":                                        `:2: unknown setting "fronted": the settings are `,
		"{\"frontend\": \"window\"}":                                       `"window" is none of auto, desktop, terminal, none`,
		"{\n\"sessions\": \"one\"}":                                        ":2: sessions: a JSON string stands where a list of strings is meant",
		"{\n":                                                              "mend the syntax",
		"null":                                                             "write the settings in { }",
		"{} {}":                                                            "",
		"{\"adoptDelayMs\": -1}":                                           "not from 0 to 600000",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", text, err, want)
		}
	}
}
