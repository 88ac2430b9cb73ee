//go:build unix

package agents

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// What an agent writes is read once and whole, whether it is there before the
// hook reads or comes later, and the hook gets ready to wait only if it must.
func TestReadAllOfAPipe(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 3<<10) // fits into a pipe
	for name, tt := range map[string]struct {
		before, after string
		waits         bool
	}{
		"nothing":        {"", "", false},
		"all there":      {long, "", false},
		"the rest later": {long[:5000], long[5000:], true},
		"all of it":      {"", long, true},
		"more than fits": {"x", strings.Repeat(long, 8), true},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := w.WriteString(tt.before); err != nil {
				t.Fatal(err)
			}
			waiting := make(chan struct{})
			waited := false
			h := &Hook{Waiting: func() { waited = true; close(waiting) }}
			written := make(chan error, 1)
			if tt.waits {
				go func() {
					<-waiting
					_, err := w.WriteString(tt.after)
					w.Close()
					written <- err
				}()
			} else {
				w.Close()
				written <- nil
			}
			got, err := h.readAll(t.Context(), r, time.Minute)
			if err != nil || !bytes.Equal(got, []byte(tt.before+tt.after)) {
				t.Errorf("read %d bytes, %v; want %d", len(got), err, len(tt.before+tt.after))
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
			if waited != tt.waits {
				t.Errorf("waited: %v", waited)
			}
		})
	}
}

// A file that is too large is refused, whichever way it is read.
func TestReadAllIsBounded(t *testing.T) {
	name := t.TempDir() + "/in"
	for size, ok := range map[int64]bool{maxInput: true, maxInput + 1: false, maxInput + 2: false, 2 * maxInput: false} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := (&Hook{}).readAll(t.Context(), f, time.Minute)
		f.Close()
		if ok != (err == nil) || ok && int64(len(data)) != size {
			t.Errorf("%d bytes: got %d, %v", size, len(data), err)
		}
	}
}
