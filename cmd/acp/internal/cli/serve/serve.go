// Package serve is the command acp serve: it serves an agent over the network. This package owns the
// flags and what is said to the user; listening is package internal/serve's, forwarding package relay's.
package serve

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/serve"
)

// Options are the flags and arguments of the command.
type Options struct {
	App   *app.App
	Agent string   // name, command line or URL; "" means the agent of the settings
	Argv  []string // the agent's command, instead of Agent

	Listen                  string // HOST:PORT or unix:PATH
	Cert, Key               string // files for TLS
	TokenFile, TokenKeyring string // where the token is; "" means the environment
	NoAuth                  bool
	Hosts, Origins          []string
	Stateless               bool // one agent per connection
	Durable                 bool // sessions that outlive connections and clients
}

const long = `Serve an agent over the network, to any client of the Agent Client Protocol: over
Streamable HTTP and over WebSocket, at one URL. The first line of standard output is that
URL. Everything else is written to standard error. To talk to the agent, use acp chat URL;
to have your editor use it, configure "acp connect URL" as an agent. If you name no agent,
acp serves the default agent.

Each connection gets an agent of its own, which ends with the connection. acp serve ends
at the first interrupt (Ctrl-C), and all agents with it. With --durable, sessions are kept:
they outlive connections, clients come back to them, and several clients share one.

Clients must send a token, as Authorization: Bearer. It is that of the variable ACP_TOKEN,
of --token-file or of --token-keyring. Without any of these, a server on an address of
this machine makes a token and leaves it in a file that only you can read. There acp
chat, acp exec and acp connect find it by themselves, so nothing needs to be set up. A
Unix socket needs no token: only you can connect to it. On an address that other machines
can reach, acp serve requires a token and TLS.

Web pages of other origins are refused, and on addresses of this machine so are names of
hosts other than localhost, see --origin and --host. docs/remote.md describes how to serve
behind a proxy.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "serve [AGENT] [-- COMMAND ARGS…]",
		Short: "Serve an agent over HTTP and WebSocket",
		Long:  long,
		Example: `  acp serve
  acp serve gemini --listen 127.0.0.1:9000
  acp serve --listen unix:/run/user/1000/agent.sock -- my-agent --acp
  acp serve --listen 0.0.0.0:7842 --tls-cert cert.pem --tls-key key.pem --token-file token`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Agent, o.Argv, err = app.Named(cmd, args, "agent"); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", serve.DefaultAddress, "listen at `ADDR`: HOST:PORT or unix:PATH")
	f.StringVar(&o.TokenFile, "token-file", "", "clients must send the token in `FILE`")
	f.StringVar(&o.TokenKeyring, "token-keyring", "", "clients must send the token at `SERVICE/USER` in the keyring of the system")
	f.BoolVar(&o.NoAuth, "no-auth", false, "serve every program of this machine without a token")
	f.StringVar(&o.Cert, "tls-cert", "", "serve TLS with the certificate in `FILE` (PEM)")
	f.StringVar(&o.Key, "tls-key", "", "the key of that certificate is in `FILE` (PEM)")
	f.StringArrayVar(&o.Hosts, "host", nil, "accept requests for the host `NAME`, as a proxy passes them on (repeatable)")
	f.StringArrayVar(&o.Origins, "origin", nil, "accept requests of web pages of `ORIGIN`, such as https://app.example (repeatable)")
	f.BoolVar(&o.Stateless, "stateless", false, "end each agent with its connection; this is the default, and a later version makes --durable the default")
	f.BoolVar(&o.Durable, "durable", false, "keep sessions: they outlive connections, and several clients may share one (experimental)")
	cmd.MarkFlagsMutuallyExclusive("stateless", "durable")
	for _, name := range []string{"token-file", "tls-cert", "tls-key"} {
		_ = cmd.MarkFlagFilename(name)
	}
	return cmd
}

// Run serves until ctx is done.
func Run(ctx context.Context, o *Options) (err error) {
	a := o.App
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	agent, err := a.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var builtIn *acp.Agent
	handle := (&serve.Forward{Agent: agent, Dir: a.Cwd, Logger: a.Logger, Note: o.note}).Serve
	switch {
	case agent.Builtin:
		dir := a.ServedDir()
		if cfg.Store.Off {
			dir = ""
		}
		if builtIn, err = a.Served(dir); err != nil {
			return err
		}
		handle = builtIn.Serve
	case agent.URL != "":
		if _, err := launch.Transport(agent, launch.Options{}); err != nil {
			return err
		}
	default: // a missing program is reported now, not when a client has connected
		if _, err := launch.Process(ctx, agent, a.Cwd); err != nil {
			return err
		}
	}
	var d *durable
	if o.Durable {
		if cfg.Store.Off {
			return exitcode.Errorf(exitcode.Usage, "--durable keeps sessions, and the setting store.off says that nothing is kept")
		}
		if d, err = o.openDurable(ctx, cfg.Dirs.State, agent, builtIn, cancel); err != nil {
			return err
		}
		defer func() {
			if e := d.Close(); err == nil {
				err = e
			}
		}()
		handle = d.Serve
	}
	served := serve.Config{
		Listen: o.Listen, Cert: o.Cert, Key: o.Key, NoAuth: o.NoAuth, Hosts: o.Hosts, Origins: o.Origins,
		Token: remote.Source{File: o.TokenFile, Keyring: o.TokenKeyring}, State: cfg.Dirs.State,
		Limits: acphttp.Limits{InitializeTimeout: cfg.Timeouts.Connect}, Serve: handle, Logger: a.Logger, Note: o.note,
	}
	if d != nil {
		d.admit(&served)
	}
	server, err := serve.Open(served)
	if err != nil {
		return err
	}
	if d != nil {
		if err := d.announce(ctx, server.URL()); err != nil {
			return errors.Join(err, server.Close())
		}
	}
	// Neither the agent nor what it runs needs the token.
	if err := os.Unsetenv(remote.EnvToken); err != nil {
		return errors.Join(err, server.Close())
	}
	if _, err := fmt.Fprintln(a.Out, server.URL()); err != nil {
		return errors.Join(err, server.Close())
	}
	o.note(fmt.Sprintf("serving %s; to talk to it: acp chat %s", safetext.Line(agent.Name, maxName), server.URL()))
	if file := server.TokenFile(); file != "" {
		o.note("the token is in " + file)
	}
	if server.Open() && o.NoAuth {
		o.note("every program and every user of this machine is served")
	}
	err = server.Run(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, engine.ErrLapsed) {
		err = errors.Join(err, cause)
	}
	return err
}

// Bounds of what is shown.
const (
	maxName = 200  // cells of the name of an agent
	maxLine = 1000 // cells of a line
)

// note writes a line to standard error.
func (o *Options) note(text string) {
	fmt.Fprintf(o.App.Err, "acp serve: %s\n", safetext.Line(text, maxLine))
}
