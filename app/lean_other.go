//go:build !linux

package app

// unmapUnused has nothing to do: other systems count memory in other ways.
func unmapUnused() {}
