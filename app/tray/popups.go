//go:build !headless

package tray

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/app/desk"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/notify"
)

// The keys of a notification's buttons.
const (
	actAllow  = "allow"
	actDeny   = "deny"
	actReview = "review"
)

const (
	burst      = 3 // more waiting asks than that are told in one summary
	summaryKey = "summary"
	noteKey    = "ask-" // and the ask's key
	callLimit  = 10 * time.Second
	lateFor    = 5 * time.Second
)

// popups decides what is told by notification, and when:
//
//   - an ask that waits is told once, with Allow once, Deny and Review…;
//   - the first two are offered only if the notification shows the whole of
//     what is asked, and none of it had to be escaped to be seen; otherwise
//     only Review… is left, for an answer then needs a look;
//   - more than three waiting asks are one summary;
//   - a notification that the human closed does not come again: its ask waits
//     in the menu;
//   - where the desktop has no buttons the dialog comes up by itself, unless
//     one is open;
//   - while paused nothing is told.
type popups struct {
	cfg     Config
	windows *windows

	shown   map[string]*popup // by the ask's key
	settled map[string]bool   // asks not to be told again
	summary *popup
	again   <-chan time.Time // when the summary may change its wording
}

// popup is one notification that was shown.
type popup struct {
	at      time.Time
	hash    string
	text    string
	buttons bool
	mute    bool // told by a backend that cannot take back or replace
}

func newPopups(c Config, w *windows) *popups {
	return &popups{cfg: c, windows: w, shown: map[string]*popup{}, settled: map[string]bool{}}
}

// run tells until ctx ends and takes back what is still on screen.
func (p *popups) run(ctx context.Context) {
	boardNews, unwatchBoard := p.cfg.Node.Board().Watch()
	defer unwatchBoard()
	nodeNews, unwatchNode := p.cfg.Node.Watch()
	defer unwatchNode()
	defer p.clear()
	var events <-chan notify.Event
	if p.cfg.Notifier != nil {
		events = p.cfg.Notifier.Events()
	}
	for {
		p.sync(ctx)
		select {
		case <-ctx.Done():
			return
		case <-boardNews:
		case <-nodeNews: // the pause is among them
		case <-p.again:
			p.again = nil
		case e, ok := <-events:
			if !ok {
				events = nil
				break
			}
			p.event(ctx, e)
		}
	}
}

// sync brings what is on screen in line with the board.
func (p *popups) sync(ctx context.Context) {
	if p.cfg.Node.Paused() {
		p.clear()
		return
	}
	pending := p.cfg.Node.Board().Pending()
	here := make(map[string]bool, len(pending))
	fresh := pending[:0:0]
	for _, a := range pending {
		here[a.Key] = true
		if !p.settled[a.Key] {
			fresh = append(fresh, a)
		}
	}
	for key := range p.settled {
		if !here[key] {
			delete(p.settled, key)
		}
	}
	for key := range p.shown {
		if !here[key] || len(fresh) > burst {
			delete(p.shown, key)
			p.withdraw(noteKey + key)
		}
	}
	if len(fresh) > burst {
		p.summarise(ctx, fresh)
		return
	}
	if p.summary != nil {
		p.summary, p.again = nil, nil
		p.withdraw(summaryKey)
	}
	for _, a := range fresh {
		if p.shown[a.Key] == nil {
			p.tell(ctx, a)
		}
	}
}

// clear takes everything off the screen.
func (p *popups) clear() {
	for key := range p.shown {
		delete(p.shown, key)
		p.withdraw(noteKey + key)
	}
	if p.summary != nil {
		p.summary, p.again = nil, nil
		p.withdraw(summaryKey)
	}
}

func (p *popups) withdraw(key string) {
	if p.cfg.Notifier != nil {
		p.cfg.Notifier.Withdraw(key)
	}
}

