// Package agent is the command acp agent: it serves the built-in agent, which package
// internal/agent implements, to any client on standard input and output.
package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// Options are the flags of the command.
type Options struct {
	App *app.App
	// Protocol is the only version that the agent speaks; 0 means either.
	Protocol int
	// Sessions is the directory that sessions are stored in; "" means the program's own.
	// NoPersist keeps them in memory.
	Sessions  string
	NoPersist bool
}

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	protocol := ""
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Serve the built-in agent on standard input and output",
		Long: `Serve the built-in agent on standard input and output. Have your editor, or any other
client of the Agent Client Protocol, start this command. To talk to the agent in this
terminal, type acp.

The agent obeys slash commands, which /help lists. With --model, a language model answers
everything else, and works with the same tools. The agent stores its sessions, so that
clients can list and resume them. It ends when its input ends.

The agent obeys the rules of your settings, --policy and --deny when it reads, lists,
searches or changes files, runs commands, and uses the tools of MCP servers. It does not
do what they deny. Where they ask, it asks its client, whatever the mode of the session.
Where they allow, the decision is still the client's.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch protocol {
			case "auto":
				o.Protocol = 0
			case "1":
				o.Protocol = 1
			case "2":
				o.Protocol = 2
			default:
				return exitcode.Errorf(exitcode.Usage, "--protocol %q: the version must be 1, 2 or auto", protocol)
			}
			if cmd.Flags().Changed("sessions") && o.Sessions == "" {
				return exitcode.Errorf(exitcode.Usage, "--sessions: the directory is missing; --no-persist keeps sessions in memory")
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return run(cmd.Context(), o, acp.Stdio())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&protocol, "protocol", "auto", "speak only this `version` of the protocol: 1, 2 or auto")
	flags.StringVar(&o.Sessions, "sessions", "", "store sessions in this `directory` instead of the program's own")
	flags.BoolVar(&o.NoPersist, "no-persist", false, "keep sessions in memory only")
	cmd.MarkFlagsMutuallyExclusive("sessions", "no-persist")
	return cmd
}

// run serves one client.
func run(ctx context.Context, o *Options, t acp.Transport) error {
	dir := o.Sessions
	switch {
	case o.NoPersist:
		dir = ""
	case dir == "":
		dir = o.App.ServedDir()
	}
	agent, err := o.App.Served(dir)
	if err != nil {
		return err
	}
	if o.Protocol != 0 {
		agent.MinVersion, agent.MaxVersion = o.Protocol, o.Protocol
	}
	if o.App.InTerminal && o.App.Err != nil {
		fmt.Fprintln(o.App.Err, "acp agent: waiting for a client on standard input; to talk to the agent yourself, type acp")
	}
	err = agent.Serve(ctx, t)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // a signal has ended it, as the user wanted
	}
	if err != nil {
		return exitcode.With(exitcode.Protocol, fmt.Errorf("serving the client: %w", err))
	}
	return nil
}
