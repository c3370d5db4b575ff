// Package trace is the command acp trace: it shows, measures, compares, redacts, exports and replays
// recordings, in the terminal or on a page in the browser. docs/trace.md describes the files, which package
// record/file reads.
//
// Every subcommand reads a recording as a stream, so that its memory does not depend on the size of
// the file. What it keeps is bounded: 256 methods, 1000 sessions, 4096 pending requests of each
// side and 100,000 ids. Beyond these bounds results are approximate.
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
	verbExport = "export"
)

// Options are the flags and arguments of the command.
type Options struct {
	App   *app.App
	Verb  string
	Files []string // one, or two for diff, redact and export; "-" is standard input or output
	JSON  bool
	Check bool // report broken rules of the protocol

	// The following are for show.
	Session    string // only records of this session
	Method     string // only records of this method; * is a wildcard
	Since      string // a duration from the beginning, or a time
	Full       bool   // whole frames
	Transcript bool   // the conversations instead of the frames
	width      int    // of the terminal, if it is known already

	// The following is for redact and export.
	Force bool // replace the file

	// The following is for export, and for replay.
	As string // the form of the file: conductor; the side to play: agent or client

	// The following are for replay.
	Command []string // of the agent
	Part    int      // of the recording; 0 means the first with a conversation
	Speed   string   // recorded or max
	Strict  bool     // expect notifications, too
	Timeout time.Duration

	// In and Out are the client's side for replay; nil means standard input and output.
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

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) runE {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb = verb
			if at := cmd.ArgsLenAtDash(); verb == verbReplay && at >= 0 {
				args, o.Command = args[:at], args[at:]
			}
			if verb == verbReplay && len(args) != 1 {
				return exitcode.Errorf(exitcode.Usage, "replay takes one recording; write -- before the agent's command")
			}
			o.Files = args
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{
		Use: "trace", Short: "Show, measure, compare and replay recordings of acp tap",
		Long: `Show, measure, compare and replay recordings made with acp tap.

FILE may also be a recording of another program: JSON-RPC messages with one in each line,
with or without their direction, or the events that the conductor of the Rust SDK writes,
each perhaps compressed with gzip. What it is is recognized by its content.

docs/trace.md describes the file format. A FILE named - is standard input; as OUT of
redact and export it is standard output.`,
	}
	cmd.AddCommand(newShow(o, run(verbShow)), newStats(o, run(verbStats)), newDiff(o, run(verbDiff)),
		newRedact(o, run(verbRedact)), newExport(o, run(verbExport)), newReplay(o, run(verbReplay)), newWeb(a, nil))
	return cmd
}

// runE is the type of the function that runs a subcommand.
type runE = func(*cobra.Command, []string) error

// newShow returns the command that shows a recording.
func newShow(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Show the recorded traffic, one line per frame",
		Long: `Show the recorded traffic, one line per frame. The columns are: the number of the frame,
which acp check trace also uses; the time since the recording began; the direction (→ to
the agent, ← to the client); the method and the id; the end of the session's id, if the
terminal is wide enough; the size; how long the answer took; and a summary.`,
		Example: `  acp trace show agent.acptrace --method 'session/*' --check
  acp trace show agent.acptrace --transcript
  acp trace show agent.acptrace --json | jq 'select(.latency > 1)'`,
		Args: cobra.ExactArgs(1), RunE: run,
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "show only the session whose id is or ends with `ID`")
	f.StringVar(&o.Method, "method", "", "show only calls of `METHOD` and their answers; * matches anything")
	f.StringVar(&o.Since, "since", "", "show only what was sent after `TIME`: a duration from the beginning such as 90s, or a time such as 2026-01-31T10:00:00Z")
	f.BoolVar(&o.Full, "full", false, "show whole frames")
	f.BoolVar(&o.Transcript, "transcript", false, "show the conversation of each session instead of frames")
	f.BoolVar(&o.Check, "check", false, "show which rules of the protocol each frame breaks")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per line, one for each frame or conversation")
	return cmd
}

