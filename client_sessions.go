package acp

import (
	"context"
	"time"

	"github.com/goacp/acp/internal/timeline"
	"github.com/goacp/acp/internal/told"
	"github.com/goacp/acp/jsonrpc"
)

// Bounds of what is kept for sessions that are not known yet.
const (
	clientEarlySessions = 64
	clientEarlyUpdates  = 4096
	clientEarlyBytes    = 1 << 20
)

// clientEarly holds updates of a session that is not known yet.
type clientEarly struct {
	arrived uint64
	bytes   int
	updates []clientItem
	lost    uint64
	calls   *told.Calls
}

// arrived counts the updates of a session, on the reader. It returns what records
// their tool calls.
func (c *ClientConn) arrived(id SessionID, updates uint64) *told.Calls {
	if s := c.recent.Load(); s != nil && s.id == id {
		s.line.Arrived(updates)
		return s.calls
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[id]; s != nil {
		c.recent.Store(s)
		s.line.Arrived(updates)
		return s.calls
	}
	if e := c.earlyOf(id); e != nil {
		e.arrived += updates
		return e.calls
	}
	return new(told.Calls) // nobody's
}

// earlyOf returns where updates of an unknown session are kept, or nil. It is
// called with mu held.
func (c *ClientConn) earlyOf(id SessionID) *clientEarly {
	if c.opening == 0 {
		return nil
	}
	e := c.early[id]
	if e == nil && len(c.early) < clientEarlySessions {
		if c.early == nil {
			c.early = map[SessionID]*clientEarly{}
		}
		e = &clientEarly{calls: new(told.Calls)}
		c.early[id] = e
	}
	return e
}

// handleUpdate is the handler of session/update. An update of a session whose
// session/new has not been answered yet is kept; one of any other unknown session
// is ignored.
func (c *ClientConn) handleUpdate(ctx context.Context, id SessionID, it clientItem) {
	if r := jsonrpc.RequestFrom(ctx); r != nil { // not if middleware of the application hides it
		it.frame = r.Frame
	}
	if s := c.recent.Load(); s != nil && s.id == id {
		s.line.Handle(ctx, it)
		return
	}
	c.mu.Lock()
	s := c.sessions[id]
	lost := false
	if s == nil {
		lost = !c.hold(id, it)
	}
	c.mu.Unlock()
	if s != nil {
		s.line.Handle(ctx, it)
	} else if lost {
		c.client.Logger.Debug("acp: update of an unknown session dropped")
	}
}

// hold keeps an update of an unknown session, or reports that it did not. It is
// called with mu held.
func (c *ClientConn) hold(id SessionID, it clientItem) bool {
	e := c.earlyOf(id)
	if e == nil {
		return false
	}
	var u interface {
		AppendJSON(dst []byte) ([]byte, error)
	} = it.v2
	if it.v1 != nil {
		u = it.v1
	}
	text, _ := u.AppendJSON(nil)
	if e.lost > 0 || len(e.updates) >= clientEarlyUpdates || e.bytes+len(text) > clientEarlyBytes {
		e.lost++
		return false
	}
	e.bytes += len(text)
	e.updates = append(e.updates, it)
	return true
}

// beginOpening records that the answer to a request will be a new session.
func (c *ClientConn) beginOpening() {
	c.mu.Lock()
	c.opening++
	c.mu.Unlock()
}

func (c *ClientConn) endOpening() {
	c.mu.Lock()
	c.opening--
	if c.opening == 0 {
		c.early = nil
	}
	c.notify()
	c.mu.Unlock()
}

// notify wakes the calls that wait for a session. It is called with mu held.
func (c *ClientConn) notify() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// add makes a session known, on the reader if it is new to the agent. What has
// arrived for it becomes the beginning of its timeline, after the mark m. If
// there is a session of the same id, which the agent has forgotten, add returns
// that one.
func (c *ClientConn) add(s *ClientSession, m *timeline.Mark[clientItem]) (old *ClientSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.early[s.id]; e != nil {
		delete(c.early, s.id)
		s.calls = e.calls
		s.line.Start(m, e.arrived, e.updates, e.lost)
	} else {
		s.line.Start(m, 0, nil, 0)
	}
	if old = c.sessions[s.id]; old != nil {
		c.remove(old)
	}
	c.sessions[s.id] = s
	c.notify()
	return old
}

// known returns the session with the given id, which is about to be opened again,
// and adds it if it does not exist. endOpeningAgain must be called when it has
// been opened.
func (c *ClientConn) known(id SessionID, cwd string) *ClientSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if s == nil {
		s = c.newSession(id, cwd)
		c.sessions[id] = s
		c.notify()
	}
	s.opening++
	return s
}

// endOpeningAgain reports whether no other call is opening the session. If so,
// and it never was open, nobody will get it any more.
func (c *ClientConn) endOpeningAgain(s *ClientSession) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.opening--
	if s.opening > 0 {
		return false
	}
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if !opened && c.sessions[s.id] == s {
		c.remove(s)
	}
	return true
}

// remove takes a session that is in the table out of it. The caller holds c.mu.
func (c *ClientConn) remove(s *ClientSession) {
	delete(c.sessions, s.id)
	if s.parent != nil {
		c.children.count--
	}
	c.recent.Store(nil)
}

// clientUnknownWait is how long a request about an unknown session waits while
// some session/new has not been answered.
const clientUnknownWait = 2 * time.Second

// requestSession returns the session that a request of the agent is about. While
// a session is being opened it may become known; but the agent may not answer
// before its request is answered.
func (c *ClientConn) requestSession(ctx context.Context, id SessionID) (*ClientSession, error) {
	var enough <-chan time.Time
	for {
		c.mu.Lock()
		s := c.sessions[id]
		if s != nil || c.opening == 0 || c.ended {
			c.mu.Unlock()
			if s == nil {
				return nil, SessionNotFound(id)
			}
			return s, nil
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		if enough == nil {
			timer := time.NewTimer(clientUnknownWait)
			defer timer.Stop()
			enough = timer.C
		}
		select {
		case <-changed:
		case <-enough:
			return nil, SessionNotFound(id)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
