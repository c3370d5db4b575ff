// Package serve is the command acp serve: it serves an agent over the network. This package owns the
// flags and what is said to the user; listening is package internal/serve's, forwarding package relay's.
package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/holder"
	"github.com/goacp/acp/cmd/acp/internal/isolate"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
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
	Durable                 bool // sessions are kept, and it is an error if they cannot be; without it they are where possible
	Cluster                 Cluster
	Own                     Own
	People                  People
	Doors                   Doors
	Operation               Operation
	Web                     Web
}

const long = `Serve an agent over the network, to any client of the Agent Client Protocol: over
Streamable HTTP and over WebSocket, at one URL. The first line of standard output is that
URL. Everything else is written to standard error. To talk to the agent, use acp chat --at
URL; to have your editor use it, configure "acp connect URL" as an agent. If you name no
agent, acp serves the default agent.

Sessions are kept: they outlive connections and the server, clients come back to them, and
several clients share one. With --stateless, and if the setting store.off says that nothing
is kept, each connection gets an agent of its own, which ends with the connection; to talk
to such a server, use acp chat URL.

An interrupt (Ctrl-C) ends acp serve and all agents; if they are at work, acp serve asks in
the terminal whether to keep them. A signal to terminate leaves the agents to the acp serve
that is started within a minute, which continues their turns: so a restart costs nothing.
acp serve stop ends everything.

Clients must send a token, as Authorization: Bearer. It is that of the variable ACP_TOKEN,
of --token-file or of --token-keyring. Without any of these, a server on an address of
this machine makes a token and leaves it in a file that only you can read. There acp
chat, acp exec and acp connect find it by themselves, so nothing needs to be set up. A
Unix socket needs no token: only you can connect to it. On an address that other machines
can reach, acp serve requires a token and TLS.

The settings serve.users, serve.groups and serve.oidc make it a server for several users:
they say who may do what, and agents are isolated from each other. docs/gateway.md
describes them.

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
	f.BoolVar(&o.Stateless, "stateless", false, "keep nothing: each connection has an agent of its own, which ends with it")
	f.BoolVar(&o.Durable, "durable", false, "keep sessions, which is the default")
	_ = f.MarkHidden("durable")
	a.ProxyFlag(f)
	o.Cluster.flags(f)
	o.Own.flags(f)
	o.People.flags(f)
	o.Doors.flags(f)
	o.Operation.flags(f)
	o.Web.flags(f)
	a.StateFlag(cmd.PersistentFlags())
	cmd.AddCommand(newKeeping(a)...)
	cmd.AddCommand(newStatus(a), newStop(a))
	cmd.MarkFlagsMutuallyExclusive("stateless", "durable")
	cmd.MarkFlagsMutuallyExclusive("stateless", "db")
	for _, name := range []string{"token-file", "tls-cert", "tls-key"} {
		_ = cmd.MarkFlagFilename(name)
	}
	return cmd
}

// collectAt makes the heap grow by so much, in percent, before garbage is collected: half of what Go does by itself. A server
// is there all day, and what it allocates is mostly gone at once.
const collectAt = 50

// collectEarly has garbage collected at collectAt, unless GOGC says something else. It returns what ends that.
func collectEarly() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(collectAt)
	return func() { debug.SetGCPercent(was) }
}

// Run serves until ctx is done.
func Run(ctx context.Context, o *Options) (err error) {
	defer collectEarly()()
	a := o.App
	o.People.apply(a.Flags)
	o.Operation.apply(a.Flags)
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	agent, err := a.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return err
	}
	if err := errors.Join(o.Cluster.check(), o.Operation.check(o)); err != nil {
		return err
	}
	handle, builtIn, err := o.agent(ctx, cfg, agent)
	if err != nil {
		return err
	}
	var d *durable
	keep, err := o.keeps(cfg)
	if err != nil {
		return err
	}
	if err := o.Own.check(keep); err != nil {
		return err
	}
	if keep {
		if d, err = o.openDurable(ctx, cfg.Dirs.State, agent, builtIn); err != nil {
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
		Limits: limits(cfg.Timeouts.Connect, keep), Serve: handle, Logger: a.Logger, Note: o.note,
	}
	if keep {
		served.Keep, served.Quiet = keptBytes, true
	}
	server, err := o.openServer(ctx, served, d)
	if err != nil {
		return err
	}
	if d != nil {
		until, end, err := o.begin(ctx, cfg.Dirs.State, server.URL(), d.Gateway)
		if err != nil {
			return errors.Join(err, server.Close())
		}
		defer end()
		ctx = until
	}
	// Neither the agent nor what it runs needs the token.
	if err := os.Unsetenv(remote.EnvToken); err != nil {
		return errors.Join(err, server.Close())
	}
	if err := o.greet(ctx, server, agent.Name, d); err != nil {
		return errors.Join(err, server.Close())
	}
	holder.Trim() // most of what it took to start is never used again
	err = server.Run(ctx)
	d.leave(ctx, o, cfg.Dirs.State)
	return err
}

// agent returns what serves a client that has an agent of its own, and the built-in agent if it is that.
func (o *Options) agent(ctx context.Context, cfg *config.Config, agent roster.Agent) (handle func(context.Context, acp.Transport) error, builtIn *acp.Agent, err error) {
	a := o.App
	handle = (&serve.Forward{Agent: agent, Dir: a.Cwd, Logger: a.Logger, Note: o.note}).Serve
	switch {
	case agent.Builtin:
		dir := a.ServedDir()
		if cfg.Store.Off {
			dir = ""
		}
		if builtIn, err = a.Served(dir); err != nil {
			return nil, nil, err
		}
		handle, err = o.behind(agent, builtIn)
	case agent.URL != "":
		_, err = launch.Transport(agent, launch.Options{})
	default: // a missing program is reported now, not when a client has connected
		_, err = launch.Process(ctx, agent, a.Cwd)
	}
	return handle, builtIn, err
}

// behind returns what serves a client with the built-in agent, through its proxies.
func (o *Options) behind(agent roster.Agent, builtIn *acp.Agent) (func(context.Context, acp.Transport) error, error) {
	if len(agent.Proxies) == 0 {
		return builtIn.Serve, nil
	}
	to, err := o.App.Launch()
	if err != nil {
		return nil, err
	}
	chain, err := launch.NewChain(agent, to)
	if err != nil {
		return nil, err
	}
	return chain.Serve(acp.InProcess(builtIn)), nil
}

// greet says where the server is reached, and how.
func (o *Options) greet(ctx context.Context, server *serve.Server, agent string, d *durable) error {
	if _, err := fmt.Fprintln(o.App.Out, server.URL()); err != nil {
		return err
	}
	talk := "acp chat --at " // which returns when the server has been restarted
	if d == nil {
		talk = "acp chat "
	}
	o.note(fmt.Sprintf("serving %s; to talk to it: %s%s", safetext.Line(agent, maxName), talk, server.URL()))
	if file := server.TokenFile(); file != "" {
		o.note("the token is in " + file)
	}
	if err := o.Web.greet(ctx, o, server, d); err != nil {
		return err
	}
	if server.Open() && o.NoAuth {
		o.note("every program and every user of this machine is served")
	}
	return nil
}

// keeps reports whether sessions are kept.
func (o *Options) keeps(cfg *config.Config) (bool, error) {
	many := isMany(cfg.Serve)
	switch {
	case many && (o.Stateless || cfg.Store.Off):
		return false, exitcode.Errorf(exitcode.Usage, "where nothing is kept everybody may do everything, and the settings serve.users, serve.groups or serve.oidc restrict it: leave out these, or --stateless and store.off")
	case cfg.Serve.Isolation.Mode != string(isolate.None) && (o.Stateless || cfg.Store.Off):
		return false, exitcode.Errorf(exitcode.Usage, "agents are isolated only where sessions are kept: leave out --isolation and serve.isolation.mode, or --stateless and store.off")
	case many && o.NoAuth:
		return false, exitcode.Errorf(exitcode.Usage, "with --no-auth nobody knows who a client is, and the settings serve.users, serve.groups or serve.oidc are for several users: leave one of them out")
	case o.Stateless:
		return false, nil
	case !cfg.Store.Off:
		return true, nil
	case o.Durable || o.Cluster.Database != "":
		return false, exitcode.Errorf(exitcode.Usage, "--durable keeps sessions, and the setting store.off says that nothing is kept")
	}
	o.note("the setting store.off says that nothing is kept, so each agent ends with its connection")
	return false, nil
}

// Bounds of what is shown.
const (
	maxName = 200  // cells of the name of an agent
	maxLine = 1000 // cells of a line
)

// note writes a line to standard error, or to the log if that is for programs.
func (o *Options) note(text string) {
	if o.Operation.LogFormat == "json" {
		o.App.Logger.Info(safetext.Line(text, maxLine))
		return
	}
	fmt.Fprintf(o.App.Err, "acp serve: %s\n", safetext.Line(text, maxLine))
}
