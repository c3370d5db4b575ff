// Package agent is the command acp agent.
package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	builtin "github.com/goacp/acp/cmd/acp/internal/agent"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// Options are what the command is told to do.
type Options struct {
	App *app.App
	// Protocol is the only version that is spoken; 0 is either.
	Protocol int
	// Sessions is the directory the sessions are kept in, "" for that of the
	// program; NoPersist keeps them in memory.
	Sessions  string
	NoPersist bool
}

// NewCommand returns the command; runF, if not nil, runs in place of it.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	protocol := ""
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Serve the built-in agent on standard input and output",
		Long: `Serve the built-in agent on standard input and output, for an editor or any other
client of the Agent Client Protocol to start. To talk to it here, type acp.

The agent has no language model: it works by slash commands, which /help lists. It
keeps its sessions, so that they can be listed and taken up again. It ends when
its input does.

What the rules of your settings, --policy and --deny deny, the agent does not do:
reading, listing, searching, changing files, running commands and using tools of
MCP servers. What they want asked it asks its client, whatever the mode of the
session is. What they allow is still the client's to decide.`,
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
				return exitcode.Errorf(exitcode.Usage, "--protocol %q: it is 1, 2 or auto", protocol)
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
	flags.StringVar(&o.Sessions, "sessions", "", "`directory` to keep sessions in, instead of the program's")
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
		dir = builtin.DefaultDir()
	}
	policy, err := o.App.Policy()
	if err != nil {
		return err
	}
	agent, err := builtin.New(builtin.Options{Dir: dir, Version: o.App.Version, Logger: o.App.Logger, Policy: policy})
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
		return nil // it was told to end
	}
	if err != nil {
		return exitcode.With(exitcode.Protocol, fmt.Errorf("serving the client: %w", err))
	}
	return nil
}
