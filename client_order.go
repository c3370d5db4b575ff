package acp

import (
	"context"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/timeline"
	"github.com/goacp/acp/jsonrpc"
)

// clientItem is something that a session's timeline delivers: an update as it was
// received, something to do, or the answer to a prompt. The zero value is
// nothing.
type clientItem struct {
	v1     *acpv1.SessionNotification
	v2     *acpv2.UpdateSessionNotification
	frame  uint64 // of an update
	do     func(ctx context.Context)
	answer *Reply
}

// deliver handles an item of the session's timeline.
func (s *ClientSession) deliver(ctx context.Context, it clientItem) {
	switch {
	case it.v1 != nil:
		s.deliverV1(ctx, it.v1, it.frame)
	case it.v2 != nil:
		s.deliverV2(ctx, it.v2, it.frame)
	case it.do != nil:
		it.do(ctx)
	case it.answer != nil:
		s.answered(ctx, it.answer)
	}
}

// ordered makes a call about the session. Unless the call fails, then, which may
// be nil, is called where the response stands among the session's updates.
// ordered returns when then has returned. Inside a hook, which may hold up the
// timeline, it returns at once.
func (s *ClientSession) ordered(ctx context.Context, call func(opt jsonrpc.CallOption) error, then func(ctx context.Context)) error {
	return s.orderedAfter(ctx, func() {}, call, then)
}

// orderedAfter is ordered, and calls arrived on the reader as the response arrives.
func (s *ClientSession) orderedAfter(ctx context.Context, arrived func(), call func(opt jsonrpc.CallOption) error, then func(ctx context.Context)) error {
	defer s.calling()()
	m := &timeline.Mark[clientItem]{Done: make(chan struct{})}
	placed := false
	err := call(jsonrpc.OnReply(func(any, error) {
		s.line.Place(m)
		placed = true
		arrived()
	}))
	switch {
	case err == nil:
		if !placed { // answered by middleware
			s.line.Place(m)
		}
		s.resolve(ctx, m, then)
	case placed:
		s.discard(m)
	}
	return s.conn.explain(err)
}

// resolve has then called where a response stands. Outside of hooks it waits for
// that.
func (s *ClientSession) resolve(ctx context.Context, m *timeline.Mark[clientItem], then func(ctx context.Context)) {
	s.line.Resolve(m, clientItem{do: then})
	s.line.Kick()
	if s.conn.inHook(ctx) {
		return
	}
	select {
	case <-m.Done:
	case <-ctx.Done():
	case <-s.conn.ctx.Done():
	}
}

// discard frees the place of a response: nothing is done there.
func (s *ClientSession) discard(m *timeline.Mark[clientItem]) {
	s.line.Discard(m)
	s.line.Kick()
}

// calling records that a call is being made whose response keeps its place among
// the session's updates. Until over is called, replies that are full do not hold
// up the session, because whoever would read them may do so only after the call.
func (s *ClientSession) calling() (over func()) {
	s.waiting.Add(1)
	s.mu.Lock()
	replies := s.replies
	s.mu.Unlock()
	for _, r := range replies {
		r.buffer.poke()
	}
	return func() { s.waiting.Add(-1) }
}

// countUpdates is the outermost middleware if there is other middleware, which
// may drop an update: the update's place must not stay open.
func (c *ClientConn) countUpdates(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (result any, err error) {
		if req.Method != methodSessionUpdate || !req.IsNotification() {
			return next(ctx, req)
		}
		s, ok := c.Session(SessionID(req.Lane))
		if !ok {
			return next(ctx, req)
		}
		s.line.Account(ctx, func() { result, err = next(ctx, req) })
		return result, err
	}
}

// hookFrom returns the delivery outside of a handler that ctx belongs to, and its
// session, or nil.
func hookFrom(ctx context.Context) (*timeline.Hook, *ClientSession) {
	h := timeline.HookFrom(ctx)
	if h == nil {
		return nil, nil
	}
	return h, h.Owner().(*ClientSession)
}

// inHook reports whether ctx belongs to a hook or handler of this connection,
// which may be what its session's timeline waits for.
func (c *ClientConn) inHook(ctx context.Context) bool {
	if r := jsonrpc.RequestFrom(ctx); r != nil && r.Conn() == c.conn {
		return true
	}
	h, s := hookFrom(ctx)
	return h != nil && s.conn == c && h.Running()
}

// hookWaiting returns what records that a call made in a hook outside of a
// handler waits: see [jsonrpc.Config].
func hookWaiting(c *ClientConn) func(ctx context.Context, begins bool) {
	return func(ctx context.Context, begins bool) {
		if h, s := hookFrom(ctx); h != nil && s.conn == c {
			h.Waiting(begins)
		}
	}
}
