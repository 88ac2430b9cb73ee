// Package tray is the resident desktop front end: the tray icon and its menu,
// the notifications, and the window processes, which it starts, feeds and
// ends. It draws nothing itself, so that a Nod nobody looks at costs nothing.
//
// With the build tag headless there is nothing in it.
package tray
