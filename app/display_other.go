//go:build !windows && !darwin

package app

// alwaysDisplay: a window system must be named by the environment.
const alwaysDisplay = false
