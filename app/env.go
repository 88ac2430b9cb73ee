package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (n *nod) envCommand() *cobra.Command {
	var k child
	c := &cobra.Command{
		Use:     "env",
		Short:   "Print what makes a shell's programs children of Nod",
		Long:    "Print, for a POSIX shell, the variables that nod run sets.",
		Example: `  eval "$(nod env)"`,
		RunE: func(*cobra.Command, []string) error {
			set, err := n.assignments(k)
			if err != nil {
				return err
			}
			n.warnUnserved(set[0][1])
			for _, a := range set {
				line := "unset " + a[0]
				if a[1] != "" {
					line = "export " + a[0] + "='" + strings.ReplaceAll(a[1], "'", `'\''`) + "'"
				}
				if _, err := fmt.Fprintln(n.Stdout, line); err != nil {
					return fmt.Errorf("printing the variables: %w", err)
				}
			}
			return nil
		},
	}
	k.flags(c)
	return c
}
