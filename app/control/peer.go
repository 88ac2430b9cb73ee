package control

import "fmt"

// checkUID compares the user at the other end with our own. Root may come in:
// it needs no socket to do as it likes.
func checkUID(peer, own int) error {
	if peer == own || peer == 0 {
		return nil
	}
	return fmt.Errorf("%w: user %d", ErrStranger, peer)
}
