package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bar is a promise of how fast Nod is.
type bar struct {
	what   string
	figure string
	bar    string
	met    bool
	why    string // what a missed bar is due to
}

// report is the text that goes into the page.
func (b *bench) report(f *figures, procs []*program, load string) string {
	var w strings.Builder
	fmt.Fprintf(&w, "Measured %s on %s, at commit %s, by `make bench`. Load average %s before and %s after.\n\n",
		time.Now().UTC().Format("2006-01-02"), machine(), b.commit(), load, loadAverage())
	bars := b.bars(f, procs)
	w.WriteString("| promise | figure | bar | met |\n| --- | --- | --- | --- |\n")
	for _, r := range bars {
		met := "yes"
		if !r.met {
			met = "**no**: " + r.why
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %s |\n", r.what, r.figure, r.bar, met)
	}
	w.WriteString("\n### One decision, by engine and number of rules\n\n")
	b.decisions(&w, f)
	w.WriteString("\n### A whole bash call with 1,000 rules\n\n")
	w.WriteString("| command | nod | allocations | pi |\n| --- | --- | --- | --- |\n")
	for _, c := range [][2]string{{"status", "`git status`"}, {"pipeline", "`cd src && grep -rn foo . \\| head -20 > out.txt`"}} {
		fmt.Fprintf(&w, "| %s | %s | %s | %s |\n", c[1], f.time("Bash/nod/"+c[0]), f.count("Bash/nod/"+c[0]), f.time("Bash/pi/"+c[0]))
	}
	w.WriteString("\n### Whole processes\n\nMedian of alternating runs, by the clock, and processor time. A group is compared with its own hello.\n\n")
	w.WriteString("| program | clock | processor | of hello's clock | of hello's processor |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range procs {
		hello := p.hello
		if hello == nil {
			hello = p
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %.2f× | %.2f× |\n", title(p), duration(float64(median(p.wall))), duration(float64(median(p.cpu))),
			ratio(median(p.wall), median(hello.wall)), ratio(median(p.cpu), median(hello.cpu)))
	}
	w.WriteString("\n### Idling\n\nTwenty-five seconds each, eight seconds after the last thing that happened.\n\n")
	w.WriteString("| | resident memory | of it anonymous | wake-ups a second | naps of the runtime's monitor | processor |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, who := range [][2]string{{"desktop", "resident on a desktop"}, {"none", "`serve --frontend none`"}} {
		for _, when := range [][2]string{{"started", "just started"}, {"warm", "after 1,000 asks"}, {"asked", "after 10,000 more"}} {
			a := func(name string) float64 { return f.attribute("TestIdleBeforeAndAfter/"+who[0], when[0]+"-"+name) }
			fmt.Fprintf(&w, "| %s, %s | %.1f MB | %.1f MB | %.2f | %.2f | %.3f %% of a core |\n", who[1], when[1], a("mb"), a("anon"), a("wakeups"), a("naps"), a("cpu"))
		}
	}
	return w.String()
}

func title(p *program) string {
	file := ""
	if p.linked {
		file = ", as the linker left it"
	}
	if p.hello == nil {
		return "a static hello, world in Go" + file
	}
	command, build, _ := strings.Cut(p.name, " ")
	return fmt.Sprintf("`nod %s`, %s build%s", command, build, file)
}

// engines are the columns of the table of decisions.
var engines = [...]string{"nod", "cedar-go", "casbin", "opa", "pi"}

func (b *bench) decisions(w *strings.Builder, f *figures) {
	head := [...]string{"nod", "cedar-go " + b.version("github.com/cedar-policy/cedar-go"), "casbin " + b.version("github.com/casbin/casbin/v2"),
		"OPA " + b.version("github.com/open-policy-agent/opa"), "pi " + b.pi()}
	fmt.Fprintf(w, "| rules | %s |\n| --- |%s\n", strings.Join(head[:], " | "), strings.Repeat(" --- |", len(head)))
	row := func(label, ask, size string) {
		fmt.Fprintf(w, "| %s |", label)
		for _, e := range engines {
			name := "Decide/" + e + "/" + ask + "/rules=" + size
			text := f.time(name)
			if n := f.count(name); n != "" {
				text += ", " + n + " allocs"
			}
			fmt.Fprintf(w, " %s |", text)
		}
		w.WriteString("\n")
	}
	for _, s := range [][2]string{{"10", "10"}, {"100", "100"}, {"1,000", "1000"}, {"10,000", "10000"}} {
		row(s[0]+", an early rule decides", "early", s[1])
	}
	for _, s := range [][2]string{{"10", "10"}, {"1,000", "1000"}} {
		row(s[0]+", a mix of questions", "mix", s[1])
	}
}

// bars holds the promises against the figures.
func (b *bench) bars(f *figures, procs []*program) []bar {
	var list []bar
	early := func(engine, size string) float64 {
		v, _ := f.figure("Decide/"+engine+"/early/rules="+size, perDecision)
		return v
	}
	nod := early("nod", "1000")
	allocs, _ := f.figure("Decide/nod/early/rules=1000", "allocs/decision")
	list = append(list,
		bar{"a resolved intent, 1,000 rules", fmt.Sprintf("%s, %.0f allocations", duration(nod), allocs), "300 ns, 0 allocations", nod <= 300 && allocs == 0, "the index is visited more often than it should be"},
		bar{"growth from 10 to 10,000 rules", fmt.Sprintf("%.2f×", early("nod", "10000")/early("nod", "10")), "below linear (1,000×), and not above 2×", early("nod", "10000") <= 2*early("nod", "10"), "rules that cannot match are visited"},
		bar{"against cedar-go, 1,000 rules", fmt.Sprintf("%.0f× sooner", early("cedar-go", "1000")/nod), "50×", early("cedar-go", "1000") >= 50*nod, "see the decision itself"})
	if pi := early("pi", "1000"); pi > 0 {
		list = append(list, bar{"against pi's engine, 1,000 rules", fmt.Sprintf("%.0f× sooner", pi/nod), "1,000×", pi >= 1000*nod, "see the decision itself"})
	}
	bash := func(c string) float64 {
		v, _ := f.figure("Bash/nod/"+c, perDecision)
		return v
	}
	const bashWhy = "see the profile below"
	list = append(list,
		bar{"`git status`, whole", duration(bash("status")), "8 µs", bash("status") <= 8000, bashWhy},
		bar{"`cd src && grep … > out.txt`, whole", duration(bash("pipeline")), "25 µs", bash("pipeline") <= 25_000, bashWhy})
	answer, _ := f.figure("Answer/nod", "ms-median")
	poll, _ := f.figure("Answer/poll-250ms", "ms-median")
	list = append(list, bar{"ask to answer by rule", fmt.Sprintf("%.2f ms, where a 250 ms poll takes %.0f ms: %.0f× sooner", answer, poll, poll/answer), "50×", poll >= 50*answer, "files are written and read at either end"})
	if notify := f.attribute("TestLatency", "to-notify"); notify > 0 {
		list = append(list, bar{"ask to the Notify call, whole desktop", fmt.Sprintf("%.2f ms, where a 250 ms poll has not seen the ask for %.0f ms: %.0f× sooner", notify, poll, poll/notify), "50×", poll >= 50*notify, "posting a note takes 0.3 ms of it and an answer by rule is out in 1 ms; the rest, from the board to the bus, is not profiled yet"})
	}
	for _, p := range procs {
		if p.hello == nil || p.linked {
			continue // the promise is for a program that was installed
		}
		wall := ratio(median(p.wall), median(p.hello.wall))
		why := "packages that start before the answer, and faults on a bigger program: see the profile below"
		if strings.HasSuffix(p.name, "desktop") {
			why = "some of the toolkit's packages start before the answer, and the loader binds the window libraries: see the profile below"
		}
		list = append(list, bar{title(p) + ", whole process", fmt.Sprintf("%s, %.2f× hello", duration(float64(median(p.wall))), wall), "1.5×", wall <= 1.5, why})
	}
	for _, who := range [][2]string{{"desktop", "resident on a desktop"}, {"none", "`serve --frontend none`"}} {
		a := func(name string) float64 { return f.attribute("TestIdleBeforeAndAfter/"+who[0], name) }
		list = append(list, bar{who[1] + ", flat after 10,000 asks", fmt.Sprintf("%.1f MB after 1,000, %.1f MB after 11,000", a("warm-mb"), a("asked-mb")), "at most 2 MB more", a("asked-mb") <= a("warm-mb")+2, "the heap keeps pages of the burst"})
	}
	return list
}

const perDecision = "cpu-ns/decision"

// time is a benchmark's median processor time.
func (f *figures) time(name string) string {
	v, ok := f.figure(name, perDecision)
	if !ok {
		return "not measured"
	}
	return duration(v)
}

// count is a benchmark's allocations, empty if they are not known.
func (f *figures) count(name string) string {
	v, ok := f.figure(name, "allocs/decision")
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.0f", v)
}

// duration prints ns with three digits.
func duration(ns float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if ns >= u.size {
			v := ns / u.size
			switch {
			case v < 10:
				return fmt.Sprintf("%.2f %s", v, u.name)
			case v < 100:
				return fmt.Sprintf("%.1f %s", v, u.name)
			}
			return fmt.Sprintf("%.0f %s", v, u.name)
		}
	}
	return fmt.Sprintf("%.0f ns", ns)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func (b *bench) commit() string {
	out, err := exec.CommandContext(b.ctx, "git", "-C", b.root, "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// version is that of a module the peers are required in.
func (b *bench) version(module string) string {
	out, err := b.do(".bench", nil, "go", "list", "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(out), "v")
}

// pi is the version of pi's engine.
func (b *bench) pi() string {
	if b.node == "" || b.clients == "" {
		return "(not installed)"
	}
	out, err := exec.CommandContext(b.ctx, b.node, "-p", "JSON.parse(require('fs').readFileSync(process.argv[1])).version",
		filepath.Join(b.clients, "@gotgenes", "pi-permission-system", "package.json")).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
