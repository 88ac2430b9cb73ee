//go:build !headless

package tray

func playResident() int { return 1 }
