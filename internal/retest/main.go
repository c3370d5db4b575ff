// Command retest is the go command of the gate: it runs the go command with its own arguments, and after a
// go test that failed it runs each test that failed once more, alone. Tests that then pass depend on chance:
// they are appended to the file that $RETEST_FLAKY names, a line each, and the command succeeds. .ci/run
// builds it under the name go, puts it first in PATH, and names the real go command in $RETEST_GO.
//
// What cannot be pardoned fails at once: a data race, a package that does not build, more than [maxAgain]
// failures. Of a test program that ended early, as in a panic, all tests run again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxAgain bounds the tests that are run again after one go test: more failures are not chance.
const maxAgain = 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(retest(ctx, os.Args, os.Environ(), os.Stdout, os.Stderr))
}

// retest is the program; it returns its exit status.
func retest(ctx context.Context, args, environ []string, out, errs io.Writer) int {
	tool, flaky := value(environ, "RETEST_GO"), value(environ, "RETEST_FLAKY")
	if tool == "" {
		fmt.Fprintln(errs, "retest: $RETEST_GO does not name the go command; see .ci/run")
		return 2
	}
	environ, err := without(environ, args[0])
	if err != nil {
		fmt.Fprintln(errs, "retest:", err)
		return 2
	}
	r := runner{run: command(ctx, tool, environ), out: out, err: errs}
	status, tests := r.start(args[1:])
	if err := note(flaky, tests); err != nil {
		fmt.Fprintln(errs, "retest: cannot note the tests that depend on chance:", err)
		return 2
	}
	return status
}

func value(environ []string, name string) (value string) {
	for _, v := range environ {
		if after, ok := strings.CutPrefix(v, name+"="); ok {
			value = after
		}
	}
	return value
}

// without returns an environment whose PATH lacks the directory of this program, so that tests that call go
// get the real one.
func without(environ []string, self string) ([]string, error) {
	self, err := exec.LookPath(self)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(self))
	if err != nil {
		return nil, err
	}
	out := slices.Clone(environ)
	for i, v := range out {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			dirs := slices.DeleteFunc(filepath.SplitList(path), func(d string) bool { return d == dir })
			out[i] = "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))
		}
	}
	return out, nil
}

// command returns a function that runs the go command and returns its exit status.
func command(ctx context.Context, tool string, environ []string) func(args []string, out, err io.Writer) (int, error) {
	return func(args []string, out, err io.Writer) (int, error) {
		c := exec.CommandContext(ctx, tool, args...)
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.Stdin, c.Stdout, c.Stderr, c.Env = os.Stdin, out, err, environ
		failed := c.Run()
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if exit := (*exec.ExitError)(nil); errors.As(failed, &exit) {
			return exit.ExitCode(), nil
		}
		return 0, failed
	}
}

// note appends a line for each test to a file. An empty path means that nobody wants to know.
func note(path string, flaky []string) (err error) {
	if path == "" || len(flaky) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.WriteString(f, strings.Join(flaky, "\n")+"\n")
	return err
}

// A runner runs a go command and what it has to run again.
type runner struct {
	// run runs the go command. Its error says why the command has no status of its own.
	run      func(args []string, out, err io.Writer) (int, error)
	out, err io.Writer
}

// status returns the exit status of a command that was run, or 2 if it has none.
func (r runner) status(status int, err error) int {
	if err != nil {
		fmt.Fprintln(r.err, "retest:", err)
		return 2
	}
	return status
}

// start runs the go command and returns its status and, where that is 0, the tests that failed at first.
func (r runner) start(args []string) (status int, flaky []string) {
	call, again := split(args)
	if !again {
		return r.status(r.run(args, r.out, r.err)), nil
	}
	var seen output
	if status = r.status(r.run(args, io.MultiWriter(r.out, &seen), r.err)); status == 0 {
		return 0, nil
	}
	failures, err := seen.failures()
	if err != nil {
		fmt.Fprintln(r.err, "retest: nothing is run again:", err)
		return status, nil
	}
	for _, f := range failures {
		fmt.Fprintf(r.out, "retest: %s failed; it runs again, alone\n", f)
		var alone output
		if r.status(r.run(call.alone(f), io.MultiWriter(r.out, &alone), r.err)) != 0 || alone.idle {
			fmt.Fprintf(r.out, "retest: %s failed again, or did not run\n", f)
			return status, nil
		}
		flaky = append(flaky, f.String())
	}
	return 0, flaky
}
