package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gen2brain/beeep"
)

// plainMax is how many characters of a title are told through beeep: what one
// line of a Windows toast or a macOS banner holds, twice.
const plainMax = 120

// Plain reduces s to characters that mean nothing to PowerShell, AppleScript,
// XML, notify-send or kdialog: ASCII letters, digits, space and . , : _ / - ?.
// A run of anything else becomes one ?. The result begins with a letter or a
// digit and has at most max characters; it is empty if s has none of these.
func Plain(s string, max int) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			r = ' '
		case !plain(r):
			r = '?'
		}
		if b.Len() == 0 && !alnum(r) {
			continue
		}
		if (r == ' ' || r == '?') && r == last {
			continue
		}
		if b.Len() >= max {
			break
		}
		b.WriteRune(r)
		last = r
	}
	return strings.TrimRight(b.String(), " ")
}

func alnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

func plain(r rune) bool {
	return alnum(r) || strings.ContainsRune(" .,:_/-?", r)
}

// teller says one plain sentence to the human.
type teller func(title, message string) error

// tell passes the note's title to t, and nothing that Plain did not make.
func (t teller) tell(app string, n Note) error {
	message := Plain(n.Title, plainMax)
	if message == "" {
		message = "Something waits for you"
	}
	title := Plain(app, plainMax)
	if title == "" {
		title = "Notification"
	}
	return t(title, message)
}

// byBeeep returns the teller that uses beeep. It names the program in beeep's
// own package variable, which holds for the whole process.
func byBeeep(app string) teller {
	if name := Plain(app, plainMax); name != "" {
		beeep.AppName = name
	}
	// No icon: on Windows its path, with the user's name in it, would go into
	// the same script as the text.
	return func(title, message string) error { return beeep.Notify(title, message, "") }
}

// telling is the notifier that only tells.
type telling struct {
	app  string
	tell teller
	caps Capabilities

	mu     sync.Mutex
	ended  bool
	events chan Event
}

func newTelling(cfg Config, t teller, why string) *telling {
	return &telling{
		app: cfg.AppName, tell: t, events: make(chan Event),
		caps: Capabilities{Backend: ByBeeep, Why: why},
	}
}

func (t *telling) Show(ctx context.Context, n Note) (Shown, error) {
	if err := n.check(); err != nil {
		return Shown{}, err
	}
	if err := ctx.Err(); err != nil {
		return Shown{}, fmt.Errorf("telling %s: %w", n.Key, err)
	}
	t.mu.Lock() // one at a time: beeep is not made for more
	defer t.mu.Unlock()
	if t.ended {
		return Shown{}, ErrEnded
	}
	if err := t.tell.tell(t.app, n); err != nil {
		return Shown{}, fmt.Errorf("telling %s: %w", n.Key, err)
	}
	return Shown{Backend: ByBeeep}, nil
}

func (t *telling) Withdraw(string)            {}
func (t *telling) Capabilities() Capabilities { return t.caps }
func (t *telling) Events() <-chan Event       { return t.events }

func (t *telling) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		close(t.events)
	}
	return nil
}

// check says what is wrong with n, wrapping ErrNote.
func (n Note) check() error {
	problem := func(text string) error { return fmt.Errorf("%w: %s", ErrNote, text) }
	if n.Key == "" {
		return problem("it has no key")
	}
	seen := map[string]bool{}
	for _, a := range n.Actions {
		switch {
		case a.Key == "" || a.Label == "":
			return problem("an action has no key or no label")
		case a.Key == defaultKey:
			return problem(`"default" is the click on the note: name the action it stands for in Click`)
		case seen[a.Key]:
			return problem("two actions have the key " + a.Key)
		}
		seen[a.Key] = true
	}
	if n.Click != "" && !seen[n.Click] {
		return problem("Click names no action")
	}
	return nil
}

// errNoBus is why nothing at all can be told on a system whose notifications go
// over D-Bus. beeep is not asked there: it would start a bus daemon of its own
// that nobody watches and that outlives us.
var errNoBus = errors.New("there is no session bus")