// newStats returns the command that measures a recording.
func newStats(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats FILE", Short: "Summarize a recording: methods, times, sizes, sessions, tokens",
		Args: cobra.ExactArgs(1), RunE: run,
	}
	f := cmd.Flags()
	f.BoolVar(&o.Check, "check", false, "also count broken rules of the protocol")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object")
	return cmd
}

// newDiff returns the command that compares two recordings.
func newDiff(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff A B", Short: "Show where two recordings differ",
		Long: `Show where two recordings first differ, and for which methods the numbers of calls
differ. Ids and times are ignored, because they differ in every run. The exit status is
1 if the recordings differ.`,
		Args: cobra.ExactArgs(2), RunE: run,
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object")
	return cmd
}

// newRedact returns the command that copies a recording without secrets.
func newRedact(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "redact IN OUT", Short: "Copy a recording without its secrets",
		Long: `Copy a recording without its secrets: the environments and headers of MCP servers,
members whose name suggests a secret, and anything that looks like a token. docs/trace.md
lists what is replaced. Prompts and other text that people wrote stay unchanged.`,
		Args: cobra.ExactArgs(2), RunE: run,
	}
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace OUT if it exists")
	return cmd
}

// newExport returns the command that writes a recording in the form of another program.
func newExport(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "export IN OUT --as FORM [flags]", Short: "Write a recording in the form of another program",
		Long: `Write a recording in the form of another program. With --as conductor, OUT has the events
that the conductor of the Rust SDK writes, one in each line, which its trace viewer shows.
Components of a chain of proxies are named after their places: Client, Proxy(0), Agent.
Envelopes are left out, as are records that are not messages.`,
		Example: `  acp trace export session.acptrace session.jsons --as conductor`,
		Args:    cobra.ExactArgs(2), RunE: run,
	}
	f := cmd.Flags()
	f.StringVar(&o.As, "as", "", "write this `FORM`: conductor")
	f.BoolVar(&o.Force, "force", false, "replace OUT if it exists")
	_ = cmd.MarkFlagRequired("as")
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions([]string{asConductor}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// newReplay returns the command that plays a recording.
func newReplay(o *Options, run runE) *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay FILE --as SIDE [flags] [-- COMMAND [ARG]...]", Short: "Replay one side of a recording to the other side",
		Long: `Replay one side of a recording to the other side. With --as agent, a client starts this
command as its agent. With --as client, replay starts the agent by COMMAND. Replay waits
for the messages of the other side where the recording has them, and compares their
methods. In what it sends, it replaces recorded ids by those of the other side.

Replay stops at the first divergence and exits with status 1. The status is 8 if the
other side sends nothing for too long, and 6 if it exits.`,
		Example: `  acp trace replay bug.acptrace --as client -- my-agent --acp
  acp exec --agent 'acp trace replay bug.acptrace --as agent' 'hello'`,
		Args: cobra.ArbitraryArgs, RunE: run,
	}
	f := cmd.Flags()
	f.StringVar(&o.As, "as", "", "play this `SIDE`: agent or client")
	f.StringVar(&o.Speed, "speed", speedRecorded, "`SPEED` of the replay: recorded, or max to wait only for the other side")
	f.DurationVar(&o.Timeout, "timeout", 30*time.Second, "time limit for each message that the other side is expected to send")
	f.IntVar(&o.Part, "part", 0, "replay part `N` of a file with several recordings (default: the first with more than initialize)")
	f.BoolVar(&o.Strict, "strict", false, "also expect the same notifications, in the same order")
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
	case verbExport:
		return o.export(ctx)
	}
	o.width = o.columns() // which is that of the terminal, also in a pager
	return o.App.Paged(func() error {
		if o.Transcript {
			return o.transcripts(ctx)
		}
		return o.show(ctx)
	})
}
