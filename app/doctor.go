package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/doctor"
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/visible"
)

func (n *nod) doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what Nod stands on, and say how to mend it",
		Long:  "Check the display, the tray host, the notification server, file watches, directory modes,\nheartbeats and the hooks of agents.\n\nExit code: 0 if everything works, if only in part; 1 if something does not.",
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := n.Settings()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
			defer cancel()
			findings := doctor.Examine(ctx, doctor.Host{
				Getenv: n.Getenv, Desktop: hasDesktop, Native: alwaysDisplay, BusAddress: sessionBus(n.Getenv),
				AgentDirs: set.AgentDirs, Sessions: set.Sessions, ConfigDir: n.Dirs.Config, StateDir: n.Dirs.State, Proc: "/proc",
			})
			findings = append(findings, n.hookFindings()...)
			if !set.SelfProtects() {
				findings = append(findings, doctor.Finding{Check: "self-protection", Level: doctor.Warn, Says: unprotected, Remedy: "remove selfProtection from the settings"})
			}
			code := exit.Done
			for _, f := range findings {
				if f.Level == doctor.Bad {
					code = exit.Denied
				}
				if asJSON {
					err = printJSON(n.Stdout, f)
				} else {
					_, err = fmt.Fprintf(n.Stdout, "%-4s  %s: %s\n", f.Level, f.Check, visible.Line(f.Says, 0))
					if f.Remedy != "" {
						fmt.Fprintf(n.Stdout, "      → %s\n", visible.Line(f.Remedy, 0))
					}
				}
				if err != nil {
					return fmt.Errorf("printing the findings: %w", err)
				}
			}
			if code != exit.Done {
				return &exit.Error{Code: code}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}
