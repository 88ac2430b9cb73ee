package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/nod-agents/nod/app/control"
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/link"
	"github.com/nod-agents/nod/app/node"
	"github.com/nod-agents/nod/app/policyfile"
	"github.com/nod-agents/nod/app/program"
	"github.com/nod-agents/nod/app/reviewlog"
	"github.com/nod-agents/nod/app/settings"
	"github.com/nod-agents/nod/app/terminal"
	"github.com/nod-agents/nod/app/trust"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
	"github.com/nod-agents/nod/forwarding"
	"github.com/nod-agents/nod/heartbeat"
)

// serving is everything that one run of nod serve needs.
type serving struct {
	inboxes  []node.Inbox
	frontend string             // desktop, terminal or none
	program  string             // of --exec
	global   string             // of --policy
	protect  *settings.Settings // whose self-protection counts; nil: none
	adopt    bool
	delay    time.Duration // of adopting
	parent   string        // the session above, which is asked what the rules leave open; empty: none

	place control.Place
	log   string // the review log's path
	// ready is called, on a goroutine of its own, once every inbox is announced.
	ready func()
	// front, if set, answers in place of the front end.
	front func(*node.Node) frontEnd
}

func (n *nod) serveCommand() *cobra.Command {
	var sessions, agentDirs []string
	var frontend, exec, policyPath, parent string
	var adopt bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve: decide by rules, ask you about the rest, answer the agents",
		Long: `Serve until SIGINT or SIGTERM (or Quit in the tray).

Agents write their asks into the inbox of a session; Nod decides them by its
rules and asks you about the rest. Defaults come from the settings file.`,
		Example: `  nod serve
  nod serve --frontend terminal
  nod serve --session ci --frontend none --exec ./decide.sh`,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := n.Settings()
			if err != nil {
				return err
			}
			s := serving{program: exec, global: policyPath, place: n.place(), log: n.logPath()}
			if len(sessions) == 0 {
				sessions = set.Sessions
			}
			if len(agentDirs) == 0 {
				agentDirs = set.AgentDirs
			}
			if !c.Flags().Changed("frontend") {
				frontend = set.Frontend
			}
			if s.inboxes, err = inboxes(sessions, agentDirs); err != nil {
				return err
			}
			if s.frontend, err = n.chooseFrontend(frontend); err != nil {
				return err
			}
			s.protect = &set
			if s.adopt = set.Adopt; c.Flags().Changed("adopt") {
				s.adopt = adopt
			}
			if s.delay = forwarding.DefaultAdoptDelay; set.AdoptDelayMs != nil {
				s.delay = time.Duration(*set.AdoptDelayMs) * time.Millisecond
			}
			if !c.Flags().Changed("parent") {
				parent = n.parentAbove(s)
			}
			if s.parent, err = checkParent(parent, s.inboxes); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return n.serve(ctx, s)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&sessions, "session", nil, "`ID` of a session to serve; may be repeated (default: desktop)")
	f.StringArrayVar(&agentDirs, "agent-dir", nil, "agent directory `DIR` to serve it in; may be repeated (default: $PI_CODING_AGENT_DIR, else ~/.pi/agent)")
	f.StringVar(&frontend, "frontend", settings.Auto, "`WHERE` you answer: auto, desktop, terminal or none")
	f.StringVar(&exec, "exec", "", "`PROGRAM` that answers asks: the ask as JSON on its stdin, its answer on its stdout")
	f.StringVar(&policyPath, "policy", "", "policy `FILE` in place of the global policy files")
	f.BoolVar(&adopt, "adopt", false, "also serve the sessions of these agent directories that nobody else serves")
	f.StringVar(&parent, "parent", "", "`ID` of a session that is asked what the rules leave open (default: with --frontend none, the parent session that the environment names)")
	return c
}

