//go:build windows

package heartbeat

// noFollow: Windows has no such open flags, and no FIFOs in a directory.
const noFollow = 0
