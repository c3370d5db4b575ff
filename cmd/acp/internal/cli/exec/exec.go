// Package exec is the command acp exec: one turn with an agent, for scripts. It owns the form of
// its output, which docs/exec-json.md describes, and the exit status of a turn. The conversation
// itself is package backend's.
//
// A prompt has at most [MaxPrompt] bytes, an attached file that is sent with its content at most
// [MaxAttachment]. Of the agent's answer, 64 MiB are kept for the result. At most 100 denied
// requests and 100 broken rules are listed.
package exec

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// Options are the flags and arguments of the command.
type Options struct {
	App   *app.App
	Agent string   // name or command line; "" means the agent of the settings
	Argv  []string // the agent's command, instead of Agent

	Prompt  []string // words
	Files   []string // whose text is added to the prompt; "-" means standard input
	Attach  []string // files that are attached to the prompt
	NoStdin bool     // do not read standard input

	Session  string // the session to continue
	Continue bool   // continue the latest session
	OrNew    bool   // start a new session if that is not possible

	NoWait bool   // leave once the gateway has the prompt
	Steer  bool   // the turn that runs shall have the prompt
	At     string // the gateway in which the turn runs; "" means that this program starts the agent

	JSON, Quiet bool
	Show        Show
	Timeout     time.Duration
	MaxCost     Cost
	Ask, DenyOK bool
}

// A Cost is a limit on the cost of a session. The zero Cost sets no limit.
type Cost struct {
	Amount   float64
	Currency string // "" means whatever currency the agent reports
	Set      bool
}

// String returns the cost in the form that the flag accepts.
func (c Cost) String() string {
	if !c.Set {
		return ""
	}
	return strconv.FormatFloat(c.Amount, 'f', -1, 64) + c.Currency
}

// Type returns the placeholder for the flag's value in help texts.
func (*Cost) Type() string { return "COST" }

// parse sets c to a cost such as 0.50, 0.50USD or "20 credits".
func (c *Cost) parse(s string) error {
	number := strings.TrimSpace(s)
	i := strings.IndexFunc(number, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		i = len(number)
	}
	amount, err := strconv.ParseFloat(number[:i], 64)
	if err != nil || amount < 0 {
		return exitcode.Errorf(exitcode.Usage, "%q is not a cost such as 0.50 or 0.50USD", s)
	}
	*c = Cost{Amount: amount, Currency: strings.TrimSpace(number[i:]), Set: true}
	return nil
}

// costFlag adapts a Cost to pflag, and keeps Set free for the field of that name.
type costFlag struct{ *Cost }

func (f costFlag) Set(s string) error { return f.parse(s) }

