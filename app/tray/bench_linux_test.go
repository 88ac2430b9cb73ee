//go:build !headless

package tray

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nod-agents/nod/app/board"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/forwarding"
	"github.com/nod-agents/nod/notify"
	"github.com/nod-agents/nod/notify/notifytest"
)

// BenchmarkAskToNotification measures from the rename of a request to the
// Notify call that tells of it, on a real bus, with an inbox that is served as
// Nod does and with one that is looked at every 250 ms, as other
// implementations do. All behind the inbox is the same. Asks come at moments
// that have nothing to do with when the last one was told of.
func BenchmarkAskToNotification(b *testing.B) {
	for _, way := range []struct {
		name  string
		pause time.Duration
		run   func(ctx context.Context, dir string, put func(ctx context.Context, in *forwarding.Inbound))
	}{
		{"nod", 10 * time.Millisecond, serving},
		{"poll-250ms", forwarding.PollInterval, polling},
	} {
		b.Run(way.name, func(b *testing.B) {
			bus := notifytest.StartBus(b)
			server := notifytest.FakeDaemon(b, bus, "Xfce Notify Daemon", notifytest.XfceCaps())
			ctx, cancel := context.WithCancel(context.Background())
			quiet := slog.New(slog.DiscardHandler)
			notifier := notify.New(ctx, notify.Config{AppName: "Nod", BusAddress: bus.Address, Log: quiet})
			n := newNode()
			c := Config{Node: n, Notifier: notifier, Now: time.Now, Log: quiet}
			c.timing = c.timing.orReal()
			dir := b.TempDir()
			ended := make(chan struct{}, 2)
			go func() { newPopups(c, newWindows(c)).run(ctx); ended <- struct{}{} }()
			go func() {
				way.run(ctx, dir, func(ctx context.Context, in *forwarding.Inbound) {
					a, _ := n.board.Add(board.Ask{Question: in.Question, Hash: in.Hash})
					<-ctx.Done()
					n.board.Withdraw(a.Key, "gone")
				})
				ended <- struct{}{}
			}()
			b.Cleanup(func() {
				cancel()
				<-ended
				<-ended
				if err := notifier.Close(); err != nil {
					b.Error(err)
				}
			})
			requests := filepath.Join(forwarding.InboxDir(dir, "desk"), "requests")
			eventually(b, "the inbox", func() bool { _, err := os.Stat(requests); return err == nil })

			var all []time.Duration
			i := 0
			for b.Loop() {
				i++
				path := filepath.Join(requests, fmt.Sprintf("r%d.json", i))
				who := engine.Principal{SessionID: "child", AgentName: "scout"}
				data, err := forwarding.NewRequest(fmt.Sprintf("r%d", i), &engine.Question{Principal: who, Tool: "bash", Surface: "bash", Kind: "bash", Value: "make test",
					Intent: &engine.Intent{Surface: "bash", MatchValues: []string{"make test"}, Principal: who}}, who, "desk", time.Now()).Marshal()
				if err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(path+".part", data, 0o600); err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				if err := os.Rename(path+".part", path); err != nil {
					b.Fatal(err)
				}
				p := server.Wait(b, i)
				all = append(all, p.At.Sub(began))
				if err := os.Remove(path); err != nil {
					b.Fatal(err)
				}
				server.WaitClosed(b, p.ID)
				time.Sleep(time.Millisecond + rand.N(way.pause))
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-median")
		})
	}
}

// serving is Nod's way.
func serving(ctx context.Context, dir string, put func(context.Context, *forwarding.Inbound)) {
	_ = forwarding.NewServer(forwarding.ServerConfig{AgentDir: dir, SessionID: "desk", Decider: decider(put)}).Run(ctx)
}

type decider func(context.Context, *forwarding.Inbound)

func (d decider) Decide(ctx context.Context, in *forwarding.Inbound) engine.Decision {
	d(ctx, in)
	return engine.Decision{}
}

// polling looks at the inbox four times a second.
func polling(ctx context.Context, dir string, put func(context.Context, *forwarding.Inbound)) {
	requests := filepath.Join(forwarding.InboxDir(dir, "desk"), "requests")
	if err := os.MkdirAll(requests, 0o700); err != nil {
		return
	}
	tick := time.NewTicker(forwarding.PollInterval)
	defer tick.Stop()
	open := map[string]context.CancelFunc{}
	running := make(chan struct{}, 1<<20)
	defer func() {
		for _, end := range open {
			end()
			<-running
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for name, end := range open {
			if _, err := os.Stat(filepath.Join(requests, name)); err != nil {
				end()
				<-running
				delete(open, name)
			}
		}
		entries, _ := os.ReadDir(requests)
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(requests, e.Name()))
			if err != nil || !strings.HasSuffix(e.Name(), ".json") || open[e.Name()] != nil {
				continue
			}
			r, err := forwarding.ParseRequest(data)
			if err != nil {
				continue
			}
			asked, end := context.WithCancel(ctx)
			open[e.Name()] = end
			go func() {
				put(asked, &forwarding.Inbound{Question: r.Question(0), Request: r})
				running <- struct{}{}
			}()
		}
	}
}