// parentAbove is the session that the environment names as a parent, for a Nod
// that has nobody to ask itself. One with a front end or a program keeps its
// asks unless it is told otherwise, though it may have been started by an
// agent's child.
func (n *nod) parentAbove(s serving) string {
	if s.frontend != settings.None || s.program != "" {
		return ""
	}
	id, err := forwarding.Child{Env: n.Getenv}.Target()
	if err != nil || slices.ContainsFunc(s.inboxes, func(i node.Inbox) bool { return i.SessionID == id }) {
		return ""
	}
	return id
}

// checkParent trims the id of the session above. None of the sessions that are
// served may be it.
func checkParent(id string, served []node.Inbox) (string, error) {
	if id == "" {
		return "", nil
	}
	id, err := heartbeat.CheckSession(id)
	if err != nil {
		return "", fmt.Errorf("--parent: %w", err)
	}
	if slices.ContainsFunc(served, func(i node.Inbox) bool { return i.SessionID == id }) {
		return "", exit.WithHint(fmt.Errorf("--parent: session %q is served here, and a session cannot forward to itself", id),
			"serve another one, as in: nod serve --session ci --parent "+id)
	}
	return id, nil
}

func inboxes(sessions, agentDirs []string) ([]node.Inbox, error) {
	var all []node.Inbox
	for _, dir := range agentDirs {
		abs, err := absolute(dir)
		if err != nil {
			return nil, err
		}
		for _, id := range sessions {
			trimmed, err := heartbeat.CheckSession(id)
			if err != nil {
				return nil, fmt.Errorf("--session %q: %w", id, err)
			}
			if i := (node.Inbox{AgentDir: abs, SessionID: trimmed}); !slices.Contains(all, i) {
				all = append(all, i)
			}
		}
	}
	return all, nil
}

// chooseFrontend resolves auto to what this process can show.
func (n *nod) chooseFrontend(name string) (string, error) {
	if err := settings.CheckFrontend(name); err != nil {
		return "", fmt.Errorf("--frontend: %w", err)
	}
	display := n.hasDisplay()
	tty := term.IsTerminal(int(n.Stdin.Fd())) && term.IsTerminal(int(n.Stdout.Fd()))
	switch name {
	case settings.Auto:
		switch {
		case hasDesktop && display:
			return settings.Desktop, nil
		case tty:
			return settings.Terminal, nil
		}
		return "", exit.WithHint(errors.New("there is neither a display nor a terminal to ask you in"),
			"to decide by rules alone use --frontend none; to let a program answer add --exec PROGRAM")
	case settings.Desktop:
		if !hasDesktop {
			return "", exit.WithHint(errors.New("this build has no desktop"), "use --frontend terminal, or a build without -tags headless")
		}
		if !display {
			return "", exit.WithHint(errors.New("there is no display"), "set DISPLAY or WAYLAND_DISPLAY, or use --frontend terminal")
		}
	case settings.Terminal:
		if !tty {
			return "", exit.WithHint(errors.New("stdin and stdout are no terminal"), "run it in a terminal, or use --frontend none")
		}
	}
	return name, nil
}

