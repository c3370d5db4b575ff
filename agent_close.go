package acp

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/goacp/acp/jsonrpc"
)

// errShutdown answers a prompt that can no longer become a turn.
var errShutdown error = &Failure{Message: "the agent is ending the connection", Reason: "shutdown", Scope: "connection"}

// Close ends the connection:
//
//	prompts that arrive or wait for a turn    refused with a Failure whose Reason is "shutdown"
//	turns that run                            cancelled; the cause is jsonrpc.ErrClosed
//	what such a turn still sends              reaches the client, and so does its stop reason
//	a hook that returns its context's error   its turn ends as cancelled
//	a hook that outlasts CancelGrace          its turn ends as cancelled
//
// Then the connection is closed as [jsonrpc.Conn.Close] describes. Close returns
// when all of that has been done. Turns get CancelGrace plus the engine's grace;
// everything else gets what the engine allows.
//
// A hook must not call Close, because Close would wait for that hook, up to those
// bounds. Close may be called from several goroutines and repeatedly; every call
// waits and returns nil.
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

// Shutdown ends the connection without cancelling what runs, like
// [net/http.Server.Shutdown]. New prompts, and those that wait for a turn, are
// refused with a [Failure] whose Reason is "shutdown". Shutdown waits until the
// turns that run have ended and then calls [AgentConn.Close]. If ctx is done
// first, that Close cancels the turns. Other requests are answered in the
// meantime. Background work is not waited for: it ends with
// [AgentSession.Context].
//
// Shutdown returns nil if all turns, or the connection, had ended, and the cause
// of ctx otherwise. Either way the connection has ended when it returns; once ctx
// is done, that takes no longer than Close.
//
// Shutdown may be called from several goroutines and repeatedly. Every call
// waits; the turns are cancelled when the first ctx is done or Close is called. A
// hook must not call it.
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

// isClosing reports whether the application is closing the connection or shutting
// it down. A client that leaves does not cancel anything.
func (c *AgentConn) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusing
}

// turnsOver waits, once prompts are refused, until all turns have ended and
// reported their end. It also returns nil when the connection has ended.
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
	for _, s := range c.OpenSessions() {
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

// Wait waits until the connection has ended and its turns are settled. It is not
// an error if the client left.
func (c *AgentConn) Wait() error {
	err := c.conn.Wait()
	c.idle.Wait()
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return nil // it left without waiting for what we were about to say
	}
	return err
}
