// Package terminal answers asks in a terminal: over SSH, in a container, on a
// machine without a display.
//
// # Rules of its output
//
// Lines are printed one after another, no second screen is taken, so the
// terminal's own history keeps what was asked and how it ended. Every line of
// an agent is made visible and stands behind a bar; a line without one is ours.
//
// # What counts as an answer
//
// One key, pressed by itself, half a second or more after the ask came up.
// Several bytes that arrive together (a paste, keys typed ahead, a script) never
// answer, nor does Enter. An ask too long for the screen is approved only after
// its end was shown.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
)

// View is the name under which the board records answers given here.
const View = "terminal"

// ErrNoTerminal is wrapped by Run's error if In or Out is no terminal.
var ErrNoTerminal = errors.New("not a terminal")

const (
	dead      = 500 * time.Millisecond // after an ask came up, keys are not meant for it
	quiet     = 25 * time.Millisecond  // bytes closer together than that are no key presses
	maxBurst  = 64 << 10               // bytes
	maxReason = 500                    // characters
)

// Config is what a terminal front end works on.
type Config struct {
	Node    desk.Node
	In, Out *os.File
	Plain   bool // no colour, as NO_COLOR or TERM=dumb want it
	Now     func() time.Time
	Log     *slog.Logger
}

// Run shows and answers asks until ctx ends, which is no error, or the
// terminal goes. It gives the terminal back as it was.
func Run(ctx context.Context, c Config) error {
	t, err := openTTY(c.In, c.Out)
	if err != nil {
		return err
	}
	u := &ui{Config: c, tty: t, out: bufio.NewWriter(c.Out), later: map[string]bool{}}
	inputs, ended := make(chan []byte), make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		ended <- t.read(func(b []byte) {
			select {
			case inputs <- b:
			case <-stop:
			}
		})
	}()
	alive := true
	defer func() {
		close(stop)
		if alive {
			t.wakeUp()
			<-ended
		}
		u.hush()
		u.modes(false)
		u.out.Flush()
		t.close()
	}()

	changes, unwatch := c.Node.Board().Watch()
	defer unwatch()
	news, unwatchNode := c.Node.Watch()
	defer unwatchNode()

	u.modes(true)
	u.say("Nod answers here. ? lists the keys, ^C ends.")
	for _, s := range c.Node.Serving() {
		u.say("  serving " + visible.Line(s, 0))
	}
	for {
		u.sync()
		if err := u.out.Flush(); err != nil {
			return fmt.Errorf("writing to the terminal: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			alive = false
			return err
		case <-changes:
		case <-news:
		case b := <-inputs:
			if in, ok := u.keys.feed(b); ok {
				u.input(in)
			}
		case s := <-t.signals():
			if t.job(s, u.suspend, u.resume) {
				u.redraw()
			}
		}
	}
}

// mode is what the next key means.
type mode int

const (
	asking mode = iota
	scope       // of "for this session"
	reason      // being typed
	paging      // through the whole ask
)

type ui struct {
	Config
	tty  *tty
	out  *bufio.Writer
	keys keys

	cur      *board.Ask // on the screen, or nil
	shown    time.Time  // since when what is on the screen could be read
	cut      bool       // its end has not been on the screen
	mode     mode
	typed    []rune // the reason
	page     []string
	top, end int // of the page on the screen
	later    map[string]bool
	problems string // as told last
	paused   bool
	idle     string // the line that was last said about waiting
	prompted bool   // the last line on the screen is a prompt
}

// modes switches bracketed paste on or off.
func (u *ui) modes(on bool) {
	if on {
		u.out.WriteString("\x1b[?2004h")
	} else {
		u.out.WriteString("\x1b[?2004l")
	}
}

func (u *ui) suspend() {
	u.hush()
	u.modes(false)
	u.out.Flush()
	u.tty.leave()
}

func (u *ui) resume() {
	if err := u.tty.enter(); err != nil {
		u.Log.Warn("taking the terminal back", "error", err)
	}
	u.modes(true)
}

// hush takes the prompt off its line.
func (u *ui) hush() {
	if u.prompted {
		u.out.WriteString("\r\x1b[K")
		u.prompted = false
	}
}

func (u *ui) say(line string) {
	u.hush()
	u.out.WriteString(line + "\n")
}

