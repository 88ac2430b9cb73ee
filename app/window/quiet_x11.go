//go:build !headless && cgo && !ci && !wayland && (linux || freebsd || netbsd || openbsd)

package window

/*
#cgo LDFLAGS: -lX11
#include <stdint.h>
#include <X11/Xlib.h>
#include <X11/Xatom.h>

// set_user_time sets _NET_WM_USER_TIME of a window to 0, or removes it.
static void set_user_time(void *display, uintptr_t window, int none) {
	Display *d = display;
	Atom a = XInternAtom(d, "_NET_WM_USER_TIME", False);
	unsigned long zero = 0;
	if (none)
		XChangeProperty(d, window, a, XA_CARDINAL, 32, PropModeReplace, (unsigned char *)&zero, 1);
	else
		XDeleteProperty(d, window, a);
}
*/
import "C"

import (
	"unsafe"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver"
	"github.com/go-gl/glfw/v3.3/glfw"

	"github.com/nod-agents/nod/assets"
)

// quiet tells the window manager whether a user called for w. A user time of 0
// means that none did, so that the window must not get the focus when it is
// mapped (Extended Window Manager Hints, _NET_WM_USER_TIME).
func quiet(w fyne.Window, on bool) {
	native, ok := w.(driver.NativeWindow)
	if !ok {
		return
	}
	set := func() bool {
		done := false
		native.RunNative(func(ctx any) {
			x, ok := ctx.(driver.X11WindowContext)
			if !ok || x.WindowHandle == 0 {
				return
			}
			none := C.int(0)
			if on {
				none = 1
			}
			C.set_user_time(unsafe.Pointer(glfw.GetX11Display()), C.uintptr_t(x.WindowHandle), none)
			done = true
		})
		return done
	}
	if !set() {
		// The toolkit creates and maps a window in one call. In between it
		// reads the icon, which is the one place to do something before the
		// window is mapped.
		w.SetIcon(&icon{Resource: fyne.NewStaticResource("nod.png", assets.Icon(256)), read: func() { set() }})
	}
}

// An icon calls read each time that its content is read.
type icon struct {
	fyne.Resource
	read func()
}

func (i *icon) Content() []byte {
	i.read()
	return i.Resource.Content()
}
