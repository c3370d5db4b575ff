// Package conductor is the command acp conductor: it starts proxies and an agent, and serves them to a
// client as one agent. The chain is package acp's; this package is the arguments, the recording and the
// exit statuses.
package conductor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/proxies"
	"github.com/goacp/acp/cmd/acp/internal/record/hop"
	"github.com/goacp/acp/cmd/acp/internal/record/page"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// Options are the flags and arguments of the command.
type Options struct {
	App     *app.App
	Proxies []string // as [roster.Roster.Proxy] reads them
	Agent   string   // name or command line
	Argv    []string // the agent's command, instead of Agent

	// Commands are all components, each a command line, instead of Proxies and Agent. Nested says
	// that all of them are proxies.
	Commands []string
	Nested   bool

	Trace    string // file to record to; "" means none
	NoRedact bool
	Serve    bool // serve the page that shows the traffic
	Debug    bool

	// Client is the transport to the client; nil means standard input and output.
	Client acp.Transport
}

const long = `Start proxies and an agent, and serve them on standard input and output as one agent. The
first PROXY is next to the client, the last one next to the agent. Have your editor start
this command instead of the agent.

PROXY is the name of a proxy in the settings, a ready-made one with its flags (see acp
proxy), or a command line; quote what has spaces. The agent is the command after --, or
the one that --agent names.

A proxy sees and may change everything, permissions and files included. Trust it as you
trust the agent.

With --trace, what passes between each two components is recorded, and secrets are
replaced; acp trace reads it. With --serve, a page shows it live; its address is printed to
standard error.

acp conductor agent and acp conductor proxy take the arguments of the conductor of the
Rust SDK: each argument is a command line.

The conductor ends when the client disconnects (status 0), or when a component exits: then
the client receives an error with its name for each request in flight, and the status is 6.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	if runF == nil {
		runF = Run
	}
	cmd := &cobra.Command{
		Use:   "conductor PROXY… -- COMMAND ARGS…",
		Short: "Serve an agent behind proxies",
		Long:  long,
		Example: `  acp conductor redact 'budget --tokens 200000' -- my-agent --acp
  acp conductor --trace chain.acptrace 'python3 proxy.py' --agent gemini
  acp conductor agent "python3 proxy.py" "my-agent --acp"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseArguments(cmd, args); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.Trace, "trace", "", "record what passes between the components to `FILE`")
	f.BoolVar(&o.NoRedact, "no-redact", false, "record secrets as they are")
	f.BoolVar(&o.Serve, "serve", false, "serve a page on this machine that shows what passes")
	f.BoolVar(&o.Debug, "debug", false, "write each message's way and method to standard error")
	_ = cmd.MarkPersistentFlagFilename("trace", "acptrace")
	commands := func(use, short string, nested bool, least int, missing string) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < least {
				return exitcode.Errorf(exitcode.Usage, "%s", missing)
			}
			o.Commands, o.Nested = args, nested
			return runF(cmd.Context(), o)
		}}
	}
	cmd.AddCommand(
		commands("agent [PROXY…] AGENT", "Serve an agent behind proxies, all given as command lines", false, 1,
			`the agent is missing: write acp conductor agent "PROXY ARGS" "AGENT ARGS"`),
		commands("proxy PROXY…", "Be one proxy of another conductor, made of several", true, 1,
			`the proxies are missing: write acp conductor proxy "PROXY ARGS" "PROXY ARGS"`))
	return cmd
}

// parseArguments reads the proxies and the agent.
func (o *Options) parseArguments(cmd *cobra.Command, args []string) error {
	o.Proxies, o.Argv, o.Agent = args, nil, ""
	if f := cmd.Flag("agent"); f != nil && f.Changed {
		o.Agent = f.Value.String()
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		o.Proxies, o.Argv = args[:dash], args[dash:]
		if len(o.Argv) == 0 {
			return exitcode.Errorf(exitcode.Usage, "no command after --")
		}
	}
	switch {
	case o.Agent != "" && len(o.Argv) > 0:
		return exitcode.Errorf(exitcode.Usage, "both an agent (%s) and a command after --", o.Agent)
	case o.Agent == "" && len(o.Argv) == 0:
		return exitcode.Errorf(exitcode.Usage, "the agent is missing: write acp conductor PROXY -- COMMAND, or --agent NAME")
	}
	return nil
}

