package app

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/forwarding"
	"github.com/nod-agents/nod/heartbeat"
)

// child is what makes a program a child of the serving node.
type child struct {
	session, agent string
}

func (k *child) flags(c *cobra.Command) {
	c.Flags().StringVar(&k.session, "session", "", "`ID` of the serving session (default: the parent session in the environment, else that of the settings)")
	c.Flags().StringVar(&k.agent, "agent", "", "`NAME` of the agent, for rules and for people")
}

// assignments are the variables to set; an empty value means that the variable
// must not be set, since it would count before the others.
func (n *nod) assignments(k child) ([][2]string, error) {
	env := n.agents()
	target := k.session
	if target == "" {
		target = env.ParentSession()
	}
	id, err := heartbeat.CheckSession(target)
	if err != nil {
		return nil, &exit.Error{Code: exit.Misused, Err: fmt.Errorf("session %q: %w", target, err)}
	}
	list := [][2]string{
		{forwarding.EnvParentSession, id},
		{"PI_IS_SUBAGENT", "1"}, // older peers know a child by this only
	}
	if n.Getenv(forwarding.EnvRouterParent) != "" {
		list = append(list, [2]string{forwarding.EnvRouterParent, ""})
	}
	if k.agent != "" {
		list = append(list, [2]string{"PI_SUBAGENT_CHILD_AGENT", k.agent})
	}
	return list, nil
}

// warnUnserved tells of a session that nobody serves.
func (n *nod) warnUnserved(session string) {
	inboxes := n.agents().Inboxes()
	if state, _ := (heartbeat.Reader{Clock: heartbeat.SystemClock()}).Read(forwarding.ServingDir(inboxes), session); state != heartbeat.Alive {
		fmt.Fprintf(n.Stderr, "nod: nobody serves session %q in %s now; until somebody does, what would ask is denied\n", session, inboxes)
	}
}

func (n *nod) runCommand() *cobra.Command {
	var k child
	c := &cobra.Command{
		Use: "run [--session ID] [--agent NAME] -- PROGRAM [ARG...]",

		DisableFlagsInUseLine: true,

		Short: "Start an agent whose asks come to Nod",
		Long: `Start an agent as a child of the serving node: what its own permission system would ask, it forwards
to the running Nod. The program's exit code is passed through.`,
		Example: `  nod run -- pi -p "tidy up the tests"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.WithHint(&exit.Error{Code: exit.Misused, Err: errors.New("no program is named")}, "as in: nod run -- pi -p \"tidy up\"")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := n.assignments(k)
			if err != nil {
				return err
			}
			program, err := exec.LookPath(args[0])
			if err != nil {
				var wrong *exec.Error
				if errors.As(err, &wrong) {
					err = wrong.Err // it repeats the name
				}
				return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("starting %s: %w", args[0], err)}
			}
			n.warnUnserved(set[0][1])
			environ := n.Environ
			for _, a := range set {
				environ = with(environ, a[0], a[1])
			}
			return n.become(program, args, environ)
		},
	}
	c.Flags().SetInterspersed(false)
	k.flags(c)
	return c
}

// with is environ with one variable set, or without it where value is empty.
func with(environ []string, name, value string) []string {
	out := slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if value != "" {
		out = append(out, name+"="+value)
	}
	return out
}
