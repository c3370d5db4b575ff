// Package trace is the command acp trace: it shows, measures, compares and plays what acp tap has
// recorded.
package trace

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// Verbs of the command.
const (
	verbShow   = "show"
	verbStats  = "stats"
	verbDiff   = "diff"
	verbRedact = "redact"
	verbReplay = "replay"
)

// Options are what the command is told to do.
type Options struct {
	App   *app.App
	Verb  string
	Files []string // one, or two for diff and redact; "-" is standard input or output
	JSON  bool
	Check bool // report which rules of the protocol are broken

	// The rest is for show.
	Session    string // only what is about this one
	Method     string // only this one, or what a pattern with * matches
	Since      string // a duration from the beginning, or a time
	Full       bool   // whole frames
	Transcript bool   // the conversations instead of the frames

	// The rest is for redact.
	Force bool // replace the file

	// The rest is for replay.
	As      string   // the side that is played: agent or client
	Command []string // of the agent
	Part    int      // of the trace; 0 is the first with a conversation
	Speed   string   // recorded or max
	Strict  bool     // notifications count, too
	Timeout time.Duration

	// In and Out are the side of the client for replay; nil is standard input and output.
	In  io.ReadCloser
	Out io.WriteCloser
}

// The values of some flags.
const (
	asAgent       = "agent"
	asClient      = "client"
	speedRecorded = "recorded"
	speedMax      = "max"
)

// NewCommand returns the command; runF, if not nil, runs in place of it.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) runE {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb = verb
			if at := cmd.ArgsLenAtDash(); verb == verbReplay && at >= 0 {
				args, o.Command = args[:at], args[at:]
			}
			if verb == verbReplay && len(args) != 1 {
				return exitcode.Errorf(exitcode.Usage, "one recording is played; write -- before the command of an agent")
			}
			o.Files = args
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{
		Use: "trace", Short: "Show, measure, compare and play what acp tap has recorded",
		Long: `Show, measure, compare and play what acp tap has recorded.

The form of the files is described in docs/trace.md. A file that is named - is
standard input, or for the second one of redact standard output.`,
	}
	cmd.AddCommand(newShow(o, run(verbShow)), newStats(o, run(verbStats)), newDiff(o, run(verbDiff)),
		newRedact(o, run(verbRedact)), newReplay(o, run(verbReplay)), newWeb(a, nil))
	return cmd
}

// runE runs a verb.
type runE = func(*cobra.Command, []string) error

func newShow(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Show what passed, a line for each frame",
		Long: `Show what passed, a line for each frame: its number, by which acp check trace names
it, the time since recording began, who sent it (→ is to the agent, ← to the client),
the method and the id, the session by the end of its id, the size, how long the answer
took, and what it says. A narrow terminal has no room for the session.`,
		Example: `  acp trace show agent.acptrace --method 'session/*' --check
  acp trace show agent.acptrace --transcript
  acp trace show agent.acptrace --json | jq 'select(.latency > 1)'`,
		Args: cobra.ExactArgs(1), RunE: run,
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "only what is about the session with this `ID`, or whose id ends so")
	f.StringVar(&o.Method, "method", "", "only calls of `METHOD` and their answers; * stands for anything")
	f.StringVar(&o.Since, "since", "", "only what passed after `TIME`: 90s from the beginning, or a time as 2026-01-31T10:00:00Z")
	f.BoolVar(&o.Full, "full", false, "whole frames")
	f.BoolVar(&o.Transcript, "transcript", false, "the conversation of each session instead of the frames")
	f.BoolVar(&o.Check, "check", false, "show which rules of the protocol a frame breaks")
	f.BoolVar(&o.JSON, "json", false, "print an object for each frame or conversation, one in each line")
	return cmd
}

func newStats(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats FILE", Short: "Sum up what passed: methods, times, sizes, sessions, tokens",
		Args: cobra.ExactArgs(1), RunE: run,
	}
	f := cmd.Flags()
	f.BoolVar(&o.Check, "check", false, "count the rules of the protocol that are broken")
	f.BoolVar(&o.JSON, "json", false, "print an object")
	return cmd
}

func newDiff(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff A B", Short: "Say where two recordings first differ, and in what altogether",
		Long: `Say where two recordings first differ, and in what altogether. Ids and times do
not count: they differ from one run to the next. The exit status is 1 if the
recordings differ.`,
		Args: cobra.ExactArgs(2), RunE: run,
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print an object")
	return cmd
}

func newRedact(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "redact IN OUT", Short: "Copy a recording without its secrets",
		Long: `Copy a recording without its secrets: the environments and headers of MCP servers,
members whose name says that they are secret, and what looks like a token. What is
replaced is described in docs/trace.md; what people wrote stays as it is.`,
		Args: cobra.ExactArgs(2), RunE: run,
	}
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace OUT if it exists")
	return cmd
}

func newReplay(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay FILE --as SIDE [flags] [-- COMMAND [ARG]...]", Short: "Play one side of a recording to the other",
		Long: `Play one side of a recording to the other: the agent's to a client that has started
this as its agent, or the client's to an agent that is started by COMMAND. What the
other side sends is waited for where the recording has it, and compared by its method;
ids that it makes are put in place of the recorded ones.

The first time it does something else, replay reports that and stops. The exit status is
then 1; it is 8 if the other side did nothing for too long, and 6 if it ended.`,
		Example: `  acp trace replay bug.acptrace --as client -- my-agent --acp
  acp exec --agent 'acp trace replay bug.acptrace --as agent' 'hello'`,
		Args: cobra.ArbitraryArgs, RunE: run,
	}
	f := cmd.Flags()
	f.StringVar(&o.As, "as", "", "play this `SIDE`: agent or client")
	f.StringVar(&o.Speed, "speed", speedRecorded, "`SPEED` of what is played: recorded, or max to wait for nothing but the other side")
	f.DurationVar(&o.Timeout, "timeout", 30*time.Second, "give the other side this long for each thing it is expected to do")
	f.IntVar(&o.Part, "part", 0, "play part `N` of a file that was recorded to several times (default: the first with more than initialize)")
	f.BoolVar(&o.Strict, "strict", false, "expect the same notifications, too, in the same order")
	_ = cmd.MarkFlagRequired("as")
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions([]string{asAgent, asClient}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("speed", cobra.FixedCompletions([]string{speedRecorded, speedMax}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	switch o.Verb {
	case verbStats:
		return o.stats(ctx)
	case verbDiff:
		return o.diff(ctx)
	case verbRedact:
		return o.redact(ctx)
	case verbReplay:
		return o.replay(ctx)
	}
	if o.Transcript {
		return o.transcripts(ctx)
	}
	return o.show(ctx)
}
