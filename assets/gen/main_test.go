package main

import (
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed icons are what this program draws: same files, same pixels.
func TestIconsAreUpToDate(t *testing.T) {
	drawn := pictures()
	for name, want := range drawn {
		f, err := os.Open(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			t.Errorf("%v (run go generate ./assets)", err)
			continue
		}
		got, err := png.Decode(f)
		f.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Bounds() != want.Bounds() {
			t.Errorf("%s is %v, drawn as %v", name, got.Bounds(), want.Bounds())
			continue
		}
		b := want.Bounds()
	pixels:
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				r, g, bl, a := got.At(x, y).RGBA()
				r2, g2, b2, a2 := want.At(x, y).RGBA()
				if r != r2 || g != g2 || bl != b2 || a != a2 {
					t.Errorf("%s differs at %d, %d (run go generate ./assets)", name, x, y)
					break pixels
				}
			}
		}
	}
	for _, dir := range []string{"../icon", "../tray"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if name := strings.TrimPrefix(filepath.ToSlash(path), "../"); drawn[name] == nil {
					t.Errorf("%s is drawn by nobody", name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
