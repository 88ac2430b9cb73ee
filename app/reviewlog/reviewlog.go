// Package reviewlog writes the review log: one JSON object a line, in the
// events and field names of the forwarding wire, so that one reader serves the
// logs of every node.
//
// The file is 0600 in a 0700 directory and rotated by size. Text that follows a
// sensitive key name is masked before it is written, and never later.
package reviewlog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Limits of the file on disk.
const (
	maxBytes = 10 << 20 // of one file before it is rotated
	maxOld   = 5        // old files kept
)

// TimeFormat is ISO 8601 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Log is safe for concurrent use. A nil *Log writes nothing.
type Log struct {
	path  string
	out   io.WriteCloser
	log   *slog.Logger
	width int
}

// Open appends to the log at path, making its directory. The error says what
// could not be made.
func Open(path string) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the review log: %w", err)
	}
	f := &file{path: path, full: maxBytes, keep: maxOld}
	if _, err := f.open(); err != nil {
		return nil, fmt.Errorf("opening the review log: %w", err)
	}
	l := New(f)
	l.path = path
	return l, nil
}

// Limit has longer strings cut to so many characters; 0: none. It comes before
// the first entry.
func (l *Log) Limit(width int) { l.width = width }

// Problems has tell told, as a sentence or two, when the log of Open cannot be
// written, and with an empty text when it can again. tell must not block nor
// record.
func (l *Log) Problems(tell func(text string)) {
	if l == nil {
		return
	}
	if f, ok := l.out.(*file); ok {
		f.problems(tell)
	}
}

// New writes the log to w, which Close closes.
func New(w io.WriteCloser) *Log {
	l := &Log{out: w}
	l.log = slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: l.attr}))
	return l
}

// Path is the file of Open, or empty.
func (l *Log) Path() string {
	if l == nil {
		return ""
	}
	return l.path
}

// Record writes one entry. It implements forwarding.Log.
func (l *Log) Record(event string, attrs ...slog.Attr) {
	if l == nil {
		return
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, event, append([]slog.Attr{slog.String("stream", "review")}, attrs...)...)
}

// Close ends the log.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.out.Close()
}

// attr gives the wire's names to slog's own fields, and masks and cuts the rest.
func (l *Log) attr(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 {
		switch a.Key {
		case slog.TimeKey:
			return slog.String("timestamp", a.Value.Time().UTC().Format(TimeFormat))
		case slog.LevelKey:
			return slog.Attr{}
		case slog.MessageKey:
			a.Key = "event"
			return a
		}
	}
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(l.text(a.Key, a.Value.String()))
	case slog.KindTime:
		a.Value = slog.StringValue(a.Value.Time().UTC().Format(TimeFormat))
	case slog.KindDuration:
		a.Value = slog.Int64Value(int64(a.Value.Duration() / time.Millisecond))
	case slog.KindAny:
		if list, ok := a.Value.Any().([]string); ok {
			masked := make([]string, len(list))
			for i, s := range list {
				masked[i] = l.text(a.Key, s)
			}
			a.Value = slog.AnyValue(masked)
		}
	}
	return a
}

func (l *Log) text(key, s string) string {
	if sensitive(key) && s != "" {
		return mask
	}
	return cut(Mask(s), l.width)
}

func cut(s string, width int) string {
	if width <= 0 || len(s) <= width {
		return s
	}
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return fmt.Sprintf("%s… (%d characters in all)", string(r[:width]), len(r))
}
