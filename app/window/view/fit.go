//go:build !headless

package view

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"

	"github.com/nod-agents/nod/app/visible"
)

// A fit is one line of untrusted text that keeps its head and tail in sight
// whatever its width: the middle is left out, and how much is said.
type fit struct {
	widget.BaseWidget
	raw    string
	style  fyne.TextStyle
	size   fyne.ThemeSizeName
	colour fyne.ThemeColorName
	text   *canvas.Text
	fitted fitted // what the text is now
}

// fitted is what a text was cut for.
type fitted struct {
	raw         string
	width, size float32
}

func newFit(size fyne.ThemeSizeName, colour fyne.ThemeColorName, style fyne.TextStyle) *fit {
	f := &fit{size: size, colour: colour, style: style, text: canvas.NewText("", nil)}
	f.ExtendBaseWidget(f)
	return f
}

func (f *fit) set(raw string) {
	if f.raw != raw {
		f.raw = raw
		f.Refresh()
	}
}

func (f *fit) CreateRenderer() fyne.WidgetRenderer { return fitRenderer{f} }

type fitRenderer struct{ fit *fit }

func (r fitRenderer) MinSize() fyne.Size {
	f := r.fit
	m := fyne.MeasureText("Mg", size(f, f.size), f.style)
	return fyne.NewSize(m.Width*4, m.Height)
}

func (r fitRenderer) Layout(sz fyne.Size) {
	f := r.fit
	f.text.TextSize, f.text.TextStyle, f.text.Color = size(f, f.size), f.style, colour(f, f.colour)
	f.text.Resize(sz)
	defer f.text.Refresh()
	now := fitted{f.raw, sz.Width, f.text.TextSize}
	if now == f.fitted {
		return
	}
	f.fitted = now
	measure := func(s string) float32 { return fyne.MeasureText(s, f.text.TextSize, f.style).Width }
	// A text that is far too long is not measured whole.
	cell := measure("n")
	most := int(sz.Width/cell*2) + 8
	s := visible.Line(f.raw, most)
	for n := len([]rune(s)); n > 3 && measure(s) > sz.Width; {
		over := int((measure(s) - sz.Width) / cell)
		n -= max(1, over)
		s = visible.Line(f.raw, max(n, 3))
	}
	f.text.Text = s
}

func (r fitRenderer) Refresh() {
	r.Layout(r.fit.Size())
	canvas.Refresh(r.fit)
}

func (r fitRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.fit.text} }
func (r fitRenderer) Destroy()                     {}

// usualWidth is about what a paragraph gets in a window of usual size.
const usualWidth = 560

// newWords returns a paragraph that wraps. Its text is set by say.
func newWords(size fyne.ThemeSizeName, colour fyne.ThemeColorName, style fyne.TextStyle) *widget.RichText {
	t := widget.NewRichText(&widget.TextSegment{Style: widget.RichTextStyle{SizeName: size, ColorName: colour, TextStyle: style}})
	t.Wrapping = fyne.TextWrapWord
	// A paragraph is as high as its width makes it: without one it would
	// claim a line per word, and the window that height.
	t.Resize(fyne.NewSize(usualWidth, 0))
	return t
}

// say sets the text of a paragraph, which hides while it is empty.
func say(t *widget.RichText, s string) {
	seg := t.Segments[0].(*widget.TextSegment)
	if seg.Text != s {
		seg.Text = s
		t.Refresh()
	}
	if s == "" {
		t.Hide()
	} else {
		t.Show()
	}
}

// A stack lays its objects out from top to bottom with a given gap: the
// toolkit's own box has a gap of one size only.
type stack struct{ gap float32 }

func (s stack) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var m fyne.Size
	for _, o := range objects {
		if o.Visible() {
			c := o.MinSize()
			if m.Height > 0 {
				m.Height += s.gap
			}
			m = fyne.NewSize(max(m.Width, c.Width), m.Height+c.Height)
		}
	}
	return m
}

func (s stack) Layout(objects []fyne.CanvasObject, sz fyne.Size) {
	var y float32
	for _, o := range objects {
		if o.Visible() {
			o.Resize(fyne.NewSize(sz.Width, o.MinSize().Height)) // a paragraph's height follows from its width
			h := o.MinSize().Height
			o.Resize(fyne.NewSize(sz.Width, h))
			o.Move(fyne.NewPos(0, y))
			y += h + s.gap
		}
	}
}

// A buttonRow lays some buttons out at the left and the others at the right;
// where they do not fit side by side, the right ones stand above.
type buttonRow struct {
	left  int // how many of the objects are at the left
	gap   float32
	width float32 // it was last laid out for
}

func (b *buttonRow) widths(objects []fyne.CanvasObject) (left, right, height float32) {
	for i, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		height = max(height, m.Height)
		w := &right
		if i < b.left {
			w = &left
		}
		if *w > 0 {
			*w += b.gap
		}
		*w += m.Width
	}
	return left, right, height
}

func (b *buttonRow) stacked(left, right float32) bool {
	return b.width > 0 && left > 0 && right > 0 && left+right+2*b.gap > b.width
}

func (b *buttonRow) MinSize(objects []fyne.CanvasObject) fyne.Size {
	left, right, height := b.widths(objects)
	if b.stacked(left, right) {
		height += b.gap + height
	}
	return fyne.NewSize(max(left, right), height)
}

func (b *buttonRow) Layout(objects []fyne.CanvasObject, sz fyne.Size) {
	b.width = sz.Width
	left, right, height := b.widths(objects)
	y := sz.Height - height
	upper := y
	if b.stacked(left, right) {
		upper = max(0, y-height-b.gap)
	}
	x := float32(0)
	for i, o := range objects {
		if i == b.left {
			x, y = sz.Width-right, upper
		}
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		o.Resize(fyne.NewSize(m.Width, height))
		o.Move(fyne.NewPos(x, y))
		x += m.Width + b.gap
	}
}
