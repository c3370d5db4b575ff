// Package cli is the command line of acp: it puts the commands together, and is what is the same
// for all of them: flags, signals, exit statuses, and errors in one line.
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

// maxError bounds the line an error is told in, in characters.
const maxError = 2000

// Main runs the program and returns its exit status. Signals cancel what runs; a second interrupt
// ends the process.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	last := new(farewell)
	errs := &pipe{w: stderr, broken: func() {}}
	slow := func() {
		if isTerminal(stderr) {
			fmt.Fprintln(errs, "acp: waiting for the end; interrupt again (Ctrl-C) not to wait")
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
		Version: version.String(), Logger: slog.New(slog.DiscardHandler),
		Interrupts: handle, Farewell: last.add,
	}
	defer func() {
		if v := recover(); v != nil {
			code = int(exitcode.Failed)
			fmt.Fprintln(errs, "acp: "+crash(v, debug.Stack()))
		}
	}()
	err := run(ctx, a, args)
	if e := a.Close(); e != nil && err == nil {
		err = e
	}
	if lost := out.failed.Load(); lost != nil && (err == nil || errors.Is(err, *lost)) {
		// Whoever wrote has not looked, or takes it for something else.
		err = exitcode.Errorf(exitcode.Failed, "writing the output: %w", *lost)
	}
	switch {
	case out.isBroken(), errors.Is(err, errPipe), isBrokenPipe(err):
		// Whoever read the output has gone, as head does. There is nothing to say, and nobody
		// to say it to.
		return int(exitcode.Failed)
	case err != nil && !isSilent(err):
		fmt.Fprintln(errs, "acp: "+oneLine(err))
	}
	return int(exitcode.Of(err))
}

// run runs the command that args name. What fails before the command itself has begun is wrong
// usage.
func run(ctx context.Context, a *app.App, args []string) error {
	root, started := newRoot(a)
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

// isSilent reports whether err has been told already: it then has a method Silent.
func isSilent(err error) bool {
	var s interface{ Silent() bool }
	return errors.As(err, &s) && s.Silent()
}

// oneLine is err on one line, safe for a terminal. Nothing in it may be lost that tells the user
// what to do, so line breaks become signs.
func oneLine(err error) string {
	text := strings.TrimSpace(safetext.Text(err.Error()))
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	text = strings.TrimPrefix(strings.Join(lines, " | "), "acp: ")
	return safetext.Line(text, maxError)
}

// crash writes down where the program has failed, and says so in one line.
func crash(value any, stack []byte) string {
	what := safetext.Line(fmt.Sprint(value), 200)
	report := fmt.Sprintf("acp %s, %s\npanic: %v\n\n%s", version.String(), time.Now().Format(time.RFC3339), value, stack)
	f, err := os.CreateTemp("", "acp-crash-*.txt")
	if err != nil {
		return fmt.Sprintf("internal error: %s; where it happened could not be written: %v", what, err)
	}
	_, err = f.WriteString(report)
	if e := f.Close(); err != nil || e != nil {
		return "internal error: " + what
	}
	return fmt.Sprintf("internal error: %s; where it happened is in %s", what, filepath.Clean(f.Name()))
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// file returns the stream itself where it is a terminal, since screens need the file, and else the
// one that notices that nobody reads it any more.
func file(stream io.Writer, noticing *pipe) io.Writer {
	if isTerminal(stream) {
		return stream
	}
	return noticing
}
