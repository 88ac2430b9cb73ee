//go:build !headless

package view

import (
	"fmt"
	"image/color"
	"math"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"github.com/nod-agents/nod/app/visible"
)

// A section is one labelled text on a sheet. All its strings are raw.
type section struct {
	label string // of the application's own choice or an agent's; may be empty
	text  string
	model bool // written by the model; the sheet says so
}

// A sheet shows texts of any length, whole: in monospace, wrapped to its
// width, scrolled, and drawn only where it is looked at. A text is selected
// with the mouse and copied as it is shown. While there is more below, a strip
// at the bottom says how much.
type sheet struct {
	widget.BaseWidget
	page   *page
	scroll *container.Scroll
	strip  *button
	back   *canvas.Rectangle
	edge   *canvas.Rectangle
	rows   float32 // the least height, in rows
	most   float32 // if set: as high as its texts up to this height, in rows
}

func newSheet(rows float32) *sheet {
	s := &sheet{rows: rows, back: canvas.NewRectangle(color.Transparent), edge: canvas.NewRectangle(color.Transparent)}
	s.page = &page{sheet: s}
	s.page.ExtendBaseWidget(s.page)
	s.scroll = container.NewVScroll(s.page)
	s.scroll.OnScrolled = func(fyne.Position) { s.page.draw() }
	s.strip = newButton("", func() { s.by(s.scroll.Size().Height - s.page.rowHeight()) })
	s.strip.Importance = widget.LowImportance
	s.ExtendBaseWidget(s)
	return s
}

// show puts other texts on the sheet and returns to its top.
func (s *sheet) show(sections []section) {
	s.page.set(sections)
	s.scroll.Offset = fyne.Position{}
	s.Refresh()
}

func (s *sheet) CreateRenderer() fyne.WidgetRenderer {
	s.colour()
	return sheetRenderer{s}
}

// by scrolls down by some height.
func (s *sheet) by(height float32) { s.to(s.scroll.Offset.Y + height) }

func (s *sheet) to(y float32) {
	y = max(0, min(y, s.page.height-s.scroll.Size().Height))
	s.scroll.ScrollToOffset(fyne.NewPos(0, y))
	s.page.draw()
}

// key scrolls, if k is a key for it.
func (s *sheet) key(k fyne.KeyName) bool {
	switch k {
	case fyne.KeyDown:
		s.by(s.page.rowHeight())
	case fyne.KeyUp:
		s.by(-s.page.rowHeight())
	case fyne.KeyPageDown:
		s.by(s.scroll.Size().Height - s.page.rowHeight())
	case fyne.KeyPageUp:
		s.by(s.page.rowHeight() - s.scroll.Size().Height)
	case fyne.KeyHome:
		s.to(0)
	case fyne.KeyEnd:
		s.to(s.page.height)
	default:
		return false
	}
	return true
}

// below is how many lines are not in sight at the bottom.
func (s *sheet) below() int {
	return s.page.linesFrom(s.scroll.Offset.Y + s.scroll.Size().Height)
}

func (s *sheet) restrip() {
	n := s.below()
	label, icon := plural(n, "more line below", "more lines below"), theme.MenuDropDownIcon()
	if n == 0 {
		label, icon = "the end", nil
	}
	if s.strip.Text != label {
		s.strip.Text, s.strip.Icon = label, icon
		s.strip.Refresh()
	}
}

func (s *sheet) colour() {
	s.back.FillColor = colour(s, colourPaper)
	s.back.CornerRadius = size(s, theme.SizeNameInputRadius)
	s.edge.CornerRadius = s.back.CornerRadius
	s.edge.StrokeWidth = 1
	s.edge.StrokeColor = colour(s, theme.ColorNameSeparator)
	if s.page.focused {
		s.edge.StrokeColor = colour(s, theme.ColorNamePrimary)
	}
	s.back.Refresh()
	s.edge.Refresh()
}

type sheetRenderer struct{ sheet *sheet }

func (r sheetRenderer) MinSize() fyne.Size {
	p := r.sheet.page
	p.measure()
	height := p.rowHeight()*r.sheet.rows + 2*p.pad()
	if most := p.rowHeight()*r.sheet.most + 2*p.pad(); r.sheet.most > 0 {
		height = min(max(height, p.height+2), most)
	}
	return fyne.NewSize(p.cell*24+p.gutterMin(), height)
}

