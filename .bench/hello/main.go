// Hello is the least that a Go program can be: what whole processes are
// measured against. Build it static and stripped, as nod is.
package main

import "os"

func main() {
	if _, err := os.Stdout.WriteString("hello, world\n"); err != nil {
		os.Exit(1)
	}
}
