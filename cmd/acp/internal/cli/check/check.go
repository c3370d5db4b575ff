// Package check is the command acp check: it checks whether agents, clients and recorded
// traffic conform to the protocol. The rules and the conversations that test them are package
// conformance's. This package starts what is checked, judges the results against the failures
// that the user expects, and writes the reports.
//
// It leaves nothing behind: programs, sockets, directories and the files that a client under
// test writes are removed at the end, also after an interrupt.
package check

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// Options are the flags and arguments of the command.
type Options struct {
	App   *app.App
	Side  conformance.Side // the side to check; "" means recordings
	Agent string           // name or command line
	Argv  []string         // the command to check, instead of Agent
	At    string           // the URL of a server to check, with its agent, instead of Agent
	// TokenFile is the file with the token for At; "" means the variable ACP_TOKEN.
	TokenFile string
	Files     []string // recordings
	Here      bool     // open sessions in App.Cwd instead of a temporary directory

	Versions     []int
	Only, Skip   []string
	Timeout      time.Duration
	Prompts      map[string]string // by purpose
	Experimental bool
	Apart        bool
	Jobs         int // trials at a time; 0 means as many as suit the machine
	Login        string
	Logout       bool
	Expect       string // file with known failures

	All                    bool // also report rules that passed or were not seen
	JSON                   bool
	JUnit, SARIF, Markdown string // files for reports in other forms
	Output                 string // file to record the traffic to
}

const long = `Check whether agents, clients and recorded traffic conform to the Agent Client
Protocol, rule by rule. To list the rules, use acp check rules.

Each rule has a level. A check fails only if a rule of level must is broken. Rules of
level should and may are advice. Rules of level quirk describe what real implementations
do and what others must cope with.

A rule is unseen if its situation did not occur. Many rules about agents need a prompt
that makes the agent do something; such a rule stays unseen unless you give that prompt,
as in --prompt permission="create a file": see acp check agent --help.

If the program under test answers nothing but initialize on several connections in a
row, the check stops with status 1.

The exit status is 0 if no rule of level must was broken, 1 if one was, 4 after Ctrl-C,
6 if the program could not be started, 7 if it does not speak the protocol, and 8 if it
does not answer.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	if runF == nil {
		runF = Run
	}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether an agent, a client or a recording conforms to the protocol",
		Long:  long,
		Example: `  acp check agent -- my-agent --acp
  acp check client -- my-client --agent {agent}
  acp check trace session.acptrace
  acp check rules agent/initialize`,
	}
	cmd.AddCommand(newAgent(a, runF), newClient(a, runF), newTrace(a, runF), newRules(a))
	return cmd
}

// newAgent returns the command that checks an agent.
func newAgent(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Side: conformance.Agent}
	var purposes strings.Builder
	known := conformance.Purposes()
	for _, name := range sorted(known) {
		fmt.Fprintf(&purposes, "  %-12s %s\n", name, known[name])
	}
	cmd := &cobra.Command{
		Use:   "agent [AGENT | --at WHERE] [-- COMMAND ARGS…]",
		Short: "Check an agent, or a server and its agent",
		Long: `Start an agent, as often as needed, and check the rules for agents. If you name no agent,
acp checks the default agent.

What an agent does in a turn depends on the prompt. Use --prompt PURPOSE=TEXT to give the
prompt that makes your agent do what a purpose, listed below, describes; {file} in TEXT
stands for a file that the client has. Rules whose purpose has no prompt stay unseen.

The agent runs in the current directory. Its sessions use a temporary directory with a
few files, which the check removes at the end. With --cwd DIR, the agent and its sessions
use DIR. The check grants every permission that the agent asks for. An agent that is
reached at a URL must see the same files. Rules about its process and about bytes that
are not messages are not checked then.

With --at WHERE, the check starts nothing: it checks the server there with the rules
for servers, and its agent with the rules for agents, over HTTP and over WebSocket,
as far as the server serves them. WHERE is a URL, unix:PATH, own for your own gateway, or
the name of an agent that has a URL. The token is that of the variable ACP_TOKEN or of
--token-file, of the agent's settings, or of a server of yours on this machine.

The purposes of prompts:

