//go:build !linux && !darwin && !freebsd

package control

import "net"

// checkPeer has nothing to ask here: only the directory keeps others out.
func checkPeer(*net.UnixConn) error { return nil }