// show puts a note on screen, or says why that is not possible.
func (p *popups) show(ctx context.Context, n notify.Note) (notify.Shown, error) {
	if p.cfg.Notifier == nil {
		return notify.Shown{}, errors.New("no notifications here")
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return p.cfg.Notifier.Show(ctx, n)
}

// tell shows the notification of a.
func (p *popups) tell(ctx context.Context, a *board.Ask) {
	s, err := p.show(ctx, note(a))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.cfg.Log.Warn("an ask could not be told by notification", "ask", a.ID, "error", err)
	}
	p.shown[a.Key] = &popup{at: p.cfg.Now(), hash: a.Hash, buttons: len(s.Actions) > 0}
	if len(s.Actions) == 0 {
		p.windows.offer(a.Key)
	}
}

// note is the notification of a.
func note(a *board.Ask) notify.Note {
	n := notify.Note{
		Key: noteKey + a.Key, Ref: a.Hash,
		Title: desk.Title(a.Question), Body: body(a),
		Click: actReview, Urgency: notify.Critical, Category: "im.received",
	}
	if desk.Plain(a) && !strings.Contains(n.Title, "…") {
		n.Actions = []notify.Action{
			{Key: actAllow, Label: "Allow once", WholeOnly: true},
			{Key: actDeny, Label: "Deny", WholeOnly: true},
		}
	}
	n.Actions = append(n.Actions, notify.Action{Key: actReview, Label: "Review…"})
	return n
}

