// Package assets holds the files that the program carries with it: the
// application icon, the tray icons and the desktop entry. They are embedded,
// so that one binary is a whole installation.
//
// The icons are drawn by the program in gen; edit that, not the PNGs.
package assets

//go:generate go run ./gen .
