//go:build race

package forwarding

// raced tells that the race detector runs, which makes everything ten times
// slower and larger.
const raced = true
