// Nod answers the permission asks of AI coding agents, from the tray.
package main

import (
	"os"

	"github.com/nod-agents/nod/app"
	"github.com/nod-agents/nod/app/early"
)

// What early could answer never gets here.
func main() {
	p := app.Process{
		Args:    os.Args[1:],
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Environ: os.Environ(),
	}
	if rest := early.Left(); rest != nil {
		os.Exit(app.End(p, rest.AgentDir, rest.Requester))
	}
	os.Exit(app.Main(p))
}
