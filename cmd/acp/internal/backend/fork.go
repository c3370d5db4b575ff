package backend

import (
	"context"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/cursors"
	"github.com/goacp/acp/transcript"
)

// FieldCursor is the Field of a change that says that a cursor of the session is new, or different: that with the ID of the
// change, whose Text is the update, as JSON, that sets it. Cursors are no part of the conversation; see [Session.Cursors].
const FieldCursor transcript.Field = "cursor"

// Cursors returns the positions of the session that the agent has reported since it is connected to it, in the order in which
// it has. What they are beside has the id that the conversation has for it.
func (s *Session) Cursors() []acpv2.CursorUpdate {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.cursor.All()
}

// moves applies what an update says of a cursor.
func (j *recording) moves(u *acpv2.CursorUpdate) (ch transcript.Change) {
	j.mu.Lock()
	now := j.cursor.Apply(u)
	j.mu.Unlock()
	if now == nil {
		return ch
	}
	data, err := now.AppendJSON(nil)
	if err != nil {
		return ch
	}
	return transcript.Change{Op: transcript.OpSession, Field: FieldCursor, ID: string(u.CursorID), Text: string(data)}
}

func (j *recording) forgetCursors() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cursor = cursors.List{}
}

// Forks reports whether the agent can fork sessions.
func (h *Host) Forks() bool {
	caps := h.Conn().Capabilities().Session
	return caps != nil && caps.Fork != nil
}

// Fork has the agent open a copy of the session: of all of it, or up to one of its cursors whose capabilities say so. The copy
// begins with what was said up to there.
func (s *Session) Fork(ctx context.Context, at acpv2.CursorID) (*Session, error) {
	h := s.host
	upTo, found := s.Anchor(at)
	now := s.Snapshot()
	h.opening.RLock()
	defer h.opening.RUnlock()
	l := h.current()
	cfg, err := h.sessionConfig(l)
	if err != nil {
		return nil, err
	}
	cfg.Cwd = s.Cwd()
	cs, err := l.conn.ForkAt(ctx, s.ID(), at, cfg)
	if err != nil {
		return nil, h.coded("forking session "+string(s.ID()), err)
	}
	fork := h.session(cs)
	fork.order.Lock()
	for e := range now.Entries() {
		if at != "" && (!found || e.Seq() >= upTo) {
			break
		}
		if p, ok := e.(*transcript.Permission); ok && p.Outcome != nil {
			fork.putAnswered(p)
		} else if u := e.Update(); u != nil {
			fork.put(u)
		}
	}
	fork.order.Unlock()
	fork.journal.sync()
	fork.order.Lock()
	fork.ids = newIdentities(fork.Snapshot()) // the agent may count from one again
	fork.order.Unlock()
	fork.opened(cs, cfg.Cwd)
	h.cfg.Choices.opened(fork.ID())
	fork.journal.sync()
	h.cfg.Logger.Info("session", "agent", h.name(), "id", fork.ID(), "forked", s.ID(), "at", at)
	return fork, nil
}

// Anchor returns the entry before which a fork at a cursor ends, by its number in the conversation; found is false if the cursor
// is beside nothing that is there.
func (s *Session) Anchor(at acpv2.CursorID) (before uint64, found bool) {
	now := s.Snapshot()
	for _, c := range s.Cursors() {
		if c.CursorID != at {
			continue
		}
		e, position := AnchorOf(now, &c)
		if e == nil {
			return 0, false
		}
		if position == acpv2.CursorAnchorPositionBefore {
			return e.Seq(), true
		}
		return e.Seq() + 1, true
	}
	return 0, false
}

// AnchorOf returns the entry of a conversation that a cursor is beside, and on which side; nil if it is not there, or of a kind
// that nobody knows.
func AnchorOf(now *transcript.Snapshot, c *acpv2.CursorUpdate) (transcript.Entry, acpv2.CursorAnchorPosition) {
	message := func(role transcript.Role, a acpv2.CursorMessageAnchor) (transcript.Entry, acpv2.CursorAnchorPosition) {
		if m := now.Message(role, a.MessageID); m != nil {
			return m, a.Position
		}
		return nil, ""
	}
	switch a := c.Anchor.(type) {
	case *acpv2.CursorUserMessageAnchor:
		return message(transcript.RoleUser, acpv2.CursorMessageAnchor(*a))
	case *acpv2.CursorAgentMessageAnchor:
		return message(transcript.RoleAgent, acpv2.CursorMessageAnchor(*a))
	case *acpv2.CursorAgentThoughtAnchor:
		return message(transcript.RoleThought, acpv2.CursorMessageAnchor(*a))
	case *acpv2.CursorToolCallAnchor:
		if call := now.ToolCall(a.ToolCallID); call != nil {
			return call, a.Position
		}
	}
	return nil, ""
}
