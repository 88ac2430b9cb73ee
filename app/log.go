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
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/reviewlog"
	"github.com/nod-agents/nod/app/visible"
)

// entry is a line of the review log as nod log reads it.
type entry struct {
	Timestamp string          `json:"timestamp"`
	Event     string          `json:"event"`
	Agent     string          `json:"requesterAgentName"`
	Session   string          `json:"requesterSessionId"`
	Surface   string          `json:"surface"`
	Value     string          `json:"value"`
	Reason    string          `json:"reason"`
	Denial    string          `json:"denialReason"`
	Pattern   string          `json:"pattern"`
	DecidedBy json.RawMessage `json:"decidedBy"`
}

// logFilter says which entries are printed.
type logFilter struct {
	since    time.Time
	decision string // approved, denied, prompted, withdrawn; empty: all
	agent    string
}

// decisions are the words of --decision and the ends of the events they mean.
var decisions = map[string][]string{
	"approved":  {".approved", ".auto_approved", ".session_approved"},
	"denied":    {".denied", ".auto_denied"},
	"prompted":  {".prompted", ".waiting"},
	"withdrawn": {".withdrawn", ".response_timed_out"},
}

func (n *nod) logCommand() *cobra.Command {
	var follow, asJSON bool
	var since time.Duration
	var f logFilter
	c := &cobra.Command{
		Use:     "log",
		Short:   "Read the review log: who asked what, and what decided",
		Example: "  nod log --since 2h --decision denied\n  nod log -f --agent scout",
		RunE: func(c *cobra.Command, _ []string) error {
			if _, ok := decisions[f.decision]; f.decision != "" && !ok {
				return fmt.Errorf("--decision %q is none of approved, denied, prompted, withdrawn", f.decision)
			}
			if since < 0 {
				return errors.New("--since must not be negative")
			}
			if since > 0 {
				f.since = time.Now().Add(-since)
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return readLog(ctx, n.logPath(), follow, func(line []byte) error { return f.print(n.Stdout, line, asJSON) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written from now on")
	c.Flags().BoolVar(&asJSON, "json", false, "the lines as JSON")
	c.Flags().DurationVar(&since, "since", 0, "only entries younger than this, such as 2h")
	c.Flags().StringVar(&f.decision, "decision", "", "only approved, denied, prompted or withdrawn")
	c.Flags().StringVar(&f.agent, "agent", "", "only asks of the agent of this `NAME`")
	return c
}

// print writes one line of the log, if f wants it.
func (f logFilter) print(w io.Writer, line []byte, asJSON bool) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		_, err := fmt.Fprintf(w, "(not a log entry) %s\n", visible.Line(string(line), 200))
		return err
	}
	at, err := time.Parse(reviewlog.TimeFormat, e.Timestamp)
	if !f.since.IsZero() && (err != nil || at.Before(f.since)) {
		return nil
	}
	if f.agent != "" && e.Agent != f.agent || f.decision != "" && !e.ends(decisions[f.decision]) {
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
	parts := []string{visible.Line(when, 0), visible.Line(e.Event[strings.LastIndexByte(e.Event, '.')+1:], 40)}
	if e.Agent != "" && e.Agent != "unknown" {
		parts = append(parts, visible.Line(e.Agent, 40))
	} else if e.Session != "" {
		parts = append(parts, visible.Line(e.Session, 12))
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

func (e entry) ends(with []string) bool {
	for _, s := range with {
		if strings.HasSuffix(e.Event, s) {
			return true
		}
	}
	return false
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
		if err := watch.Add(path[:strings.LastIndexByte(path, os.PathSeparator)]); err != nil {
			return fmt.Errorf("following the review log: %w", err)
		}
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !follow {
		return withHint(errors.New("there is no review log yet"), "it is made by: nod serve")
	}
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	var r *bufio.Reader
	var part []byte
	for {
		if f != nil {
			if r == nil {
				r = bufio.NewReader(f)
			}
			for {
				line, err := r.ReadBytes('\n')
				part = append(part, line...)
				if err != nil {
					break
				}
				if err := each(part[:len(part)-1]); err != nil {
					return fmt.Errorf("printing the review log: %w", err)
				}
				part = part[:0]
			}
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
		if replaced(f, path) {
			if f != nil {
				f.Close()
			}
			f, r, part = nil, nil, nil
			if f, err = os.Open(path); err != nil {
				f = nil // it is made anew with the next entry
			}
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
