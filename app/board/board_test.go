package board_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ask(agent, value string) board.Ask {
	return board.Ask{
		Hash: "hash of " + value,
		Question: &engine.Question{
			ID: value, Value: value, Principal: engine.Principal{SessionID: agent, AgentName: agent},
			Suggestion: []engine.Grant{{Surface: "bash", Pattern: value}},
		},
	}
}

func newBoard() *board.Board { return board.New(func() time.Time { return noon }) }

func TestAnAnswerEndsTheAskOnce(t *testing.T) {
	tests := []struct {
		name       string
		give       board.Answer
		verdict    engine.Verdict
		wantReason string
	}{
		{"once", board.Answer{Verdict: engine.Approved}, engine.Approved, ""},
		{"subagent", board.Answer{Verdict: engine.ApprovedForSession}, engine.ApprovedForSession, ""},
		{"session", board.Answer{Verdict: engine.ApprovedForServingSession}, engine.ApprovedForServingSession, ""},
		{"denied", board.Answer{Verdict: engine.Denied}, engine.Denied, ""},
		{"with reason", board.Answer{Verdict: engine.DeniedWithReason, Reason: "use make"}, engine.DeniedWithReason, "use make"},
		{"a reason makes it one with reason", board.Answer{Verdict: engine.Denied, Reason: "use make"}, engine.DeniedWithReason, "use make"},
		{"a blank reason is none", board.Answer{Verdict: engine.DeniedWithReason, Reason: " \n"}, engine.Denied, ""},
		{"approving takes no reason", board.Answer{Verdict: engine.Approved, Reason: "fine"}, engine.Approved, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBoard()
			a, done := b.Add(ask("scout", "ls"))
			tt.give.View = "terminal"
			if err := b.Answer(a.Key, a.Hash, tt.give); err != nil {
				t.Fatal(err)
			}
			e := <-done
			if e.Withdrawn || e.Decision.Verdict != tt.verdict || e.Decision.Reason != tt.wantReason || e.View != "terminal" || !e.At.Equal(noon) || e.Ask != a {
				t.Errorf("ended as %+v", e)
			}
			if by := e.Decision.By; by.Kind != engine.ByUser || by.Via != "dialog" {
				t.Errorf("decided by %+v, want a user's dialog", by)
			}
			if b.Len() != 0 || b.Get(a.Key) != nil || len(b.Pending()) != 0 {
				t.Error("the ask is still on the board")
			}
			err := b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Approved, View: "dialog"})
			var late *board.LateError
			if !errors.Is(err, board.ErrGone) || !errors.As(err, &late) || late.End.View != "terminal" {
				t.Errorf("the second answer gave %v", err)
			}
			select {
			case e := <-done:
				t.Errorf("a second end: %+v", e)
			default:
			}
		})
	}
}

func TestWhatIsNoAnswerDecidesNothing(t *testing.T) {
	unsuggested := ask("scout", "ls")
	q := *unsuggested.Question
	q.Suggestion = nil
	unsuggested.Question = &q
	tests := []struct {
		name string
		ask  board.Ask
		give func(b *board.Board, a *board.Ask) error
		want error // nil: any
	}{
		{"unavailable is no answer", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Unavailable})
		}, nil},
		{"a word of no meaning", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.Answer(a.Key, a.Hash, board.Answer{Verdict: "yes"})
		}, nil},
		{"nothing", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.Answer(a.Key, a.Hash, board.Answer{})
		}, nil},
		{"another content", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.Answer(a.Key, "hash of rm", board.Answer{Verdict: engine.Approved})
		}, board.ErrChanged},
		{"no content", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.Answer(a.Key, "", board.Answer{Verdict: engine.Approved})
		}, board.ErrChanged},
		{"a rule on another content", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.Decide(a.Key, "x", engine.Decision{Verdict: engine.Approved})
		}, board.ErrChanged},
		{"giving up another content", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.GiveUp(a.Key, "x", "exec", "why")
		}, board.ErrChanged},
		{"a key of no ask", ask("s", "ls"), func(b *board.Board, a *board.Ask) error {
			return b.Answer("999", a.Hash, board.Answer{Verdict: engine.Approved})
		}, board.ErrGone},
		{"for the subagent, with nothing to grant", unsuggested, func(b *board.Board, a *board.Ask) error {
			return b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.ApprovedForSession})
		}, board.ErrScope},
		{"for the session, with nothing to grant", unsuggested, func(b *board.Board, a *board.Ask) error {
			return b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.ApprovedForServingSession})
		}, board.ErrScope},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBoard()
			a, done := b.Add(tt.ask)
			err := tt.give(b, a)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if b.Get(a.Key) != a || len(done) != 0 {
				t.Error("the ask ended")
			}
		})
	}
}

