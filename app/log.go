package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/reviewlog"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// entry is a line of the review log as nod log reads it.
type entry struct {
	Timestamp string          `json:"timestamp"`
	Event     string          `json:"event"`
	Agent     string          `json:"requesterAgentName"`
	Session   string          `json:"requesterSessionId"`
	Target    string          `json:"targetSessionId"`
	Grant     string          `json:"grantId"`
	Count     *int            `json:"count"` // of grants that were taken back
	Surface   string          `json:"surface"`
	Value     string          `json:"value"`
	Reason    string          `json:"reason"`
	Denial    string          `json:"denialReason"`
	Pattern   string          `json:"pattern"`
	State     string          `json:"state"` // of an ask that has ended
	DecidedBy json.RawMessage `json:"decidedBy"`
}

// logFilter says which entries are printed.
type logFilter struct {
	since    time.Time
	decision string // a key of decisions; empty: all
	agent    string
}

// decisions are the words of --decision and the ends of the events they mean.
var decisions = map[string][]string{
	"approved":  {".approved", ".auto_approved", ".session_approved"},
	"denied":    {".denied", ".auto_denied"},
	"prompted":  {".prompted", ".waiting"},
	"withdrawn": {".withdrawn", ".response_timed_out"},

	// What nobody answered is logged by the event of a denial, by the convention
	// of the log, and tells of it in its state.
	unavailable: {".denied", ".no_serving_session"},
}

const unavailable = string(engine.Unavailable)