` + purposes.String(),
		Example: `  acp check agent -- my-agent --acp
  acp check agent gemini --prompt text="say hello" --only agent/initialize
  acp check agent --at http://127.0.0.1:7842/acp
  acp check agent --at own
  acp check agent --cwd testdata/project -- my-agent
  acp check agent --junit report.xml --expect known.txt -- my-agent
  acp check agent --at https://agents.example/acp --token-file token.txt
  acp check agent --at http://127.0.0.1:7842/acp --only server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseCommand(cmd, args); err != nil {
				return err
			}
			if err := o.validateAt(); err != nil {
				return err
			}
			return validateAndRun(cmd, o, runF)
		},
	}
	o.addLiveFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.At, "at", "", "check the server at `WHERE` and its agent, instead of starting an agent: a URL, unix:PATH, own, or the name of an agent that has a URL")
	f.StringVar(&o.TokenFile, "token-file", "", "read the token for the server from `FILE` instead of ACP_TOKEN")
	f.StringArray("prompt", nil, "use TEXT as the prompt for the rules that need PURPOSE: `PURPOSE=TEXT` (repeatable)")
	f.StringVar(&o.Login, "login", "", "log in with the method `ID` if the agent requires a login")
	f.IntVar(&o.Jobs, "jobs", 0, "run `N` trials at a time, each with an agent of its own; without this flag, four for each processor, but at most 16")
	f.BoolVar(&o.Logout, "logout", false, "also log out and in again; this may discard stored credentials")
	return cmd
}

// newClient returns the command that checks a client.
func newClient(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Side: conformance.Client}
	cmd := &cobra.Command{
		Use:   "client [-- COMMAND ARGS…]",
		Short: "Check a client, such as an editor",
		Long: `Act as the agent of a client and check the rules for clients.

Write {agent} in the arguments of COMMAND where the client expects the command of its
agent; the variable ACP_AGENT_COMMAND contains that command, too. Without {agent}, the
check talks to COMMAND on its standard streams. COMMAND is started as often as needed.
Each time it must initialize, open a session and send a prompt. The check asks it to
write the file acp-check.txt in the directory of its session, and removes that file at
the end unless it existed before.

Without COMMAND, the check prints a command. Configure it as an agent in your editor,
start a conversation with it and send prompts: the check runs in their turns.`,
		Example: `  acp check client -- my-client --agent {agent}
  acp check client`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseCommand(cmd, args); err != nil {
				return err
			}
			if o.Agent != "" {
				return exitcode.Errorf(exitcode.Usage, "clients have no names; give the command: acp check client -- COMMAND")
			}
			return validateAndRun(cmd, o, runF)
		},
	}
	o.addLiveFlags(cmd)
	return cmd
}

// newTrace returns the command that checks recordings.
func newTrace(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "trace FILE…",
		Short: "Check recorded traffic",
		Long: `Check recordings made with acp tap, or by other programs: JSON-RPC messages with one in
each line, or the events that the conductor of the Rust SDK writes, each perhaps compressed
with gzip. What a file is is recognized by its content. Where a line does not say who sent
its message, acp finds out by the method. Each connection of a chain of proxies is checked
by itself. Only the rules that concern every message can be checked in a recording; they
are checked for both sides. - stands for standard input.`,
		Example: `  acp check trace session.acptrace
  acp check trace --only client --json session.acptrace`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			return validateAndRun(cmd, o, runF)
		},
	}
	o.addReportFlags(cmd)
	return cmd
}

// addLiveFlags adds the flags for checking a running agent or client.
func (o *Options) addLiveFlags(cmd *cobra.Command) {
	o.addReportFlags(cmd)
	f := cmd.Flags()
	f.String("protocol", "both", "check protocol version `1|2|both`")
	f.BoolVar(&o.Experimental, "experimental", false, "also check rules about drafts of the protocol")
	f.DurationVar(&o.Timeout, "timeout", conformance.DefaultTimeout, "time limit for each step")
	f.BoolVar(&o.Apart, "apart", false, "use a separate connection for each rule")
	f.StringVarP(&o.Output, "output", "o", "", "record the traffic to `FILE`")
	_ = cmd.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions([]string{"1", "2", "both"}, cobra.ShellCompDirectiveNoFileComp))
}

