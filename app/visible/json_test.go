package visible_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/nod-agents/nod/app/visible"
)

func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "plain", "é", "\u202e\u009b\x7f", "\U000e0041 🚀", "\xff\xc0", "a\\\"b", "\ud7ff\ue000\uffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data, err := json.Marshal(map[string]string{"k" + s: s})
		if err != nil {
			t.Fatal(err)
		}
		got := visible.JSON(data)
		if i := bytes.IndexFunc(got, func(r rune) bool { return r < 0x20 || r >= 0x7f }); i >= 0 {
			t.Fatalf("%q stands in %s", got[i], got)
		}
		var a, b map[string]string
		if err := json.Unmarshal(data, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &b); err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%s reads as %q, not %q: %v", got, b, a, err)
		}
	})
}
