// Package check is the command acp check: it finds out whether agents, clients
// and recorded traffic keep to the protocol.
package check

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// Options are what the command is told to do.
type Options struct {
	App   *app.App
	Side  conformance.Side // what is checked; "" for recordings
	Agent string           // name or command line
	Argv  []string         // the command of what is checked, in place of Agent
	Files []string         // recordings
	Here  bool             // sessions are opened in App.Cwd, not in a directory made for the check

	Versions     []int
	Only, Skip   []string
	Timeout      time.Duration
	Prompts      map[string]string // by purpose
	Experimental bool
	Apart        bool
	Login        string
	Logout       bool
	Expect       string // file with what is known to fail

	All                    bool // tell what is in order, too
	JSON                   bool
	JUnit, SARIF, Markdown string // files for reports in other forms
	Output                 string // recording of what is said meanwhile
}

const long = `Check whether agents, clients and recorded traffic keep to the Agent Client
Protocol, rule by rule. acp check rules lists the rules.

Rules have levels. Only failures of rules of level must count, and make the program end
with status 1. Rules of level should and may are advice. Quirks are what real
implementations do and others must cope with.

A rule is unseen if the situation it is about did not occur. Agents are asked to do
what needs a prompt only if --prompt gives the words, as in
--prompt permission="create a file": see acp check agent --help.

If the peer answers nothing but initialize on several connections in a row, the check
stops and ends with status 1.

The status is 0 if no rule of level must was broken, 1 if one was, 4 after Ctrl-C, and
6, 7 or 8 if the peer could not be started, does not speak the protocol, or says nothing.`

// NewCommand returns the command; runF, if not nil, runs in place of its verbs.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	if runF == nil {
		runF = Run
	}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether an agent, a client or a recording keeps to the protocol",
		Long:  long,
		Example: `  acp check agent -- my-agent --acp
  acp check client -- my-client --agent {agent}
  acp check trace session.acptrace
  acp check rules agent/initialize`,
	}
	cmd.AddCommand(newAgent(a, runF), newClient(a, runF), newTrace(a, runF), newRules(a))
	return cmd
}

func newAgent(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Side: conformance.Agent}
	var purposes strings.Builder
	known := conformance.Purposes()
	for _, name := range sorted(known) {
		fmt.Fprintf(&purposes, "  %-12s %s\n", name, known[name])
	}
	cmd := &cobra.Command{
		Use:   "agent [AGENT] [-- COMMAND ARGS…]",
		Short: "Check an agent",
		Long: `Start an agent, as often as needed, and check the rules for agents. Without a name or a
command that is the agent that acp uses by default.

What an agent does in a turn depends on the prompt. Give prompts by purpose with
--prompt PURPOSE=TEXT, where {file} stands for a file that the client has. Rules whose
purpose has no prompt are unseen.

The agent starts in the current directory. Its sessions are opened in a directory made
for the check, with a few files, which is removed at the end; with --cwd DIR the agent
and its sessions use DIR. Every permission that the agent asks for is granted.

The purposes of prompts:

` + purposes.String(),
		Example: `  acp check agent -- my-agent --acp
  acp check agent gemini --prompt text="say hello" --only agent/initialize
  acp check agent --cwd testdata/project -- my-agent
  acp check agent --junit report.xml --expect known.txt -- my-agent`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.command(cmd, args); err != nil {
				return err
			}
			return run(cmd, o, runF)
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringArray("prompt", nil, "prompt the agent with TEXT where a rule needs PURPOSE: `PURPOSE=TEXT` (repeatable)")
	f.StringVar(&o.Login, "login", "", "log in with the method `ID` if the agent requires a login")
	f.BoolVar(&o.Logout, "logout", false, "also log out and in again; this may discard stored credentials")
	return cmd
}

func newClient(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a, Side: conformance.Client}
	cmd := &cobra.Command{
		Use:   "client [-- COMMAND ARGS…]",
		Short: "Check a client, such as an editor",
		Long: `Play an agent to a client and check the rules for clients.

{agent} among the arguments of COMMAND, and the variable ACP_AGENT_COMMAND, stand for
the command that the client must start as its agent. Without {agent} the check talks to
COMMAND on its standard streams. COMMAND is started as often as needed; each time it
must initialize, open a session and send a prompt. It is asked to write the file
acp-check.txt in the directory of its session; the check removes the file at the end
unless it existed before.

Without COMMAND the check prints the command of the agent to configure in an editor.
Start it there and send prompts: the check continues in their turns.`,
		Example: `  acp check client -- my-client --agent {agent}
  acp check client`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.command(cmd, args); err != nil {
				return err
			}
			if o.Agent != "" {
				return exitcode.Errorf(exitcode.Usage, "a client is given as a command: acp check client -- COMMAND")
			}
			return run(cmd, o, runF)
		},
	}
	o.flags(cmd)
	return cmd
}