const long = `Send one prompt to an agent, write its answer to standard output, and end with a
status that says how the turn went.

The agent is given by --agent, as a name, a URL or a quoted command line, or by a command
after --. Without either, it is the first argument if that is exactly the name of a known
agent (see acp agents list), and otherwise the default agent. If your prompt starts with
an agent's name, quote the whole prompt or pass --agent.

The prompt is made of the arguments, separated by spaces; the files of --file; and
standard input, if that is a pipe or a file. Empty lines separate these parts. A single
- instead of the prompt reads standard input whatever it is.

With --at, the turn runs in a gateway (see acp serve), and the session stays there. With
--no-wait, acp exec prints the ID of the session and ends as soon as the gateway has the
prompt. What the agent asks then waits for an answer: acp attach shows it, and acp cancel
ends the turn.

With --steer, a prompt for a session of a gateway in which a turn runs is given to that
turn, as Ctrl+S does in a conversation: acp exec ends once the agent has it, and the
answer is part of the turn. If no turn runs, or the agent cannot do that, the prompt waits
for its own turn as without --steer.

Without --ask, acp exec never asks for permission: it denies every request that the
policy, --allow and --deny do not decide. Standard error then shows the --allow rule that
would permit it, and the exit status is 5 unless --deny-ok is given.

Control sequences in the agent's text are removed, except with --json. If a message is
longer than 32 MiB, the rest is missing: standard error says so, and the exit status is
1. The first interrupt (Ctrl-C) cancels the turn and waits for its end; the second ends
everything at once.

Exit statuses:

   0  the turn has ended            6  the agent did not start, or it exited
   1  something failed here         7  the agent answered with an error, or not in ACP
   2  invalid flags or settings     8  a time limit was reached
   3  the agent refused             9  the cost limit was reached
   4  cancelled                    10  a login is required: acp auth login
   5  a permission was denied      11  the agent stopped at one of its own limits
                                   12  the agent broke a rule that denies
                                   13  the agent has no language model to answer
                                   14  the language model gave no answer`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "exec [flags] [AGENT] PROMPT… [-- COMMAND ARGS…]",
		Short: "Send one prompt and print the answer",
		Long:  long,
		Example: `  acp exec "why does this test fail?"
  acp exec claude --allow 'kind:read,search' "summarize the changes" < changes.diff
  acp exec --show tools '/read main.go:1-20'
  acp exec --json --timeout 5m --file task.md -- my-agent --acp`,
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
	a.ProxyFlag(f)
	f.StringArrayVarP(&o.Files, "file", "f", nil, "add the text of `FILE` to the prompt; - is standard input (repeatable)")
	f.StringArrayVar(&o.Attach, "attach", nil, "attach `FILE` in the best form that the agent accepts (repeatable)")
	f.BoolVar(&o.NoStdin, "no-stdin", false, "do not read standard input, even if it is a pipe or a file")
	f.StringVarP(&o.Session, "session", "s", "", "continue the session `ID`, which may be abbreviated")
	f.BoolVarP(&o.Continue, "continue", "c", false, "continue the latest session with this agent in this directory")
	f.BoolVar(&o.OrNew, "or-new", false, "start a new session if the given one cannot be resumed")
	f.StringVar(&o.At, "at", "", app.AtUsage)
	f.BoolVar(&o.NoWait, "no-wait", false, "print the ID of the session and end once a gateway has the prompt: that of --at, or one of yours, which starts by itself")
	f.BoolVar(&o.Steer, "steer", false, "give the prompt to the turn that runs in the session of a gateway, if there is one, and end once that has it")
	a.ChoiceFlags(f)
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per line; docs/exec-json.md describes them")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print only the agent's final message, and errors")
	f.Var(&o.Show, "show", "what to print: text (the agent's messages), tools (the results of its tool calls, such as files, changes and output of commands) or all (both, and its thoughts) (default text)")
	f.DurationVar(&o.Timeout, "timeout", 0, "cancel the turn after this time, such as 5m, with exit status 8")
	f.Var(costFlag{&o.MaxCost}, "max-cost", "cancel the turn once the session has cost `COST`, such as 0.50 or 0.50USD, with exit status 9")
	f.BoolVar(&o.Ask, "ask", false, "ask for permission on the terminal")
	f.BoolVar(&o.DenyOK, "deny-ok", false, "end with status 0 even if permissions were denied")
	cmd.MarkFlagsMutuallyExclusive("json", "quiet", "show")
	cmd.MarkFlagsMutuallyExclusive("session", "continue")
	_ = cmd.RegisterFlagCompletionFunc("show", cobra.FixedCompletions(shows, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

// parseArguments separates the agent from the prompt and checks the flags. Whether the first word
// is the name of an agent is decided later, by agent, because that needs the settings.
func (o *Options) parseArguments(cmd *cobra.Command, args []string) error {
	o.Prompt, o.Agent, o.Argv = args, "", nil
	if f := cmd.Flag("agent"); f != nil && f.Changed {
		o.Agent = f.Value.String()
		if o.Agent == "" {
			return exitcode.Errorf(exitcode.Usage, "--agent needs a name")
		}
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		o.Prompt, o.Argv = args[:dash], args[dash:]
		switch {
		case len(o.Argv) == 0:
			return exitcode.Errorf(exitcode.Usage, "the agent's command is missing after --: acp exec PROMPT -- COMMAND ARGS")
		case o.Agent != "":
			return exitcode.Errorf(exitcode.Usage, "--agent and the command after -- both name an agent; leave one out")
		}
	}
	switch {
	case o.At != "" && len(o.Argv) > 0:
		return exitcode.Errorf(exitcode.Usage, "--at and the command after -- cannot be combined: a gateway starts its agents itself; --agent names one")
	case o.NoWait && (o.Ask || o.Timeout != 0 || o.MaxCost.Set || o.DenyOK):
		return exitcode.Errorf(exitcode.Usage, "--no-wait leaves before anything can be asked or limited: --ask, --deny-ok, --timeout and --max-cost cannot be combined with it")
	case o.NoWait && o.ruled():
		return exitcode.Errorf(exitcode.Usage, "--no-wait leaves before anything is asked, so --allow, --deny and --policy would decide nothing: leave them out, or set rules for the gateway in the settings")
	case o.Steer && (o.At == "" && !o.NoWait || o.Session == "" && !o.Continue):
		return exitcode.Errorf(exitcode.Usage, "--steer needs a session of a gateway, in which a turn may run: --at WHERE --session ID")
	case o.Timeout < 0:
		return exitcode.Errorf(exitcode.Usage, "--timeout %s is negative", o.Timeout)
	case o.OrNew && o.Session == "" && !o.Continue:
		return exitcode.Errorf(exitcode.Usage, "--or-new needs --session or --continue")
	}
	return o.App.Choose()
}

// ruled reports whether flags have rules for permissions.
func (o *Options) ruled() bool {
	for _, key := range []string{"permissions.allow", "permissions.deny", "permissions.policy"} {
		if o.App.Flags[key] != nil {
			return true
		}
	}
	return false
}

// agent returns the agent. If the first word of the prompt names it, that word is removed from the
// prompt.
func (o *Options) agent(ctx context.Context) (roster.Agent, error) {
	switch {
	case o.At != "":
		return o.App.At(o.At)
	case o.NoWait:
		agent, err := o.local(ctx)
		if err != nil {
			return agent, err
		}
		return o.App.StartOwn(ctx, agent)
	}
	agent, err := o.local(ctx)
	if err != nil || o.Session == "" && !o.Continue {
		return agent, err
	}
	id, err := o.App.Earlier(ctx, agent, o.Session)
	if err != nil { // which is said where the session is opened
		return agent, ctx.Err()
	}
	there, err := o.App.GoesOn(ctx, string(id), agent)
	if err != nil || !there {
		return agent, err
	}
	o.At, o.Session, o.Continue = app.Own, string(id), false
	return o.App.At(o.At)
}

// local returns the agent that this program would start.
func (o *Options) local(ctx context.Context) (roster.Agent, error) {
	if len(o.Argv) == 0 && o.Agent == "" && len(o.Prompt) > 0 {
		agent, ok, err := o.App.KnownAgent(o.Prompt[0])
		if err != nil {
			return roster.Agent{}, err
		}
		if ok {
			o.Agent, o.Prompt = o.Prompt[0], o.Prompt[1:]
			return agent, nil
		}
	}
	if o.Session != "" && !o.NoWait && o.Agent == "" && len(o.Argv) == 0 && o.App.Flags["agent"] == nil {
		if agent, ok, err := o.App.AgentWith(ctx, o.Session); ok || err != nil {
			return agent, err
		}
	}
	return o.App.AgentFor(o.Agent, o.Argv)
}
