//go:build !headless

package view

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// Colours that the toolkit has no name for.
const (
	colourQuiet  fyne.ThemeColorName = "nodQuiet"  // text beside the point: who, where, since when
	colourEscape fyne.ThemeColorName = "nodEscape" // what had to be escaped to be seen
	colourPaper  fyne.ThemeColorName = "nodPaper"  // behind what an agent wrote
	colourNotice fyne.ThemeColorName = "nodNotice" // behind what the user should not miss
	colourModel  fyne.ThemeColorName = "nodModel"  // beside model-written text
)

// Skin is the theme of both windows: the toolkit's own, light or dark as the
// system says, with this application's colour, calmer spacing and text of a
// size the user can change.
type Skin struct {
	fyne.Theme
	scale float32
}

// NewSkin returns the theme at a text size, 1 being the usual one. It is kept
// between half and three times that.
func NewSkin(scale float32) *Skin {
	return &Skin{Theme: theme.DefaultTheme(), scale: min(max(scale, 0.5), 3)}
}

var palette = map[fyne.ThemeColorName][2]color.NRGBA{ // dark, light
	theme.ColorNameBackground:          {{0x1b, 0x1d, 0x20, 255}, {0xfc, 0xfc, 0xfd, 255}},
	theme.ColorNameForeground:          {{0xea, 0xec, 0xee, 255}, {0x1f, 0x24, 0x2a, 255}},
	theme.ColorNameButton:              {{0x2d, 0x31, 0x36, 255}, {0xec, 0xef, 0xf1, 255}},
	theme.ColorNameDisabledButton:      {{0x26, 0x29, 0x2d, 255}, {0xf2, 0xf4, 0xf5, 255}},
	theme.ColorNameDisabled:            {{0x73, 0x79, 0x80, 255}, {0x9a, 0xa1, 0xa8, 255}},
	theme.ColorNamePlaceHolder:         {{0x8d, 0x94, 0x9b, 255}, {0x7c, 0x84, 0x8c, 255}},
	theme.ColorNamePrimary:             {{0x2f, 0xb8, 0xa3, 255}, {0x0b, 0x74, 0x77, 255}},
	theme.ColorNameForegroundOnPrimary: {{0x06, 0x23, 0x22, 255}, {0xff, 0xff, 0xff, 255}},
	theme.ColorNameHyperlink:           {{0x2f, 0xb8, 0xa3, 255}, {0x0b, 0x74, 0x77, 255}},
	theme.ColorNameFocus:               {{0x2f, 0xb8, 0xa3, 0x66}, {0x0b, 0x74, 0x77, 0x4d}},
	theme.ColorNameSelection:           {{0x2f, 0xb8, 0xa3, 0x55}, {0x0b, 0x74, 0x77, 0x38}},
	theme.ColorNameInputBackground:     {{0x24, 0x27, 0x2b, 255}, {0xf4, 0xf6, 0xf7, 255}},
	theme.ColorNameInputBorder:         {{0x5c, 0x63, 0x6a, 255}, {0xa4, 0xac, 0xb3, 255}},
	theme.ColorNameOverlayBackground:   {{0x22, 0x25, 0x29, 255}, {0xff, 0xff, 0xff, 255}},
	theme.ColorNameSeparator:           {{0x36, 0x3a, 0x40, 255}, {0xdd, 0xe2, 0xe6, 255}},
	theme.ColorNameError:               {{0xf0, 0x6a, 0x66, 255}, {0xc6, 0x28, 0x2f, 255}},
	theme.ColorNameWarning:             {{0xf5, 0xa9, 0x4a, 255}, {0xa8, 0x54, 0x06, 255}},
	theme.ColorNameSuccess:             {{0x4f, 0xc4, 0x7f, 255}, {0x1b, 0x7f, 0x46, 255}},
	colourQuiet:                        {{0x9d, 0xa4, 0xab, 255}, {0x5f, 0x68, 0x71, 255}},
	colourEscape:                       {{0xff, 0xb4, 0x54, 255}, {0xb0, 0x3a, 0x02, 255}},
	colourPaper:                        {{0x12, 0x14, 0x16, 255}, {0xf1, 0xf3, 0xf5, 255}},
	colourNotice:                       {{0x3a, 0x2f, 0x1c, 255}, {0xfd, 0xf1, 0xdc, 255}},
	colourModel:                        {{0x8f, 0x9b, 0xf0, 255}, {0x4b, 0x54, 0xb8, 255}},
}

// Color returns the skin's own colour where it has one.
func (s *Skin) Color(name fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	if c, ok := palette[name]; ok {
		if v == theme.VariantLight {
			return c[1]
		}
		return c[0]
	}
	return s.Theme.Color(name, v)
}

// Size scales what text and its marks need, and leaves lines and bars alone.
func (s *Skin) Size(name fyne.ThemeSizeName) float32 {
	switch name {
	case theme.SizeNameText:
		return 14 * s.scale
	case theme.SizeNameCaptionText:
		return 12.5 * s.scale
	case theme.SizeNameSubHeadingText:
		return 18 * s.scale
	case theme.SizeNameHeadingText:
		return 22 * s.scale
	case theme.SizeNameInlineIcon:
		return 18 * s.scale
	case theme.SizeNameInnerPadding:
		return 7 * s.scale
	case theme.SizeNameInputRadius, theme.SizeNameSelectionRadius:
		return 6
	}
	return s.Theme.Size(name)
}

// size and colour look a name up as o would be drawn.
func size(o fyne.Widget, name fyne.ThemeSizeName) float32 { return themeOf(o).Size(name) }

func colour(o fyne.Widget, name fyne.ThemeColorName) color.Color {
	return themeOf(o).Color(name, fyne.CurrentApp().Settings().ThemeVariant())
}

func themeOf(o fyne.Widget) fyne.Theme {
	if t := theme.CurrentForWidget(o); t != nil {
		return t
	}
	return theme.Current()
}
