//go:build windows || darwin

package app

// alwaysDisplay: the window system is part of the system.
const alwaysDisplay = true
