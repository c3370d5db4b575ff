package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// This file is about how turns end, and what is said of that.

// A stopError is why a turn is cancelled by somebody.
type stopError struct{ by string } // as others see it; "" if it is not known

func (e *stopError) Error() string { return errCancelled.Error() }
func (e *stopError) Unwrap() error { return errCancelled }

// stoppedBy returns who has stopped a turn, and whether anybody has: its server may be about to end instead.
func stoppedBy(cause error) (by string, stopped bool) {
	if stop, ok := errors.AsType[*stopError](cause); ok {
		return stop.by, true
	}
	return "", errors.Is(cause, errCancelled)
}

// stopped returns the end of a turn that was cancelled.
func stopped(ctx context.Context) records.End {
	by, stopped := stoppedBy(context.Cause(ctx))
	return records.End{Stop: acp.StopCancelled, By: by, Lost: !stopped}
}

// lineOfEnd returns what a client of version 1 is sent of the end, which has no such update: "" if the agent was done.
func lineOfEnd(u *acp.IdleStateUpdate) string {
	var said history.End
	if ownmeta.Read(u.Meta, &said); said.Noted {
		return ""
	}
	if end := history.EndOf(u); end != nil {
		if text := history.EndingLine(end); text != "" {
			return text + "."
		}
	}
	return ""
}

// sendEnd sends the end of a turn that is not a client's own to it.
func sendEnd(as *acp.AgentSession, end *records.End, r *engine.Record) error {
	if as.Conn().Version() > 1 {
		return as.Send(end.Update())
	}
	if text := lineOfEnd(end.Update()); text != "" {
		return as.Send(lineOf(r.Seq, text))
	}
	return nil
}

// lineOf returns what the gateway says at a record, as a message for clients of version 1. It has the same name for all of
// them, whenever it is sent.
func lineOf(seq uint64, text string) *acp.AgentMessageChunk {
	return &acp.AgentMessageChunk{Content: acp.Text(text), MessageID: acp.MessageID(fmt.Sprintf("notice_%d", seq))}
}

// maxReason bounds what is kept of why a turn failed, in bytes.
const maxReason = 8 << 10

// reasonOf returns an error in the words of people: without numbers of the protocol, and without what happened to the
// connection to an agent whose end is known.
func reasonOf(err error) string {
	text := err.Error()
	if failure, ok := errors.AsType[*jsonrpc.Failure](err); ok && failure.Message != "" {
		text = failure.Message
	} else if said, ok := errors.AsType[*jsonrpc.Error](err); ok && said.Message != "" {
		text = said.Message
		if detail := said.Detail(); detail != "" {
			text += ": " + detail
		}
	}
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + " …"
	}
	return text
}

// left returns how an agent has ended that was not to end: its exit, and the line of its standard error that says why.
func (b *backend) left(err error) string {
	exit, exited := b.exited(err)
	switch {
	case !exited && errors.Is(err, jsonrpc.ErrClosed):
		return "the agent has ended in the middle of the turn"
	case !exited:
		return "the connection to the agent has failed in the middle of the turn"
	}
	text := fmt.Sprintf("the agent ended with status %d in the middle of the turn", exit.Code)
	if exit.Signal != "" {
		text = fmt.Sprintf("the agent was ended by %s in the middle of the turn", exit.Signal)
	}
	if why := process.Reason(exit.Stderr); why != "" {
		text += ": " + reasonOf(errors.New(why))
	}
	return text
}
