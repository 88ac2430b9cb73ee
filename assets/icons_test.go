package assets_test

import (
	"bytes"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/nod-agents/nod/assets"
)

func TestIconsAreOfTheirSize(t *testing.T) {
	for _, size := range assets.IconSizes() {
		img, err := png.Decode(bytes.NewReader(assets.Icon(size)))
		if err != nil {
			t.Fatalf("icon %d: %v", size, err)
		}
		if got := img.Bounds().Size(); got.X != size || got.Y != size {
			t.Errorf("icon %d is %v", size, got)
		}
	}
}

func TestIconOfASizeBetween(t *testing.T) {
	for _, tc := range []struct{ ask, want int }{{1, 16}, {17, 22}, {100, 128}, {512, 512}, {4000, 512}} {
		if !bytes.Equal(assets.Icon(tc.ask), assets.Icon(tc.want)) {
			t.Errorf("Icon(%d) is not the icon of %d pixels", tc.ask, tc.want)
		}
	}
}

// Every state and number has a picture of its own on every panel, or shares
// the one it is documented to share.
func TestTrayIcons(t *testing.T) {
	seen := map[string]string{}
	for _, panel := range []assets.Panel{assets.AnyPanel, assets.DarkPanel, assets.LightPanel} {
		for _, s := range []assets.State{assets.Idle, assets.Pending, assets.Paused, assets.Degraded} {
			for n := -1; n <= 11; n++ {
				b := assets.TrayOn(panel, s, n)
				img, err := png.Decode(bytes.NewReader(b))
				if err != nil {
					t.Fatalf("panel %d, %v, %d: %v", panel, s, n, err)
				}
				if got := img.Bounds().Size(); got.X != assets.TraySize || got.Y != assets.TraySize {
					t.Errorf("panel %d, %v, %d is %v", panel, s, n, got)
				}
				what := fmt.Sprint(panel, s)
				if s == assets.Pending {
					what = fmt.Sprint(panel, s, min(n, 10))
					if n <= 0 {
						what = fmt.Sprint(panel, assets.Idle)
					}
				}
				if old, ok := seen[string(b)]; ok && old != what {
					t.Errorf("%s looks like %s", what, old)
				}
				seen[string(b)] = what
			}
		}
	}
	if want := 3 * (1 + 10 + 1 + 1); len(seen) != want {
		t.Errorf("%d different tray icons, want %d", len(seen), want)
	}
	if !bytes.Equal(assets.Tray(assets.Pending, 3), assets.TrayOn(assets.AnyPanel, assets.Pending, 3)) {
		t.Error("Tray is not TrayOn(AnyPanel)")
	}
}

func TestDesktopEntry(t *testing.T) {
	lines := strings.Split(string(assets.DesktopEntry), "\n")
	for _, want := range []string{"[Desktop Entry]", "Type=Application", "Name=Nod", "Exec=nod", "Icon=" + assets.AppID, "StartupWMClass=" + assets.AppID} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q", want)
		}
	}
}
