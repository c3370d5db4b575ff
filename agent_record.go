package acp

import (
	"context"
	"errors"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// IsMomentary reports whether an update describes only the present: a state, a
// notice, the usage, the options, the commands or the suggested prompts of a session,
// or the end of a replay. It is not part of a
// conversation that is replayed. Agents that keep what [Agent.Record] is given may
// drop it; the title of a session is not momentary.
func IsMomentary(u SessionUpdate) bool {
	switch u.(type) {
	case StateUpdate, *Notice, *UsageUpdate, *AvailableCommandsUpdate, *ConfigOptionUpdate, *acpv2.PromptSuggestionsUpdate,
		*acpv2.ReplayComplete:
		return true
	}
	return false
}

// record passes an update that is about to be sent to the Record hook and to the
// session's own history. The caller has the right to send.
func (s *AgentSession) record(ctx context.Context, u SessionUpdate) error {
	a := s.c.agent.Load()
	if err := s.callRecord(ctx, a, u); err != nil {
		return err
	}
	if s.keepsHistory(a) {
		s.history.add(u)
	}
	return nil
}

// recordText is record for a piece of text. Without the hook it has to be fast.
func (s *AgentSession) recordText(ctx context.Context, kind messageKind, id MessageID, text string) error {
	a := s.c.agent.Load()
	if a.Record != nil {
		if err := s.callRecord(ctx, a, chunkUpdate(kind, id, acpv2.Text(text))); err != nil {
			return err
		}
	}
	if s.keepsHistory(a) {
		s.history.addText(kind, id, text)
	}
	return nil
}

// callRecord calls the Record hook, unless the session is replaying its history.
func (s *AgentSession) callRecord(ctx context.Context, a *Agent, u SessionUpdate) error {
	if a.Record == nil || s.replaying.Load() {
		return nil
	}
	return s.c.guard("Record", func() error { return a.Record(ctx, s, u) })
}

// keepsHistory reports whether the session can be replayed from memory.
func (s *AgentSession) keepsHistory(a *Agent) bool {
	return !s.child && a.ResumeSession == nil && s.c.peer.Load().proto.states()
}

// recordsStates reports whether states go anywhere: to a client of version 2, or to
// the Record hook.
func (s *AgentSession) recordsStates() bool {
	return s.c.agent.Load().Record != nil || s.c.peer.Load().proto.states()
}

// recordOnly records an update that is not sent, for what the client knows already.
func (s *AgentSession) recordOnly(ctx context.Context, u SessionUpdate) error {
	if s.c.agent.Load().Record == nil {
		return nil
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	return s.callRecord(ctx, s.c.agent.Load(), u)
}

// chunkUpdate returns a piece of a message as an update.
func chunkUpdate(kind messageKind, id MessageID, b ContentBlock) SessionUpdate {
	chunk := &ContentChunk{MessageID: id, Content: b}
	switch kind {
	case agentThought:
		return (*AgentThoughtChunk)(chunk)
	case userMessage:
		return (*UserMessageChunk)(chunk)
	}
	return (*AgentMessageChunk)(chunk)
}

// endOf returns the update that ends a turn. Clients of version 1 are not sent it:
// there the error is the answer to the prompt, which is logged with that.
func (t *Turn) endOf(stop StopReason, err error) *IdleStateUpdate {
	s := t.session
	s.mu.Lock()
	idle := &IdleStateUpdate{StopReason: stop, Usage: t.usage, Background: s.background, Meta: t.answer}
	s.mu.Unlock()
	if err == nil {
		return idle
	}
	idle.StopReason = StopError
	if s.c.peer.Load().proto.states() {
		idle.Error = s.c.turnError(err)
		return idle
	}
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		said = jsonrpc.ErrInternal
	}
	idle.Error = &acpv2.Error{Code: acpv2.ErrorCode(said.Code), Message: said.Message, Data: said.Data}
	return idle
}
