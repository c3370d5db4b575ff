// Package cli is the command line of acp. It assembles the commands, which live in the packages
// below it, and owns what they have in common: global flags, completion, signals, exit statuses,
// and errors on one line. [Main] is its only entry point. A command gets everything it needs from
// [app.App] and returns an error; it never exits the process, prints its own errors or handles
// signals.
//
// An error message has at most 2000 characters. After the first interrupt commands have unlimited
// time to end; after the second, one second.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/cli/version"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxError bounds the line that reports an error, in characters.
const maxError = 2000

// Main runs the program and returns its exit status. The first interrupt cancels the running
// command, which then ends in its own time; the second ends the process. A panic is written to a
// file, and the user sees one line that names it.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	last := new(farewell)
	errs := &pipe{w: stderr, broken: func() {}}
	slow := func() {
		if isTerminal(stderr) {
			fmt.Fprintln(errs, "acp: waiting for everything to end; press Ctrl-C again to exit at once")
		}
	}
	ctx, handle, stop := watchSignals(context.Background(), func(code int) { last.exit(); os.Exit(code) }, slow)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	out := &pipe{w: stdout, broken: func() { cancel(errPipe) }}
	a := &app.App{
		In: stdin, Out: file(stdout, out), Err: file(stderr, errs),
		InTerminal: isTerminal(stdin), OutTerminal: isTerminal(stdout), ErrTerminal: isTerminal(stderr),
		Logger:     slog.New(slog.DiscardHandler),
		Interrupts: handle, Farewell: last.onExit,
	}
	defer func() {
		if v := recover(); v != nil {
			code = int(exitcode.Failed)
			fmt.Fprintln(errs, "acp: "+crash(v, debug.Stack()))
		}
	}()
	var err error
	if isHold(args) {
		err = hold(ctx)
	} else {
		a.Version = version.String()
		err = execute(ctx, a, args)
	}
	if e := a.Close(); e != nil && err == nil {
		err = e
	}
	if lost := out.failed.Load(); lost != nil && (err == nil || errors.Is(err, *lost)) {
		// The command has ignored the failed write, or reports it as something else.
		err = exitcode.Errorf(exitcode.Failed, "writing the output: %w", *lost)
	}
	switch {
	case out.isBroken(), errors.Is(err, errPipe), isBrokenPipe(err):
		// The reader of the output has exited, as head does. That is not worth a message.
		return int(exitcode.Failed)
	case err != nil && !isSilent(err):
		fmt.Fprintln(errs, "acp: "+oneLine(err))
	}
	return int(exitcode.Of(err))
}

// execute runs the command that args name. An error from before the command itself has begun counts
// as wrong usage.
func execute(ctx context.Context, a *app.App, args []string) error {
	root, started := newRoot(a, args...)
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	err = explainFlags(cmd, err)
	if cause := context.Cause(ctx); err != nil && cause != nil && errors.Is(err, context.Canceled) {
		if e, ok := errors.AsType[*exitcode.Error](err); !ok || e.Code == exitcode.Failed {
			err = exitcode.With(exitcode.Cancelled, cause)
		}
	}
	if err != nil && !*started && exitcode.Of(err) == exitcode.Failed {
		return exitcode.With(exitcode.Usage, err)
	}
	return err
}

// isSilent reports whether the command has printed err already. Such an error has a method Silent
// that returns true; only its exit status still matters.
func isSilent(err error) bool {
	var s interface{ Silent() bool }
	return errors.As(err, &s) && s.Silent()
}

// oneLine returns err on one line that is safe for a terminal. Line breaks become separators
// instead of cutting the text, because the advice on what to do is often at its end.
func oneLine(err error) string {
	text := strings.TrimSpace(safetext.Text(err.Error()))
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	text = strings.TrimPrefix(strings.Join(lines, " | "), "acp: ")
	return safetext.Line(text, maxError)
}

// crash writes a panic and its stack to a temporary file and returns the line that reports it.
// Bug reports need the stack, but it must not scroll the user's terminal away.
func crash(value any, stack []byte) string {
	what := safetext.Line(fmt.Sprint(value), 200)
	report := fmt.Sprintf("acp %s, %s\npanic: %v\n\n%s", version.String(), time.Now().Format(time.RFC3339), value, stack)
	f, err := os.CreateTemp("", "acp-crash-*.txt")
	if err != nil {
		return fmt.Sprintf("internal error: %s; the details could not be written to a file: %v", what, err)
	}
	_, err = f.WriteString(report)
	if e := f.Close(); err != nil || e != nil {
		return "internal error: " + what
	}
	return fmt.Sprintf("internal error: %s; details are in %s", what, filepath.Clean(f.Name()))
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// file returns the stream itself if it is a terminal, because screens need the file, and otherwise
// the pipe that detects when its reader has gone.
func file(stream io.Writer, noticing *pipe) io.Writer {
	if isTerminal(stream) {
		return stream
	}
	return noticing
}
