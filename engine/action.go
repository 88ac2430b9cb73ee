package engine

import "fmt"

// Action is what a rule says about the calls it matches. The zero value is
// Ask, so that a thing never decided asks.
type Action int8

// The three actions of a policy.
const (
	Ask Action = iota
	Allow
	Deny
)

// rank orders actions by strictness: allow < ask < deny.
func (a Action) rank() int {
	switch a {
	case Allow:
		return 0
	case Deny:
		return 2
	default:
		return 1
	}
}

// Stricter reports whether a is stricter than b, by allow < ask < deny.
func (a Action) Stricter(b Action) bool { return a.rank() > b.rank() }

// Strictest returns the stricter of a and b.
func Strictest(a, b Action) Action {
	if b.Stricter(a) {
		return b
	}
	return a
}

// String returns the word that policy files use: allow, ask or deny.
func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	default:
		return "ask"
	}
}

// ParseAction reads the word of a policy file. It accepts exactly allow, ask
// and deny.
func ParseAction(s string) (Action, error) {
	switch s {
	case "allow":
		return Allow, nil
	case "ask":
		return Ask, nil
	case "deny":
		return Deny, nil
	}
	return Ask, fmt.Errorf("action %q is none of allow, ask, deny", s)
}

// MarshalText writes the word of String.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the words of ParseAction.
func (a *Action) UnmarshalText(text []byte) error {
	v, err := ParseAction(string(text))
	if err != nil {
		return err
	}
	*a = v
	return nil
}
