package acp

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/goacp/acp/jsonrpc"
)

// errShutdown is the answer to a prompt that cannot become a turn any more.
var errShutdown error = &Failure{Message: "the agent is ending the connection", Reason: "shutdown", Scope: "connection"}

// Close ends the connection. New prompts, and those that wait for a turn, are
// refused with a [Failure] whose Reason is "shutdown". Turns that run are
// cancelled: the cause of their contexts is [jsonrpc.ErrClosed]. What a turn
// still sends reaches the client, and so does the stop reason its hook returns;
// a hook that returns the error of its context, or does not return within
// CancelGrace, ends its turn as cancelled. Then the connection is closed, as
// [jsonrpc.Conn.Close] says.
//
// Close returns when all of that is over. Turns get CancelGrace and the
// engine's grace for it together, what else runs gets what the engine allows. A
// hook must not call Close: Close would wait for it, up to those bounds. Close
// may be called from several goroutines and repeatedly; every call waits and
// returns nil.
func (c *AgentConn) Close() error {
	c.refusePrompts()
	c.mu.Lock()
	for _, list := range c.prompts {
		for _, p := range list {
			p.cancel(jsonrpc.ErrClosed)
		}
	}
	c.mu.Unlock()
	a := c.agent.Load()
	grace := a.Engine.Grace
	if grace <= 0 {
		grace = jsonrpc.DefaultGrace
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+a.CancelGrace)
	defer cancel()
	_ = c.turnsOver(ctx) // whatever has not ended by now ends with the connection
	err := c.conn.Close()
	c.idle.Wait()
	return err
}

// Shutdown ends the connection without cancelling what runs, as
// [net/http.Server.Shutdown] does: new prompts, and those that wait for a turn,
// are refused with a [Failure] whose Reason is "shutdown"; Shutdown waits until
// the turns that run have ended, and calls [AgentConn.Close]. If ctx is done
// first, the turns are cancelled by that Close.
//
// It returns nil if all turns had ended, or the connection, and otherwise the
// cause of ctx. In both cases the connection has ended when it returns, which
// after the end of ctx is within the bounds of Close. Requests other than prompts
// are answered meanwhile. Work in the background is not waited for: it sees the
// end of [AgentSession.Context].
//
// Shutdown may be called from several goroutines and repeatedly: every call waits,
// and the turns are cancelled when the first ctx is done, or when Close is
// called. A hook must not call it.
func (c *AgentConn) Shutdown(ctx context.Context) error {
	c.refusePrompts()
	err := c.turnsOver(ctx)
	_ = c.Close()
	return err
}

// refusePrompts refuses prompts that have no turn yet, and all that arrive.
func (c *AgentConn) refusePrompts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusing = true
	for _, list := range c.prompts {
		for _, p := range list {
			if p.place < promptRunning {
				p.cancel(errShutdown)
			}
		}
	}
}

// isClosing reports whether the connection is being closed or shut down by the
// application, and not by the client, who cancels nothing by leaving.
func (c *AgentConn) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusing
}

// turnsOver waits, once prompts are refused, until all turns have ended and have
// reported it. It returns nil, too, when the connection has ended.
func (c *AgentConn) turnsOver(ctx context.Context) error {
	c.mu.Lock()
	if c.empty == nil {
		c.empty = make(chan struct{})
		if c.waiting == 0 {
			close(c.empty)
		}
	}
	empty := c.empty
	c.mu.Unlock()
	select {
	case <-empty:
	case <-c.conn.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// A turn leaves the queue before it has sent its last state: see Turn.finish.
	for _, s := range c.Sessions() {
		if s.acquire(ctx) == nil {
			s.releaseSending()
		}
	}
	return nil
}

// end releases what belongs to the connection.
func (c *AgentConn) end() {
	cause := c.conn.Err()
	if cause == nil {
		cause = jsonrpc.ErrClosed
	}
	c.stop(cause)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		s.stop(cause)
	}
	for _, list := range c.prompts {
		for _, p := range list {
			p.cancel(cause)
		}
	}
	clear(c.sessions)
	c.over = true
}

// Done returns a channel that is closed when the connection has ended.
func (c *AgentConn) Done() <-chan struct{} { return c.conn.Done() }

// Wait waits until the connection has ended and its turns are settled. That the
// client left is no error.
func (c *AgentConn) Wait() error {
	err := c.conn.Wait()
	c.idle.Wait()
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return nil // it left without waiting for what we were about to say
	}
	return err
}
