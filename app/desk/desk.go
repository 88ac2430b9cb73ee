// Package desk is what the front ends have in common: what they need of the
// serving node, and the words in which an ask is put to a human.
package desk

import (
	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/pipe"
)

// Node is the serving node as a front end sees it. Every method is safe for
// concurrent use and returns at once.
type Node interface {
	// Board holds the asks that wait.
	Board() *board.Board

	// Grants are the recorded grants that still hold, oldest first.
	Grants() []pipe.Grant
	// Revoke takes one grant back, by its id.
	Revoke(id string) error
	// ClearGrants takes all of them back and says how many there were.
	ClearGrants() int

	// Paused reports whether asks wait without anything popping up.
	Paused() bool
	SetPaused(bool)

	// Problems are what the user must mend, one sentence each.
	Problems() []string
	// Serving names the inboxes that are served, one line each.
	Serving() []string

	// Watch returns a channel that becomes readable after the grants, the
	// pause, the problems or what is served changed, several changes counting
	// as one, and a function that ends the watch. Changes of the board come
	// from the board's own Watch.
	Watch() (changes <-chan struct{}, stop func())

	// LogPath is the review log's file.
	LogPath() string
}
