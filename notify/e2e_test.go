//go:build linux

package notify

import (
	"context"
	"image"
	"image/color"
	"strings"
	"testing"

	"github.com/nod-agents/nod/notify/notifytest"
)

// realServers are those that the tests click in, with what is special to them.
var realServers = map[string]struct {
	start func(testing.TB, *notifytest.Screen) *notifytest.Process
	click bool // draws buttons
	stays bool // leaves a note on screen that it was told to close
}{
	"xfce4-notifyd":       {start: notifytest.StartXfceNotifyd, click: true},
	"notification-daemon": {start: notifytest.StartNotificationDaemon, click: true, stays: true},
	"dunst":               {start: notifytest.StartDunst},
}

// desk is a whole desktop with one real notification server and our notifier.
func desk(t *testing.T, server string) (*notifytest.Screen, *desktop) {
	t.Helper()
	notifytest.EndToEnd(t, "dbus-daemon", "Xvfb", "xdotool", "import", "openbox")
	b := notifytest.StartBus(t)
	s := notifytest.StartXvfb(t, b, 1280, 800, true)
	realServers[server].start(t, s)
	d := newDesktop(context.Background(), Config{AppName: "Nod", BusAddress: b.Address, Icon: disc()}, func(string, string) error {
		t.Error("told through beeep")
		return nil
	})
	t.Cleanup(func() { _ = d.Close() })
	return s, d
}

// disc is a picture of a notification's usual size.
func disc() image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, 48, 48))
	for y := range 48 {
		for x := range 48 {
			if (x-24)*(x-24)+(y-24)*(y-24) < 22*22 {
				img.SetNRGBA(x, y, color.NRGBA{0x2a, 0x6f, 0xdb, 0xff})
			}
		}
	}
	return img
}

// Every button of real servers, really clicked.
func TestRealButtons(t *testing.T) {
	for name, server := range realServers {
		if !server.click {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s, d := desk(t, name)
			for i, want := range []string{"allow", "deny", "review"} {
				sh := show(t, d, ask())
				if !sh.Whole || len(sh.Actions) != 3 {
					t.Fatalf("shown %+v", sh)
				}
				if i == 0 {
					s.Settled(t, "notification-"+name)
				}
				s.ClickNotificationButton(t, i+1, 3)
				if e := next(t, d); e.Kind != Invoked || e.Action != want || e.Note.Ref != "first" {
					t.Fatalf("event %+v", e)
				}
				notifytest.Eventually(t, "the note to go", func() bool { return len(s.Notifications(t)) == 0 })
			}
		})
	}
}

// A command too long to be shown whole has no button that approves.
func TestRealLongBody(t *testing.T) {
	for name, server := range realServers {
		t.Run(name, func(t *testing.T) {
			s, d := desk(t, name)
			n := ask()
			n.Body = "curl https://example.com/" + strings.Repeat("part/", 800) + " | sh -s -- --yes"
			sh := show(t, d, n)
			if sh.Whole || len(sh.Actions) != 2 {
				t.Fatalf("shown %+v", sh)
			}
			s.Notification(t)
			s.Settled(t, "long-"+name)
			if !server.click {
				return
			}
			s.ClickNotificationButton(t, 2, 2)
			if e := next(t, d); e.Kind != Invoked || e.Action != "review" {
				t.Fatalf("event %+v", e)
			}
		})
	}
}

// What was resolved elsewhere goes from the screen, or at least its buttons do.
func TestRealWithdraw(t *testing.T) {
	for name, server := range realServers {
		t.Run(name, func(t *testing.T) {
			s, d := desk(t, name)
			show(t, d, ask())
			s.Notification(t)
			before := s.Settled(t, "")
			n := ask()
			n.Ref, n.Body = "second", "make clean"
			show(t, d, n)
			w := s.Notification(t) // one: it was replaced
			if notifytest.Same(before, s.Settled(t, ""), image.Rect(w.X, w.Y, w.X+w.Width, w.Y+w.Height)) {
				t.Error("the replacement shows the same")
			}
			d.Withdraw("1")
			if !server.stays {
				notifytest.Eventually(t, "the note to go", func() bool { return len(s.Notifications(t)) == 0 })
				return
			}
			notifytest.Eventually(t, "the buttons to go", func() bool { return s.Notification(t).Height < w.Height })
			s.Settled(t, "withdrawn-"+name)
		})
	}
}

// What a Budget calls whole is whole: changing any one of some characters, the
// last included, changes the picture. The texts fill the budget to the brim.
func TestRealBudget(t *testing.T) {
	for name := range realServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := desk(t, name)
			show(t, d, ask())
			b := d.Capabilities().Body
			for kind, unit := range map[string]string{"digits": "0", "capitals": "M", "words": "git push ", "ideographs": "漢", "lines": "x\n"} {
				body := unit
				for b.Fits(body + unit) {
					body += unit
				}
				body = strings.TrimRight(body, " \n")
				n := ask()
				n.Body = body
				if sh := show(t, d, n); !sh.Whole || len(sh.Actions) != 3 {
					t.Fatalf("%s: shown %+v", kind, sh)
				}
				s.Notification(t)
				whole := s.Settled(t, "full-"+name+"-"+kind)
				runes := []rune(body)
				for _, at := range []int{len(runes) / 2, len(runes) - 1} {
					changed := []rune(body)
					for changed[at] == ' ' || changed[at] == '\n' {
						at--
					}
					changed[at] = 'W'
					n.Body = string(changed)
					show(t, d, n)
					if notifytest.Same(whole, s.Settled(t, ""), whole.Bounds()) {
						t.Errorf("%s: character %d of %d is not on screen", kind, at+1, len(runes))
					}
				}
			}
		})
	}
}
