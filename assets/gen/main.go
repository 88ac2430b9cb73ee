// Command gen draws the icons of package assets into the directory it is
// given. The mark is a lower-case n: a gate, with the one who asks in it.
package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	for name, img := range pictures() {
		var b bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img); err != nil {
			return fmt.Errorf("encoding %s: %w", name, err)
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("making room for %s: %w", name, err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

const traySize = 64

// pictures draws every icon, by its path in package assets.
func pictures() map[string]image.Image {
	all := map[string]image.Image{}
	for _, size := range []int{16, 22, 24, 32, 48, 64, 128, 256, 512} {
		all[fmt.Sprintf("icon/nod-%d.png", size)] = appIcon(size)
	}
	for _, t := range []tone{onAny, onDark, onLight} {
		all["tray/"+t.name+"-idle.png"] = trayIcon(t, "idle", "")
		all["tray/"+t.name+"-paused.png"] = trayIcon(t, "paused", "")
		all["tray/"+t.name+"-degraded.png"] = trayIcon(t, "degraded", "")
		for n := 1; n <= 9; n++ {
			all[fmt.Sprintf("tray/%s-pending-%d.png", t.name, n)] = trayIcon(t, "pending", fmt.Sprint(n))
		}
		all["tray/"+t.name+"-pending-many.png"] = trayIcon(t, "pending", "9+")
	}
	return all
}

var (
	white  = color.NRGBA{255, 255, 255, 255}
	ink    = color.NRGBA{0x24, 0x29, 0x30, 255}
	pale   = color.NRGBA{0xf4, 0xf6, 0xf8, 255}
	teal   = color.NRGBA{0x19, 0xa3, 0x8d, 255}
	sea    = color.NRGBA{0x0b, 0x6f, 0x74, 255}
	slate  = color.NRGBA{0x8a, 0x94, 0x9e, 255}
	shale  = color.NRGBA{0x5c, 0x66, 0x70, 255}
	orange = color.NRGBA{0xf2, 0x7a, 0x1a, 255}
	red    = color.NRGBA{0xd9, 0x36, 0x3e, 255}
)

// gate is the mark's arch between x0 and x1, from y0 down to y1.
func gate(x0, y0, x1, y1, w float64) shape {
	r := (x1 - x0) / 2
	path := []float64{x0, y1}
	path = append(path, arc(x0+r, y0+r, r, r, 180, 360)...)
	path = append(path, x1, y1)
	return line(w, path...)
}

func appIcon(size int) image.Image {
	p := newPicture(size)
	margin := 0.03
	if size <= 24 {
		margin = 0
	}
	tile := box(margin, margin, 1-margin, 1-margin, 0.225)
	p.fill(tile, fade(teal, sea))
	if size <= 24 { // fewer pixels: a bolder mark
		p.fill(gate(0.27, 0.22, 0.73, 0.80, 0.15), plain(white))
		p.fill(disc(0.5, 0.69, 0.115), plain(white))
		return p.image()
	}
	p.fill(gate(0.285, 0.235, 0.715, 0.765, 0.115), plain(white))
	p.fill(disc(0.5, 0.685, 0.095), plain(white))
	return p.image()
}

type tone struct {
	name string
	tile bool // on a tile of its own
	mark color.NRGBA
}

var (
	onAny   = tone{"any", true, white}
	onDark  = tone{"dark", false, pale}
	onLight = tone{"light", false, ink}
)

func trayIcon(t tone, state, count string) image.Image {
	p := newPicture(traySize)
	mark := t.mark
	if t.tile {
		top, bottom := teal, sea
		if state == "paused" {
			top, bottom = slate, shale
		}
		p.fill(box(0, 0, 1, 1, 0.22), fade(top, bottom))
	} else if state == "paused" {
		mark.A = 150
	}

	arch := gate(0.25, 0.20, 0.75, 0.82, 0.15)
	if !t.tile {
		arch = gate(0.17, 0.13, 0.83, 0.89, 0.17)
	}
	p.fill(arch, plain(mark))
	switch state {
	case "paused":
		p.fill(union(line(0.11, 0.42, 0.56, 0.42, 0.80), line(0.11, 0.58, 0.56, 0.58, 0.80)), plain(mark))
	default:
		p.fill(disc(0.5, 0.70, 0.12), plain(mark))
	}

	switch state {
	case "pending":
		badge(p, t, orange, figures(count))
	case "degraded":
		badge(p, t, red, union(line(0.20, 0.5, 0.12, 0.5, 0.58), disc(0.5, 0.88, 0.12)))
	}
	return p.image()
}

// badge puts a disc with a sign on it into the lower right corner. sign is
// drawn for a canvas of 1×1.
func badge(p *picture, t tone, c color.NRGBA, sign shape) {
	const r, cx, cy = 0.30, 0.70, 0.70
	d := disc(cx, cy, r)
	p.cut(grow(d, 0.045))
	p.fill(d, plain(c))
	const k = 0.40
	p.fill(place(sign, cx-k/2, cy-k/2, k), plain(white))
}

// figures draws a number of one figure, or of one figure and a plus.
func figures(s string) shape {
	if f, ok := strings.CutSuffix(s, "+"); ok {
		plus := union(line(0.17, 0.68, 0.5, 1.08, 0.5), line(0.17, 0.88, 0.3, 0.88, 0.7))
		return union(place(figure(f), -0.20, 0.04, 0.92), plus)
	}
	return figure(s)
}

// figure draws one digit in a canvas of 1×1, as a pen of width 0.19 would.
func figure(s string) shape {
	const w = 0.19
	pen := func(points ...float64) shape { return line(w, points...) }
	switch s {
	case "1":
		return pen(0.34, 0.24, 0.56, 0.08, 0.56, 0.92)
	case "2":
		return pen(slices.Concat(arc(0.5, 0.32, 0.24, 0.24, 190, 370), []float64{0.70, 0.46, 0.27, 0.92, 0.76, 0.92})...)
	case "3":
		return union(
			pen(slices.Concat(arc(0.48, 0.29, 0.23, 0.21, 200, 450), []float64{0.44, 0.50})...),
			pen(arc(0.48, 0.71, 0.26, 0.21, -90, 160)...))
	case "4":
		return union(pen(0.60, 0.92, 0.60, 0.08, 0.22, 0.66, 0.80, 0.66))
	case "5":
		return pen(slices.Concat([]float64{0.72, 0.08, 0.32, 0.08, 0.29, 0.46}, arc(0.47, 0.65, 0.27, 0.27, -125, 150))...)
	case "6":
		return union(pen(arc(0.5, 0.67, 0.25, 0.25, 0, 360)...), pen(0.62, 0.08, 0.40, 0.32, 0.27, 0.58))
	case "7":
		return pen(0.24, 0.08, 0.76, 0.08, 0.42, 0.92)
	case "8":
		return union(pen(arc(0.5, 0.29, 0.21, 0.21, 0, 360)...), pen(arc(0.5, 0.71, 0.25, 0.21, 0, 360)...))
	default: // 9
		return union(pen(arc(0.5, 0.33, 0.25, 0.25, 0, 360)...), pen(0.38, 0.92, 0.60, 0.68, 0.73, 0.42))
	}
}
