// Package chat is the command acp chat: a conversation on the terminal. It chooses the agent, the
// session and the interface, which is package tui's screen or package plain's lines.
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
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/plain"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui"
)

// Options are the flags and arguments of the command.
type Options struct {
	App *app.App
	// Agent is a name or command line; "" means the agent of the settings. Command is the
	// agent's command after "--", instead of Agent.
	Agent   string
	Command []string
	// Session is the id of the session to continue, or its beginning. Continue
	// means the latest session in this directory.
	Session  string
	Continue bool
	// Resume lets the user choose the session to continue.
	Resume bool
	// Prompt is sent at once unless it is "".
	Prompt string
	NoBell bool
	Detach bool   // hold the conversation in the user's own gateway
	At     string // the gateway that holds the conversation; "" means this program
}

const about = `Open a full-screen conversation with an agent. Press ? to see all keys.

AGENT is the name of an agent (see acp agents list), the URL of one that runs already,
such as https://HOST/acp, or a quoted command line. You can also write the agent's
command after --. Without either, acp uses the agent of --agent
or of the settings, and otherwise the built-in one.

With --at, the conversation takes place in a gateway (see acp serve), with the agent
that has the name AGENT there. It is kept there and continues when you leave; acp attach
returns to it. With --detach, that is a gateway of yours, which acp starts in the background
and which ends by itself when nothing is left to keep: see acp serve status.

With --plain, with TERM=dumb or without a terminal, the conversation takes place line by
line.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
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
			if err := o.parseArguments(args, cmd.ArgsLenAtDash()); err != nil {
				return exitcode.With(exitcode.Usage, err)
			}
			if err := a.Choose(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Session, "session", "s", "", "continue the session `ID`, which may be abbreviated, or - or @N (see acp sessions)")
	f.BoolVarP(&o.Continue, "continue", "c", false, "continue the latest session in this directory")
	f.BoolVarP(&o.Resume, "resume", "r", false, "choose the session to continue from a list")
	f.BoolVar(&o.Detach, "detach", false, "hold the conversation in a gateway of yours, which starts by itself: the agent works on when you leave")
	f.StringVar(&o.At, "at", "", app.AtUsage)
	a.ProxyFlag(f)
	a.ChoiceFlags(f)
	f.StringVarP(&o.Prompt, "prompt", "p", "", "send `TEXT` as the first prompt")
	f.BoolVar(&o.NoBell, "no-bell", false, "do not ring the bell when the agent needs you and the terminal has lost focus")
	return cmd
}

// parseArguments reads the arguments. dash is the number of arguments before "--", or negative
// without one.
func (o *Options) parseArguments(args []string, dash int) error {
	o.Agent, o.Command = "", nil
	names := args
	if dash >= 0 {
		names, o.Command = args[:dash], args[dash:]
		if len(o.Command) == 0 {
			return errors.New("the agent's command is missing after --")
		}
	}
	switch {
	case len(names) > 1:
		return fmt.Errorf("more than one agent: %q; use --prompt to send text, and -- before a command", names)
	case len(names) == 1 && o.Command != nil:
		return fmt.Errorf("both %s and the command after -- name an agent; leave one out", names[0])
	case len(names) == 1:
		o.Agent = names[0]
	}
	if given := [3]bool{o.Session != "", o.Continue, o.Resume}; given[0] && given[1] || given[0] && given[2] || given[1] && given[2] {
		return errors.New("--session, --continue and --resume cannot be combined")
	}
	return nil
}

// Run holds the conversation, on a screen if the terminal and the settings allow it, and returns
// when the user leaves.
func Run(ctx context.Context, o *Options) error {
	a := o.App
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	screen := !cfg.UI.Plain && a.InTerminal && a.OutTerminal && os.Getenv("TERM") != "dumb"
	if o.At != "" || o.Detach {
		return o.runAt(ctx, screen)
	}
	if o.Resume {
		if !screen {
			return exitcode.Errorf(exitcode.Usage, "--resume needs a screen to choose on; use --session ID, or --session - for the latest session of this directory")
		}
		s, ok, err := Choose(ctx, a)
		if err != nil || !ok {
			return err
		}
		if _, err := os.Stat(s.Cwd); err != nil {
			return fmt.Errorf("the directory of the session: %w; to save the conversation, use acp sessions export", err)
		}
		o = Continue(o, s)
	}
	agent, err := o.agent(ctx)
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
	if id != "" {
		switch there, err := a.GoesOn(ctx, string(id), agent); {
		case err != nil:
			return err
		case there:
			next := *o
			next.At, next.Session, next.Continue, next.Agent, next.Command = app.Own, string(id), false, "", nil
			return next.runAt(ctx, screen)
		}
	}
	if !screen {
		return plain.Run(ctx, plain.Options{App: a, Agent: agent, Session: id, Prompt: o.Prompt})
	}
	return tui.Run(ctx, tui.Options{App: a, Agent: agent, Session: id, Prompt: o.Prompt, NoBell: o.NoBell})
}

// Continue returns the options with which a stored session continues: with its agent and in its
// directory. The App of o gets that directory.
func Continue(o *Options, s store.Session) *Options {
	next := *o
	next.App.Cwd = s.Cwd
	next.Agent, next.Command, next.Session, next.Resume = s.Agent, nil, s.Conversation, false
	if _, known, err := o.App.KnownAgent(s.Agent); err == nil && !known && len(s.Command) > 0 {
		next.Agent, next.Command = "", s.Command
	}
	return &next
}

// Forget removes prompts from the history of what the user typed in a directory.
func Forget(a *app.App, cwd string, prompts []string) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	return tui.Forget(cfg.Dirs.State, cwd, prompts)
}

// Choose lets the user choose a stored session on the screen. It returns false if the user leaves
// without a choice.
func Choose(ctx context.Context, a *app.App) (store.Session, bool, error) {
	kept, err := a.Store(ctx)
	if err != nil {
		return store.Session{}, false, err
	}
	if kept == nil {
		return store.Session{}, false, exitcode.Errorf(exitcode.Usage, "conversations are not kept, so there is none to choose")
	}
	return tui.Choose(ctx, tui.Options{App: a})
}

func (o *Options) agent(ctx context.Context) (roster.Agent, error) {
	if o.Session != "" && o.Agent == "" && len(o.Command) == 0 && o.App.Flags["agent"] == nil {
		if agent, ok, err := o.App.AgentWith(ctx, o.Session); ok || err != nil {
			return agent, err
		}
	}
	agent, err := o.App.AgentFor(o.Agent, o.Command)
	if len(o.Command) > 0 {
		agent.Title = o.Command[0]
	}
	return agent, err
}
