package acp

import (
	"context"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/timeline"
)

// clientMaxChildren bounds the sessions of subagents that are known on a
// connection at a time. Further ones are ignored.
const clientMaxChildren = 1024

// clientChildren are the sessions of subagents that a connection knows.
type clientChildren struct {
	count   int
	crowded bool // it was logged that there are too many
}

// Parent returns the session that spawned this one, or nil if this is not a
// subagent's session. Once the parent's [SubagentUpdate] has arrived, hooks
// receive the subagent's updates and permission requests like any other
// session's. A connection knows up to 1,024 such sessions; each ends with its
// parent. The agent decides whether it accepts calls about them. Experimental.
func (s *ClientSession) Parent() *ClientSession { return s.parent }

// announce makes the sessions known that an update introduces. It runs on the
// reader, so that none of their updates is missed.
func (c *ClientConn) announce(parent SessionID, params any) {
	var child SessionID
	switch n := params.(type) {
	case *acpv2.UpdateSessionNotification:
		switch u := n.Update.(type) {
		case *acpv2.SubagentUpdate:
			child = u.SessionID
		case StateUpdate:
			if s, ok := c.Session(parent); ok && s.parent == nil {
				c.replayed(s)
			}
		}
	case *acpv1.SessionNotification:
		if u, ok := n.Update.(*acpv1.SubagentUpdate); ok {
			child = SessionID(u.SessionID)
		}
	}
	if child == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.sessions[parent]
	if p == nil || c.ended || c.sessions[child] != nil || c.early[child] != nil {
		return
	}
	if c.children.count >= clientMaxChildren {
		if !c.children.crowded {
			c.client.Logger.Warn("acp: too many subagents: what happens in further ones is dropped", "session", string(parent))
		}
		c.children.crowded = true
		return
	}
	s := c.newSession(child, p.Cwd())
	s.parent, s.opened = p, true
	p.mu.Lock()
	s.replay.arrives = p.replay.arrives
	p.mu.Unlock()
	if s.replay.arrives {
		s.replay.until = clientReplayUntilAnswer // of the session that is loaded
	}
	c.sessions[child] = s
	c.children.count++
	c.notify()
}

// childrenOf returns the sessions of a session's subagents.
func (c *ClientConn) childrenOf(p *ClientSession) []*ClientSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*ClientSession
	for _, s := range c.sessions {
		if s.parent == p {
			out = append(out, s)
		}
	}
	return out
}

// replayChildren marks what the subagents of a session do as history until
// [ClientConn.replayed] is called.
func (c *ClientConn) replayChildren(p *ClientSession) {
	for _, s := range c.childrenOf(p) {
		s.mu.Lock()
		s.replay = clientReplaying{until: clientReplayUntilAnswer, begins: true, arrives: true}
		s.mu.Unlock()
		c.replayChildren(s)
	}
}

// replayed is called when everything that belongs to the replay of a session has
// arrived, on the reader if there was an end. What its subagents have done until
// then is history as well, though their updates are delivered beside its own.
func (c *ClientConn) replayed(p *ClientSession) {
	p.mu.Lock()
	replays := p.replay.arrives
	p.replay.arrives = false
	p.mu.Unlock()
	if !replays {
		return
	}
	for _, s := range c.childrenOf(p) {
		m := new(timeline.Mark[clientItem])
		s.line.Place(m)
		s.line.Resolve(m, clientItem{do: func(context.Context) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.replay.arrives { // another one has not begun
				s.replay.until = clientLive
			}
		}})
		c.replayed(s)
		s.line.Kick()
	}
}