func (r sheetRenderer) Layout(sz fyne.Size) {
	s := r.sheet
	s.back.Resize(sz)
	s.edge.Resize(sz)
	s.page.reflow(sz.Width - 2)
	inner := fyne.NewSize(sz.Width-2, sz.Height-2)
	strip := s.strip.MinSize().Height - size(s, theme.SizeNameInnerPadding)
	if s.page.height > inner.Height {
		s.strip.Show()
		inner.Height -= strip
		s.strip.Resize(fyne.NewSize(inner.Width, strip))
		s.strip.Move(fyne.NewPos(1, 1+inner.Height))
	} else {
		s.strip.Hide()
	}
	s.scroll.Move(fyne.NewPos(1, 1))
	s.page.Resize(fyne.NewSize(inner.Width, max(s.page.height, inner.Height)))
	if s.scroll.Size() != inner {
		s.scroll.Resize(inner)
	}
	s.scroll.Refresh()
	s.page.draw()
}

func (r sheetRenderer) Refresh() {
	r.sheet.colour()
	r.sheet.page.flowed = 0
	r.Layout(r.sheet.Size())
	canvas.Refresh(r.sheet)
}

func (r sheetRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.sheet.back, r.sheet.scroll, r.sheet.strip, r.sheet.edge}
}

func (r sheetRenderer) Destroy() {}

// labelRunes is the longest label that is shown whole.
const labelRunes = 36

// A row is what stands on one height of the page.
type row struct {
	y          float32
	section    int
	line       int // of the section's text; -1 for its label
	start, end int // of the section's body
	first      bool
}

// A page is the scrolled part of a sheet.
type page struct {
	widget.BaseWidget
	sheet *sheet

	sections []section
	texts    []*text
	rows     []row
	height   float32
	gutters  []float32 // width before each section's text
	flowed   float32   // the width it was laid out for

	cell, tall float32 // of a monospace character
	widths     map[rune]float32

	anchor, head place // of the selection
	focused      bool

	objects []fyne.CanvasObject
}

// A place is a position in the texts.
type place struct {
	row, at int // at is an offset in the body of the row's section
}

func (p place) before(q place) bool { return p.row < q.row || p.row == q.row && p.at < q.at }

func (p *page) set(sections []section) {
	p.sections = sections
	p.texts = make([]*text, len(sections))
	for i, s := range sections {
		p.texts[i] = newText(s.text)
	}
	p.flowed = 0
	p.anchor, p.head = place{}, place{}
}

func (p *page) fontSize() float32    { return size(p, theme.SizeNameText) - 0.5 }
func (p *page) captionSize() float32 { return size(p, theme.SizeNameCaptionText) }
func (p *page) pad() float32         { return size(p, theme.SizeNameInnerPadding) + 2 }
func (p *page) rowHeight() float32   { return p.tall + 2 }
func (p *page) labelHeight() float32 {
	return p.captionSize()*1.25 + size(p, theme.SizeNamePadding) + 1
}
func (p *page) gutterMin() float32 { return 2 * p.pad() }

func (p *page) measure() {
	m := fyne.MeasureText(strings.Repeat("M", 64), p.fontSize(), fyne.TextStyle{Monospace: true})
	if cell := m.Width / 64; cell != p.cell || m.Height != p.tall {
		p.cell, p.tall = cell, m.Height
		p.widths = map[rune]float32{}
		p.flowed = 0
	}
}

func (p *page) width(r rune) float32 {
	if r < 0x80 {
		return p.cell
	}
	square := visible.Square(r)
	if square {
		r = '漢' // measured for all of them
	}
	w, ok := p.widths[r]
	if !ok {
		if !unicode.IsMark(r) {
			w = fyne.MeasureText(string(r), p.fontSize(), fyne.TextStyle{Monospace: true}).Width
		}
		if square {
			w = max(w, p.fontSize()) // where no font has that one
		}
		p.widths[r] = w
	}
	return w
}

