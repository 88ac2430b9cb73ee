package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Whoever follows the log sees every line once and in order, also those written
// just before the file was put aside.
func TestFollowThroughRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	const files, lines = 20, 50
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := make(chan string, files*lines)
	done := make(chan error, 1)
	go func() {
		done <- readLog(ctx, path, true, func(line []byte) error { got <- string(line); return nil })
	}()
	next := func(want string) {
		t.Helper()
		select {
		case line := <-got:
			if line != want {
				t.Fatalf("%q came, want %q", line, want)
			}
		case <-ctx.Done():
			t.Fatalf("%q did not come", want)
		}
	}
	for i := range files {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "first of %d\n", i)
		next(fmt.Sprintf("first of %d", i)) // so the reader has this file
		var rest strings.Builder
		for j := range lines {
			fmt.Fprintf(&rest, "%d.%d\n", i, j)
		}
		f.WriteString(rest.String()) // the reader wakes when all of this is over
		if err := errors.Join(f.Close(), os.Rename(path, path+".1")); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // there is a next file at once
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for j := range lines {
			next(fmt.Sprintf("%d.%d", i, j))
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Whoever is slow sees the files that were put aside meanwhile, too.
func TestFollowFarBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "review.jsonl")
	write := func(line string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got []string
	err := readLog(ctx, path, true, func(line []byte) error {
		got = append(got, string(line))
		switch string(line) {
		case "one":
			for i, next := range []string{"two", "three", "four"} {
				for n := i; n > 0; n-- {
					if err := os.Rename(fmt.Sprintf("%s.%d", path, n), fmt.Sprintf("%s.%d", path, n+1)); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Rename(path, path+".1"); err != nil {
					t.Fatal(err)
				}
				write(next)
			}
		case "four":
			cancel()
		}
		return nil
	})
	if want := "one two three four"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v, want %s", got, err, want)
	}
}
