package acp

import (
	"context"

	"github.com/goacp/acp/acpv2"
)

// leftCalls are the tool calls of a history that is being replayed. Those that it
// leaves open ran when the agent ended. The zero value is ready.
type leftCalls struct {
	open  map[ToolCallID]bool // whether they are, of all that were seen
	order []ToolCallID
}

// maxLeftCalls bounds the tool calls of one history. Later ones are not looked at.
const maxLeftCalls = 1 << 16

// see notes what a replayed update says about a tool call.
func (l *leftCalls) see(u SessionUpdate) {
	call, ok := u.(*ToolCallUpdate)
	if !ok {
		return
	}
	status, said := call.Status.Get()
	if _, known := l.open[call.ToolCallID]; !known {
		if len(l.order) >= maxLeftCalls {
			return
		}
		if l.open == nil {
			l.open = map[ToolCallID]bool{}
		}
		l.order = append(l.order, call.ToolCallID)
		said = true // one without a status is pending
	}
	if said {
		l.open[call.ToolCallID] = !finalStatus(status)
	}
}

// endLeft reports the tool calls that the history has left open as cancelled, and
// records that, apart from those that the agent says continue in the background. An
// agent that records nothing itself may know better what runs.
func (s *AgentSession) endLeft(ctx context.Context) error {
	if s.c.agent.Load().Record == nil {
		return nil
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	left := s.history.left
	s.history.left = leftCalls{}
	s.mu.Lock()
	for _, work := range s.background {
		if w, ok := work.(*acpv2.BackgroundToolCall); ok {
			delete(left.open, w.ToolCallID)
		}
	}
	s.mu.Unlock()
	for _, id := range left.order {
		if !left.open[id] {
			continue
		}
		if err := s.send(ctx, &ToolCallUpdate{ToolCallID: id, Status: acpv2.Set(ToolCallStatusCancelled)}); err != nil {
			return err
		}
	}
	return nil
}
