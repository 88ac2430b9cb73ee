package assets

import (
	"embed"
	"fmt"
)

// AppID names the application to the desktop: its settings, its windows'
// class and the desktop entry.
const AppID = "io.github.nod_agents.nod"

//go:embed icon/*.png
var icons embed.FS

//go:embed tray/*.png
var trays embed.FS

// DesktopEntry is the freedesktop.org desktop entry of the application. It is
// installed as share/applications/<AppID>.desktop.
//
//go:embed io.github.nod_agents.nod.desktop
var DesktopEntry []byte

// IconSizes are the sizes that Icon has, in pixels, smallest first.
func IconSizes() []int { return []int{16, 22, 24, 32, 48, 64, 128, 256, 512} }

// Icon returns the application icon as a PNG of size×size pixels: the smallest
// one that is at least size, or the largest there is.
func Icon(size int) []byte {
	sizes := IconSizes()
	best := sizes[len(sizes)-1]
	for _, s := range sizes {
		if s >= size {
			best = s
			break
		}
	}
	return must(icons.ReadFile(fmt.Sprintf("icon/nod-%d.png", best)))
}

// State is what a tray icon tells at a glance.
type State int

// The states of a tray icon. The zero value is Idle.
const (
	Idle     State = iota // serving, nothing waits
	Pending               // asks wait for a human
	Paused                // asks wait, and nothing pops up
	Degraded              // the user must act before all is well again
)

// String returns the word for s, as a tooltip would use it.
func (s State) String() string {
	switch s {
	case Pending:
		return "pending"
	case Paused:
		return "paused"
	case Degraded:
		return "degraded"
	default:
		return "idle"
	}
}

// Panel is the background that a tray icon is drawn for.
type Panel int

// The panels. AnyPanel icons stand on a tile of their own and read on every
// background; the others are plain marks for a panel of known tone.
const (
	AnyPanel Panel = iota
	DarkPanel
	LightPanel
)

// TraySize is the width and height of a tray icon, in pixels. Tray hosts scale
// it down.
const TraySize = 64

// Tray returns the tray icon of state s as a PNG that reads on any panel. n is
// the number of waiting asks: Pending shows it, 10 and more as 9+; the other
// states ignore it, and Pending without any is Idle.
func Tray(s State, n int) []byte { return TrayOn(AnyPanel, s, n) }

// TrayOn is Tray for a panel of known tone.
func TrayOn(p Panel, s State, n int) []byte {
	tone := "any"
	switch p {
	case DarkPanel:
		tone = "dark"
	case LightPanel:
		tone = "light"
	}
	name := s.String()
	if s == Pending {
		switch {
		case n <= 0:
			name = Idle.String()
		case n > 9:
			name = "pending-many"
		default:
			name = fmt.Sprintf("pending-%d", n)
		}
	}
	return must(trays.ReadFile(fmt.Sprintf("tray/%s-%s.png", tone, name)))
}

// must unwraps the reading of an embedded file, which only a wrong name here
// could fail; a test reads them all.
func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
