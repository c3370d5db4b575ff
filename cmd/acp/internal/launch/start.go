package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// A Start reaches an agent, and explains a failure. It is for one attempt.
type Start struct {
	Agent string        // as the user calls it
	Limit time.Duration // for all of the attempt
	// Stderr returns the line of standard error that is part of the explanation if the agent does
	// not answer; nil means none.
	Stderr func() string
	// Ignored, if not nil, is called with each line that is not a message, or with its beginning,
	// as the agent wrote it. It may be called after Connect has returned, and must not block.
	Ignored func(line string)
	// Noticed, if not nil, is called with everything else that the connection notices, on whatever
	// goroutine that is. It must not block.
	Noticed func(jsonrpc.Event)

	accent accent
}

// Connect starts the agent and agrees on a version. It does not wait for a program that turns out
// to speak another protocol. Pass the error to [Start.Failed].
func (s *Start) Connect(ctx context.Context, client *acp.Client, t acp.Transport) (*acp.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	s.accent.stop, s.accent.ignored, s.accent.noticed = cancel, s.Ignored, s.Noticed
	client.Engine.Diagnose = s.accent.take
	return client.Connect(ctx, t)
}

// maxNote bounds a line of an agent that is part of an error, in cells.
const maxNote = 500

// lookFor is the advice for programs that are not agents in the way they were started.
const lookFor = "is it started as an agent? look for a flag such as --acp in its help"

// Failed adds an exit status to the error of a connection that failed: exitcode.Protocol if the
// program answered with an error or does not speak the protocol, exitcode.Timeout if it said
// nothing, and exitcode.Agent otherwise.
func (s *Start) Failed(err error) error {
	unusable := func(code exitcode.Code) error {
		return exitcode.With(code, fmt.Errorf("%s cannot be used: %w", s.Agent, err))
	}
	if far := remote.Explain(s.Agent, err); far != nil {
		return far
	}
	if said, _ := errors.AsType[*chainError](err); said != nil {
		return said.error
	}
	speaks, line := s.accent.speaks()
	exit, _ := errors.AsType[*process.ExitError](err)
	missing, _ := errors.AsType[*process.LookPathError](err)
	switch {
	case missing != nil:
		return exitcode.With(exitcode.Agent, &PlainError{Text: fmt.Sprintf("%s cannot be used: %s; %s", s.Agent, safetext.Line(missing.Error(), maxNote), lookAt(s.Agent)), Err: err})
	case speaks != "":
		return exitcode.Errorf(exitcode.Protocol, "%s cannot be used: it %s and wrote %q; %s", s.Agent, speaks, line, lookFor)
	case isAnswer(err):
		return unusable(exitcode.Protocol)
	case errors.Is(err, context.DeadlineExceeded) && line != "":
		return exitcode.Errorf(exitcode.Protocol, "%s cannot be used: in %v it wrote nothing but lines that are not messages, first %q; %s", s.Agent, s.Limit, line, lookFor)
	case errors.Is(err, context.DeadlineExceeded):
		text := fmt.Sprintf("%s has not answered in %v", s.Agent, s.Limit)
		if s.Stderr != nil {
			if said := s.Stderr(); said != "" {
				text += "; the last it wrote to standard error: " + said
			}
		}
		text += "; --connect-timeout gives it longer; " + lookFor
		return exitcode.With(exitcode.Timeout, &PlainError{Text: text, Err: err})
	case errors.Is(err, jsonrpc.ErrClosed) && exit == nil && line != "":
		// The agent does not regard that as a failure.
		return exitcode.Errorf(exitcode.Protocol, "%s cannot be used: it wrote %q, which is not a message, and ended; %s", s.Agent, line, lookFor)
	case exit != nil:
		text := fmt.Sprintf("%s cannot be used: it %s before it answered", s.Agent, HowEnded(exit))
		if why := process.Reason(exit.Stderr); why != "" {
			text += ": " + safetext.Line(why, maxNote)
		}
		if line != "" {
			text += fmt.Sprintf("; it wrote a line that is not a message: %q", line)
		}
		return exitcode.With(exitcode.Agent, &PlainError{Text: text, Err: err})
	case errors.Is(err, jsonrpc.ErrClosed):
		return exitcode.With(exitcode.Agent, &PlainError{Text: fmt.Sprintf("%s cannot be used: it ended without an answer and without an error; %s", s.Agent, lookFor), Err: err})
	}
	return unusable(exitcode.Agent)
}

// NoProgram explains that the program of an agent does not exist, or cannot be run, and what to do.
func NoProgram(agent, program string, err error) error {
	agent = safetext.Line(agent, 200)
	return exitcode.Errorf(exitcode.Agent, "%s cannot be used: program %s: %w; %s", agent, roster.Quote(program), err, lookAt(agent))
}

// lookAt is the advice if the program of an agent does not exist: the command that finds the cure.
func lookAt(agent string) string {
	return "for what to do see acp agents doctor " + roster.Quote(agent)
}

// HowEnded returns how a process ended, in words that follow "it".
func HowEnded(exit *process.ExitError) string {
	if exit.Signal != "" {
		return "was ended by " + exit.Signal
	}
	return fmt.Sprintf("exited with status %d", exit.Code)
}

// A PlainError says in the words of the user what Err says in those of the layers below.
type PlainError struct {
	Text string
	Err  error
}

// Error implements the error interface.
func (e *PlainError) Error() string { return e.Text }

// Unwrap returns what failed.
func (e *PlainError) Unwrap() error { return e.Err }

// isAnswer reports whether an error of connecting is an answer of the agent: not that it could not
// be started, or has ended.
func isAnswer(err error) bool {
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return true
	}
	return errors.Is(err, acp.ErrInitialize)
}
