//go:build !linux

package app

// trim gives back memory that only starting up needed, where the system has a
// way to.
func trim() error { return nil }
