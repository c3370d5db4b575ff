// Package exec is the command acp exec: one turn with an agent, for scripts.
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

// Options are what the command is told to do.
type Options struct {
	App   *app.App
	Agent string   // name or command line; "" is the one the settings say
	Argv  []string // the command of the agent, in place of Agent

	Prompt  []string // words
	Files   []string // that are the prompt, too; "-" is standard input
	Attach  []string // files that go with it
	NoStdin bool     // standard input is no part of the prompt

	Session  string // to go on with
	Continue bool   // go on with the latest
	OrNew    bool   // begin a new one where that is not possible

	Mode    string
	Options []string // ID=VALUE

	JSON, Quiet bool
	Show        Show
	Timeout     time.Duration
	MaxCost     Cost
	Ask, DenyOK bool
}

// A Cost is a limit of cost; the zero Cost is none.
type Cost struct {
	Amount   float64
	Currency string // "" is whatever the agent counts in
	Set      bool
}

// String returns the cost as the flag takes it.
func (c Cost) String() string {
	if !c.Set {
		return ""
	}
	return strconv.FormatFloat(c.Amount, 'f', -1, 64) + c.Currency
}

// Type names the form of the flag.
func (*Cost) Type() string { return "COST" }

// set reads a cost such as 0.50, 0.50USD or "20 credits".
func (c *Cost) set(s string) error {
	number := strings.TrimSpace(s)
	i := strings.IndexFunc(number, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		i = len(number)
	}
	amount, err := strconv.ParseFloat(number[:i], 64)
	if err != nil || amount < 0 {
		return exitcode.Errorf(exitcode.Usage, "%q is no cost such as 0.50 or 0.50USD", s)
	}
	*c = Cost{Amount: amount, Currency: strings.TrimSpace(number[i:]), Set: true}
	return nil
}

// costFlag makes a Cost a flag.
type costFlag struct{ *Cost }

func (f costFlag) Set(s string) error { return f.set(s) }

const long = `Send one prompt to an agent, write its answer to standard output, and end with a
status that says how the turn went.

The agent is the one of --agent; or the command after --; or the first argument,
if and only if that is exactly the name of a known agent (acp agents list) and
neither of the others is given; or else the default agent. If
your prompt starts with an agent's name, quote the whole prompt or pass --agent.

The prompt is the arguments, separated by spaces, then the files of --file, then
standard input if that is a pipe or a file, each after an empty line. A - in place
of the prompt is standard input in any case.

Without --ask nobody is asked for permission: what the policy, --allow and --deny do
not decide is denied. Standard error then shows the --allow that would permit it, and
the exit status is 5 unless --deny-ok is given.

Control sequences in the agent's text are removed; --json has the text as it came. The
output has at most 32 MiB of one message; if more is missing, standard error says so,
and the exit status is 1. The first interrupt (Ctrl-C) cancels the turn and waits for
its end; the second ends everything.

Exit statuses:

   0  the turn is done              6  the agent did not start, or ended
   1  something failed here         7  it answered with an error, or not in ACP
   2  wrong flags or settings       8  a time limit was reached
   3  the agent refused             9  a limit of cost was reached
   4  cancelled                    10  a login is needed: acp auth login
   5  a permission was denied      11  the agent stopped at a limit of its own
                                   12  the agent broke a rule that denies`

// NewCommand returns the command; runF, if not nil, runs in place of it.
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
	f.StringArrayVarP(&o.Files, "file", "f", nil, "add the text of `FILE` to the prompt; - is standard input (repeatable)")
	f.StringArrayVar(&o.Attach, "attach", nil, "attach `FILE`, in the best form that the agent takes (repeatable)")
	f.BoolVar(&o.NoStdin, "no-stdin", false, "do not read standard input, though it is a pipe or a file")
	f.StringVarP(&o.Session, "session", "s", "", "continue the session `ID`, which may be abbreviated")
	f.BoolVarP(&o.Continue, "continue", "c", false, "continue the latest session with this agent in this directory")
	f.BoolVar(&o.OrNew, "or-new", false, "start a new session if the given one cannot be resumed")
	f.StringVar(&o.Mode, "mode", "", "set the `MODE` of the session first")
	f.StringArrayVarP(&o.Options, "option", "o", nil, "set an option of the session first: `ID=VALUE` (repeatable)")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object a line: docs/exec-json.md")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print only the final text of the agent, and errors")
	f.Var(&o.Show, "show", "print the `WHAT` of the turn: text, which the agent says; tools, which is what its tool calls show, such as the content of files, changes and the output of commands; or all, with what the agent thinks (default text)")
	f.DurationVar(&o.Timeout, "timeout", 0, "give up after this time, such as 5m, with exit status 8")
	f.Var(costFlag{&o.MaxCost}, "max-cost", "cancel the turn when the session has cost `COST`, such as 0.50 or 0.50USD, with exit status 9")
	f.BoolVar(&o.Ask, "ask", false, "ask for permission on the terminal, which needs one")
	f.BoolVar(&o.DenyOK, "deny-ok", false, "end with status 0 even if permissions were denied")
	cmd.MarkFlagsMutuallyExclusive("json", "quiet", "show")
	cmd.MarkFlagsMutuallyExclusive("session", "continue")
	_ = cmd.RegisterFlagCompletionFunc("show", cobra.FixedCompletions(shows, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

// arguments tells the agent and the prompt apart and checks the flags.
func (o *Options) arguments(cmd *cobra.Command, args []string) error {
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
			return exitcode.Errorf(exitcode.Usage, "no command after --; an agent is started by it: acp exec PROMPT -- COMMAND ARGS")
		case o.Agent != "":
			return exitcode.Errorf(exitcode.Usage, "--agent and a command after -- both name an agent; leave one out")
		}
	}
	switch {
	case o.Timeout < 0:
		return exitcode.Errorf(exitcode.Usage, "--timeout %s is in the past", o.Timeout)
	case o.OrNew && o.Session == "" && !o.Continue:
		return exitcode.Errorf(exitcode.Usage, "--or-new goes with --session or --continue")
	}
	for _, option := range o.Options {
		if id, _, ok := strings.Cut(option, "="); !ok || id == "" {
			return exitcode.Errorf(exitcode.Usage, "--option %q is not ID=VALUE", option)
		}
	}
	return nil
}

// agent returns the agent, and takes its name from the prompt if it is there.
func (o *Options) agent() (roster.Agent, error) {
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
	return o.App.AgentFor(o.Agent, o.Argv)
}