// addReportFlags adds the flags that all subcommands share.
func (o *Options) addReportFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.Only, "only", nil, "check only `RULES`: an id, the beginning of ids such as agent/initialize, or a pattern such as 'agent/*/unknown-*' (repeatable)")
	f.StringArrayVar(&o.Skip, "skip", nil, "do not check `RULES` (repeatable)")
	f.StringVar(&o.Expect, "expect", "", "ignore the known failures in `FILE`: a rule and a reason on each line")
	f.BoolVar(&o.All, "all", false, "also report rules that passed or were not seen")
	f.BoolVar(&o.JSON, "json", false, "print the report as JSON")
	f.StringVar(&o.JUnit, "junit", "", "also write the report to `FILE` as JUnit XML")
	f.StringVar(&o.SARIF, "sarif", "", "also write the report to `FILE` as SARIF")
	f.StringVar(&o.Markdown, "markdown", "", "also write the report to `FILE` as a Markdown table")
	_ = cmd.RegisterFlagCompletionFunc("only", completeRules)
	_ = cmd.RegisterFlagCompletionFunc("skip", completeRules)
}

// parseCommand reads the name or the command of the program to check.
func (o *Options) parseCommand(cmd *cobra.Command, args []string) (err error) {
	o.Agent, o.Argv, err = app.Named(cmd, args, string(o.Side))
	return err
}

// validateAndRun checks the flags and calls runF. A rule that does not exist is an error here,
// because a typing mistake in --only would otherwise look like a check that passes.
func validateAndRun(cmd *cobra.Command, o *Options, runF func(context.Context, *Options) error) error {
	bad := func(format string, args ...any) error { return exitcode.Errorf(exitcode.Usage, format, args...) }
	o.Here = cmd.Flags().Changed("cwd")
	o.Versions = nil
	if f := cmd.Flag("protocol"); f != nil {
		switch v := f.Value.String(); v {
		case "1", "2":
			o.Versions = []int{int(v[0] - '0')}
		case "both":
			o.Versions = []int{1, 2}
		default:
			return bad("--protocol %s: the version must be 1, 2 or both", v)
		}
	}
	if o.Timeout < 0 || cmd.Flags().Changed("timeout") && o.Timeout == 0 {
		return bad("--timeout %s: the time must be positive", o.Timeout)
	}
	if cmd.Flags().Changed("jobs") && (o.Jobs < 1 || o.Jobs > conformance.MaxJobs) {
		return bad("--jobs %d: the number must be between 1 and %d", o.Jobs, conformance.MaxJobs)
	}
	if o.Jobs > 1 && o.Output != "" {
		return bad("--output records one conversation after another: leave out --jobs, or use --jobs 1")
	}
	o.Prompts = nil
	if f := cmd.Flags().Lookup("prompt"); f != nil {
		list, _ := cmd.Flags().GetStringArray("prompt")
		known := conformance.Purposes()
		o.Prompts = map[string]string{}
		for _, p := range list {
			purpose, text, ok := strings.Cut(p, "=")
			if _, is := known[purpose]; !ok || !is || text == "" {
				return bad("--prompt %q is not PURPOSE=TEXT with one of the purposes %s", p, strings.Join(sorted(known), ", "))
			}
			o.Prompts[purpose] = text
		}
	}
	for _, list := range [][]string{o.Only, o.Skip} {
		for _, p := range list {
			if _, err := path.Match(p, ""); err != nil {
				return bad("%q is not a valid pattern: %w", p, err)
			}
			if !slices.ContainsFunc(conformance.Rules(), func(r *conformance.Rule) bool { return conformance.Names(p, r.ID) }) {
				return bad("there is no rule %q: see acp check rules", p)
			}
		}
	}
	outputs := 0
	for _, name := range []string{o.JUnit, o.SARIF, o.Markdown} {
		if name == "-" {
			outputs++
		}
	}
	if outputs > 1 || outputs == 1 && o.JSON {
		return bad("only one report can be written to standard output")
	}
	return runF(cmd.Context(), o)
}

