package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/control"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/forwarding"
	"github.com/nod-agents/nod/heartbeat"
)

// served is one session as nod status reports it.
type served struct {
	AgentDir  string `json:"agentDir"`
	SessionID string `json:"sessionId"`
	State     string `json:"state"` // alive, absent, dead_pid or stale
	PID       int    `json:"pid,omitempty"`
	AgeMS     int64  `json:"ageMs,omitempty"`   // since the last refresh
	StandIn   bool   `json:"standIn,omitempty"` // by a Nod that adopted it
}

// statusReport is what nod status --json prints.
type statusReport struct {
	Sessions []served         `json:"sessions"`
	Running  []control.Status `json:"running"`
}

func (n *nod) statusCommand() *cobra.Command {
	var agentDirs []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Tell who serves what",
		Long: `Tell who serves what, as an agent would read it before it forwards an ask:
alive, absent, dead_pid (its process is gone) or stale (not refreshed for 5 s).`,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := n.Settings()
			if err != nil {
				return err
			}
			if len(agentDirs) == 0 {
				agentDirs = set.AgentDirs
			}
			report := statusReport{Sessions: []served{}, Running: []control.Status{}}
			for _, dir := range agentDirs {
				if dir, err = absolute(dir); err != nil {
					return err
				}
				sessions, err := readServed(dir, set.Sessions)
				if err != nil {
					return err
				}
				report.Sessions = append(report.Sessions, sessions...)
				running, err := n.running(c, dir)
				if err != nil { // what the heartbeats say holds all the same
					fmt.Fprintf(n.Stderr, "nod: %v\n", err)
				}
				if running != nil {
					report.Running = append(report.Running, *running)
				}
			}
			if asJSON {
				return printJSON(n.Stdout, report)
			}
			return report.print(n.Stdout)
		},
	}
	c.Flags().StringArrayVar(&agentDirs, "agent-dir", nil, "agent directory `DIR` to look at; may be repeated (default: those of the settings)")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

// readServed reads every heartbeat below dir; a configured session without one
// is absent.
func readServed(dir string, configured []string) ([]served, error) {
	r := heartbeat.Reader{Clock: heartbeat.SystemClock()}
	entries, err := r.List(forwarding.ServingDir(dir))
	if err != nil {
		return nil, fmt.Errorf("reading who serves %s: %w", dir, err)
	}
	var list []served
	seen := map[string]bool{}
	for _, e := range entries {
		s := served{AgentDir: dir, SessionID: e.Record.SessionID, State: string(e.State), PID: e.Record.PID, StandIn: e.Record.StandIn}
		if e.State == heartbeat.Absent {
			s.SessionID = filepath.Base(e.File) // no record says which session it is
		} else {
			s.AgeMS = time.Since(e.Record.UpdatedAt).Milliseconds()
		}
		seen[s.SessionID] = true
		list = append(list, s)
	}
	for _, id := range configured {
		if !seen[id] {
			list = append(list, served{AgentDir: dir, SessionID: id, State: string(heartbeat.Absent)})
		}
	}
	return list, nil
}

// running asks the Nod of dir, if there is one.
func (n *nod) running(c *cobra.Command, dir string) (*control.Status, error) {
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	client, err := control.Dial(ctx, n.place(), dir)
	if errors.Is(err, control.ErrNotRunning) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reaching the Nod of %s: %w", dir, err)
	}
	defer client.Close()
	s, err := client.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the Nod of %s: %w", dir, err)
	}
	return &s, nil
}

func (r statusReport) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SESSION\tSTATE\tPROCESS\tREFRESHED\tAGENT DIRECTORY")
	for _, s := range r.Sessions {
		pid, age := "-", "-"
		if s.PID != 0 {
			pid = fmt.Sprint(s.PID)
			age = (time.Duration(s.AgeMS) * time.Millisecond).Round(100*time.Millisecond).String() + " ago"
		}
		state := s.State
		if s.StandIn {
			state += ", adopted"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", visible.Line(s.SessionID, 60), state, pid, age, visible.Line(s.AgentDir, 0))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	for _, s := range r.Running {
		pause := ""
		if s.Paused {
			pause = ", paused"
		}
		fmt.Fprintf(w, "\nnod (process %d, front end %s): %d waiting, %s%s\n", s.PID, s.Frontend, s.Waiting, count(s.Grants, "grant"), pause)
		for _, p := range s.Problems {
			fmt.Fprintf(w, "  problem: %s\n", visible.Line(p, 0))
		}
	}
	return nil
}

// count is "1 grant", "2 grants".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
