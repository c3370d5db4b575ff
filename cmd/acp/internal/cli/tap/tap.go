// Package tap is the command acp tap: it stands between an editor and an agent and records what they
// say.
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

// Options are what the command is told to do.
type Options struct {
	App   *app.App
	Agent string   // name or command line
	Argv  []string // the command of the agent, in place of Agent

	Output   string // file or directory to record to; "" is a new file in the state directory
	NoRedact bool   // record secrets, too
	Web      string // address of the live page, "auto" for any, "" for none
	Guard    bool   // a policy was given: it decides
	Audit    string // file that gets its decisions; "" for none

	// In and Out are the editor's side; nil is standard input and output.
	In  io.ReadCloser
	Out io.WriteCloser
}

const long = `Start an agent and stand between it and the editor that started this: what either
writes goes to the other at once and untouched, and is recorded in a file that acp trace
shows. Have your editor start "acp tap -- COMMAND" in place of COMMAND, or "acp tap
NAME" in place of an agent that has a name here.

The recording has what both sides send, the times, the agent's standard error, and how
the agent starts and ends. Secrets are replaced: the environments and headers of MCP
servers, and what looks like a token. Only you can read the file. If it exists and is a
recording, the new one is appended. If it cannot be made, nothing is started. After that
the conversation never waits for the recording: what cannot be written, as on a full
disk, is missing, and a message at the end says so.

With --web there is also a page that shows the traffic live. Its address is written to
standard error, which editors keep in their log of the agent.

With --policy, --allow or --deny, permission requests that the rules decide are
answered here, and reading, writing and running outside of the directories of the
session, or where a rule denies it, is refused. The editor sees only what is left.

It ends when the agent does, with its exit status, or 128 and the number of the signal
that ended it. Signals are passed on to the agent.`

// NewCommand returns the command; runF, if not nil, runs in place of it.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "tap [AGENT] [-- COMMAND ARGS…]",
		Short: "Record what an editor and an agent say to each other",
		Long:  long,
		Example: `  acp tap -- my-agent --acp
  acp tap gemini -o session.acptrace
  acp tap --policy rules.json --audit decisions.jsonl -- my-agent`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.arguments(cmd, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "record to `FILE`, or to a new one if it is a directory (default: a new one in the state directory)")
	f.BoolVar(&o.NoRedact, "no-redact", false, "record secrets as they are")
	f.StringVar(&o.Web, "web", "", "show what passes on a page on this machine, at `ADDR` such as 127.0.0.1:8080 (written with =)")
	f.Lookup("web").NoOptDefVal = anyAddr
	f.StringVar(&o.Audit, "audit", "", "append the decisions of the policy to `FILE`, as lines of JSON")
	_ = cmd.MarkFlagFilename("output", "acptrace")
	_ = cmd.MarkFlagFilename("audit", "jsonl")
	return cmd
}

func (o *Options) arguments(cmd *cobra.Command, args []string) error {
	var err error
	o.Agent, o.Argv, err = app.Named(cmd, args, "agent")
	switch {
	case o.Web == anyAddr && isAddr(o.Agent):
		return exitcode.Errorf(exitcode.Usage, "the address of the page is written with =: --web=%s", o.Agent)
	case o.Output == "-":
		return exitcode.Errorf(exitcode.Usage, "-o -: standard output is for the conversation; acp trace show FILE shows a recording")
	case err != nil:
		return err
	case o.Agent == "" && len(o.Argv) == 0:
		return exitcode.Errorf(exitcode.Usage, "no agent: acp tap -- COMMAND, or the name of one")
	}
	o.Guard = false
	for _, name := range []string{"policy", "allow", "deny"} {
		if f := cmd.Flag(name); f != nil && f.Changed {
			o.Guard = true
		}
	}
	if o.Audit != "" && !o.Guard {
		return exitcode.Errorf(exitcode.Usage, "--audit is for the decisions of a policy: give one by --policy, --allow or --deny")
	}
	return nil
}

// isAddr reports whether a word is an address to listen on.
func isAddr(word string) bool {
	_, port, err := net.SplitHostPort(word)
	if err != nil {
		port = word
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// Run starts the agent and returns when it has ended.
func Run(ctx context.Context, o *Options) error {
	a := o.App
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
	log := new(audit)
	if o.Guard {
		if cfg.Guard, err = o.guard(log); err != nil {
			return err
		}
	}
	rec, err := o.record(agent, command)
	if err != nil {
		log.close()
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
	for _, problem := range append(rec.close(), log.close()...) {
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

// ended is the status of the agent, of which there is nothing to say.
type ended struct{ status int }

func (e *ended) Error() string { return fmt.Sprintf("the agent has ended with status %d", e.status) }

// Silent keeps the error from being told.
func (*ended) Silent() bool { return true }

// command returns what is to be started, and what it is called.
func (o *Options) command(ctx context.Context) (name string, c process.Config, err error) {
	a := o.App
	agent, err := a.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return "", c, err
	}
	// A program that is not there is found before anything is recorded.
	c, err = launch.Process(ctx, agent, a.Cwd)
	return safetext.Line(agent.Name, 200), c, err
}

// guard returns what decides by the policy of the flags; that of the settings is for this program's
// own conversations.
func (o *Options) guard(log *audit) (*tap.Guard, error) {
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
		// Who asks for a log does not want decisions without one.
		if !o.NoRedact {
			log.redactor = new(trace.Redactor)
		}
		if err := log.open(name); err != nil {
			return nil, exitcode.Errorf(exitcode.Usage, "--audit: %w", err)
		}
	}
	return tap.NewGuard(policy, acphost.TerminalCommand, log.write), nil
}