// style wraps text in an SGR attribute: 1 bold, 9 crossed out, 31 red, 33 yellow.
func (u *ui) style(sgr, text string) string {
	if u.Plain {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// prompt writes the line that waits for a key.
func (u *ui) prompt(text string) {
	u.hush()
	width, _ := u.tty.size()
	if r := []rune(text); len(r) > width-2 {
		text = "…" + string(r[len(r)-max(width-3, 1):])
	}
	u.out.WriteString(text)
	u.prompted = true
}

// sync brings the screen in line with the board.
func (u *ui) sync() {
	b := u.Node.Board()
	if u.cur != nil && b.Get(u.cur.Key) == nil {
		u.gone()
	}
	if told := strings.Join(u.Node.Problems(), "\n"); told != u.problems {
		u.problems = told
		for _, p := range u.Node.Problems() {
			u.say(u.style("33", "! ") + visible.Line(p, 0))
		}
		u.again()
	}
	if p := u.Node.Paused(); p != u.paused {
		u.paused, u.idle = p, ""
	}
	if u.cur != nil {
		return
	}
	pending := b.Pending()
	here := make(map[string]bool, len(pending))
	for _, a := range pending {
		here[a.Key] = true
	}
	for key := range u.later {
		if !here[key] {
			delete(u.later, key)
		}
	}
	if !u.paused {
		for i, a := range pending {
			if !u.later[a.Key] {
				u.show(a, i+1, len(pending))
				return
			}
		}
	}
	idle := "nothing waits"
	switch {
	case u.paused && len(pending) > 0:
		idle = "paused, " + desk.Count(len(pending)) + ": p goes on"
	case u.paused:
		idle = "paused: p goes on"
	case len(pending) > 0:
		idle = desk.Count(len(pending)) + ", put off: l looks at them again"
	}
	if idle != u.idle || !u.prompted {
		u.idle = idle
		u.prompt(idle + " ")
	}
}

// show puts a on the screen.
func (u *ui) show(a *board.Ask, nth, of int) {
	u.cur, u.mode, u.idle, u.shown = a, asking, "", u.Now()
	width, height := u.tty.size()
	title := desk.Title(a.Question)
	if of > 1 {
		title = fmt.Sprintf("%s (%d of %d)", title, nth, of)
	}
	u.say("")
	for _, l := range wrap(title, width, "") {
		u.say(u.style("1", l))
	}
	lines, cut := brief(sheet(a, width, u.Now()), height-6)
	u.cut = cut
	for _, l := range lines {
		u.say(l)
	}
	u.out.WriteString("\a")
	u.ask()
}

// ask writes the prompt of an ask.
func (u *ui) ask() {
	u.mode = asking
	session := ""
	if len(u.cur.Suggestion) > 0 {
		session = "s this session…  "
	}
	approve := "y allow once  " + session
	if u.cut {
		approve = ""
	}
	line := approve + "n deny  r reason…  v view whole  l later  ? > "
	if width, _ := u.tty.size(); cells(line) > width-2 {
		if line = "y/s/n/r/v/l/? > "; session == "" {
			line = "y/n/r/v/l/? > "
		}
		if u.cut {
			line = "n/r/v/l/? > "
		}
	}
	u.prompt(line)
}

// again writes the prompt of the present mode.
func (u *ui) again() {
	if u.cur == nil {
		u.idle = ""
		return
	}
	switch u.mode {
	case asking:
		u.ask()
	case scope:
		u.prompt("1 this subagent only  2 the whole session  Esc back > ")
	case reason:
		u.prompt("reason (Enter sends, Esc back): " + visible.Line(string(u.typed), 0))
	case paging:
		u.prompt(fmt.Sprintf("lines %d to %d of %d: space on, b back, q done > ", u.top+1, u.end, len(u.page)))
	}
}

// redraw writes what is on the screen once more, after it may have gone.
func (u *ui) redraw() {
	u.prompted = false
	u.out.WriteString("\r\x1b[K")
	a := u.cur
	if a == nil {
		u.idle = ""
		return
	}
	if u.mode == reason {
		u.again()
		return
	}
	u.cur = nil // the first one that is not put off is shown again
}

// gone crosses out the ask on the screen, which ended elsewhere.
func (u *ui) gone() {
	how := "no longer waiting"
	for _, e := range u.Node.Board().Ended() {
		if e.Key == u.cur.Key {
			how = desk.How(e)
		}
	}
	u.say(u.style("9", desk.Title(u.cur.Question)) + " → " + how)
	u.cur, u.typed, u.page = nil, nil, nil
}

// input is one thing that the human did.
func (u *ui) input(in input) {
	if u.cur != nil && u.mode == reason {
		u.typing(in)
		return
	}
	if in.text != "" {
		u.say("several keys at once are no answer: press one")
		u.again()
		return
	}
	k := in.key
	switch {
	case k.r == '?':
		u.help()
		u.again()
	case u.cur == nil:
		u.waiting(k)
	case u.mode == paging:
		u.paging(k)
	case u.Now().Sub(u.shown) < dead:
		// meant for what was on the screen before
	case u.mode == scope:
		u.scoping(k)
	default:
		u.answering(k)
	}
}

func (u *ui) help() {
	for _, l := range []string{
		"  y  allow once",
		"  s  allow for this session: then 1 this subagent only, or 2 the whole session",
		"  n  deny",
		"  r  deny with a reason, which the agent reads",
		"  v  view the whole ask, page by page",
		"  l  later: the ask waits; pressed when only such asks wait, they come again",
		"  p  pause and go on: while paused asks wait and none comes up",
		"  Enter never answers. ^Z stops, ^C ends.",
	} {
		u.say(l)
	}
}

func (u *ui) waiting(k key) {
	switch k.r {
	case 'l':
		clear(u.later)
	case 'p':
		u.Node.SetPaused(!u.Node.Paused())
	default:
		u.out.WriteString("\a")
	}
}

func (u *ui) answering(k key) {
	switch k.r {
	case 'y', 's':
		switch {
		case u.cut:
			u.say("its end has not been on the screen: v views it whole")
			u.ask()
		case k.r == 'y':
			u.answer(board.Answer{Verdict: engine.Approved})
		case len(u.cur.Suggestion) == 0:
			u.say("the agent named nothing that could be allowed for the session")
			u.ask()
		default:
			u.mode = scope
			u.again()
		}
	case 'n':
		u.answer(board.Answer{Verdict: engine.Denied})
	case 'r':
		u.mode, u.typed = reason, nil
		u.again()
	case 'v':
		width, _ := u.tty.size()
		u.mode, u.page, u.top = paging, sheet(u.cur, width, u.Now()), 0
		u.turn()
	case 'l':
		u.say(desk.Title(u.cur.Question) + " → later")
		u.later[u.cur.Key] = true
		u.cur = nil
	case 'p':
		u.Node.SetPaused(!u.Node.Paused())
	default:
		u.out.WriteString("\a")
	}
}

func (u *ui) scoping(k key) {
	switch {
	case k.r == '1':
		u.answer(board.Answer{Verdict: engine.ApprovedForSession})
	case k.r == '2':
		u.answer(board.Answer{Verdict: engine.ApprovedForServingSession})
	case k.name == escape || k.r == 'q':
		u.ask()
	default:
		u.out.WriteString("\a")
	}
}

func (u *ui) typing(in input) {
	switch {
	case in.text != "":
		u.typed = append(u.typed, []rune(in.text)...)
	case in.key.r != 0:
		u.typed = append(u.typed, in.key.r)
	case in.key.name == backspace && len(u.typed) > 0:
		u.typed = u.typed[:len(u.typed)-1]
	case in.key.name == eraseLine:
		u.typed = nil
	case in.key.name == escape:
		u.typed = nil
		u.ask()
		return
	case in.key.name == enter:
		text := strings.TrimSpace(string(u.typed))
		if text == "" {
			u.say("no reason typed: n denies without one")
			u.ask()
			return
		}
		u.answer(board.Answer{Verdict: engine.DeniedWithReason, Reason: text})
		return
	}
	if len(u.typed) > maxReason {
		u.typed = u.typed[:maxReason]
		u.out.WriteString("\a")
	}
	u.again()
}

// turn shows the page from top on.
func (u *ui) turn() {
	_, height := u.tty.size()
	u.end = min(u.top+max(height-2, 4), len(u.page))
	for _, l := range u.page[u.top:u.end] {
		u.say(l)
	}
	if u.end == len(u.page) {
		u.cut = false
	}
	u.again()
}

func (u *ui) paging(k key) {
	_, height := u.tty.size()
	room := max(height-2, 4)
	switch {
	case k.r == ' ' && u.end < len(u.page):
		u.top = u.end
		u.turn()
	case k.r == 'b' && u.top > 0:
		u.top = max(u.top-room, 0)
		u.turn()
	case k.r == 'q' || k.r == 'v' || k.name == escape || k.r == ' ':
		u.shown = u.Now()
		u.ask()
	default:
		u.out.WriteString("\a")
	}
}

// answer gives the board the answer to the ask on the screen.
func (u *ui) answer(a board.Answer) {
	a.View = View
	err := u.Node.Board().Answer(u.cur.Key, u.cur.Hash, a)
	switch {
	case err == nil:
		u.say(desk.Title(u.cur.Question) + " → " + said(a))
		u.cur, u.typed, u.page = nil, nil, nil
	case errors.Is(err, board.ErrGone):
		u.gone()
	default:
		u.say(u.style("31", "not answered: ") + visible.Line(err.Error(), 0))
		u.ask()
	}
}

func said(a board.Answer) string {
	how := desk.How(board.End{Decision: engine.Decision{Verdict: a.Verdict, Reason: a.Reason}})
	if utf8.RuneCountInString(how) > 120 {
		how = visible.Line(how, 120)
	}
	return how
}
