package agent

import (
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/internal/skills"
)

// A running turn is one that may take what the user says meanwhile.
type running struct {
	rank string // of who has sent its prompt
	done chan struct{}
}

// run notes that a turn runs, until the function that it returns is called.
func (s *session) run(rank string) (end func()) {
	r := &running{rank, make(chan struct{})}
	s.mu.Lock()
	s.running = r
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.running = nil
		s.mu.Unlock()
		close(r.done)
	}
}

// accept is the hook of that name. A prompt that arrives while a turn runs is for that turn; a command, and what somebody
// says whose rank is another one, waits until it has ended.
func (b *builtin) accept(ctx context.Context, t *acp.Turn) error {
	s, ok := t.Session().Value.(*session)
	if !ok {
		return nil
	}
	s.mu.Lock()
	r := s.running
	s.mu.Unlock()
	said := wishOf(typed(t), 0)
	if r == nil || r.rank == rankOf(t) && !(said.ok && isCommand(said.name)) {
		return nil
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	return nil
}

// Steer implements [loop.Host]: it returns what the user has said while the turn ran. What nobody takes becomes the next
// prompt.
func (m *modelTurn) Steer() []model.Part {
	var parts []model.Part
	for {
		blocks, ok := m.turn.TakeSteering()
		if !ok {
			return parts
		}
		blocks = skills.Plain(blocks)
		if m.s.acp.Conn().Version() == 1 { // which has no update that would record it
			m.s.keep(&acp.UserMessage{MessageID: acp.MessageID(m.s.nextID("said")), Content: acp.Set(blocks)})
		}
		parts = append(parts, m.parts(m.s.expand(blocks, wishOf(blocks, 0)))...)
	}
}
