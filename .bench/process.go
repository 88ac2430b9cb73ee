package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// program is a whole process that is measured.
type program struct {
	name  string
	args  []string
	stdin string
	want  string // its output must have it
	// linked: the file is the very one that the linker wrote, not a copy.
	linked bool

	hello *program // what it is compared with; nil: it is one
	wall  []time.Duration
	cpu   []time.Duration
}

// processes runs hello and nod alternately, so that what else the machine does
// falls on all alike, and returns them with what each run took. A program that
// pushes the others out of the processor's caches is in a group of its own.
func processes(bin string, runs int) ([]*program, error) {
	home, err := os.MkdirTemp("", "nod-bench-home")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	proj := filepath.Join(home, "proj")
	config := filepath.Join(home, ".config", "nod")
	for _, dir := range []string{proj, config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	policy := `{"permission": {"*": "ask", "bash": {"*": "ask", "git *": "allow", "git push *": "ask", "rm *": "deny"}}}`
	if err := os.WriteFile(filepath.Join(config, "policy.jsonc"), []byte(policy), 0o600); err != nil {
		return nil, err
	}
	payload := fmt.Sprintf(`{"session_id": "s", "cwd": %q, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "git status"}}`, proj)
	hello := func() *program { return &program{name: "hello", args: []string{"hello"}, want: "hello, world"} }
	check := func(build string) *program {
		return &program{name: "check " + build, args: []string{"nod-" + build, "check", "bash", "git status"}, want: "allow"}
	}
	hook := func(build string) *program {
		return &program{name: "hook " + build, args: []string{"nod-" + build, "hook", "claude-code"}, stdin: payload, want: `"allow"`}
	}
	groups := [][]*program{{hello(), check("headless"), hook("headless")}, {hello(), check("headless")}, {hello(), check("desktop"), hook("desktop")}}
	for _, p := range groups[1] {
		p.linked = true
	}
	var all []*program
	for _, group := range groups {
		for _, p := range group[1:] {
			p.hello = group[0]
		}
		if err := alternate(bin, home, proj, group, runs); err != nil {
			return nil, err
		}
		all = append(all, group...)
	}
	return all, nil
}

// alternate runs a group, whose first is hello.
func alternate(bin, home, proj string, group []*program, runs int) error {
	dirs, err := copies(bin, home, group)
	if err != nil {
		return err
	}
	const warm = 3 // the first runs of a copy find the program's pages
	each := runs / len(dirs)
	for i := range len(dirs) * (warm + each) {
		for _, p := range group {
			// One copy after the other, as whoever measures one program would.
			dir := dirs[i/(warm+each)]
			if p.linked {
				dir = bin
			}
			c := exec.Command(filepath.Join(dir, p.args[0]), p.args[1:]...)
			c.Dir = proj
			c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
			c.Stdin = bytes.NewReader([]byte(p.stdin))
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			start := time.Now()
			err := c.Run()
			wall := time.Since(start)
			if err != nil || !bytes.Contains(out.Bytes(), []byte(p.want)) {
				return fmt.Errorf("%v: %w: %s%s", p.args, err, &out, &errs)
			}
			if i%(warm+each) >= warm {
				p.wall = append(p.wall, wall)
				p.cpu = append(p.cpu, c.ProcessState.UserTime()+c.ProcessState.SystemTime())
			}
		}
	}
	return nil
}

// copies makes a few copies of each program, each written in one piece, as the
// Makefile does. How the system happens to keep the pages of one file makes a
// tenth of the time of a start, for better or worse.
func copies(bin, home string, group []*program) (dirs []string, err error) {
	for i := range 6 {
		dir := filepath.Join(home, "bin", strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		for _, p := range group {
			data, err := os.ReadFile(filepath.Join(bin, p.args[0]))
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(dir, p.args[0]), data, 0o700); err != nil {
				return nil, err
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// median is the one in the middle; of an even number, the upper one.
func median[T ~int64 | ~float64](all []T) T {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
