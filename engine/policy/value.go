package policy

import (
	"github.com/nod-agents/nod/engine"
)

// value is one value of a policy file, whichever notation it is written in.
type value struct {
	kind kind
	text string  // of a string or number
	yes  bool    // of a boolean
	list []value // of a list
	keys []member
	pos  engine.Position
}

// member is one key of an object with its value.
type member struct {
	key string
	pos engine.Position // of the key
	val value
	// twice is where the same key stands earlier in the object; that one does
	// not count.
	twice engine.Position
}

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// String names the kind with its article.
func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// last leaves out every member whose key is written again later: a key written
// twice stands where it was last written.
func last(all []member) []member {
	at := make(map[string]int, len(all))
	twice := false
	for i, m := range all {
		if _, ok := at[m.key]; ok {
			twice = true
		}
		at[m.key] = i
	}
	if !twice {
		return all
	}
	first := make(map[string]engine.Position)
	kept := make([]member, 0, len(at))
	for i, m := range all {
		if at[m.key] != i {
			if _, ok := first[m.key]; !ok {
				first[m.key] = m.pos
			}
			continue
		}
		m.twice = first[m.key]
		kept = append(kept, m)
	}
	return kept
}
