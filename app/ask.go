package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/nod-agents/nod/app/agents"
	"github.com/nod-agents/nod/app/exit"
	"github.com/nod-agents/nod/app/visible"
	"github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/heartbeat"
)

// patience is how long nod ask waits for an answer, as every child does.
const patience = 600 * time.Second

func (n *nod) askCommand() *cobra.Command {
	var tool, input, agent, session string
	var asJSON bool
	c := &cobra.Command{
		Use:   "ask [VALUE]",
		Short: "Raise one ask, and wait for its answer",
		Long: `Raise one ask, as an agent's gate would: your rules decide, and where they ask, the running Nod asks
you. VALUE is the command for bash, the path for a path tool, the target for mcp, the name for skill.

Exit code: 0 allowed, 1 denied, 4 nobody could be asked.`,
		Example: `  nod ask 'git push --force' && git push --force
  nod ask --tool write /etc/hosts
  nod ask --tool deploy --input '{"to": "production"}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("unexpected argument %q; quote the value if it has blanks", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			in := map[string]any{}
			if c.Flags().Changed("session") {
				if _, err := heartbeat.CheckSession(session); err != nil {
					return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("--session %q: %w", session, err)}
				}
			}
			switch {
			case input != "" && len(args) > 0:
				return &exit.Error{Code: exit.Misused, Err: errors.New("give VALUE or --input, not both")}
			case input != "":
				var wrong *json.UnmarshalTypeError
				err := json.Unmarshal([]byte(input), &in)
				switch {
				case errors.As(err, &wrong) || err == nil && in == nil:
					return &exit.Error{Code: exit.Misused, Err: errors.New("--input: it is no JSON object")}
				case err != nil:
					return &exit.Error{Code: exit.Misused, Err: fmt.Errorf("--input: %w", err)}
				}
			case len(args) == 0:
				return exit.WithHint(&exit.Error{Code: exit.Misused, Err: errors.New("there is nothing to ask about")}, "name it, as in: nod ask 'rm -rf build'")
			default:
				in[valueKey(tool)] = args[0]
			}
			return n.ask(c.Context(), tool, in, agent, session, asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&tool, "tool", "bash", "the `TOOL` that would be called")
	f.StringVar(&input, "input", "", "its whole input, as a `JSON` object")
	f.StringVar(&agent, "agent", "", "ask as the agent of this `NAME`")
	f.StringVar(&session, "session", "", "`ID` of the session to ask (default: the parent session in the environment, else that of the settings)")
	f.BoolVar(&asJSON, "json", false, "print the answer as one JSON object")
	return c
}

// valueKey is the argument of a tool that a single value stands for.
func valueKey(tool string) string {
	switch tool {
	case engine.SurfaceBash:
		return "command"
	case engine.SurfaceMCP:
		return "tool"
	case engine.SurfaceSkill:
		return "name"
	}
	return "path"
}

// asked is the answer of nod ask --json.
type asked struct {
	Decision string `json:"decision"` // allowed, denied or unavailable
	Reason   string `json:"reason,omitempty"`
}

func (n *nod) ask(ctx context.Context, tool string, in map[string]any, agent, session string, asJSON bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := n.agents()
	if env.Cwd == "" {
		return &exit.Error{Code: exit.Misused, Err: errors.New("the working directory can't be found")}
	}
	if session != "" {
		env.Target = session
	}
	who := engine.Principal{SessionID: n.Getenv("PI_SUBAGENT_SESSION_ID"), AgentName: agent}
	if who.SessionID == "" {
		who.SessionID = "ask-" + strconv.Itoa(os.Getppid()) // one shell is one asker
	}
	if who.AgentName == "" {
		who.AgentName = n.Getenv("PI_SUBAGENT_CHILD_AGENT")
	}
	if who.AgentName == "" {
		who.AgentName = "unknown"
	}
	call := &agents.Call{Tool: tool, Asks: true, Uses: []agents.Use{{Tool: tool, Input: in}}, Cwd: env.Cwd, Principal: who, Origin: "nod ask"}
	h := env.Hook(agents.Generic{}, agents.Setting{Mode: agents.Gated, Unserved: agents.UnservedDeny})
	o := h.Decide(ctx, call, patience)

	code, word := exit.Done, "allowed"
	switch {
	case o.Unavailable:
		code, word = exit.Unavailable, "unavailable"
	case o.Say != agents.Allow:
		code, word = exit.Denied, "denied"
	}
	var err error
	if asJSON {
		err = printJSON(n.Stdout, asked{word, o.Reason})
	} else {
		line := word
		if o.Reason != "" {
			line += ": " + visible.Line(o.Reason, 0)
		}
		_, err = fmt.Fprintln(n.Stdout, line)
	}
	if err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	if code != exit.Done {
		return &exit.Error{Code: code}
	}
	return nil
}
