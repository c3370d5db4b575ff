package acp

import (
	"context"
	"errors"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

var errStopError = errors.New("acp: the Prompt hook returned StopError without an error")

var errHookExited = errors.New("acp: the Prompt hook ended its goroutine")

// outcome is how a turn ended, as it is reported to the client.
type outcome struct {
	stop StopReason
	err  error
}

// run runs a turn to its end. A hook that is cancelled and does not return within
// the grace is given up: the turn is settled without it and gaveUp is called with
// the outcome, in a goroutine of its own. What run returns after that is ignored.
// gaveUp is also called when the hook ends its goroutine, since run does not return
// then.
func (c *AgentConn) run(t *Turn, gaveUp func(outcome)) (o outcome) {
	a := c.agent.Load()
	begun := t.begin()
	t.gaveUp = gaveUp
	t.p.watch.Store(t)
	if t.ctx.Err() != nil {
		t.p.cancel(nil) // it was cancelled before there was a watch
	}
	exited := true
	o.err = errHookExited
	defer func() {
		t.p.watch.Store(nil)
		switch {
		case !t.hookReturned():
			// It was given up, and the outcome has been reported.
		case exited:
			gaveUp(c.settle(t, o))
		default:
			o = c.settle(t, o)
		}
	}()
	if begun != nil {
		o.err = begun
	} else {
		o.err = c.guard("Prompt", func() (err error) {
			if len(a.Middleware) > 0 {
				o.stop, err = c.promptThrough(a, t)
			} else {
				o.stop, err = a.Prompt(&t.ctx, t)
			}
			return err
		})
	}
	exited = false
	return o
}

// hookReturned reports whether the turn still has to be settled, now that its hook
// has returned. If the turn is being given up, hookReturned waits until the outcome
// has been reported.
func (t *Turn) hookReturned() bool {
	t.ending.Lock()
	givenUp := t.givenUp
	t.returned = true
	t.ending.Unlock()
	if givenUp != nil {
		<-givenUp
		return false
	}
	return true
}

// giveUp settles a turn that was cancelled, unless its hook returns within the
// grace.
func (t *Turn) giveUp() {
	c := t.session.c
	a := c.agent.Load()
	grace := time.NewTimer(a.CancelGrace)
	defer grace.Stop()
	select {
	case <-t.settled:
		return
	case <-grace.C:
	}
	t.ending.Lock()
	late := !t.returned
	if late {
		t.givenUp = make(chan struct{})
		defer close(t.givenUp)
	}
	t.ending.Unlock()
	if late {
		t.stopSending(ErrTurnEnded) // it may be in the middle of sending
		a.Logger.Warn("acp: a cancelled turn did not end in time and was given up", "session", string(t.session.id))
		t.gaveUp(c.settle(t, outcome{err: context.Cause(t.p.ctx)}))
	}
}

// runApart is run in another goroutine, which is left behind with a hook that is
// given up, so that the application's middleware sees the outcome as the handler's.
func (c *AgentConn) runApart(t *Turn) outcome {
	ended := make(chan outcome, 2) // the first one counts
	go func() { ended <- c.run(t, func(o outcome) { ended <- o }) }()
	return <-ended
}

// settle ends a turn whose hook has returned, or was given up.
func (c *AgentConn) settle(t *Turn, o outcome) outcome {
	if cause := context.Cause(t.p.ctx); cause != nil {
		switch {
		case errors.Is(cause, ErrCancelled):
			o = outcome{stop: StopCancelled}
		case errors.Is(cause, jsonrpc.ErrClosed) && o.err == nil:
			// The hook says how the turn has ended.
		case errors.Is(cause, jsonrpc.ErrClosed) && c.isClosing():
			// It has given up because the connection is being closed here.
			if errors.Is(o.err, t.ctx.Err()) || errors.Is(o.err, jsonrpc.ErrClosed) {
				o = outcome{stop: StopCancelled}
			}
		case o.err == nil || errors.Is(o.err, t.ctx.Err()):
			o.err = cause
		}
	}
	if o.stop == StopError && o.err == nil {
		o.err = errStopError
	}
	return t.finish(o)
}