// serve runs until ctx ends, the front end is quit, or nothing can be served.
func (n *nod) serve(ctx context.Context, s serving) error {
	log := n.logger()
	instance, err := control.Listen(s.place, s.holds(), log)
	var running *control.RunningError
	if errors.As(err, &running) {
		return n.showRunning(ctx, s.place, running)
	}
	if err != nil {
		return fmt.Errorf("taking the agent directory: %w", err)
	}
	review, err := reviewlog.Open(s.log)
	if err != nil {
		return errors.Join(err, instance.Close())
	}
	defer review.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cwd, trusted := n.project(log)
	links := link.New(link.Config{Log: log, Environ: n.Environ})
	nd := node.New(node.Config{
		Inboxes: s.inboxes, ConfigDir: n.Dirs.Config, Global: s.global, Project: cwd, Trusted: trusted,
		Home: n.Home, Files: policyfile.Disk{}, Human: s.frontend != settings.None || s.program != "" || s.front != nil,
		Links:  func(p policy.Settings) []engine.Link { return links.Chain(p) },
		Now:    time.Now,
		Parent: s.above(review),
		Guard:  n.servedProtection(s.protect, cwd),
		Review: review,
		Log:    log,
	})
	review.Limit(nd.FieldWidth(s.inboxes[0]))
	review.Problems(func(text string) { nd.Problem("review log", text) })

	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	decider := newTally(nd)
	wg.Go(func() { nd.WatchPolicy(ctx, decider.stir) })
	wg.Go(func() { stayLean(ctx, nd.Board(), decider.stirred) })
	if s.protect != nil && !s.protect.SelfProtects() {
		nd.Problem("self-protection", unprotected)
	}
	if s.parent != "" {
		fmt.Fprintf(n.Stderr, "what the rules leave open goes to session %q\n", s.parent)
	}
	announced := n.startServers(ctx, &wg, nd, decider, s, review)

	front := frontEnd{run: func(ctx context.Context) error { <-ctx.Done(); return nil }, show: func() error { return errors.New("it has no window") }}
	switch {
	case s.front != nil:
		front = s.front(nd)
	case s.frontend == settings.Desktop:
		front = n.desktop(ctx, nd, log)
	case s.frontend == settings.Terminal:
		front.run = func(ctx context.Context) error {
			select { // it begins with what is served
			case <-announced:
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return terminal.Run(ctx, terminal.Config{
				Node: nd, In: n.Stdin, Out: n.Stdout, Now: time.Now, Log: log,
				Plain: n.Getenv("NO_COLOR") != "" || n.Getenv("TERM") == "dumb",
			})
		}
	}
	wg.Go(func() {
		service := control.Service{Node: nd, Show: front.show, Frontend: s.frontend, Version: version()}
		if err := instance.Serve(ctx, service); err != nil {
			nd.Problem("control", "Commands such as nod grants cannot reach this Nod: "+err.Error())
		}
	})
	if s.program != "" {
		wg.Go(func() {
			err := program.Run(ctx, program.Config{
				Board: nd.Board(), Program: s.program, Env: n.Environ, Alone: s.frontend == settings.None, Now: time.Now, Log: log,
			})
			if err != nil {
				nd.Problem("program", "The program that answers asks cannot be run: "+err.Error())
				if s.frontend == settings.None {
					cancel()
				}
			}
		})
	}
	if err := front.run(ctx); err != nil {
		return &exit.Error{Code: exit.Internal, Err: err}
	}
	return nil
}

// frontEnd is where a human answers. run must be called on the main goroutine.
type frontEnd struct {
	run  func(context.Context) error
	show func() error
}

// startServers serves every inbox, and closes what it returns once all can be
// seen by children or could not be served.
func (n *nod) startServers(ctx context.Context, wg *sync.WaitGroup, nd *node.Node, decider forwarding.Decider, s serving, review *reviewlog.Log) <-chan struct{} {
	beat := heartbeat.NewWriter(heartbeat.SystemClock(), nil, n.logger())
	var announced sync.WaitGroup
	for _, inbox := range s.inboxes {
		announced.Add(1)
		once := sync.OnceFunc(announced.Done)
		server := forwarding.NewServer(forwarding.ServerConfig{
			AgentDir: inbox.AgentDir, SessionID: inbox.SessionID, Decider: decider, Beat: beat, Log: review,
			Timeout: nd.Timeout(inbox),
			Problem: nd.Problem,
			Ready: func() {
				nd.Serves(inbox, true)
				if s.frontend != settings.Terminal || !term.IsTerminal(int(n.Stderr.Fd())) {
					fmt.Fprintf(n.Stderr, "serving %s\n", inbox) // a terminal that answers says it itself
				}
				once()
			},
		})
		wg.Go(func() {
			defer once()
			if err := server.Run(ctx); err != nil {
				nd.Problem("inbox "+inbox.String(), fmt.Sprintf("The inbox of %s is not served: %v", inbox, err))
			}
			nd.Serves(inbox, false)
		})
	}
	if s.adopt {
		n.startAdopters(ctx, wg, nd, s, forwarding.ServerConfig{Decider: decider, Beat: beat, Log: review, Problem: nd.Problem})
	}
	all := make(chan struct{})
	wg.Go(func() {
		announced.Wait()
		close(all)
		if s.ready != nil {
			s.ready()
		}
	})
	return all
}

// startAdopters serves what nobody else serves in the agent directories.
func (n *nod) startAdopters(ctx context.Context, wg *sync.WaitGroup, nd *node.Node, s serving, server forwarding.ServerConfig) {
	for _, dir := range agentDirs(s.inboxes) {
		server.Timeout = nd.Timeout(node.Inbox{AgentDir: dir})
		a := &forwarding.Adopter{AgentDir: dir, Delay: s.delay, Server: server}
		for _, i := range s.inboxes {
			if i.AgentDir == dir {
				a.Mine = append(a.Mine, i.SessionID)
			}
		}
		if s.parent != "" {
			a.Mine = append(a.Mine, s.parent) // what goes there must not come back
		}
		a.Adopted = func(id string, on bool) { nd.Adopts(node.Inbox{AgentDir: dir, SessionID: id}, on) }
		wg.Go(func() {
			if err := a.Run(ctx); err != nil {
				nd.Problem("adopting in "+dir, "Inboxes that nobody serves are not adopted: "+err.Error())
			}
		})
	}
}

// holds are the directories that no other Nod may hold: the agent directories,
// since one Nod is enough for all their sessions. A Nod that relays stands
// below another and holds its own inboxes only.
func (s *serving) holds() []string {
	if s.parent == "" {
		return agentDirs(s.inboxes)
	}
	var dirs []string
	for _, i := range s.inboxes {
		dirs = append(dirs, forwarding.InboxDir(i.AgentDir, i.SessionID))
	}
	return dirs
}

// above is the session above, in the agent directory of the inbox that asks.
func (s *serving) above(review *reviewlog.Log) *node.Parent {
	if s.parent == "" {
		return nil
	}
	return &node.Parent{SessionID: s.parent, Terminal: func(i node.Inbox) engine.Terminal {
		return &forwarding.Requester{Child: forwarding.Child{SessionID: i.SessionID, AgentDir: i.AgentDir}, Target: s.parent, Relays: true, Log: review,
			Timeout: 24 * time.Hour} // the ask below ends sooner, and ends this one
	}}
}

// showRunning brings the Nod that already serves to the front.
func (n *nod) showRunning(ctx context.Context, place control.Place, running *control.RunningError) error {
	c, err := control.Dial(ctx, place, running.AgentDir)
	if err != nil {
		return errors.Join(running, err)
	}
	defer c.Close()
	if err := c.Show(ctx); err != nil {
		return exit.WithHint(fmt.Errorf("%w, and %w", running, err), "stop it first, or serve another --agent-dir")
	}
	fmt.Fprintf(n.Stderr, "nod is already running (process %d): showing it\n", running.PID)
	return nil
}

// project is the directory whose policy counts beside the global one.
func (n *nod) project(log interface{ Warn(string, ...any) }) (dir string, trusted bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	trusted, err = trust.Open(n.Dirs.State).Trusted(dir)
	if err != nil {
		log.Warn("reading which projects are trusted", "error", err)
	}
	return dir, trusted
}

func agentDirs(all []node.Inbox) []string {
	var dirs []string
	for _, i := range all {
		if !slices.Contains(dirs, i.AgentDir) {
			dirs = append(dirs, i.AgentDir)
		}
	}
	return dirs
}
