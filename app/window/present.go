//go:build !headless && cgo && !ci

package window

import (
	"fyne.io/fyne/v2"
	"github.com/go-gl/glfw/v3.3/glfw"

	"github.com/nod-agents/nod/assets"
)

// prepare tells the window library what the toolkit does not: whose window it
// is, and that showing it asks for no focus. A window that nobody called must
// not catch what is typed into another.
//
// Hints hold for the windows created after them; the toolkit creates one when
// it is first shown and never resets the hints.
func prepare(w fyne.Window) {
	glfw.WindowHint(glfw.FocusOnShow, glfw.False)
	glfw.WindowHintString(glfw.X11ClassName, assets.AppID)
	glfw.WindowHintString(glfw.X11InstanceName, "nod")
	quiet(w, true)
}

// present shows w. With focus it asks for the keyboard; without, whether a new
// window gets it is left to the window manager, which is told that no user
// called for this one (see quiet). Wayland has no request for focus at all:
// there the compositor decides both.
func present(w fyne.Window, focus bool) {
	quiet(w, !focus)
	w.Show()
	if focus {
		w.RequestFocus()
	}
}
