//go:build !headless && cgo && !ci && (wayland || !(linux || freebsd || netbsd || openbsd))

package window

import "fyne.io/fyne/v2"

// quiet has nothing to tell this window system.
func quiet(fyne.Window, bool) {}
