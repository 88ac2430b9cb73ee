//go:build !headless && !windows

package tray

// iconFile is the PNG itself: what is read here.
func iconFile(png []byte) []byte { return png }
