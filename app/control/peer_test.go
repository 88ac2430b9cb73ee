package control

import (
	"errors"
	"testing"
)

func TestOnlyOurUserAndRootMayComeIn(t *testing.T) {
	for _, tt := range []struct {
		peer, own int
		ok        bool
	}{{1000, 1000, true}, {0, 1000, true}, {1001, 1000, false}, {65534, 1000, false}, {1000, 0, false}, {0, 0, true}} {
		err := checkUID(tt.peer, tt.own)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrStranger) {
			t.Errorf("user %d at a socket of %d: %v", tt.peer, tt.own, err)
		}
	}
}
