package acp

import (
	"context"
	"errors"

	"github.com/goacp/acp/jsonrpc"
)

// A session ends in one order, whichever way it ends:
//
//  1. the table    nobody finds the session any more, so no prompt can slip in
//  2. the turns    are cancelled, and have ended
//  3. last state   of the last turn has been sent
//  4. the hook     CloseSession is called, once
//  5. the context  of the session ends, and with it background work and children
//
//	way                              steps
//	session/close                    all
//	session/delete, session/archive  all, and then the hook of that request
//	an opening that was given up     all, although there is no turn
//	an opening that failed           1 and 5: the agent itself has refused it
//	the end of the connection        1, turns are cancelled, and 5: see [Agent.CloseSession]
//
// Once the session has left the table, there is no way back. So what follows does not
// depend on whether the client still waits: see [AgentConn.lasting].

// endSession ends a session that is in the table. was is false if it is not there any
// more, because it has ended or somebody else is ending it.
func (c *AgentConn) endSession(ctx context.Context, s *AgentSession) (was bool, err error) {
	ended := make(chan struct{})
	c.mu.Lock()
	if was = c.sessions[s.id] == s; was {
		delete(c.sessions, s.id)
		c.ends[s.id] = ended
	}
	c.mu.Unlock()
	if !was {
		return false, nil
	}
	defer func() {
		s.stop(ErrSessionClosed)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ends, s.id)
		close(ended)
	}()
	c.cancelPrompts(s.id, errCloses)
	if err := c.drained(ctx, s.id); err != nil {
		return true, err
	}
	// The last turn may still be reporting its end, which comes before the answer.
	if err := s.acquire(ctx); err != nil {
		return true, err
	}
	s.releaseSending()
	if a := c.agent.Load(); a.CloseSession != nil {
		err = c.guard("CloseSession", func() error { return a.CloseSession(ctx, s) })
	}
	return true, err
}

// lasting returns a context with the values of a request's that ends with the
// connection, but not when the client gives up the request.
func (c *AgentConn) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	closed := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, jsonrpc.ErrClosed) {
			cancel(cause)
		}
	})
	over := context.AfterFunc(c.base, func() { cancel(context.Cause(c.base)) })
	return lasting, func() {
		closed()
		over()
		cancel(nil)
	}
}

// closeSession ends a session, or waits until somebody else has ended it (S43). was is
// false if there is no such session.
func (c *AgentConn) closeSession(ctx context.Context, id SessionID) (was bool, err error) {
	if s, ok := c.Session(id); ok {
		lasting, done := c.lasting(ctx)
		defer done()
		if was, err = c.endSession(lasting, s); was {
			return true, err
		}
	}
	c.mu.Lock()
	ended := c.ends[id]
	c.mu.Unlock()
	if ended == nil {
		return false, nil
	}
	select {
	case <-ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// closeBefore closes a session, if it is open, and then calls a hook that disposes of
// it. If the session was open, the hook is called even if the client has given up the
// request meanwhile.
func (c *AgentConn) closeBefore(ctx context.Context, id SessionID, what string, hook func(ctx context.Context) error) error {
	was, err := c.closeSession(ctx, id)
	if err != nil {
		return err
	}
	if was {
		lasting, done := c.lasting(ctx)
		defer done()
		ctx = lasting
	}
	return c.guard(what, func() error { return hook(ctx) })
}

func (c *AgentConn) deleteSession(ctx context.Context, id SessionID) error {
	a := c.agent.Load()
	if a.DeleteSession == nil {
		return notFound(ctx)
	}
	return c.closeBefore(ctx, id, "DeleteSession", func(ctx context.Context) error { return a.DeleteSession(ctx, c, id) })
}

func (c *AgentConn) archiveSession(ctx context.Context, id SessionID, archived bool) error {
	a := c.agent.Load()
	hook := func(ctx context.Context) error { return a.ArchiveSession(ctx, c, id, archived) }
	switch {
	case a.ArchiveSession == nil:
		return notFound(ctx)
	case archived:
		return c.closeBefore(ctx, id, "ArchiveSession", hook)
	}
	return c.guard("ArchiveSession", func() error { return hook(ctx) })
}

// givenUp ends a session that has just been opened if the client has given up the
// request: it does not know the session, so nobody else would end it. The error is the
// request's.
func (c *AgentConn) givenUp(ctx context.Context, s *AgentSession) error {
	cause := context.Cause(ctx)
	if cause == nil {
		return nil
	}
	lasting, done := c.lasting(ctx)
	defer done()
	if _, err := c.endSession(lasting, s); err != nil {
		c.agent.Load().Logger.Warn("acp: a session that was given up did not close properly", "error", err)
	}
	return cause
}

// forget removes a session that could not be opened.
func (c *AgentConn) forget(s *AgentSession) {
	c.mu.Lock()
	if c.sessions[s.id] == s {
		delete(c.sessions, s.id)
	}
	c.mu.Unlock()
	s.stop(ErrSessionClosed)
}
