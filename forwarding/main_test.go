package forwarding

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("FORWARDING_TEST_ROLE"); role != "" {
		os.Exit(helper(role))
	}
	goleak.VerifyTestMain(m)
}

// patience bounds waits in tests that should end at once.
const patience = 60 * time.Second

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never came true: %s", what)
}

// deciderFunc is a Decider.
type deciderFunc func(ctx context.Context, in *Inbound) engine.Decision

func (f deciderFunc) Decide(ctx context.Context, in *Inbound) engine.Decision { return f(ctx, in) }

var (
	byRule   = engine.DecisionSource{Kind: engine.ByRule, Surface: "bash", Pattern: "git *", Origin: engine.OriginGlobal}
	byUser   = engine.DecisionSource{Kind: engine.ByUser, Via: "dialog"}
	approved = engine.Decision{Verdict: engine.Approved, By: byRule}
)

// always decides every ask alike.
func always(d engine.Decision) Decider {
	return deciderFunc(func(context.Context, *Inbound) engine.Decision { return d })
}

// human is a Decider that waits to be told.
type human struct {
	mu     sync.Mutex
	asks   map[string]*asked // by request id, the latest
	counts map[string]int    // how often each id was asked
	ends   map[string]string // why each was withdrawn
}

type asked struct {
	in     *Inbound
	answer chan engine.Decision
}

func newHuman() *human {
	return &human{asks: map[string]*asked{}, counts: map[string]int{}, ends: map[string]string{}}
}

func (h *human) Decide(ctx context.Context, in *Inbound) engine.Decision {
	a := &asked{in, make(chan engine.Decision, 1)}
	h.mu.Lock()
	h.asks[in.Request.ID] = a
	h.counts[in.Request.ID]++
	h.mu.Unlock()
	select {
	case d := <-a.answer:
		return d
	case <-ctx.Done():
		h.mu.Lock()
		h.ends[in.Request.ID] = context.Cause(ctx).Error()
		h.mu.Unlock()
		return engine.Decision{}
	}
}

func (h *human) see(id string) *asked {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asks[id]
}

func (h *human) count(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[id]
}

func (h *human) end(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ends[id]
}

func (h *human) wait(t testing.TB, id string) *asked {
	t.Helper()
	eventually(t, "the human is asked for "+id, func() bool { return h.see(id) != nil })
	return h.see(id)
}

// memoryLog is a Log that can be read.
type memoryLog struct {
	mu     sync.Mutex
	events []logged
}

type logged struct {
	event string
	attrs map[string]any
}

func (l *memoryLog) Record(event string, attrs ...slog.Attr) {
	m := map[string]any{}
	for _, a := range attrs {
		m[a.Key] = a.Value.Any()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, logged{event, m})
}

func (l *memoryLog) count(event string) int { return len(l.all(event)) }

func (l *memoryLog) all(event string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []map[string]any
	for _, e := range l.events {
		if e.event == event {
			list = append(list, e.attrs)
		}
	}
	return list
}

func (l *memoryLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := ""
	for _, e := range l.events {
		s += fmt.Sprintf("%s %v\n", e.event, e.attrs)
	}
	return s
}

func newBeat() *heartbeat.Writer {
	return heartbeat.NewWriter(heartbeat.SystemClock(), nil, slog.New(slog.DiscardHandler))
}

// serving is a running server of a test.
type serving struct {
	*Server
	t    testing.TB
	log  *memoryLog
	stop func()

	isReady  chan struct{}
	problems *troubles
}

// troubles is what a server says must be mended.
type troubles struct {
	mu  sync.Mutex
	now map[string]string
	all []string
}

func (p *troubles) tell(about, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text == "" {
		delete(p.now, about)
		return
	}
	p.now[about] = text
	p.all = append(p.all, text)
}

func (p *troubles) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := ""
	for _, t := range p.now {
		s += t + "\n"
	}
	return s
}

// serve runs a server until the test ends or stop is called.
func serve(t testing.TB, agentDir, session string, d Decider, change ...func(*ServerConfig)) *serving {
	t.Helper()
	log := &memoryLog{}
	ready := make(chan struct{})
	problems := &troubles{now: map[string]string{}}
	cfg := ServerConfig{AgentDir: agentDir, SessionID: session, Decider: d, Beat: newBeat(), Log: log,
		Ready: func() { close(ready) }, Problem: problems.tell}
	for _, c := range change {
		c(&cfg)
	}
	srv := NewServer(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	var once sync.Once
	s := &serving{Server: srv, t: t, log: log, isReady: ready, problems: problems}
	s.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(s.stop)
	return s
}

func (s *serving) ready() *serving {
	s.t.Helper()
	select {
	case <-s.isReady:
	case <-time.After(patience):
		s.t.Fatalf("the server is not ready:\n%s", s.log)
	}
	return s
}

// bash is a request of the newest generation.
func bash(id, target, command string) *Request {
	return &Request{
		ID: id, CreatedAt: time.Now().UnixMilli(), RequesterSessionID: "child-1", TargetSessionID: target, RequesterAgentName: "scout",
		Source: "tool_call", Surface: pointer("bash", true), Value: &command,
		Grants: []engine.Grant{{Surface: "bash", Pattern: command + " *"}},
		Intent: &engine.Intent{Surface: "bash", MatchValues: []string{command}, RequesterCwd: "/home/dev/proj",
			Principal: engine.Principal{SessionID: "child-1", AgentName: "scout"}},
		Payload: &Payload{Kind: "bash", Surface: pointer("bash", true), Tool: pointer("bash", true), Value: &command},
	}
}

// drop writes a request as a child does and returns its path.
func drop(t testing.TB, agentDir string, r *Request) string {
	t.Helper()
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return dropBytes(t, agentDir, r.TargetSessionID, r.ID+".json", data)
}

func dropBytes(t testing.TB, agentDir, session, name string, data []byte) string {
	t.Helper()
	dir := filepath.Join(InboxDir(agentDir, session), "requests")
	path := filepath.Join(dir, name)
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		temp := path + ".tmp"
		err := os.WriteFile(temp, data, 0o600)
		if err == nil {
			err = os.Rename(temp, path)
		}
		if err == nil {
			return path
		}
		if !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

func responsePath(agentDir, session, id string) string {
	return filepath.Join(InboxDir(agentDir, session), "responses", id+".json")
}

// answerOf waits for the response.
func answerOf(t testing.TB, agentDir, session, id string) *Response {
	t.Helper()
	var data []byte
	eventually(t, "response to "+id, func() bool {
		var err error
		data, err = os.ReadFile(responsePath(agentDir, session, id))
		return err == nil
	})
	r, err := ParseResponse(data)
	if err != nil {
		t.Fatalf("response to %s: %v\n%s", id, err, data)
	}
	return r
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
