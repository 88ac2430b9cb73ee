//go:build !race

package forwarding

const raced = false