// reflow lays the rows out for a width.
func (p *page) reflow(width float32) {
	p.measure()
	if width == p.flowed || width <= 0 {
		return
	}
	p.flowed = width
	p.rows = p.rows[:0]
	p.gutters = make([]float32, len(p.texts))
	y := p.pad()
	for i, t := range p.texts {
		if i > 0 {
			y += 1.6 * p.pad()
		}
		p.rows = append(p.rows, row{y: y, section: i, line: -1, first: true})
		y += p.labelHeight()
		gutter := p.pad()
		if t.count > 1 {
			gutter += p.cell * float32(len(fmt.Sprint(t.count))+1)
		}
		from := len(p.rows)
		room := width - gutter - 2*p.pad()
		marked := t.count <= 1 // with room for the marks of continued rows
		if !marked || !p.wrap(i, room, 1) {
			if marked {
				gutter += 2 * p.cell
				room -= 2 * p.cell
			}
			p.rows = p.rows[:from]
			p.wrap(i, room, math.MaxInt)
		}
		p.gutters[i] = gutter
		for k := from; k < len(p.rows); k++ {
			p.rows[k].y = y
			y += p.rowHeight()
		}
	}
	p.height = y + p.pad()
	last := max(0, len(p.rows)-1)
	if p.anchor.row > last || p.head.row > last || p.anchor != p.head {
		p.anchor, p.head = place{}, place{}
	}
}

// wrap appends the rows of a section, cut at a blank where one is near the
// end of a row. It reports false as soon as there are more than most.
func (p *page) wrap(i int, room float32, most int) bool {
	t := p.texts[i]
	columns := max(8, int(room/p.cell))
	held := 0 // the first stretch that may reach into the row
	from := len(p.rows)
	for n, l := range t.lines {
		first := true
		start := l.start
		add := func(end int) {
			p.rows = append(p.rows, row{section: i, line: n, start: start, end: end, first: first})
			start, first = end, false
		}
		for start < l.end {
			end, ascii := start, true
			for limit := min(l.end, start+columns); end < limit; end++ {
				if t.body[end] >= 0x80 {
					ascii = false
					break
				}
			}
			if !ascii {
				x := float32(end-start) * p.cell
				for end < l.end {
					r, w := utf8.DecodeRuneInString(t.body[end:])
					x += p.width(r)
					if x > float32(columns)*p.cell && end > start {
						break
					}
					end += w
				}
			}
			if end < l.end {
				if cut := strings.LastIndexByte(t.body[start:end], ' '); cut >= (end-start)*2/3 {
					end = start + cut + 1
				}
				// No escape is cut in two.
				for held < len(t.stretches) && t.stretches[held].end <= start {
					held++
				}
				for k := held; k < len(t.stretches) && t.stretches[k].start < end; k++ {
					if s := t.stretches[k]; s.end > end && s.start > start {
						end = s.start
					}
				}
			}
			if len(p.rows)-from >= most {
				return false
			}
			add(end)
		}
		if first { // an empty line
			add(l.end)
		}
	}
	return true
}

// linesFrom counts the lines, as they are wrapped, that end below y.
func (p *page) linesFrom(y float32) int {
	n := 0
	at := sort.Search(len(p.rows), func(i int) bool { return p.rows[i].y+p.rowHeight() > y+1 })
	for _, r := range p.rows[at:] {
		if r.line >= 0 {
			n++
		}
	}
	return n
}

// draw makes the objects of the rows that are in sight.
func (p *page) draw() {
	p.sheet.restrip()
	top := p.sheet.scroll.Offset.Y
	bottom := top + p.sheet.scroll.Size().Height
	p.objects = p.objects[:0]
	from := sort.Search(len(p.rows), func(i int) bool { return p.rows[i].y+p.labelHeight()+p.rowHeight() >= top })
	for i := from; i < len(p.rows) && p.rows[i].y <= bottom; i++ {
		if r := p.rows[i]; r.line < 0 {
			p.drawLabel(r)
		} else {
			p.drawRow(i, r)
		}
	}
	canvas.Refresh(p)
}

func (p *page) put(s string, x, y float32, c fyne.ThemeColorName, textSize float32, style fyne.TextStyle) float32 {
	t := canvas.NewText(s, colour(p, c))
	t.TextSize, t.TextStyle = textSize, style
	sz := t.MinSize()
	t.Resize(sz)
	t.Move(fyne.NewPos(x, y))
	p.objects = append(p.objects, t)
	return x + sz.Width
}

