package acp

import (
	"context"
	"errors"
	"slices"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// maxSeenMessages bounds the user messages that are remembered while a prompt waits for its answer.
const maxSeenMessages = 256

// clientTurns follows the turns of a session of version 2, where the answer to a
// prompt is a receipt and the turn ends when the session is idle (S87, S88). Only
// the goroutine that delivers the session's updates uses it.
type clientTurns struct {
	seq     uint64 // updates delivered so far; the first is 1
	working bool   // the foreground was not idle
	seen    []clientSeen
}

// clientSeen is a message of the user's that an update has contained.
type clientSeen struct {
	id      MessageID
	seq     uint64
	claimed bool // it is some prompt's
	end     clientIdle
}

// clientIdle is the end of some turn.
type clientIdle struct {
	state *IdleStateUpdate // nil while the turn has not ended
	seq   uint64
}

// see records an update of version 2, after it has been delivered.
func (t *clientTurns) see(s *ClientSession, u *Update, replies []*Reply) {
	switch v := u.Update.(type) {
	case *AgentMessageChunk: // by far the most
	case *UserMessage:
		t.saw(v.MessageID, replies)
	case *UserMessageChunk:
		t.saw(v.MessageID, replies)
	case *IdleStateUpdate:
		if v.StopReason == "" && !t.working || u.Replayed && v.StopReason != "" {
			return // a snapshot, no end (S88), or the end of an earlier turn
		}
		t.working = false
		for _, r := range replies {
			if r.turn.accepted.Load() {
				s.complete(r, v)
			}
		}
		for i := range t.seen {
			if m := &t.seen[i]; m.end.state == nil {
				m.end = clientIdle{v, t.seq}
			}
		}
	case StateUpdate:
		t.working = true // also if it is not known: never idle (S85)
	}
}

// saw remembers where a message of the user's began, while some prompt does not
// know its message yet.
func (t *clientTurns) saw(id MessageID, replies []*Reply) {
	if !t.awaited(replies) {
		return
	}
	if slices.ContainsFunc(t.seen, func(m clientSeen) bool { return m.id == id }) {
		return
	}
	if len(t.seen) >= maxSeenMessages {
		t.seen = slices.Delete(t.seen, 0, 1)
	}
	t.seen = append(t.seen, clientSeen{id: id, seq: t.seq})
}

// awaited reports whether some prompt does not know its message yet. Otherwise what was seen is forgotten: what no
// prompt has claimed is no later one's.
func (t *clientTurns) awaited(replies []*Reply) bool {
	if slices.ContainsFunc(replies, func(r *Reply) bool { return !r.turn.accepted.Load() }) {
		return true
	}
	t.seen = nil
	return false
}

// begins returns the first update of the turn of a prompt that was just answered,
// and its end if there was one: that of its message if it was seen, or the next
// update otherwise. Drafts of version 2 answer without an id.
func (t *clientTurns) begins(id MessageID) (_ MessageID, from uint64, end clientIdle) {
	for i := range t.seen {
		if m := &t.seen[i]; m.id == id || id == "" && !m.claimed {
			m.claimed = true
			return m.id, m.seq, m.end
		}
	}
	return id, t.seq + 1, clientIdle{}
}

// answered handles the answer to a prompt, where it stands among the updates.
func (s *ClientSession) answered(ctx context.Context, r *Reply) {
	if s.conn.Version() == 1 {
		s.promptAnswered(ctx, r)
		return
	}
	answer, err := &r.call.result, r.call.err
	if err != nil {
		s.leave(r)
		r.finish(r.outcome())
		return
	}
	id, from, end := s.turns.begins(answer.messageID)
	r.accept(id, from)
	s.mu.Lock()
	s.turns.awaited(s.replies)
	s.mu.Unlock()
	if end.state != nil {
		r.buffer.cut(end.seq)
		s.complete(r, end.state)
		return
	}
	if r.ctx.Err() != nil { // it came too late to be withdrawn
		_ = s.conn.spawn(r.cancelSession)
	}
}

// accept records that an agent of version 2 accepted the prompt, and where its
// turn begins.
func (r *Reply) accept(id MessageID, from uint64) {
	r.mu.Lock()
	r.id = id
	r.turn.accepted.Store(true)
	if r.turn.taken != nil {
		close(r.turn.taken)
	}
	r.mu.Unlock()
	r.buffer.begin(from)
}

// complete ends a turn of version 2.
func (s *ClientSession) complete(r *Reply, idle *IdleStateUpdate) {
	s.leave(r)
	err := failureOf(idle)
	if r.ctx.Err() != nil {
		err = r.ctxErr()
	}
	r.finish(&Result{StopReason: idle.StopReason, Usage: idle.Usage, Error: idle.Error, Meta: idle.Meta}, err)
}

// failureOf returns the error of a turn that failed, as the answer of an agent of
// version 1 would contain it.
func failureOf(idle *IdleStateUpdate) error {
	switch e := idle.Error; {
	case idle.StopReason != StopError:
		return nil
	case e == nil:
		return jsonrpc.ErrInternal
	default:
		return &jsonrpc.Error{Code: int(e.Code), Message: e.Message, Data: e.Data}
	}
}

// promptSent delivers the updates that an agent of version 2 would send when a
// prompt begins. They come before everything the agent sends about it.
func (s *ClientSession) promptSent(ctx context.Context, r *Reply, p *acpv2.PromptRequest) {
	s.v1.Boundary()
	told := new(struct { // allocated at once
		first, second Update
		message       UserMessage
		running       RunningStateUpdate
	})
	told.first, told.second = s.synthetic(&told.message), s.synthetic(&told.running)
	told.message.MessageID, told.message.Content = r.MessageID(), Set(p.Prompt)
	r.buffer.setOwn(&told.first)
	s.emit(ctx, &told.first)
	s.emit(ctx, &told.second)
}

// promptAnswered delivers the updates that an agent of version 2 would send when
// a turn ends. They come after everything that arrived before the answer.
func (s *ClientSession) promptAnswered(ctx context.Context, r *Reply) {
	told := new(struct { // allocated at once
		update Update
		idle   IdleStateUpdate
	})
	told.update = s.synthetic(&told.idle)
	idle := &told.idle
	res, failed := r.outcome()
	switch {
	case res != nil:
		idle.StopReason, idle.Usage, idle.Meta = res.StopReason, res.Usage, res.Meta
	case r.ctx.Err() != nil:
		idle.StopReason = StopCancelled
	default:
		idle.StopReason = StopError
		if said, ok := errors.AsType[*jsonrpc.Error](r.call.err); ok {
			idle.Error = &acpv2.Error{Code: acpv2.ErrorCode(said.Code), Message: said.Message, Data: said.Data}
		}
	}
	s.v1.Boundary()
	s.emit(ctx, &told.update)
	younger, busy := s.leave(r)
	for _, o := range younger {
		o.buffer.restart() // before the end is seen: only then may they be read
	}
	r.finish(res, failed)
	if busy {
		running := s.synthetic(&RunningStateUpdate{})
		s.emit(ctx, &running)
	}
}

func (s *ClientSession) synthetic(u SessionUpdate) Update {
	return Update{Session: s, Update: u, Synthetic: true}
}