// Run runs the check and writes the reports. Its error carries the exit status for the worst
// result.
func Run(ctx context.Context, o *Options) error {
	known, err := o.readExpected()
	if err != nil {
		return err
	}
	if err := o.writable(); err != nil {
		return err
	}
	if o.Side == "" {
		report, err := o.lint(ctx)
		if err != nil {
			return err
		}
		return o.writeReports(report, known, nil)
	}
	// Temporary files are also removed if a second interrupt exits the process.
	litter := new(litter)
	opt := conformance.Options{
		Versions: o.Versions, Only: o.Only, Skip: o.Skip, Timeout: o.Timeout, Prompts: o.Prompts, Experimental: o.Experimental,
		Apart: o.Apart, Login: o.Login, Logout: o.Logout, MCPProbe: o.openProbe,
	}
	if o.Side == conformance.Agent {
		var dir string
		var leave func()
		if dir, leave, err = o.place(); err != nil {
			return err
		}
		defer leave()
		defer o.App.BeforeExit(leave)()
		opt.Cwd, opt.Jobs = dir, o.jobs()
		if !o.Here {
			opt.NewCwd = func() (string, error) { return newScratch(dir) }
		}
	} else {
		defer o.App.BeforeExit(litter.clear)()
	}
	rec, err := o.openRecording()
	if err != nil {
		return err
	}
	p := newProgress(o)
	defer context.AfterFunc(ctx, p.interrupted)()
	opt.OnResult = p.result
	if o.Output != "" {
		opt.Record = rec.frame
	}
	var report *conformance.Report
	var reached error
	switch {
	case o.At != "":
		report, reached, err = o.checkAt(ctx, opt)
	case o.Side == conformance.Agent:
		report, reached, err = o.checkAgent(ctx, opt, rec)
	default:
		opt.Record = func(dir trace.Direction, data []byte) {
			rec.frame(dir, data)
			litter.frame(dir, data)
		}
		report, reached, err = o.checkClient(ctx, opt, rec, p)
		litter.clear()
	}
	p.close()
	if e := rec.close(); e != nil {
		fmt.Fprintf(o.App.Err, "acp: %s: %v\n", line(o.Output), e)
	}
	switch {
	case report != nil && report.Interrupted:
		err = nil
	case ctx.Err() != nil:
		return exitcode.Errorf(exitcode.Cancelled, "the check was interrupted")
	case err != nil && report == nil:
		return err
	case err != nil:
		return exitcode.With(exitcode.Usage, err)
	}
	return o.writeReports(report, known, reached)
}

// The number of trials at a time without --jobs. They wait most of the time, but start programs.
const (
	jobsPerProcessor = 4
	maxJobsDefault   = 16
)

// jobs returns how many trials run at a time.
func (o *Options) jobs() int {
	if o.Jobs > 0 {
		return o.Jobs
	}
	return min(jobsPerProcessor*runtime.GOMAXPROCS(0), maxJobsDefault)
}

// writeReports writes all reports and returns the error for the exit status. On a terminal, the
// printed report ends with what the error says, so the error is then silent.
func (o *Options) writeReports(report *conformance.Report, known *expected, reached error) error {
	verdict := known.judge(report)
	for _, f := range []struct {
		name  string
		write func(*judgement) ([]byte, error)
	}{{o.JUnit, junit}, {o.SARIF, sarif}, {o.Markdown, markdown}} {
		if f.name == "" {
			continue
		}
		data, err := f.write(verdict)
		if err == nil && f.name == "-" {
			_, err = o.App.Out.Write(data)
		} else if err == nil {
			err = save(o.file(f.name), data)
		}
		if err != nil {
			return fmt.Errorf("the report: %w", err)
		}
	}
	var err error
	printed := false // on the terminal that also shows the error
	switch {
	case o.JSON:
		err = writeJSON(o.App.Out, verdict)
	case o.JUnit != "-" && o.SARIF != "-" && o.Markdown != "-":
		err = o.print(verdict)
		printed = o.App.OutTerminal && o.App.ErrTerminal
	}
	if err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	switch {
	case report.Interrupted:
		text := "the check was " + verdict.interruption()
		if failed := verdict.summary(); failed != "" {
			text += "; " + failed
		}
		return exitcode.With(exitcode.Cancelled, &found{text, printed})
	case report.Broken != "":
		return exitcode.With(brokenCode(report, reached), errors.New(report.Broken))
	case verdict.failed():
		return exitcode.With(exitcode.Failed, &found{verdict.summary(), printed})
	}
	return nil
}

// found is the error of a check in which rules were broken, or that was interrupted. The report has
// the details.
type found struct {
	text    string
	printed bool // the user has seen it in the report
}

func (e *found) Error() string { return e.text }

// Silent reports whether the user has seen the text already.
func (e *found) Silent() bool { return e.printed }
