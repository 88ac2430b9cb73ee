package main

import (
	"image"
	"image/color"
	"math"
)

// A shape is a signed distance: negative inside, in the units of its canvas,
// which is 1 wide and 1 high.
type shape func(x, y float64) float64

func disc(cx, cy, r float64) shape {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - r }
}

// box is a rectangle between two corners with rounded corners of radius r.
func box(x0, y0, x1, y1, r float64) shape {
	cx, cy, hx, hy := (x0+x1)/2, (y0+y1)/2, (x1-x0)/2-r, (y1-y0)/2-r
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx)-hx, math.Abs(y-cy)-hy
		return math.Hypot(math.Max(dx, 0), math.Max(dy, 0)) + math.Min(math.Max(dx, dy), 0) - r
	}
}

// line is a stroke of width w with round ends through the points, given as
// x, y, x, y, …
func line(w float64, points ...float64) shape {
	return func(x, y float64) float64 {
		best := math.Inf(1)
		for i := 0; i+3 < len(points); i += 2 {
			ax, ay, bx, by := points[i], points[i+1], points[i+2], points[i+3]
			vx, vy := bx-ax, by-ay
			t := 0.0
			if n := vx*vx + vy*vy; n > 0 {
				t = math.Max(0, math.Min(1, ((x-ax)*vx+(y-ay)*vy)/n))
			}
			best = math.Min(best, math.Hypot(x-ax-t*vx, y-ay-t*vy))
		}
		return best - w/2
	}
}

// arc lists points of an ellipse's arc from angle a to b, in degrees,
// clockwise from the right.
func arc(cx, cy, rx, ry, a, b float64) []float64 {
	const steps = 24
	var p []float64
	for i := 0; i <= steps; i++ {
		t := (a + (b-a)*float64(i)/steps) * math.Pi / 180
		p = append(p, cx+rx*math.Cos(t), cy+ry*math.Sin(t))
	}
	return p
}

func union(shapes ...shape) shape {
	return func(x, y float64) float64 {
		d := math.Inf(1)
		for _, s := range shapes {
			d = math.Min(d, s(x, y))
		}
		return d
	}
}

func grow(s shape, by float64) shape {
	return func(x, y float64) float64 { return s(x, y) - by }
}

// place scales s by k and moves its origin to (dx, dy).
func place(s shape, dx, dy, k float64) shape {
	return func(x, y float64) float64 { return k * s((x-dx)/k, (y-dy)/k) }
}

// A picture is painted layer upon layer, in straight (not premultiplied)
// colour.
type picture struct {
	size int
	pix  []float64 // r, g, b, a per pixel, 0…1
}

func newPicture(size int) *picture { return &picture{size: size, pix: make([]float64, 4*size*size)} }

// each calls f with the coverage (0…1) of s for every pixel.
func (p *picture) each(s shape, f func(px []float64, x, y, cover float64)) {
	for j := range p.size {
		for i := range p.size {
			x, y := (float64(i)+0.5)/float64(p.size), (float64(j)+0.5)/float64(p.size)
			cover := math.Max(0, math.Min(1, 0.5-s(x, y)*float64(p.size)))
			if cover > 0 {
				at := 4 * (j*p.size + i)
				f(p.pix[at:at+4], x, y, cover)
			}
		}
	}
}

// fill paints s with the colour that paint gives at each height.
func (p *picture) fill(s shape, paint func(y float64) color.NRGBA) {
	p.each(s, func(px []float64, _, y, cover float64) {
		c := paint(y)
		a := cover * float64(c.A) / 255
		out := a + px[3]*(1-a)
		for k, v := range []uint8{c.R, c.G, c.B} {
			px[k] = (float64(v)/255*a + px[k]*px[3]*(1-a)) / out
		}
		px[3] = out
	})
}

// cut makes s transparent.
func (p *picture) cut(s shape) {
	p.each(s, func(px []float64, _, _, cover float64) { px[3] *= 1 - cover })
}

func (p *picture) image() *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, p.size, p.size))
	for i := range img.Pix {
		img.Pix[i] = uint8(math.Round(math.Max(0, math.Min(1, p.pix[i])) * 255))
	}
	return img
}

func plain(c color.NRGBA) func(float64) color.NRGBA { return func(float64) color.NRGBA { return c } }

// fade goes from one colour at the top to another at the bottom.
func fade(top, bottom color.NRGBA) func(float64) color.NRGBA {
	mix := func(a, b uint8, t float64) uint8 {
		return uint8(math.Round(float64(a) + (float64(b)-float64(a))*t))
	}
	return func(y float64) color.NRGBA {
		return color.NRGBA{mix(top.R, bottom.R, y), mix(top.G, bottom.G, y), mix(top.B, bottom.B, y), 255}
	}
}
