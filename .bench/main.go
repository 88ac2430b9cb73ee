// Bench measures Nod beside its peers, in one run on one machine, and writes
// the figures into docs/performance.md between two markers. Run it by make
// bench, in .bench.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	root := flag.String("root", "..", "the `directory` of Nod's source")
	clients := flag.String("clients", "", "a `directory` with pi's node_modules; empty: pi's engine is not measured")
	node := flag.String("node", "", "the `program` that runs pi's engine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *root, *clients, *node); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, clients, node string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "nod-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	b := &bench{ctx: ctx, root: root, bin: bin, clients: clients, node: node}
	began := time.Now()
	text, err := b.all()
	if err != nil {
		return err
	}
	b.say("measured for %v", time.Since(began).Round(time.Second))
	return rewrite(filepath.Join(root, "docs", "performance.md"), text)
}

// bench is one run.
type bench struct {
	ctx           context.Context
	root, bin     string
	clients, node string
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// all measures everything and returns it as text.
func (b *bench) all() (string, error) {
	load := loadAverage()
	if err := b.build(); err != nil {
		return "", err
	}
	b.say("one set of rules, every engine")
	peers, err := b.test(".bench", nil, "./peers", "-bench", ".", "-skip", "^BenchmarkBash$", "-benchtime", "40ms", "-count", "5")
	if err != nil {
		return "", err
	}
	// In a process of its own: collecting what the other engines keep of their
	// rules is not to be paid by these.
	bash, err := b.test(".bench", nil, "./peers", "-run", "^$", "-bench", "^BenchmarkBash$", "-benchtime", "200ms", "-count", "5")
	if err != nil {
		return "", err
	}
	b.say("answers, and a peer that polls")
	answers, err := b.test(".", nil, "./forwarding", "-run", "^$", "-bench", "^BenchmarkAnswer$", "-benchtime", "30x", "-count", "3")
	if err != nil {
		return "", err
	}
	b.say("whole processes")
	procs, err := processes(b.bin, 400)
	if err != nil {
		return "", err
	}
	b.say("notifications")
	e2e := []string{"NOD_E2E=1", "NOD_BENCH=1", "NOD_BINARY=" + filepath.Join(b.bin, "nod-desktop")}
	latency, err := b.test(".", e2e, "-tags", "gles", "./app/e2e", "-v", "-run", "^TestLatency$", "-count", "3")
	if err != nil {
		return "", err
	}
	b.say("idling, before and after 10,000 asks")
	idle, err := b.test(".", e2e, "-tags", "gles", "./app/e2e", "-v", "-run", "^TestIdleBeforeAndAfter$")
	if err != nil {
		return "", err
	}
	f := figures{benchmarks: map[string][]float64{}, attributes: map[string][]float64{}}
	for _, out := range []string{peers, bash, answers, latency, idle} {
		f.read(out)
	}
	return b.report(&f, procs, load), nil
}

// build makes the programs that are measured, with the flags of the Makefile,
// so that the C parts of the desktop are compiled already, and hello.
func (b *bench) build() error {
	b.say("building")
	small := []string{"-trimpath", "-ldflags", "-s -w"}
	for _, p := range []struct {
		name, dir string
		env       string
		args      []string
	}{
		{"hello", ".bench/hello", "CGO_ENABLED=0", small},
		{"nod-headless", ".", "CGO_ENABLED=0", append([]string{"-tags", "headless"}, small...)},
		{"nod-desktop", ".", "CGO_ENABLED=1", []string{"-tags", "gles"}},
	} {
		args := append([]string{"build", "-o", filepath.Join(b.bin, p.name)}, p.args...)
		if _, err := b.do(p.dir, []string{p.env}, "go", append(args, ".")...); err != nil {
			return err
		}
	}
	return nil
}

// test runs go test and returns what it printed.
func (b *bench) test(dir string, env []string, args ...string) (string, error) {
	if b.node != "" && b.clients != "" {
		env = append(env, "NOD_BENCH_NODE="+b.node, "NOD_BENCH_PI="+b.clients)
	}
	return b.do(dir, env, "go", append([]string{"test", "-count", "1"}, args...)...)
}

func (b *bench) do(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(b.ctx, name, args...)
	c.Dir = filepath.Join(b.root, dir)
	c.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &out)
	}
	return out.String(), nil
}

// figures are what the tests have measured.
type figures struct {
	benchmarks map[string][]float64 // by benchmark and unit, one for each count
	attributes map[string][]float64 // by test and name, one for each count
}

// read takes the lines of benchmarks and of testing.T.Attr.
func (f *figures) read(out string) {
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if rest, ok := strings.CutPrefix(line, "=== ATTR"); ok {
			if w := strings.Fields(rest); len(w) == 3 {
				if v, err := number(w[2]); err == nil {
					f.attributes[w[0]+" "+w[1]] = append(f.attributes[w[0]+" "+w[1]], v)
				}
			}
			continue
		}
		w := strings.Fields(line)
		if len(w) < 4 || !strings.HasPrefix(w[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(w[0], "Benchmark")
		name = strings.TrimSuffix(name, "-"+strconv.Itoa(runtime.GOMAXPROCS(0)))
		for i := 2; i+1 < len(w); i += 2 {
			if v, err := strconv.ParseFloat(w[i], 64); err == nil {
				f.benchmarks[name+" "+w[i+1]] = append(f.benchmarks[name+" "+w[i+1]], v)
			}
		}
	}
}

// figure is the median of a benchmark's counts; ok is false if it did not run.
func (f *figures) figure(name, unit string) (v float64, ok bool) {
	all := f.benchmarks[name+" "+unit]
	return median(all), len(all) > 0
}

// attribute is the median of what a test has noted; of a duration, in ms. It
// is -1 if there is none.
func (f *figures) attribute(test, name string) float64 {
	all := f.attributes[test+" "+name]
	if len(all) == 0 {
		return -1
	}
	return median(all)
}

// number reads a number, or a duration as its ms.
func number(text string) (float64, error) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, nil
	}
	d, err := time.ParseDuration(text)
	return d.Seconds() * 1000, err
}

// rewrite puts text between the markers of a file.
func rewrite(file, text string) error {
	const begin, end = "<!-- figures: make bench writes what is between these lines -->\n", "<!-- end of figures -->"
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return errors.New(file + " lacks the lines between which the figures stand")
	}
	fresh := file + ".new"
	if err := os.WriteFile(fresh, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}

// loadAverage is how many programs wanted a processor in the last minute.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// machine says what was measured on.
func machine() string {
	model := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := ""
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel, _, _ = strings.Cut(strings.TrimSpace(string(data)), "-")
	}
	return fmt.Sprintf("%d cores of %s, %s %s, %s", runtime.NumCPU(), model, runtime.GOOS, kernel, runtime.Version())
}