// agent returns the agent with its proxies; ok is false if there are proxies only.
func (o *Options) agent() (agent roster.Agent, ok bool, err error) {
	a := o.App
	if o.Commands == nil {
		a.Proxies = o.Proxies
		agent, err = a.AgentFor(o.Agent, o.Argv)
		return agent, true, err
	}
	all, err := a.Roster()
	if err != nil {
		return agent, false, err
	}
	var words [][]string
	for _, text := range o.Commands {
		argv, err := roster.Split(text)
		if err != nil {
			return agent, false, exitcode.Errorf(exitcode.Usage, "%q: %w", safetext.Line(text, 200), err)
		}
		if assignment().MatchString(argv[0]) { // the Rust conductor takes variables before the program
			argv = append([]string{"env"}, argv...)
		}
		words = append(words, argv)
	}
	if !o.Nested {
		if agent, err = all.Command(words[len(words)-1]...); err != nil {
			return agent, false, err
		}
		words = words[:len(words)-1]
	}
	for _, argv := range words {
		agent.Proxies = append(agent.Proxies, roster.ProxyCommand(argv))
	}
	return agent, !o.Nested, nil
}

func assignment() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`) }

// Run starts the components when the client initializes, and serves that client until it disconnects or a
// component exits.
func Run(ctx context.Context, o *Options) (err error) {
	a := o.App
	agent, ok, err := o.agent()
	if err != nil {
		return err
	}
	to, err := a.LaunchFor(ctx, agent)
	if err != nil {
		return err
	}
	var way acp.Transport
	if ok {
		if way, err = launch.Direct(agent, to); err != nil {
			return err
		}
		if command, is := way.(*acp.CommandTransport); is {
			command.Stderr = nil // the conductor's, which says whose line it is
		}
	}
	chain, err := launch.NewChain(agent, to)
	if err != nil {
		return err
	}
	c, end, err := chain.Conductor(way)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	defer func() { err = errors.Join(err, end()) }()
	c.Logger = a.Logger
	close, err := o.trace(c)
	if err != nil {
		return err
	}
	defer close()
	client := o.Client
	if client == nil {
		client = acp.Stdio()
		if a.InTerminal {
			note := "waiting for a client on standard input; to talk to the agent yourself, use acp chat --proxy"
			fmt.Fprintln(a.Err, "acp conductor: "+note)
		}
	}
	return o.status(ctx, c.Serve(ctx, client))
}

// status adds the exit status.
func (o *Options) status(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return exitcode.With(exitcode.Cancelled, context.Cause(ctx))
	case err == nil:
		return nil
	case errors.Is(err, jsonrpc.ErrParse), errors.Is(err, jsonrpc.ErrFrameTooLarge):
		return exitcode.With(exitcode.Protocol, err)
	}
	text := strings.TrimPrefix(err.Error(), "acp: ") // which is in front of every error
	return exitcode.With(exitcode.Agent, &launch.PlainError{Text: safetext.Line(text, 1000), Err: err})
}

// trace has the conductor record what passes, as the flags say. close ends that.
func (o *Options) trace(c *acp.Conductor) (close func(), err error) {
	a := o.App
	note := func(text string) { fmt.Fprintln(a.Err, "acp conductor: "+safetext.Line(text, 1000)) }
	var shown *page.Server
	var tee func(*trace.Record)
	if o.Serve {
		header := trace.Header{Started: time.Now(), Tool: "acp " + a.Version, Redacted: !o.NoRedact}
		if shown, err = page.New(page.Options{Title: "conductor", Header: header, File: o.Trace}); err != nil {
			return nil, fmt.Errorf("the page cannot be served: %w", err)
		}
		tee = shown.Record
		note("see the traffic at " + shown.URL())
	}
	var rec *trace.Recorder
	end := func() error { return nil }
	switch {
	case o.Trace != "":
		name := o.Trace
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.Cwd, name)
		}
		if rec, end, err = proxies.Record(name, "acp "+a.Version, !o.NoRedact, tee); err != nil {
			if shown != nil {
				_ = shown.Close()
			}
			return nil, exitcode.Errorf(exitcode.Usage, "--trace: %w", err)
		}
	case o.Serve:
		opts := trace.RecorderOptions{Tee: tee}
		if !o.NoRedact {
			opts.Redactor = new(trace.Redactor)
		}
		rec = trace.NewRecorder(io.Discard, opts)
		end = rec.Close
	}
	var to []func(acp.ChainMessage)
	if rec != nil {
		to = append(to, hop.Recorder(rec, len(c.Proxies)+1))
	}
	if o.Debug {
		to = append(to, func(h acp.ChainMessage) {
			note(fmt.Sprintf("%s -> %s: %s %s", h.From, h.To, h.Kind, h.Method))
		})
	}
	if len(to) > 0 {
		c.Trace = func(h acp.ChainMessage) {
			for _, f := range to {
				f(h)
			}
		}
	}
	return func() {
		if err := end(); err != nil {
			note(err.Error())
		}
		if shown != nil {
			_ = shown.Close()
		}
	}, nil
}
