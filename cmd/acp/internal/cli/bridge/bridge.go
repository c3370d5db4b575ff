// Package bridge is the command acp bridge: it serves an agent to clients that speak the other
// version of the protocol. The translation is [acp.Bridge]'s; this package starts the agent,
// remembers which version it speaks, and turns failures into exit statuses. It serves one client.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/jsonrpc"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remembered"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Options are the flags and arguments of the command.
type Options struct {
	App   *app.App
	Agent string   // name or command line; "" means the agent of the settings
	Argv  []string // the agent's command, instead of Agent
	// ClientProtocol is the only version that the bridge speaks with the client; 0 means either.
	ClientProtocol int
	// AgentProtocol is the only version that the bridge speaks with the agent. 0 means the version
	// in the agent's settings, or else the client's version if the agent speaks it.
	AgentProtocol int
	// Client is the transport to the client; nil means standard input and output.
	Client acp.Transport
}

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	client, agent := "", ""
	cmd := &cobra.Command{
		Use:   "bridge [AGENT] [-- COMMAND ARGS…]",
		Short: "Serve an agent to clients of either protocol version",
		Long: `Start an agent and serve it on standard input and output to clients of either version
of the protocol, whichever version the agent speaks. With an agent that speaks both,
the bridge uses the client's version, unless --agent-protocol says otherwise. Have your
editor start "acp bridge NAME" instead of the agent. The bridge passes on the agent's
standard error.

The bridge ends when the client disconnects (status 0) or the agent exits (status 6). If
the agent cannot be used, the client receives an error that gives the reason, and the
status is 6, 7 or 8.`,
		Example: `  acp bridge gemini
  acp bridge --protocol 1 -- my-agent --acp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseArguments(cmd, args, client, agent); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&client, "protocol", "auto", "speak only this `VERSION` with the client: 1, 2 or auto")
	cmd.Flags().StringVar(&agent, "agent-protocol", "auto", "speak only this `VERSION` with the agent: 1, 2 or auto")
	a.ProxyFlag(cmd.Flags())
	return cmd
}

// parseArguments reads the agent and the versions.
func (o *Options) parseArguments(cmd *cobra.Command, args []string, client, agent string) error {
	var err error
	if o.Agent, o.Argv, err = app.Named(cmd, args, "agent"); err != nil {
		return err
	}
	if o.ClientProtocol, err = version("--protocol", client); err != nil {
		return err
	}
	o.AgentProtocol, err = version("--agent-protocol", agent)
	return err
}

// version parses the value of a flag; 0 means either version.
func version(flag, value string) (int, error) {
	if value == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 2 {
		return 0, exitcode.Errorf(exitcode.Usage, "%s %q: the version must be 1, 2 or auto", flag, value)
	}
	return n, nil
}

// Run starts the agent when the client initializes, and serves that client until it disconnects or
// the agent exits.
func Run(ctx context.Context, o *Options) error {
	a := o.App
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	agent, err := a.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return err
	}
	if o.AgentProtocol != 0 {
		agent.Protocol = o.AgentProtocol
	}
	b := &acp.Bridge{Logger: a.Logger, ClientVersions: [2]int{o.ClientProtocol, o.ClientProtocol}, AgentVersions: [2]int{agent.Protocol, agent.Protocol}}
	to, err := a.LaunchFor(ctx, agent)
	if err != nil {
		return err
	}
	if b.Agent, err = launch.Transport(agent, to); err != nil {
		return err
	}
	name := safetext.Line(agent.Name, 200)
	b.Reach = func(ctx context.Context, client *acp.Client) (*acp.ClientConn, error) {
		start := &launch.Start{Agent: name, Limit: cfg.Timeouts.Connect}
		conn, err := o.connect(ctx, cfg, agent, client, func() (*acp.ClientConn, error) { return start.Connect(ctx, client, b.Agent) })
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		return nil, &unusable{start.Failed(err)}
	}
	client := o.Client
	if client == nil {
		client = acp.Stdio()
		if a.InTerminal {
			fmt.Fprintln(a.Err, "acp bridge: waiting for a client on standard input; to talk to the agent yourself, type acp chat")
		}
	}
	err = b.Serve(ctx, client)
	not, _ := errors.AsType[*unusable](err)
	switch {
	case ctx.Err() != nil:
		return exitcode.With(exitcode.Cancelled, context.Cause(ctx))
	case err == nil:
		return nil
	case not != nil:
		return not.error
	case errors.Is(err, jsonrpc.ErrParse), errors.Is(err, jsonrpc.ErrFrameTooLarge):
		return exitcode.With(exitcode.Protocol, err)
	}
	return exitcode.Errorf(exitcode.Agent, "bridge to %s: %w", name, err)
}

// connect connects to the agent by dial. If the agent is known to speak version 1 only, that
// version is asked for first, because a refused version costs a second start. The version that the
// agent turns out to speak is remembered.
func (o *Options) connect(ctx context.Context, cfg *config.Config, agent roster.Agent, client *acp.Client, dial func() (*acp.ClientConn, error)) (*acp.ClientConn, error) {
	if agent.Builtin || agent.Protocol != 0 {
		return dial()
	}
	memory, key := app.Memory(cfg), remembered.Key(agent.Key())
	known, first := memory.Get(key), client.FirstVersion
	if known.Protocol == 1 {
		client.FirstVersion = 1
	}
	conn, err := dial()
	if err != nil && known.Protocol == 1 && first != 1 && ctx.Err() == nil {
		known, client.FirstVersion = remembered.Agent{}, first
		conn, err = dial()
	}
	if err != nil {
		return nil, err
	}
	info := roster.Introduced(conn.Agent())
	now := remembered.Agent{NoFiles: known.NoFiles, Name: info.Name, Version: info.Version}
	// An agent that was asked for version 1 may speak version 2 as well, so its answer proves
	// nothing.
	if conn.Version() == 1 && (client.FirstVersion != 1 || known.Protocol == 1) {
		now.Protocol = 1
	}
	if now.Protocol == 1 || known.Protocol == 1 {
		if err := memory.Learn(key, known, now); err != nil {
			o.App.Logger.Warn("remembering the agent's protocol version", "err", err)
		}
	}
	return conn, nil
}

// unusable is the reason why the agent cannot be used. The client receives it as the answer to
// initialize: the agent's own error if it has answered with one, and otherwise the text of the
// reason.
type unusable struct{ error }

// Unwrap returns the error below.
func (e *unusable) Unwrap() error { return e.error }

// As converts it to the [*jsonrpc.Error] that the client receives.
func (e *unusable) As(target any) bool {
	answer, ok := target.(**jsonrpc.Error)
	if !ok {
		return false
	}
	if _, answered := errors.AsType[*jsonrpc.Error](e.error); answered {
		return false // errors.As continues with the wrapped error, which is the agent's
	}
	*answer = jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", safetext.Line(e.Error(), maxReason))
	return true
}

// maxReason bounds the text of the reason that the client receives, in cells.
const maxReason = 1000
