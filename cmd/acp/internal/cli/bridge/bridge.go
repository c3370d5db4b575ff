// Package bridge is the command acp bridge: an agent for clients of the other version of the
// protocol.
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

// Options are what the command is told to do.
type Options struct {
	App   *app.App
	Agent string   // name or command line; "" is the one the settings say
	Argv  []string // the command of the agent, in place of Agent
	// ClientProtocol is the only version that is spoken with the client; 0 is either.
	ClientProtocol int
	// AgentProtocol is the only version that is spoken with the agent; 0 is what the settings say of
	// it, or else the client's if the agent speaks that.
	AgentProtocol int
	// Client is the way to the client; nil is standard input and output.
	Client acp.Transport
}

// NewCommand returns the command; runF, if not nil, runs in place of it.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	client, agent := "", ""
	cmd := &cobra.Command{
		Use:   "bridge [AGENT] [-- COMMAND ARGS…]",
		Short: "Serve an agent to clients of either protocol version",
		Long: `Start an agent and serve it on standard input and output to clients of either version
of the protocol, whichever version the agent speaks. With an agent that speaks both,
the bridge uses the client's version, unless --agent-protocol says otherwise. Have your
editor start "acp bridge NAME" in place of the agent. The agent's standard error
appears on that of the bridge.

The bridge ends when the client leaves (status 0) or the agent does (status 6). If the
agent cannot be used, the client receives an error that says why, and the status is
6, 7 or 8.`,
		Example: `  acp bridge gemini
  acp bridge --protocol 1 -- my-agent --acp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.arguments(cmd, args, client, agent); err != nil {
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
	return cmd
}

func (o *Options) arguments(cmd *cobra.Command, args []string, client, agent string) error {
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

// version reads the value of a flag; 0 is either version.
func version(flag, value string) (int, error) {
	if value == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 2 {
		return 0, exitcode.Errorf(exitcode.Usage, "%s %q: it is 1, 2 or auto", flag, value)
	}
	return n, nil
}

// Run serves one client.
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
	to := launch.Options{Dir: a.Cwd, Stderr: a.Err}
	if agent.Builtin {
		if to.BuiltIn, err = a.BuiltIn(ctx); err != nil {
			return err
		}
	}
	// That is found before a client waits for it.
	if _, err := roster.LookPath(agent.Command, a.Cwd, agent.Environ()); err != nil && agent.Command != "" && !agent.LoginEnv {
		return launch.NoProgram(agent.Name, agent.Command, err)
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

// connect reaches the agent by dial. One that is known to speak version 1 only is asked for that first,
// and so started once; what it turns out to speak is remembered.
func (o *Options) connect(ctx context.Context, cfg *config.Config, agent roster.Agent, client *acp.Client, dial func() (*acp.ClientConn, error)) (*acp.ClientConn, error) {
	if agent.Builtin || agent.Protocol != 0 {
		return dial()
	}
	memory, key := app.Memory(cfg), remembered.Key(agent.Argv())
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
	// That an agent which was asked for version 1 answers with it says nothing new.
	if conn.Version() == 1 && (client.FirstVersion != 1 || known.Protocol == 1) {
		now.Protocol = 1
	}
	if now.Protocol == 1 || known.Protocol == 1 {
		if err := memory.Learn(key, known, now); err != nil {
			o.App.Logger.Warn("what the agent speaks cannot be remembered", "error", err)
		}
	}
	return conn, nil
}

// unusable is why the agent cannot be used, which the client is told too: as the agent has put it, if
// it has answered.
type unusable struct{ error }

// Unwrap returns the error below.
func (e *unusable) Unwrap() error { return e.error }

// As makes it a [*jsonrpc.Error], the client's answer.
func (e *unusable) As(target any) bool {
	answer, ok := target.(**jsonrpc.Error)
	if !ok {
		return false
	}
	if _, answered := errors.AsType[*jsonrpc.Error](e.error); answered {
		return false // which is found below
	}
	*answer = jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", safetext.Line(e.Error(), maxTold))
	return true
}

// maxTold bounds what the client is told, in cells.
const maxTold = 1000
