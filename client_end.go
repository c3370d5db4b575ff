package acp

import (
	"context"
	"errors"
	"fmt"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// A session ends on the client's side in one order, whichever way it ends:
//
//  1. the table      the session is not open any more, nor are those of its subagents
//  2. its updates    that still arrive are ignored
//  3. its questions  are withdrawn
//  4. its prompts    that are in flight fail
//  5. its terminals  are released
//  6. its stream     is given up, where the transport has one for each session
//
//	way                                       steps
//	session/close, /delete and /archive       all, where the answer stands among the updates
//	closing an agent that cannot be asked to  all, after session/cancel
//	an opening that failed                    all, although there is little to end
//	another session took its id               3 to 5
//	the end of the connection                 1, and 3 to 5, when all that has arrived has
//	                                          been delivered
//
// A caller that gives up a request of the first kind stops waiting, and that is all:
// what the agent answers decides.

// clientEnd is a request that ends a session and has not been answered.
type clientEnd struct {
	done chan struct{} // closed when err is set
	err  error
}

// endBy makes a call that ends a session, unless the same call is being made: then it
// waits for that one.
func (c *ClientConn) endBy(ctx context.Context, id SessionID, method string, call func(ctx context.Context, opt jsonrpc.CallOption) error) error {
	s, ok := c.Session(id)
	if !ok {
		return c.concern(ctx, id, func(opt jsonrpc.CallOption) error { return call(ctx, opt) }, (*ClientSession).forget)
	}
	if ctx.Err() != nil {
		return notAwaited(ctx, method)
	}
	s.mu.Lock()
	end := s.ends[method]
	mine := end == nil
	if mine {
		end = &clientEnd{done: make(chan struct{})}
		if s.ends == nil {
			s.ends = map[string]*clientEnd{}
		}
		s.ends[method] = end
	}
	s.mu.Unlock()
	if mine {
		lasting := context.WithoutCancel(ctx)
		run := func() {
			end.err = errNotAnswered // stays so if middleware ends the goroutine
			defer func() {
				s.mu.Lock()
				delete(s.ends, method)
				s.mu.Unlock()
				close(end.done)
			}()
			end.err = s.ordered(lasting, func(opt jsonrpc.CallOption) error { return call(lasting, opt) },
				func(context.Context) { s.forget() })
		}
		if ctx.Done() == nil || !c.spawn(run) {
			run()
		}
	}
	select {
	case <-end.done:
		return end.err
	case <-ctx.Done():
		return notAwaited(ctx, method)
	}
}

var errNotAnswered = errors.New("acp: the call ended its goroutine")

// notAwaited is the error of a call whose ctx is done.
func notAwaited(ctx context.Context, method string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return fmt.Errorf("acp: %s: %w", method, err)
	}
	return fmt.Errorf("acp: %s: %w: %w", method, err, cause)
}

// gone turns the answer that a session does not exist into success (S31).
func gone(err error) error {
	if errors.Is(err, jsonrpc.ErrResourceNotFound) {
		return nil
	}
	return err
}

// Delete removes a session from the agent's list. If it is open here, it is closed, as
// [ClientSession.Close] describes. It is not an error if the agent does not have the
// session.
func (c *ClientConn) Delete(ctx context.Context, id SessionID) error {
	return c.endBy(ctx, id, acpv1.MethodSessionDelete.Name, func(ctx context.Context, opt jsonrpc.CallOption) error {
		return gone(c.proto().deleteSession(ctx, id, opt))
	})
}

// CloseSession closes a session: see [ClientSession.Close].
func (c *ClientConn) CloseSession(ctx context.Context, id SessionID) error {
	if s, ok := c.Session(id); ok && !c.proto().canClose() {
		return s.abandon(ctx)
	}
	return c.endBy(ctx, id, acpv1.MethodSessionClose.Name, func(ctx context.Context, opt jsonrpc.CallOption) error {
		return gone(c.proto().closeSession(ctx, id, opt))
	})
}

// Archive archives a session. If it is open here, it is closed, as
// [ClientSession.Close] describes. Experimental.
func (c *ClientConn) Archive(ctx context.Context, id SessionID) error {
	return c.endBy(ctx, id, acpv1.MethodSessionArchive.Name, func(ctx context.Context, opt jsonrpc.CallOption) error {
		return c.proto().archiveSession(ctx, id, true, opt)
	})
}

// abandon closes a session of an agent that does not support that.
func (s *ClientSession) abandon(ctx context.Context) error {
	s.mu.Lock()
	busy := len(s.replies) > 0
	s.mu.Unlock()
	var err error
	if busy {
		err = s.cancelAll(ctx)
	}
	s.forget()
	return err
}

// forget ends a session that the agent has closed, or has not opened.
func (s *ClientSession) forget() {
	s.conn.drop(s)
	for _, child := range s.conn.childrenOf(s) {
		child.forget()
	}
	s.mu.Lock()
	s.forgotten = true
	s.mu.Unlock()
	s.shut(ErrSessionClosed)
	s.conn.release(s.id)
}

// drop takes a session out of the table.
func (c *ClientConn) drop(s *ClientSession) {
	c.mu.Lock()
	if c.sessions[s.id] == s {
		c.remove(s)
	}
	c.mu.Unlock()
}

// shut ends what is under way in a session that is closed or lost.
func (s *ClientSession) shut(err error) {
	s.mu.Lock()
	if s.closed != nil {
		s.mu.Unlock()
		return
	}
	s.closed = err
	replies, servers := s.replies, s.cfg.MCPServers
	s.mu.Unlock()
	s.conn.mcp.retract(servers)
	s.withdraw()
	for _, r := range replies {
		r.abandon(err)
	}
	if t := s.conn.lent.made(); t != nil {
		s.conn.hook("ReleaseSession", func() { t.ReleaseSession(acpv1.SessionID(s.id)) })
	}
}

// release has the transport give up what it keeps for a session, unless the session is
// open, or is being opened.
func (c *ClientConn) release(id SessionID) {
	c.mu.Lock() // a session that is about to be opened becomes known before that is sent
	defer c.mu.Unlock()
	if c.sessions[id] == nil {
		c.conn.Forget(string(id))
	}
}