func (p *page) drawLabel(r row) {
	s, t := p.sections[r.section], p.texts[r.section]
	x, y, size, gap := p.pad(), r.y, p.captionSize(), p.cell
	bold := fyne.TextStyle{Bold: true}
	if s.model { // first, so that no label pushes it out of sight
		x = p.put("written by the model", x, y, colourModel, size, fyne.TextStyle{Bold: true, Italic: true}) + gap
	}
	if s.label != "" {
		x = p.put(visible.Line(s.label, labelRunes), x, y, colourQuiet, size, bold) + gap
	}
	if sz := t.size(); sz != "" {
		x = p.put(sz, x, y, colourQuiet, size, fyne.TextStyle{}) + gap
	}
	if h := t.hint(); h != "" {
		if x+fyne.MeasureText(h, size, bold).Width > p.flowed-p.pad() {
			h = thousands(t.escapes) + " escaped"
		}
		p.put(h, x, y, colourEscape, size, bold)
	}
}

func (p *page) drawRow(i int, r row) {
	t := p.texts[r.section]
	mono := fyne.TextStyle{Monospace: true}
	x := p.gutters[r.section]
	l := t.lines[r.line]

	if from, to := p.selected(i); from < to {
		bar := canvas.NewRectangle(colour(p, theme.ColorNameSelection))
		left, right := x+p.span(r, from), x+p.span(r, to)
		if last := i+1 == len(p.rows) || p.rows[i+1].first; last && to == r.end {
			right += p.cell / 2 // the line break
		}
		bar.Move(fyne.NewPos(left, r.y))
		bar.Resize(fyne.NewSize(right-left, p.rowHeight()))
		p.objects = append(p.objects, bar)
	}
	switch {
	case !r.first:
		p.put("↪", x-1.75*p.cell, r.y, colourQuiet, p.fontSize(), mono)
	case t.count > 1:
		n := fmt.Sprint(l.number)
		p.put(n, x-p.cell*float32(len(n)+1), r.y, colourQuiet, p.fontSize(), mono)
	}

	at := r.start
	say := func(to int, c fyne.ThemeColorName, style fyne.TextStyle) {
		if to > at {
			x = p.put(t.body[at:to], x, r.y+1, c, p.fontSize(), style)
			at = to
		}
	}
	from := sort.Search(len(t.stretches), func(i int) bool { return t.stretches[i].end > r.start })
	for _, s := range t.stretches[from:] {
		if s.start >= r.end {
			break
		}
		say(min(max(s.start, r.start), r.end), theme.ColorNameForeground, mono)
		c, style := colourEscape, mono
		if s.kind == folded {
			style.Italic = true
		}
		say(min(s.end, r.end), c, style)
	}
	say(r.end, theme.ColorNameForeground, mono)
}

// span is how far the offset at is from the start of its row.
func (p *page) span(r row, at int) float32 {
	var x float32
	for _, c := range p.texts[r.section].body[r.start:at] {
		x += p.width(c)
	}
	return x
}

// selected is the part of row i that is selected.
func (p *page) selected(i int) (from, to int) {
	a, b := p.anchor, p.head
	if b.before(a) {
		a, b = b, a
	}
	r := p.rows[i]
	if a == b || i < a.row || i > b.row || r.line < 0 {
		return 0, 0
	}
	from, to = r.start, r.end
	if i == a.row {
		from = a.at
	}
	if i == b.row {
		to = b.at
	}
	return from, to
}

