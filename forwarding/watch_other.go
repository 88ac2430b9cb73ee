//go:build !linux

package forwarding

// watchRemedy is what helps where a directory cannot be watched.
const watchRemedy = "raise the limit of open files"
