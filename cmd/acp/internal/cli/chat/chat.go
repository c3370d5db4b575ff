// Package chat is the command acp chat.
package chat

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/ui/plain"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui"
)

// Options are what the command is told to do.
type Options struct {
	App *app.App
	// Agent is a name or command line, "" the one the settings say; Command is
	// given instead of it after "--".
	Agent   string
	Command []string
	// Session is the session to continue, whole or its beginning; Continue
	// takes the latest in this directory.
	Session  string
	Continue bool
	// Prompt is sent at once, unless it is "".
	Prompt string
	NoBell bool
}

const about = `Opens a conversation with an agent on the whole terminal: ? shows all keys.

AGENT is the name of an agent (acp agents list) or a command line in one word;
without it the agent is that of --agent or of the settings, else the built-in one.
A command line can also follow --.

Without a terminal, with TERM=dumb, or with --plain, the conversation is held line
by line.`

// NewCommand returns the command. runF runs it; nil means [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "chat [AGENT] [-- COMMAND ARGS...]",
		Short: "Talk to an agent",
		Long:  about,
		Example: `  acp chat
  acp chat gemini --prompt 'what does this project do?'
  acp chat --continue
  acp chat -- my-agent --acp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take(args, cmd.ArgsLenAtDash()); err != nil {
				return exitcode.With(exitcode.Usage, err)
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Session, "session", "s", "", "continue the session `ID`, which may be abbreviated")
	f.BoolVarP(&o.Continue, "continue", "c", false, "continue the latest session in this directory")
	f.StringVarP(&o.Prompt, "prompt", "p", "", "send `TEXT` at once")
	f.BoolVar(&o.NoBell, "no-bell", false, "do not ring the bell when the agent needs you and the terminal has lost focus")
	return cmd
}

// take reads the arguments; dash is how many come before "--", or negative.
func (o *Options) take(args []string, dash int) error {
	o.Agent, o.Command = "", nil
	names := args
	if dash >= 0 {
		names, o.Command = args[:dash], args[dash:]
		if len(o.Command) == 0 {
			return errors.New("no command after --")
		}
	}
	switch {
	case len(names) > 1:
		return fmt.Errorf("more than one agent: %q; text to send goes to --prompt, a command line after --", names)
	case len(names) == 1 && o.Command != nil:
		return fmt.Errorf("both an agent (%s) and a command after --", names[0])
	case len(names) == 1:
		o.Agent = names[0]
	}
	if o.Session != "" && o.Continue {
		return errors.New("--session and --continue are two answers to one question")
	}
	return nil
}

// Run holds the conversation.
func Run(ctx context.Context, o *Options) error {
	a := o.App
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	agent, err := o.agent()
	if err != nil {
		return err
	}
	var id acp.SessionID // none for a new session
	if o.Session != "" || o.Continue {
		id, err = a.Earlier(ctx, agent, o.Session)
	}
	if err != nil {
		return err
	}
	if cfg.UI.Plain || !a.InTerminal || !a.OutTerminal || os.Getenv("TERM") == "dumb" {
		return plain.Run(ctx, plain.Options{App: a, Agent: agent, Session: id, Prompt: o.Prompt})
	}
	return tui.Run(ctx, tui.Options{App: a, Agent: agent, Session: id, Prompt: o.Prompt, NoBell: o.NoBell})
}

func (o *Options) agent() (roster.Agent, error) {
	agent, err := o.App.AgentFor(o.Agent, o.Command)
	if len(o.Command) > 0 {
		agent.Title = o.Command[0]
	}
	return agent, err
}
