package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// failed returns what a client gets if an agent did not start: how its process has ended, or that there is none. What
// else err says may be secret, and is for the server alone. What the agent has answered, and what was
// given up, is returned as it is.
func (b *backend) failed(ctx context.Context, agent string, err error) error {
	if ctx.Err() != nil || errors.As(err, new(*jsonrpc.Error)) || errors.As(err, new(*jsonrpc.Failure)) {
		return err
	}
	exit, exited := errors.AsType[*process.ExitError](err)
	if held, ok := b.held.(interface{ ExitErr() error }); ok && !exited {
		exit, exited = errors.AsType[*process.ExitError](held.ExitErr())
	}
	why := ""
	switch {
	case exited && exit.Signal != "":
		why = fmt.Sprintf(": it was ended by %s before it answered", exit.Signal)
	case exited:
		why = fmt.Sprintf(": it ended with status %d before it answered", exit.Code)
	case errors.As(err, new(*process.LookPathError)):
		why = ": its program was not found"
	case errors.Is(err, jsonrpc.ErrClosed):
		why = ": it ended before it answered"
	}
	f := &jsonrpc.Failure{Message: fmt.Sprintf("the agent %s did not start%s", agent, why), Reason: "agent_failed"}
	if say := b.s.g.cfg.Failed; say != nil {
		detail := err
		if exited {
			detail = exit
		}
		say(f.Message, detail)
	}
	return f
}
