package notify

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"
)

// defaultKey is the specification's action for a click on the note itself.
const defaultKey = "default"

// Servers with ways of their own, by the name they give themselves.
const (
	// It draws the default action as one more button, and a click on the note
	// itself only closes it.
	xfce = "Xfce Notify Daemon"
	// Version 3.20 answers CloseNotification as it should and leaves the note
	// on screen, buttons and all.
	notificationDaemon = "Notification Daemon"
	// It folds notes that are not critical.
	gnome = "gnome-shell"
)

// server is one owner of the server's name.
type server struct {
	owner  string
	object dbus.BusObject
	spec   string // version of the specification it follows
	caps   Capabilities
}

// owned handles the news that owner has the server's name now; empty: nobody.
func (d *desktop) owned(owner string) {
	if d.server == nil && owner == "" || d.server != nil && d.server.owner == owner {
		return
	}
	d.offScreen()
	d.probing = false
	d.seen++
	if owner == "" {
		// Most servers that go come back at once: an update, a restart.
		d.server = nil
		d.state = settling
		link, seen := d.link, d.seen
		d.later(d.times.grace, func() {
			if d.link == link && d.seen == seen {
				d.nobody()
			}
		})
		return
	}
	d.server = &server{owner: owner, object: d.link.conn.Object(owner, serverPath)}
	d.probe()
}

// nobody decides what to do without a server, if there is really none.
func (d *desktop) nobody() {
	d.state = settling
	link, seen := d.link, d.seen
	d.call(link.conn.BusObject(), busName+".GetNameOwner", d.times.call, []any{serverName}, func(c *dbus.Call, err error) {
		var owner string
		switch {
		case d.link != link || d.seen != seen:
		case err == nil && c.Store(&owner) == nil && owner != "":
			link.asOf = c.ResponseSequence
			d.owned(owner)
		case !link.startable:
			d.unusable("no notification server is running")
		case d.Capabilities().Backend == ByDBus && len(d.items)+len(d.waiting) == 0:
			// It ended because it had nothing to do. The next Show starts it.
			d.settle(dormant)
		default:
			d.start()
		}
	}, nil)
}

// start has the bus start a server.
func (d *desktop) start() {
	d.state = settling
	link, seen := d.link, d.seen
	d.call(link.conn.BusObject(), busName+".StartServiceByName", d.times.start, []any{serverName, uint32(0)}, func(_ *dbus.Call, err error) {
		if d.link != link || d.seen != seen {
			return // its coming was told by the signal
		}
		if err == nil {
			// The signal with its owner was sent before this reply and is on
			// its way through the channel, unless it never took the name.
			d.later(d.times.grace, func() {
				if d.link == link && d.seen == seen {
					d.unusable("the notification server was started and does not serve")
				}
			})
			return
		}
		d.unusable(fmt.Sprintf("the notification server does not start: %v", err))
	}, nil)
}

// probe asks the server what it is.
func (d *desktop) probe() {
	if d.probing {
		return
	}
	d.probing = true
	d.state = settling
	srv := d.server
	failed := func(err error) bool {
		if d.server != srv {
			return true
		}
		if err != nil {
			d.probing = false
			d.unusable(fmt.Sprintf("the notification server failed: %v", err))
		}
		return err != nil
	}
	d.call(srv.object, serverName+".GetServerInformation", d.times.call, nil, func(c *dbus.Call, err error) {
		var name, vendor, version, spec string
		if err == nil {
			err = c.Store(&name, &vendor, &version, &spec)
		}
		if failed(err) {
			return
		}
		d.call(srv.object, serverName+".GetCapabilities", d.times.call, nil, func(c *dbus.Call, err error) {
			var list []string
			if err == nil {
				err = c.Store(&list)
			}
			if failed(err) {
				return
			}
			d.probing = false
			srv.spec = spec
			srv.caps = capabilities(list, name)
			srv.caps.Vendor, srv.caps.Version, srv.caps.Owner = vendor, version, srv.owner
			d.failed = time.Time{}
			d.setCaps(srv.caps)
			d.reshow()
			d.settle(ready)
		}, nil)
	}, nil)
}

