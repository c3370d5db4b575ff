package tui

import (
	"context"
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/transcript"
)

// A steered is a message that was sent while a turn ran. It is in the conversation once the agent has it.
type steered struct {
	text   string
	from   uint64 // the first entry that can come after it
	queued bool   // the agent queues it, as far as is known
}

// sendsBehind notes that a prompt is sent while a turn runs.
func (m *model) sendsBehind(text string) {
	next := steered{text: text}
	for e := range m.talk.Snapshot().Backward() {
		next.from = e.Seq() + 1
		break
	}
	m.steered = append(m.steered, next)
}

// awaited returns the messages that were sent and not taken yet, and forgets the others.
func (m *model) awaited() []steered {
	if len(m.steered) == 0 || m.talk == nil {
		return nil
	}
	var said []string // since the first of them, the latest first
	for e := range m.talk.Snapshot().Backward() {
		if e.Seq() < m.steered[0].from {
			break
		}
		if msg, ok := e.(*transcript.Message); ok && msg.Role == transcript.RoleUser {
			said = append(said, msg.Text())
		}
	}
	m.steered = slices.DeleteFunc(m.steered, func(s steered) bool { return isOneOf(s.text, said) })
	return m.steered
}

// arrives forgets a message that was sent while a turn ran, since it is known what became of it.
func (m *model) arrives(text string) {
	if i := slices.IndexFunc(m.steered, func(s steered) bool { return s.text == text }); i >= 0 {
		m.steered = slices.Delete(m.steered, i, i+1)
	}
}

// steerTurn puts a message into the turn that runs.
func (m *model) steerTurn(text string) tea.Cmd {
	m.sendsBehind(text)
	t, attempt, ctx, composed := m.talk, m.attempt, m.ctx, m.composed(text)
	if m.opt.Agent.Gateway { // leaving does not withdraw it
		ctx = context.WithoutCancel(ctx)
	}
	return func() tea.Msg {
		blocks, remarks := composed(ctx)
		outcome, err := t.Steer(ctx, blocks...)
		return steeredMsg{attempt, t, outcome, err, remarks, text}
	}
}

// wasSteered handles what became of a message for the turn that runs. What the agent has not taken is kept.
func (m *model) wasSteered(msg steeredMsg) tea.Cmd {
	if msg.attempt != m.attempt || m.talk == nil || msg.talk.ID() != m.talk.ID() || m.phase != ready {
		m.arrives(msg.text)
		if msg.err != nil || msg.outcome == acp.SteerPromptRequired || msg.outcome == acp.SteerQueued {
			m.keeps(msg.text)
		}
		return nil
	}
	for _, r := range msg.remarks {
		m.say(r, false)
	}
	m.show(nil)
	switch {
	case acp.IsSteerRefused(msg.err):
		return m.hold(msg.text)
	case errors.Is(msg.err, acp.ErrCancelled):
		m.arrives(msg.text)
		m.keeps(msg.text)
		return nil
	case errors.Is(msg.err, acp.ErrOutcomeUnknown):
		m.arrives(msg.text)
		m.say("the agent does not say whether it has your message"+m.keeps(msg.text), true)
		return nil
	case msg.err != nil:
		m.arrives(msg.text)
		m.say(explain(msg.err)+m.keeps(msg.text), true)
		return nil
	}
	switch msg.outcome {
	case acp.SteerStartedNewTurn:
		return m.remark("sent: the agent has begun a turn with it")
	case acp.SteerPromptRequired: // the turn has ended
		m.arrives(msg.text)
		return m.prompt(msg.text)
	case acp.SteerQueued:
		for i := range m.steered {
			m.steered[i].queued = m.steered[i].queued || m.steered[i].text == msg.text
		}
		return tea.Batch(m.prompt(msg.text), m.remark("queued: the agent decides whether it joins the turn or waits for its end"))
	}
	return m.remark("sent: the agent includes it in the running turn")
}

// hold keeps a message that the agent has refused until the turn has ended.
func (m *model) hold(text string) tea.Cmd {
	m.arrives(text)
	m.queue = slices.Insert(m.queue, 0, text)
	return tea.Batch(m.sendNext(), m.remark("the agent takes nothing while it works: it is sent when the turn has ended"))
}

// keeps returns a message that the agent may not have to the input, unless the user is typing, and says where it is.
func (m *model) keeps(text string) (where string) {
	if m.input.value() == "" {
		m.input.set(text)
		return ""
	}
	return "; ↑ brings it back" // what was sent is an earlier input
}
