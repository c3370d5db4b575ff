// Package tap is the command acp tap: it passes the traffic between an editor and an agent through,
// and records it. This package owns the flags, the file and its lock, the audit log and the
// messages to the user; relaying and guarding are package record/tap's. Nothing here may delay or
// change the traffic, except where the policy of the flags refuses something.
package tap

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/record/tap"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/trace"
)

// Options are the flags and arguments of the command.
type Options struct {
	App   *app.App
	Agent string   // name or command line
	Argv  []string // the agent's command, instead of Agent

	Output   string // file or directory to record to; "" means a new file in the state directory
	NoRedact bool   // record secrets, too
	Web      string // address of the live page; "auto" means any, "" means no page
	Listen   string // address to serve at, instead of standard input and output; "" means not to
	Guard    bool   // flags give a policy, which decides permission requests
	Audit    string // file for the policy's decisions; "" means none

	// In and Out are the editor's side; nil means standard input and output.
	In  io.ReadCloser
	Out io.WriteCloser
}

const long = `Start an agent, relay the traffic between it and your editor, and record that traffic.
Everything passes at once and unchanged. Have your editor start "acp tap -- COMMAND"
instead of COMMAND, or "acp tap NAME" instead of an agent that acp knows by name. To
read the recording, use acp trace.

The recording contains the messages of both sides with their times, the agent's standard
error, and the agent's start and exit. Secrets are replaced: the environments and
headers of MCP servers, and anything that looks like a token. Only you can read the
file. If FILE is a recording already, the new one is appended to it; if you name a FILE
that cannot be written, the agent is not started. Once the agent runs, the traffic never
waits for the recording: if something cannot be written, as on a full disk, it is
missing, and a message at the end says so.

With --web, tap also serves a page that shows the traffic live. It prints the address of
the page to standard error, which editors usually show in the agent's log.

With --policy, --allow or --deny, tap answers the permission requests that the rules
decide. It refuses to read, write or run anything outside the directories of the
session, or where a rule denies it. The editor receives only the remaining requests.

With --listen, tap stands between peers on the network: it serves at ADDR, as acp serve
does, forwards each connection to the agent, which may be the URL of one that runs
already, and records each connection to a file of its own. --output then names a
directory. Such a tap runs until the first interrupt (Ctrl-C).

tap exits when the agent does, with the agent's exit status, or with 128 plus the number
of the signal that ended the agent. It passes signals on to the agent.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "tap [AGENT] [-- COMMAND ARGS…]",
		Short: "Record the traffic between an editor and an agent",
		Long:  long,
		Example: `  acp tap -- my-agent --acp
  acp tap gemini -o session.acptrace
  acp tap --listen 127.0.0.1:7843 http://127.0.0.1:7842/acp
  acp tap --policy rules.json --audit decisions.jsonl -- my-agent`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseArguments(cmd, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "record to `FILE`, or to a new file in it if it is a directory (default: a new file in the state directory)")
	f.BoolVar(&o.NoRedact, "no-redact", false, "record secrets as they are")
	f.StringVar(&o.Web, "web", "", "serve a page that shows the traffic, on this machine, at `ADDR` such as 127.0.0.1:8080; write --web=ADDR")
	f.Lookup("web").NoOptDefVal = anyAddr
	f.StringVar(&o.Listen, "listen", "", "serve at `ADDR`, HOST:PORT or unix:PATH, instead of standard input and output")
	f.StringVar(&o.Audit, "audit", "", "append each decision of the rules to `FILE`, as a line of JSON")
	a.ProxyFlag(f)
	_ = cmd.MarkFlagFilename("output", "acptrace")
	_ = cmd.MarkFlagFilename("audit", "jsonl")
	return cmd
}

// parseArguments reads the agent and checks the flags. --web without = would take the next word for
// the agent, so that mistake gets a message of its own.
func (o *Options) parseArguments(cmd *cobra.Command, args []string) error {
	var err error
	o.Agent, o.Argv, err = app.Named(cmd, args, "agent")
	switch {
	case o.Web == anyAddr && isAddr(o.Agent):
		return exitcode.Errorf(exitcode.Usage, "write the address of the page with =: --web=%s", o.Agent)
	case o.Output == "-":
		return exitcode.Errorf(exitcode.Usage, "-o -: standard output carries the traffic; to see a recording, use acp trace show FILE")
	case err != nil:
		return err
	case o.Agent == "" && len(o.Argv) == 0:
		return exitcode.Errorf(exitcode.Usage, "the agent is missing: write acp tap -- COMMAND or acp tap NAME")
	}
	o.Guard = false
	for _, name := range []string{"policy", "allow", "deny"} {
		if f := cmd.Flag(name); f != nil && f.Changed {
			o.Guard = true
		}
	}
	if o.Listen != "" && (o.Guard || o.Web != "") {
		return exitcode.Errorf(exitcode.Usage, "--listen cannot be combined with --web, --policy, --allow and --deny")
	}
	if o.Audit != "" && !o.Guard {
		return exitcode.Errorf(exitcode.Usage, "--audit needs rules: use --policy, --allow or --deny")
	}
	return nil
}

// isAddr reports whether a word looks like an address to listen on.
func isAddr(word string) bool {
	_, port, err := net.SplitHostPort(word)
	if err != nil {
		port = word
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// Run starts the agent and returns when the agent has exited. The error carries the agent's exit
// status.
func Run(ctx context.Context, o *Options) error {
	a := o.App
	if o.Listen != "" {
		return o.listen(ctx)
	}
	agent, command, err := o.command(ctx)
	if err != nil {
		return err
	}
	cfg := tap.Config{Agent: command, In: o.In, Out: o.Out, Err: a.Err}
	if cfg.In == nil {
		cfg.In = os.Stdin
	}
	if cfg.Out == nil {
		cfg.Out = os.Stdout
	}
	log := new(tap.Audit)
	if o.Guard {
		if cfg.Guard, err = o.guard(log); err != nil {
			return err
		}
	}
	rec, err := o.startRecording(agent, command)
	if err != nil {
		log.Close()
		return err
	}
	cfg.Sink = rec.Recorder
	if a.InTerminal {
		fmt.Fprintln(a.Err, "acp tap: waiting for an editor on standard input")
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	cfg.Signals = signals

	status, err := tap.Run(ctx, cfg)
	for _, problem := range append(rec.close(), log.Close()...) {
		fmt.Fprintln(a.Err, "acp tap: "+safetext.Line(problem, 1000))
	}
	switch {
	case err != nil:
		return exitcode.Errorf(exitcode.Agent, "%s cannot be used: %w", agent, err)
	case status != 0:
		return exitcode.With(exitcode.Code(status), &ended{status})
	}
	return nil
}

// ended carries the exit status of the agent to the exit status of the program.
type ended struct{ status int }

func (e *ended) Error() string { return fmt.Sprintf("the agent exited with status %d", e.status) }

// Silent reports true: the status is the agent's result, not an error of acp.
func (*ended) Silent() bool { return true }

// command returns the process to start and the name of the agent.
func (o *Options) command(ctx context.Context) (name string, c process.Config, err error) {
	a := o.App
	agent, err := a.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return "", c, err
	}
	// A missing program is reported here, before a recording is created.
	c, err = launch.Process(ctx, agent, a.Cwd)
	return safetext.Line(agent.Name, 200), c, err
}

// guard returns the guard that applies the policy of the flags. The policy of the settings does not
// apply: it is meant for acp's own conversations, not for those of an editor.
func (o *Options) guard(log *tap.Audit) (*tap.Guard, error) {
	flags := o.App.Flags
	text := func(key string) string { s, _ := flags[key].(string); return s }
	list := func(key string) []string { l, _ := flags[key].([]string); return l }
	rules := config.ReadRules(config.Permissions{Policy: text("permissions.policy"), Allow: list("permissions.allow"), Deny: list("permissions.deny")}, o.App.Cwd)
	policy, err := rules.Policy()
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	for _, w := range rules.Warnings() {
		fmt.Fprintf(o.App.Err, "acp tap: %s\n", safetext.Line(w, 1000))
	}
	if o.Audit != "" {
		name := o.Audit
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.App.Cwd, name)
		}
		if !o.NoRedact {
			log.Redactor = new(trace.Redactor)
		}
		// A user who asks for an audit log does not want unlogged decisions, so this is fatal.
		if err := log.Open(name); err != nil {
			return nil, exitcode.Errorf(exitcode.Usage, "--audit: %w", err)
		}
	}
	return tap.NewGuard(policy, acphost.TerminalCommand, log.Write), nil
}