func newTrace(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "trace FILE…",
		Short: "Check recorded traffic",
		Long: `Check what can be seen in recordings made with acp tap: the rules that are about
every message, for both sides. - is the standard input.`,
		Example: `  acp check trace session.acptrace
  acp check trace --only client --json session.acptrace`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			return run(cmd, o, runF)
		},
	}
	o.reports(cmd)
	return cmd
}

// flags adds the flags of what is checked live.
func (o *Options) flags(cmd *cobra.Command) {
	o.reports(cmd)
	f := cmd.Flags()
	f.String("protocol", "both", "check version `1|2|both` of the protocol")
	f.BoolVar(&o.Experimental, "experimental", false, "check what only drafts have, too")
	f.DurationVar(&o.Timeout, "timeout", conformance.DefaultTimeout, "how long a step may take")
	f.BoolVar(&o.Apart, "apart", false, "give each rule a connection of its own")
	f.StringVarP(&o.Output, "output", "o", "", "record what is said to `FILE`")
	_ = cmd.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions([]string{"1", "2", "both"}, cobra.ShellCompDirectiveNoFileComp))
}

// reports adds the flags of all verbs.
func (o *Options) reports(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.Only, "only", nil, "check only `RULES`: an id, what it begins with, or a pattern such as 'agent/*/unknown-*' (repeatable)")
	f.StringArrayVar(&o.Skip, "skip", nil, "leave out `RULES` (repeatable)")
	f.StringVar(&o.Expect, "expect", "", "`FILE` with what is known to fail: a rule and the reason in a line")
	f.BoolVar(&o.All, "all", false, "also report rules that passed or were not seen")
	f.BoolVar(&o.JSON, "json", false, "write the report in JSON")
	f.StringVar(&o.JUnit, "junit", "", "also write the report in JUnit's XML to `FILE`")
	f.StringVar(&o.SARIF, "sarif", "", "also write the report in SARIF to `FILE`")
	f.StringVar(&o.Markdown, "markdown", "", "also write the report as a table in Markdown to `FILE`")
	_ = cmd.RegisterFlagCompletionFunc("only", completeRules)
	_ = cmd.RegisterFlagCompletionFunc("skip", completeRules)
}

// command reads what is to be started.
func (o *Options) command(cmd *cobra.Command, args []string) (err error) {
	o.Agent, o.Argv, err = app.Named(cmd, args, string(o.Side))
	return err
}

// run looks at the flags, and runs.
func run(cmd *cobra.Command, o *Options, runF func(context.Context, *Options) error) error {
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
			return bad("--protocol %s is none of 1, 2 and both", v)
		}
	}
	if o.Timeout < 0 || cmd.Flags().Changed("timeout") && o.Timeout == 0 {
		return bad("--timeout %s is no time that something could take", o.Timeout)
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
				return bad("%q is no pattern of rules: %w", p, err)
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

// Run checks, and reports. The error is that of the worst thing found.
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
		return o.tell(report, known, nil)
	}
	dir, litter := "", new(litter)
	if o.Side == conformance.Agent {
		var leave func()
		if dir, leave, err = o.place(); err != nil {
			return err
		}
		defer leave()
		defer o.App.BeforeExit(leave)()
	} else {
		defer o.App.BeforeExit(litter.clear)()
	}
	rec, err := o.record()
	if err != nil {
		return err
	}
	p := newProgress(o)
	defer context.AfterFunc(ctx, p.interrupted)()
	opt := conformance.Options{
		Versions: o.Versions, Only: o.Only, Skip: o.Skip, Timeout: o.Timeout, Prompts: o.Prompts, Experimental: o.Experimental,
		Apart: o.Apart, Login: o.Login, Logout: o.Logout, Cwd: dir, MCPProbe: o.openProbe, OnResult: p.result, Record: rec.frame,
	}
	var report *conformance.Report
	var reached error
	if o.Side == conformance.Agent {
		report, reached, err = o.checkAgent(ctx, opt, rec)
	} else {
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
	return o.tell(report, known, reached)
}

// tell writes the reports and returns what they amount to.
func (o *Options) tell(report *conformance.Report, known *expected, reached error) error {
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
	told := false // on a terminal, where it would stand twice
	switch {
	case o.JSON:
		err = writeJSON(o.App.Out, verdict)
	case o.JUnit != "-" && o.SARIF != "-" && o.Markdown != "-":
		err = o.print(verdict)
		told = o.App.OutTerminal && o.App.ErrTerminal
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
		return exitcode.With(exitcode.Cancelled, &found{text, told})
	case report.Broken != "":
		return exitcode.With(brokenCode(report, reached), errors.New(report.Broken))
	case verdict.failed():
		return exitcode.With(exitcode.Failed, &found{verdict.summary(), told})
	}
	return nil
}

// found says that rules were broken, or that not all were tried. The report has told which.
type found struct {
	text string
	told bool // it need not be told once more
}

func (e *found) Error() string { return e.text }

// Silent reports whether it was told.
func (e *found) Silent() bool { return e.told }