// capabilities reads the list that a server gives.
func capabilities(list []string, server string) Capabilities {
	c := Capabilities{
		Backend:    ByDBus,
		HasActions: slices.Contains(list, "actions"),
		HasBody:    slices.Contains(list, "body"),
		HasMarkup:  slices.Contains(list, "body-markup"),
		Persistent: slices.Contains(list, "persistence"),
		Server:     server,
	}
	if c.HasBody {
		c.Body = unknown
		if b, ok := budgets[server]; ok {
			c.Body = b
		}
	}
	return c
}

// reshow brings every note that is wanted and not on screen back, in the order
// in which they first came.
func (d *desktop) reshow() {
	d.state = ready
	var off []*item
	for _, it := range d.items {
		if it.id == 0 && it.flight == nil && it.note.Key != "" {
			off = append(off, it)
		}
	}
	slices.SortFunc(off, func(a, b *item) int { return a.seq - b.seq })
	for _, it := range off {
		if slices.ContainsFunc(d.waiting, func(r *request) bool { return r.note.Key == it.note.Key }) {
			continue // newer content is about to be sent
		}
		if it.again++; it.again > againMax {
			note := it.note
			d.drop(it, errors.New("the notification servers end again and again"))
			d.emit(Event{Kind: Lost, Note: note})
			continue
		}
		d.send(&request{note: it.note, again: true})
	}
}

// notify makes the arguments of Notify.
func (s *server) notify(cfg *Config, replaces uint32, n Note) (Shown, []any) {
	budget := s.caps.budget(n.Urgency)
	body := clean(n.Body, true)
	shown := Shown{Backend: ByDBus, Whole: budget.Fits(body)}
	var actions []string
	if s.caps.HasActions {
		click := ""
		for _, a := range n.Actions {
			if a.WholeOnly && !shown.Whole {
				continue
			}
			shown.Actions = append(shown.Actions, a)
			actions = append(actions, a.Key, clean(a.Label, false))
			if a.Key == n.Click {
				click = a.Label
			}
		}
		if click != "" && s.caps.Server != xfce {
			actions = append([]string{defaultKey, clean(click, false)}, actions...)
		}
	}
	if !s.caps.HasBody {
		body = ""
	} else if body = budget.fold(budget.Cut(body)); s.caps.HasMarkup {
		body = escape(body)
	}
	hints := map[string]dbus.Variant{"urgency": dbus.MakeVariant(byte(n.Urgency))}
	if n.Category != "" {
		hints["category"] = dbus.MakeVariant(clean(n.Category, false))
	}
	if cfg.DesktopEntry != "" {
		hints["desktop-entry"] = dbus.MakeVariant(cfg.DesktopEntry)
	}
	if cfg.Icon != nil {
		hints[imageHint(s.spec)] = cfg.picture
	}
	if actions == nil {
		actions = []string{}
	}
	expire := int32(0) // never
	if n.Expire > 0 {
		expire = int32(min(n.Expire.Milliseconds(), 1<<31-1))
	}
	return shown, []any{cfg.AppName, replaces, cfg.IconName, title(n.Title), body, actions, hints, expire}
}

// titleMax is how many characters of a title are sent. Every server seen cuts a
// title to one line.
const titleMax = 100

func title(s string) string {
	s = clean(s, false)
	if n := utf8.RuneCountInString(s); n > titleMax {
		return without(s, n, titleMax-30)
	}
	return s
}

// clean makes s what D-Bus can carry and a server can parse: valid UTF-8 without
// control characters. lines keeps the line breaks.
func clean(s string, lines bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case r == '\n' || r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff:
			return '\uFFFD'
		}
		return r
	}, s)
}

// escape makes s mean itself where the server reads markup. These four entities
// are those that XML, HTML 4 and GNOME Shell's own reader all know.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

// imageHint is the name of the picture hint, which two versions of the
// specification changed.
func imageHint(spec string) string {
	switch spec {
	case "1.0", "0.9":
		return "icon_data"
	case "1.1":
		return "image_data"
	}
	return "image-data"
}

// picture is the specification's (iiibiiay).
type picture struct {
	Width, Height, Stride int32
	Alpha                 bool
	Bits, Channels        int32
	Data                  []byte
}

func pixels(src image.Image) dbus.Variant {
	b := src.Bounds()
	img := image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(img, img.Bounds(), src, b.Min, draw.Src)
	return dbus.MakeVariant(picture{int32(b.Dx()), int32(b.Dy()), int32(img.Stride), true, 8, 4, img.Pix})
}
