// Package notify tells the human something through the desktop's own
// notifications and, where the desktop can, offers buttons for an answer.
//
// On Linux and the BSDs it speaks org.freedesktop.Notifications over D-Bus,
// with buttons. Where there is no such server, and on macOS and Windows, it
// tells through beeep: one plain sentence, no buttons, no way to take it back.
//
// # What may press a button
//
// Any program on the session bus can emit ActionInvoked, and ids start again at
// 1 when the server restarts. So a signal counts only if the bus says that its
// sender is the present unique owner of the server's name, its id is one which
// that same owner gave us, the note is still wanted, and the action is one that
// was offered on it. A program that takes the server's name away from the
// server can still press buttons, as it can read and draw the notification
// itself: the session bus has no defence against that. Capabilities name the
// server and its owner for the log.
//
// # Text and shells
//
// Over D-Bus text is data from end to end. beeep is not so harmless: on Windows
// it falls back to a PowerShell script with the text inside an expandable
// string and it does not escape the toast's XML, on macOS it falls back to an
// AppleScript line, on Linux it runs notify-send or kdialog, where a leading
// dash would be an option. So nothing reaches beeep but what [Plain] lets
// through: ASCII letters and digits, space and . , : _ / - ?, beginning with a
// letter or a digit. None of these means anything to PowerShell, AppleScript,
// XML or a command line. The body is never told that way, only the title.
package notify

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"time"

	"github.com/godbus/dbus/v5"
)

// Urgency is the urgency hint of the Desktop Notifications specification.
type Urgency byte

// The urgencies. A server does not expire a critical note on its own and most
// show it whole at once.
const (
	Low      Urgency = 0
	Normal   Urgency = 1
	Critical Urgency = 2
)

// Action is one button.
type Action struct {
	Key   string // comes back in Event.Action; not empty, unique within its note
	Label string // what the button says

	// WholeOnly leaves the button out unless the whole body is on screen, by
	// the server that shows it at that time. For whatever approves.
	WholeOnly bool
}

// Note is one notification. Title and Body are untrusted text already made
// visible by the caller; they are never read as markup.
type Note struct {
	Key   string // the caller's name for it; showing a key again replaces its note
	Ref   string // says which content this is, for the caller: Event.Note carries it back
	Title string // one line
	Body  string // may have line breaks; its middle is cut if the server would not show it all

	Actions []Action // in order of appearance
	Click   string   // key of the action that a click on the note itself stands for; empty: none

	Urgency  Urgency
	Category string        // of the specification, such as "im.received"; empty: none
	Expire   time.Duration // shown at most that long; zero: until answered or withdrawn
}

// Shown says how a note was shown.
type Shown struct {
	Backend Backend
	Whole   bool     // the whole body is on screen
	Actions []Action // the buttons that were offered; none with beeep
}

// Backend is the way notes take to the screen.
type Backend string

// The backends.
const (
	ByDBus   Backend = "dbus"  // a notification server, with buttons if HasActions
	ByBeeep  Backend = "beeep" // tells only
	ByNobody Backend = ""      // nothing can be told
)

// Capabilities say what the present backend can do.
type Capabilities struct {
	Backend    Backend
	HasActions bool // the server has buttons, or at least a way to choose an action
	HasBody    bool
	HasMarkup  bool // the server reads the body as markup, so it is escaped
	Persistent bool // the server keeps notes until they are answered
	Body       Budget

	Server, Vendor, Version string // as the server names itself
	Owner                   string // its unique name on the bus
	Why                     string // if Backend is not ByDBus: one sentence why
}

// Kind is what an Event tells.
type Kind int

// The kinds of event.
const (
	// Invoked: the human pressed Action on Note, which is gone from the screen.
	Invoked Kind = iota + 1
	// Closed: Note went from the screen without an answer, for Reason.
	Closed
	// Reshown: the server was replaced and Note, still wanted, is on screen
	// again, with Shown.
	Reshown
	// Lost: Note could not be shown again by a new server; it is forgotten.
	Lost
	// Changed: Caps are not what they were.
	Changed
)

// Reason is why a note closed.
type Reason uint32

// The reasons of the specification. Our own withdrawals make no event.
const (
	Expired   Reason = 1
	Dismissed Reason = 2 // by the human
	Other     Reason = 4
)

// Event is what happened to a note or to the backend.
type Event struct {
	Kind   Kind
	Note   Note   // as it was shown when it happened: a click meant this content; zero with Changed
	Action string // with Invoked: a key of Note.Actions
	Token  string // with Invoked: activation token for the window this opens; may be empty
	Reason Reason // with Closed
	Shown  Shown  // with Reshown
	Caps   Capabilities
}

// Notifier shows notes. It is safe for concurrent use.
type Notifier interface {
	// Show puts n on screen, in place of the note with the same key if there
	// is one, and returns when the server has it. An error means that nobody
	// was told.
	Show(ctx context.Context, n Note) (Shown, error)
	// Withdraw takes the note with this key off the screen, if it is there. No
	// event of it comes after, except those already queued.
	Withdraw(key string)
	// Capabilities are those of now; an event Changed follows each change.
	Capabilities() Capabilities
	// Events is one channel for the life of the notifier; Close closes it. The
	// queue behind it is not bounded: read it.
	Events() <-chan Event
	// Close withdraws every note and ends the notifier.
	Close() error
}

// Errors of Show.
var (
	ErrEnded = errors.New("the notifier has ended")
	ErrNote  = errors.New("not a note that can be shown")
)

// Config is what a notifier is made of.
type Config struct {
	AppName      string      // as the desktop shows it; a fixed word, never untrusted text
	DesktopEntry string      // name of the .desktop file without its ending; empty: none
	Icon         image.Image // optional
	IconName     string      // name of a themed icon or path, for servers without images; optional

	// BusAddress is the session bus, as SessionBus finds it. Empty: there is
	// none, so nothing can be shown on Linux.
	BusAddress string

	Log *slog.Logger // nil: nothing is logged

	picture dbus.Variant // Icon as it is sent
	timing  timing       // zero: the times of real life
}
