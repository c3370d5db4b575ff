// Package connect is the command acp connect: it connects standard input and output to an agent on the
// network, so that every editor that can start an agent can use one that runs elsewhere.
package connect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/relay"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// Options are the flags and arguments of the command.
type Options struct {
	App *app.App
	URL string // or the name of an agent that has one

	TokenFile, TokenKeyring string // where the token is
	Insecure                bool   // send it even unencrypted

	// Near is the stream to the client; nil means standard input and output.
	Near jsonrpc.Stream
}

const long = `Connect standard input and output to the agent at URL. Have your editor start this
command instead of an agent: the editor then uses an agent that runs elsewhere, as acp
serve or any other server of the protocol serves it. URL is http:// or https:// for
Streamable HTTP, ws:// or wss:// for WebSocket, unix:PATH for a socket of acp serve, or the
name of an agent whose settings have a url.

The token that the server requires is that of the variable ACP_TOKEN, of --token-file or
of --token-keyring. For a server of yours on this machine, acp finds the token itself. A
token is never part of URL.

If the server keeps sessions, it may be restarted meanwhile: acp connect returns to it, and
the client notices nothing.

acp connect ends when its input ends (status 0), or when the connection does. The status
is 6 if the server cannot be reached, if the connection broke or if the agent has ended,
7 if the server refuses the connection, and 10 if it requires another token. Requests
that are not answered then get an error with the reason.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "connect URL",
		Short: "Connect standard input and output to an agent on the network",
		Long:  long,
		Example: `  acp connect http://127.0.0.1:7842/acp
  acp connect wss://agents.example/acp --token-file ~/.agents-token
  acp exec "hello" -- acp connect unix:/run/user/1000/agent.sock`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.URL = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.TokenFile, "token-file", "", "send the token in `FILE`")
	f.StringVar(&o.TokenKeyring, "token-keyring", "", "send the token at `SERVICE/USER` in the keyring of the system")
	f.BoolVar(&o.Insecure, "insecure", false, "send the token even unencrypted to another machine")
	_ = cmd.MarkFlagFilename("token-file")
	return cmd
}

// Run connects, and returns when either side has ended.
func Run(ctx context.Context, o *Options) error {
	a := o.App
	agent, err := a.Agent(o.URL)
	if err != nil {
		return err
	}
	if agent.URL == "" {
		return exitcode.Errorf(exitcode.Usage, "%s is not a URL, nor the name of an agent that has one; to use an agent that acp starts, write acp bridge", safetext.Line(o.URL, maxName))
	}
	if o.TokenFile != "" || o.TokenKeyring != "" {
		agent.Remote.Token = remote.Source{File: o.TokenFile, Keyring: o.TokenKeyring}
	}
	agent.Remote.Insecure = agent.Remote.Insecure || o.Insecure
	far, err := launch.Transport(agent, launch.Options{})
	if err != nil {
		return err
	}
	near := o.Near
	if near == nil {
		near = jsonrpc.Stdio()
		if a.InTerminal {
			fmt.Fprintln(a.Err, "acp connect: waiting for a client on standard input; to talk to the agent yourself, type acp chat "+safetext.Line(agent.Name, maxName))
		}
	}
	explain := func(err error) error { return remote.Explain(agent.Name, err) }
	ended, err := relay.Relay(ctx, near, relay.Steady(far.Open, nil), relay.Options{Logger: a.Logger, Linger: jsonrpc.DefaultGrace, Explain: explain})
	name := safetext.Line(agent.Name, maxName)
	switch {
	case ctx.Err() != nil:
		return exitcode.With(exitcode.Cancelled, context.Cause(ctx))
	case ended == relay.Near && err == nil:
		return nil
	case ended == relay.Near:
		return fmt.Errorf("the client: %w", err)
	case err == nil:
		return exitcode.Errorf(exitcode.Agent, "%s has ended the connection", name)
	}
	if why := explain(err); why != nil {
		return why
	}
	return exitcode.Errorf(exitcode.Agent, "the connection to %s has ended: %w", name, err)
}

// maxName bounds the name of an agent that is shown, in cells.
const maxName = 200
