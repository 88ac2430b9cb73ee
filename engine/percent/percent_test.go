package percent

import (
	"net/url"
	"testing"
)

// Decode says what net/url says.
func TestDecode(t *testing.T) {
	for _, text := range []string{"", "a", "%41", "a%2fb%2Fc", "%zz", "%", "%4", "a%", "%25%32%35", "%+1", "%_1", "%00", "%ff", "a b+c", "é%C3%A9"} {
		want, err := url.PathUnescape(text)
		got, ok := Decode(text)
		if ok != (err == nil) || got != want {
			t.Errorf("%q: %q, %v; net/url says %q, %v", text, got, ok, want, err)
		}
	}
}
