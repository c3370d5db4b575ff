package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// failed returns what a client gets if an agent did not start: how its process has ended, that there is none, or what is wrong
// with its answer to initialize, which names members and versions only. What the program has written to standard error last,
// and what else err says, may be secret: it is for the server alone if that has several users, and otherwise for the clients,
// too. What the agent has answered, and what was given up, is returned as it is.
func (b *backend) failed(ctx context.Context, agent string, err error) error {
	return b.s.g.startFailed(ctx, agent, err, b.exited)
}

// startFailed returns what clients get of an error with which an agent did not start. exited says how its process has ended.
func (g *Gateway) startFailed(ctx context.Context, agent string, err error, exited func(error) (*process.ExitError, bool)) error {
	if ctx.Err() != nil || errors.As(err, new(*jsonrpc.Error)) || errors.As(err, new(*jsonrpc.Failure)) {
		return err
	}
	exit, ended := exited(err)
	why := ""
	switch {
	case ended && exit.Signal != "":
		why = fmt.Sprintf(": it was ended by %s before it answered", exit.Signal)
	case ended:
		why = fmt.Sprintf(": it ended with status %d before it answered", exit.Code)
	case errors.As(err, new(*process.LookPathError)):
		why = ": its program was not found"
	case errors.Is(err, jsonrpc.ErrClosed):
		why = ": it ended before it answered"
	case errors.Is(err, acp.ErrInitialize):
		why = ": " + strings.TrimPrefix(err.Error(), "acp: ")
	}
	f := &jsonrpc.Failure{Message: fmt.Sprintf("the agent %s did not start%s", agent, why), Reason: "agent_failed"}
	if say := g.cfg.Failed; say != nil {
		detail := err
		if ended {
			detail = exit
		}
		say(f.Message, detail)
	}
	switch {
	case g.cfg.Many:
	case ended:
		if said := lastLines(exit.Stderr); said != "" {
			f.Message += ":\n" + said
		}
	case !errors.Is(err, jsonrpc.ErrClosed) && !errors.Is(err, acp.ErrInitialize):
		f.Message += ": " + clip(err.Error())
	}
	return f
}

// exited returns how the process of the agent has ended, if err or what holds it knows.
func (b *backend) exited(err error) (*process.ExitError, bool) {
	exit, ok := errors.AsType[*process.ExitError](err)
	if held, holds := b.held.(interface{ ExitErr() error }); holds && !ok {
		return errors.AsType[*process.ExitError](held.ExitErr())
	}
	return exit, ok
}

// maxSaid bounds what clients get of the standard error of an agent that did not start, in lines.
const maxSaid = 5

// lastLines returns the last lines of what a program has written.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(len(lines)-maxSaid, 0):]
	for i, line := range lines {
		lines[i] = clip(strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}