func TestOtherEnds(t *testing.T) {
	b := newBoard()
	ruled, ruledDone := b.Add(ask("s", "by rule"))
	given, givenDone := b.Add(ask("s", "given up"))
	drawn, drawnDone := b.Add(ask("s", "withdrawn"))
	by := engine.DecisionSource{Kind: engine.BySessionApproval, Surface: "bash", Pattern: "*"}
	if err := b.Decide(ruled.Key, ruled.Hash, engine.Decision{Verdict: engine.Approved, By: by}); err != nil {
		t.Fatal(err)
	}
	if err := b.GiveUp(given.Key, given.Hash, "exec", "it failed"); err != nil {
		t.Fatal(err)
	}
	if !b.Withdraw(drawn.Key, "the child went") || b.Withdraw(drawn.Key, "again") || b.Withdraw("nobody", "x") {
		t.Error("withdrawing said the wrong thing")
	}
	if e := <-ruledDone; e.View != "rules" || e.Decision.By != by {
		t.Errorf("by rule: %+v", e)
	}
	if e := <-givenDone; e.View != "exec" || e.Decision.Verdict != engine.Unavailable || e.Decision.Reason != "it failed" || e.Decision.By.Kind != engine.ByUnavailable {
		t.Errorf("given up: %+v", e)
	}
	if e := <-drawnDone; !e.Withdrawn || e.Why != "the child went" {
		t.Errorf("withdrawn: %+v", e)
	}
	var said []string
	for _, a := range []*board.Ask{ruled, given, drawn} {
		said = append(said, b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Denied}).Error())
	}
	want := []string{"too late: already approved (rules)", "too late: already given up (exec)", "too late: the child went"}
	if !slices.Equal(said, want) {
		t.Errorf("late answers were told %q, want %q", said, want)
	}
}

// Views race for many asks while they come and go: each ends once, and exactly
// one caller of each is told that it decided.
func TestManyViewsOneEnd(t *testing.T) {
	const asks, views = 200, 8
	b := newBoard()
	changes, stop := b.Watch()
	defer stop()
	watched := make(chan struct{})
	go func() { // a view that looks after each change, as all do
		defer close(watched)
		for range changes {
			if len(b.Pending()) == 0 && len(b.Ended()) == asks {
				return
			}
		}
	}()
	var won [asks]atomic.Int32
	var ended [asks]atomic.Int32
	var all sync.WaitGroup
	for i := range asks {
		a, done := b.Add(ask(fmt.Sprint("agent", i%7), fmt.Sprint("cmd ", i)))
		all.Go(func() {
			<-done
			ended[i].Add(1)
		})
		for v := range views {
			all.Go(func() {
				if rand.IntN(3) == 0 {
					b.Pending()
				}
				var decided bool
				switch v % 4 {
				case 0:
					decided = b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Approved, View: "dialog"}) == nil
				case 1:
					decided = b.Answer(a.Key, a.Hash, board.Answer{Verdict: engine.Denied, View: "terminal"}) == nil
				case 2:
					decided = b.Withdraw(a.Key, "gone")
				case 3:
					decided = b.Decide(a.Key, a.Hash, engine.Decision{Verdict: engine.Approved}) == nil
				}
				if decided {
					won[i].Add(1)
				}
			})
		}
	}
	all.Wait()
	for i := range asks {
		if won[i].Load() != 1 || ended[i].Load() != 1 {
			t.Errorf("ask %d: %d views won, %d ends", i, won[i].Load(), ended[i].Load())
		}
	}
	<-watched
}