func (n *nod) logCommand() *cobra.Command {
	var follow, asJSON bool
	var since age
	var f logFilter
	c := &cobra.Command{
		Use:   "log",
		Short: "Read the review log: who asked what, and what decided",
		Long: `Read the review log: who asked what, and what decided. Only the newest file is read; up to five older ones
of 10 MB each lie beside it.`,
		Example: "  nod log --since 2h --decision denied\n  nod log -f --agent scout",
		RunE: func(c *cobra.Command, _ []string) error {
			if _, ok := decisions[f.decision]; f.decision != "" && !ok {
				return fmt.Errorf("--decision %q is none of approved, denied, unavailable, prompted, withdrawn", f.decision)
			}
			if since > 0 {
				f.since = time.Now().Add(-time.Duration(since))
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return readLog(ctx, n.logPath(), follow, func(line []byte) error { return f.print(n.Stdout, line, asJSON) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written from now on")
	c.Flags().BoolVar(&asJSON, "json", false, "the lines as JSON")
	c.Flags().Var(&since, "since", "only entries younger than `AGE`, such as 30m, 2h or 7d")
	c.Flags().StringVar(&f.decision, "decision", "", "only entries with this `END`: approved, denied, unavailable, prompted or withdrawn")
	c.Flags().StringVar(&f.agent, "agent", "", "only asks of the agent of this `NAME`")
	return c
}

// age is a time.Duration that may be written in days, too.
type age time.Duration

// Set reads s, such as 2h or 7d.
func (a *age) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint16
		_, err = fmt.Sscanf(days+"\n", "%d\n", &n)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d <= 0 {
		return errors.New("write an age such as 30m, 2h or 7d")
	}
	*a = age(d)
	return nil
}

// String is empty where no age is set.
func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Type names the value in messages.
func (*age) Type() string { return "age" }

// print writes one line of the log, if f wants it.
func (f logFilter) print(w io.Writer, line []byte, asJSON bool) error {
	if len(line) == 0 {
		return nil // what ends a line that was cut short
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		if asJSON || f != (logFilter{}) {
			return nil // nobody knows whether it is wanted
		}
		_, err := fmt.Fprintf(w, "(not a log entry) %s\n", visible.Line(string(line), 200))
		return err
	}
	at, err := time.Parse(reviewlog.TimeFormat, e.Timestamp)
	if !f.since.IsZero() && (err != nil || at.Before(f.since)) {
		return nil
	}
	if f.agent != "" && e.Agent != f.agent || f.decision != "" && !e.ends(f.decision) {
		return nil
	}
	if asJSON {
		_, err := fmt.Fprintf(w, "%s\n", visible.JSON(line))
		return err
	}
	when := e.Timestamp
	if err == nil {
		when = at.Local().Format("2006-01-02 15:04:05")
	}
	parts := []string{visible.Line(when, 0), visible.Line(e.what(), 40)}
	if e.Agent != "" && e.Agent != "unknown" {
		parts = append(parts, visible.Line(e.Agent, 40))
	} else if e.Session != "" {
		parts = append(parts, visible.Line(e.Session, 12))
	} else if e.Target != "" {
		parts = append(parts, "session "+visible.Line(e.Target, 40))
	}
	if e.Grant != "" && e.Surface == "" {
		parts = append(parts, "grant "+visible.Line(e.Grant, 40))
	}
	if e.Count != nil {
		parts = append(parts, count(*e.Count, "grant"))
	}
	if e.Surface != "" {
		parts = append(parts, visible.Line(e.Surface+":", 40))
	}
	for _, text := range []string{e.Value, e.Pattern} {
		if text != "" {
			parts = append(parts, visible.Line(text, 0))
		}
	}
	if by := decider(e.DecidedBy); by != "" {
		parts = append(parts, "("+visible.Line(by, 120)+")")
	}
	for _, text := range []string{e.Denial, e.Reason} {
		if text != "" {
			parts = append(parts, "— "+visible.Line(text, 0))
		}
	}
	_, err = fmt.Fprintln(w, strings.Join(parts, "  "))
	return err
}

// ends reports whether the entry tells of such an end.
func (e entry) ends(decision string) bool {
	if strings.HasSuffix(e.Event, ".denied") && (e.State == unavailable) != (decision == unavailable) {
		return false
	}
	return slices.ContainsFunc(decisions[decision], func(suffix string) bool { return strings.HasSuffix(e.Event, suffix) })
}

// what is what happened, in a word.
func (e entry) what() string {
	if e.ends(unavailable) {
		return unavailable
	}
	return e.Event[strings.LastIndexByte(e.Event, '.')+1:]
}

// decider names what decided, the innermost of nested hops.
func decider(raw json.RawMessage) string {
	var s struct {
		Kind     string          `json:"kind"`
		Pattern  string          `json:"pattern"`
		Name     string          `json:"name"`
		Decision json.RawMessage `json:"decision"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	if inner := decider(s.Decision); inner != "" {
		return inner
	}
	return strings.TrimSpace("by " + s.Kind + " " + s.Name + s.Pattern)
}

func errNoLog() error {
	return exit.WithHint(errors.New("there is no review log yet"), "it is made by: nod serve")
}

// readLog calls each with every whole line of the file and, if follow is set,
// with those that come until ctx ends, across rotation.
func readLog(ctx context.Context, path string, follow bool, each func([]byte) error) error {
	var watch *fsnotify.Watcher
	if follow {
		var err error
		if watch, err = fsnotify.NewWatcher(); err != nil {
			return fmt.Errorf("following the review log: %w", err)
		}
		defer watch.Close()
		// The directory, because rotation replaces the file.
		err = watch.Add(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			return errNoLog()
		}
		if err != nil {
			return fmt.Errorf("following the review log: %w", err)
		}
	}
	f, err := reviewlog.Read(path)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && !follow:
		return errNoLog()
	case missing: // it will come
		f = nil
	case err != nil:
		return fmt.Errorf("reading the review log: %w", err)
	}
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	var r *bufio.Reader
	var part []byte
	for {
		// Looked at before reading: a file that has been put aside is written no
		// more, so what is read of it now is all of it.
		aside := follow && replaced(f, path)
		if f != nil {
			if r == nil {
				r = bufio.NewReader(f)
			}
			for {
				line, err := r.ReadBytes('\n')
				part = append(part, line...)
				if err == io.EOF {
					break
				}
				if err != nil {
					return fmt.Errorf("reading the review log: %w", err)
				}
				if err := each(part[:len(part)-1]); err != nil {
					return fmt.Errorf("printing the review log: %w", err)
				}
				part = part[:0]
			}
		}
		if aside {
			was := f
			f, err = reviewlog.ReadNext(path, was)
			if was != nil {
				was.Close()
			}
			r, part = nil, nil
			if err == nil {
				continue
			}
			f = nil // it is made anew with the next entry
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watch.Events:
		case <-watch.Errors:
		}
	}
}

// replaced reports whether path is another file than f.
func replaced(f *os.File, path string) bool {
	now, err := os.Stat(path)
	if err != nil || f == nil {
		return err == nil
	}
	was, err := f.Stat()
	return err != nil || !os.SameFile(was, now)
}
