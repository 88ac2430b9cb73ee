package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/control"
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/pipe"
	"github.com/nod-agents/nod/app/visible"
)

func (n *nod) grantsCommand() *cobra.Command {
	var agentDir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "grants",
		Short: "List or take back what you granted for a session",
		Long: `List the session grants of the running Nod, or take them back.

No command grants anything: that takes a human at the tray or the terminal.`,
		RunE: n.withNod(&agentDir, func(ctx context.Context, client *control.Client, _ []string) error {
			grants, err := client.Grants(ctx)
			if err != nil {
				return fmt.Errorf("listing the grants: %w", err)
			}
			if asJSON {
				for _, g := range grants {
					if err := printJSON(n.Stdout, g); err != nil {
						return err
					}
				}
				return nil
			}
			return printGrants(n.Stdout, grants, time.Now())
		}),
	}
	c.PersistentFlags().StringVar(&agentDir, "agent-dir", "", "agent directory `DIR` whose Nod is meant (default: the first of the settings)")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	c.AddCommand(&cobra.Command{
		Use:   "revoke ID...",
		Short: "Take back single grants",
		Args: func(_ *cobra.Command, ids []string) error {
			if len(ids) == 0 {
				return exit.WithHint(errors.New("no grant is named"), "nod grants lists them with their IDs; nod grants clear takes all back")
			}
			return nil
		},
		RunE: n.withNod(&agentDir, func(ctx context.Context, client *control.Client, ids []string) error {
			count, err := client.Revoke(ctx, ids...)
			fmt.Fprintf(n.Stdout, "%d revoked\n", count)
			return err
		}),
	}, &cobra.Command{
		Use:   "clear",
		Short: "Take back all grants",
		RunE: n.withNod(&agentDir, func(ctx context.Context, client *control.Client, _ []string) error {
			count, err := client.Clear(ctx)
			if err != nil {
				return fmt.Errorf("clearing the grants: %w", err)
			}
			fmt.Fprintf(n.Stdout, "%d revoked\n", count)
			return nil
		}),
	})
	return c
}

// withNod runs do with a connection to the running Nod.
func (n *nod) withNod(agentDir *string, do func(context.Context, *control.Client, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		dir := *agentDir
		if dir == "" {
			set, err := n.Settings()
			if err != nil {
				return err
			}
			dir = set.AgentDirs[0]
		}
		dir, err := absolute(dir)
		if err != nil {
			return err
		}
		client, err := control.Dial(c.Context(), n.place(), dir)
		if errors.Is(err, control.ErrNotRunning) {
			return &exit.Error{Code: exit.Unavailable, Err: exit.WithHint(fmt.Errorf("no Nod serves %s", dir), "start it with: nod serve")}
		}
		if err != nil {
			return fmt.Errorf("reaching the Nod of %s: %w", dir, err)
		}
		defer client.Close()
		return do(c.Context(), client, args)
	}
}

func printGrants(w io.Writer, grants []pipe.Grant, now time.Time) error {
	if len(grants) == 0 {
		fmt.Fprintln(w, "no grants")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSURFACE\tPATTERN\tFOR\tSINCE\tHITS\tLAST USE")
	for _, g := range grants {
		whom := "session " + g.SessionID
		if g.Requester != "" {
			whom = "agent " + g.Agent + " in " + g.SessionID
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", g.ID, visible.Line(g.Surface, 40), visible.Line(g.Pattern, 0),
			visible.Line(whom, 60), ago(now, g.Since), g.Hits, ago(now, g.LastUse))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the grants: %w", err)
	}
	return nil
}

// ago says how long before now t was.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return now.Sub(t).Round(time.Second).String() + " ago"
}