// No agent's flood stands before another agent's first ask, whatever came
// when; and each agent's own asks keep their order.
// A requester's asks come in the order in which it made them, and one that says
// it was there long ago comes before its own only.
func TestPendingKeepsTheOrderOfEachRequester(t *testing.T) {
	b := newBoard()
	for _, c := range []struct {
		agent string
		at    int64
	}{{"a", 30}, {"b", 500}, {"a", 10}, {"c", 1}, {"a", 20}, {"b", 400}} {
		x := ask(c.agent, fmt.Sprint(c.agent, c.at))
		x.CreatedAt = time.UnixMilli(c.at)
		b.Add(x)
	}
	var got []string
	for _, a := range b.Pending() {
		got = append(got, a.ID)
	}
	if want := []string{"a10", "c1", "b400", "b500", "a20", "a30"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestPendingIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBoard()
		agents := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 40).Draw(t, "agents")
		var keys []string
		for i, agent := range agents {
			a, _ := b.Add(ask(agent, fmt.Sprint(i)))
			keys = append(keys, a.Key)
		}
		for _, i := range rapid.SliceOfDistinct(rapid.IntRange(0, max(len(keys)-1, 0)), rapid.ID[int]).Draw(t, "withdrawn") {
			if i < len(keys) {
				b.Withdraw(keys[i], "")
			}
		}
		pending := b.Pending()
		if len(pending) != b.Len() {
			t.Fatalf("%d pending of %d", len(pending), b.Len())
		}
		perAgent := map[string][]int{}
		for i, a := range pending {
			agent := a.Principal.AgentName
			perAgent[agent] = append(perAgent[agent], i)
		}
		for agent, places := range perAgent {
			for other, theirs := range perAgent {
				for n, place := range places {
					// Before my n-th ask stand at most n+1 asks of any other.
					before := 0
					for _, p := range theirs {
						if p < place {
							before++
						}
					}
					if before > n+1 {
						t.Fatalf("%d asks of %s stand before ask %d of %s", before, other, n, agent)
					}
				}
			}
			order := -1
			for _, p := range places {
				var n int
				fmt.Sscan(pending[p].Value, &n)
				if n < order {
					t.Fatalf("asks of %s are out of order", agent)
				}
				order = n
			}
		}
	})
}

func TestWatchCoalescesAndStops(t *testing.T) {
	b := newBoard()
	c, stop := b.Watch()
	other, stopOther := b.Watch()
	defer stopOther()
	for i := range 5 {
		b.Add(ask("s", fmt.Sprint(i)))
	}
	<-c
	select {
	case <-c:
		t.Error("five changes were told twice")
	default:
	}
	stop()
	stop()
	b.Add(ask("s", "more"))
	select {
	case <-c:
		t.Error("told after the watch ended")
	default:
	}
	<-other
}

// What is remembered for late clicks is bounded in number and in bytes: asks
// may be as large as a request file.
func TestRememberedEndsAreBounded(t *testing.T) {
	b := newBoard()
	end := func(value string) string {
		a, _ := b.Add(ask("s", value))
		b.Withdraw(a.Key, "gone")
		return a.Key
	}
	for i := range 300 {
		end(fmt.Sprint(i))
	}
	ended := b.Ended()
	if len(ended) != 256 || ended[0].Ask.Value != "44" || ended[255].Ask.Value != "299" {
		t.Fatalf("%d ends from %s on", len(ended), ended[0].Ask.Value)
	}
	big := strings.Repeat("x", 1<<20)
	for range 10 {
		end(big)
	}
	sum := 0
	for _, e := range b.Ended() {
		sum += len(e.Ask.Value)
	}
	if sum > 4<<20 || sum == 0 {
		t.Errorf("%d bytes are remembered", sum)
	}
	key := end(strings.Repeat("y", 5<<20)) // larger than all of it: still answered
	if err := b.Answer(key, "", board.Answer{Verdict: engine.Denied}); !errors.As(err, new(*board.LateError)) {
		t.Errorf("the last end is forgotten: %v", err)
	}
	if n := len(b.Ended()); n != 1 {
		t.Errorf("%d ends beside an enormous one", n)
	}
}

func BenchmarkPending(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bd := newBoard()
			for i := range n {
				bd.Add(ask(fmt.Sprint("agent", i%20), fmt.Sprint(i)))
			}
			for b.Loop() {
				bd.Pending()
			}
		})
	}
}
