// Nod answers the permission asks of AI coding agents, from the tray.
package main

import (
	"os"

	"github.com/nod-agents/nod/app"
)

func main() {
	os.Exit(app.Main(app.Process{
		Args:    os.Args[1:],
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Environ: os.Environ(),
	}))
}