// copied is the selected text, as it is shown.
func (p *page) copied() string {
	var b strings.Builder
	a, z := p.anchor, p.head
	if z.before(a) {
		a, z = z, a
	}
	if a == z {
		return ""
	}
	for i := a.row; i <= z.row && i < len(p.rows); i++ {
		from, to := p.selected(i)
		b.WriteString(p.texts[p.rows[i].section].body[from:to])
		if i < z.row && p.rows[i+1].first && p.rows[i].line >= 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// place finds what is at a position of the page.
func (p *page) place(pos fyne.Position) place {
	if len(p.rows) == 0 {
		return place{}
	}
	i := sort.Search(len(p.rows), func(i int) bool { return p.rows[i].y > pos.Y }) - 1
	i = max(0, min(i, len(p.rows)-1))
	if p.rows[i].line < 0 && i+1 < len(p.rows) {
		return place{i + 1, p.rows[i+1].start}
	}
	r := p.rows[i]
	body := p.texts[r.section].body
	x, at := p.gutters[r.section], r.start
	for at < r.end {
		c, n := utf8.DecodeRuneInString(body[at:])
		w := p.width(c)
		if pos.X < x+w/2 {
			break
		}
		x += w
		at += n
	}
	return place{i, at}
}

func (p *page) selectAll() {
	if len(p.rows) > 0 {
		last := len(p.rows) - 1
		p.anchor, p.head = place{0, p.rows[0].start}, place{last, p.rows[last].end}
		p.draw()
	}
}

func (p *page) CreateRenderer() fyne.WidgetRenderer { return pageRenderer{p} }

type pageRenderer struct{ page *page }

func (r pageRenderer) Layout(fyne.Size)             {}
func (r pageRenderer) MinSize() fyne.Size           { return fyne.NewSize(0, r.page.height) }
func (r pageRenderer) Refresh()                     { r.page.draw() }
func (r pageRenderer) Objects() []fyne.CanvasObject { return r.page.objects }
func (r pageRenderer) Destroy()                     {}

// Cursor says that text can be selected.
func (p *page) Cursor() desktop.Cursor { return desktop.TextCursor }

// MouseDown starts a selection.
func (p *page) MouseDown(ev *desktop.MouseEvent) {
	if c := fyne.CurrentApp().Driver().CanvasForObject(p); c != nil {
		c.Focus(p)
	}
	if ev.Button != desktop.MouseButtonPrimary {
		return
	}
	at := p.place(ev.Position)
	if ev.Modifier&fyne.KeyModifierShift == 0 {
		p.anchor = at
	}
	p.head = at
	p.draw()
}

// MouseUp implements desktop.Mouseable.
func (p *page) MouseUp(*desktop.MouseEvent) {}

// Dragged extends the selection, and scrolls at the edges.
func (p *page) Dragged(ev *fyne.DragEvent) {
	p.head = p.place(ev.Position)
	s := p.sheet
	switch y := ev.Position.Y - s.scroll.Offset.Y; {
	case y < 0:
		s.by(y)
	case y > s.scroll.Size().Height:
		s.by(y - s.scroll.Size().Height)
	}
	p.draw()
}

// DragEnd implements fyne.Draggable.
func (p *page) DragEnd() {}

// TappedSecondary offers to copy.
func (p *page) TappedSecondary(ev *fyne.PointEvent) {
	c := fyne.CurrentApp().Driver().CanvasForObject(p)
	if c == nil {
		return
	}
	copyItem := fyne.NewMenuItem("Copy", p.copy)
	copyItem.Disabled = p.anchor == p.head
	widget.ShowPopUpMenuAtPosition(fyne.NewMenu("", copyItem, fyne.NewMenuItem("Select all", p.selectAll)), c, ev.AbsolutePosition)
}

func (p *page) copy() {
	if s := p.copied(); s != "" {
		fyne.CurrentApp().Clipboard().SetContent(s)
	}
}

// FocusGained implements fyne.Focusable.
func (p *page) FocusGained() { p.focus(true) }

// FocusLost implements fyne.Focusable.
func (p *page) FocusLost() { p.focus(false) }

func (p *page) focus(on bool) {
	p.focused = on
	p.sheet.colour()
}

// TypedRune implements fyne.Focusable.
func (p *page) TypedRune(rune) {}

// TypedKey scrolls.
func (p *page) TypedKey(ev *fyne.KeyEvent) {
	if !p.sheet.key(ev.Name) {
		passEscape(p, ev)
	}
}

// TypedShortcut copies and selects all.
func (p *page) TypedShortcut(sh fyne.Shortcut) {
	switch sh.(type) {
	case *fyne.ShortcutCopy:
		p.copy()
	case *fyne.ShortcutSelectAll:
		p.selectAll()
	}
}