// body is every fact of a in visible text, the value first. It is all of it:
// only the notifier knows how much fits, and says how much it left out.
func body(a *board.Ask) string {
	var lines []string
	for i, f := range desk.Facts(a) {
		text := visible.Block(f.Text)
		label := visible.Line(f.Label, 0)
		if f.Model {
			label = strings.TrimSpace("written by the model: " + label)
		}
		if i > 0 && label != "" {
			text = label + ": " + text
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// summarise tells of a burst.
func (p *popups) summarise(ctx context.Context, asks []*board.Ask) {
	if s := p.summary; s != nil {
		if s.mute {
			return
		}
		if wait := p.cfg.timing.summary - p.cfg.Now().Sub(s.at); wait > 0 {
			if p.again == nil {
				p.again = time.After(wait)
			}
			return
		}
	}
	text := summaryText(asks)
	if p.summary != nil && p.summary.text == text {
		return
	}
	head, rest, _ := strings.Cut(text, ": ")
	s, err := p.show(ctx, notify.Note{
		Key: summaryKey, Title: head, Body: rest,
		Actions: []notify.Action{{Key: actReview, Label: "Review…"}}, Click: actReview,
		Urgency: notify.Critical, Category: "im.received",
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.cfg.Log.Warn("waiting asks could not be told by notification", "asks", len(asks), "error", err)
	}
	p.summary = &popup{at: p.cfg.Now(), text: text, buttons: len(s.Actions) > 0, mute: err != nil || s.Backend == notify.ByBeeep}
	if len(s.Actions) == 0 {
		p.windows.offer(asks[0].Key)
	}
}

// summaryText is "7 asks wait: scout 4, worker 3", agents with most asks first.
func summaryText(asks []*board.Ask) string {
	of := map[engine.Principal]int{}
	for _, a := range asks {
		of[a.Principal]++
	}
	named := map[string]int{} // several may go by one name
	for p, n := range of {
		named[desk.Who(p)] += n
	}
	names := slices.SortedFunc(maps.Keys(named), func(a, b string) int {
		return cmp.Or(named[b]-named[a], strings.Compare(a, b))
	})
	var parts []string
	for i, who := range names {
		if i == 5 {
			parts = append(parts, fmt.Sprintf("%d more agents", len(names)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", who, named[who]))
	}
	return desk.Count(len(asks)) + ": " + strings.Join(parts, ", ")
}

// event is something that happened to a notification.
func (p *popups) event(ctx context.Context, e notify.Event) {
	key, isAsk := strings.CutPrefix(e.Note.Key, noteKey)
	switch {
	case e.Kind == notify.Changed:
		p.cfg.Log.Debug("notifications", "backend", e.Caps.Backend, "server", e.Caps.Server, "buttons", e.Caps.HasActions, "why", e.Caps.Why)
	case e.Kind == notify.Invoked && isAsk:
		p.clicked(ctx, key, e)
	case e.Kind == notify.Invoked && e.Note.Key == summaryKey:
		p.review(e.Token)
	case e.Kind == notify.Closed && isAsk:
		if p.shown[key] != nil {
			delete(p.shown, key)
			p.settled[key] = true
		}
	case e.Kind == notify.Closed && e.Note.Key == summaryKey:
		if p.summary != nil {
			p.settle()
		}
	case e.Kind == notify.Reshown && isAsk:
		if s := p.shown[key]; s != nil {
			s.at, s.buttons = p.cfg.Now(), len(e.Shown.Actions) > 0
			if !s.buttons {
				p.windows.offer(key)
			}
		}
	case e.Kind == notify.Reshown && e.Note.Key == summaryKey:
		if p.summary != nil {
			p.summary.at, p.summary.mute = p.cfg.Now(), e.Shown.Backend == notify.ByBeeep
		}
	case e.Kind == notify.Lost && isAsk:
		if p.shown[key] != nil {
			p.windows.offer(key) // told once already: only the way to answer is gone
		}
	case e.Kind == notify.Lost && e.Note.Key == summaryKey:
		if s := p.summary; s != nil {
			s.mute = true
			if pending := p.cfg.Node.Board().Pending(); len(pending) > 0 {
				p.windows.offer(pending[0].Key)
			}
		}
	}
}

// settle marks all that the summary told of as told.
func (p *popups) settle() {
	p.summary, p.again = nil, nil
	for _, a := range p.cfg.Node.Board().Pending() {
		p.settled[a.Key] = true
	}
}

// review opens the dialog of a burst, at the head of the queue.
func (p *popups) review(token string) {
	p.settle()
	view, key := viewNod, ""
	if pending := p.cfg.Node.Board().Pending(); len(pending) > 0 {
		view, key = viewAsk, pending[0].Key
	}
	p.windows.show(view, key, token)
}

// clicked is a button of an ask's notification, which is off the screen now.
// It means the content that the notification showed, and nothing else.
func (p *popups) clicked(ctx context.Context, key string, e notify.Event) {
	b := p.cfg.Node.Board()
	s := p.shown[key]
	delete(p.shown, key)
	a := b.Get(key)
	if a == nil {
		p.late(ctx, key)
		return
	}
	if e.Action == actReview {
		p.settled[key] = true
		p.windows.show(viewAsk, key, e.Token)
		return
	}
	if s == nil || p.cfg.Now().Sub(s.at) < p.cfg.timing.dead {
		return // aimed at what was there before; sync shows it again
	}
	answer := board.Answer{Verdict: engine.Denied, View: "notification"}
	switch e.Action {
	case actAllow:
		answer.Verdict = engine.Approved
	case actDeny:
	default:
		p.cfg.Log.Warn("an unknown button was pressed", "button", visible.Line(e.Action, 40))
		return
	}
	switch err := b.Answer(key, e.Note.Ref, answer); {
	case err == nil:
	case errors.Is(err, board.ErrGone):
		p.late(ctx, key)
	default:
		p.cfg.Log.Warn("a notification's button decided nothing", "ask", a.ID, "error", err)
	}
}

// late says in the place of the notification that its click decided nothing.
func (p *popups) late(ctx context.Context, key string) {
	how := "it waits no longer"
	title := "Too late"
	for _, e := range p.cfg.Node.Board().Ended() {
		if e.Key == key {
			how, title = desk.How(e), "Too late: "+desk.Title(e.Ask.Question)
		}
	}
	n := notify.Note{Key: noteKey + key, Title: title, Body: how, Urgency: notify.Low, Expire: lateFor}
	if _, err := p.show(ctx, n); err != nil && ctx.Err() == nil {
		p.cfg.Log.Info("a click came too late", "how", how)
	}
}
