package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/internal/cursors"
	"github.com/goacp/acp/transcript"
)

// openFork shows where the session can be forked: at its end, and at the positions that the agent has reported, the latest
// first.
func (m *model) openFork() tea.Cmd {
	switch {
	case m.talk == nil || m.phase != ready:
		return m.remark("the agent is not ready yet")
	case m.child != "":
		return m.remark("the conversation of a subagent cannot be forked: /agents leads back")
	case m.busy():
		return m.remark("a turn is running: Esc cancels it")
	case !m.link.Forks():
		return m.remark("the agent cannot fork sessions; /back begins a new one before an earlier prompt")
	}
	now := m.talk.Snapshot()
	items := []item{{title: "the whole conversation", value: acpv2.CursorID("")}}
	all := m.talk.Cursors()
	for i := len(all) - 1; i >= 0; i-- {
		if c := &all[i]; cursors.Forks(c) {
			if e, position := backend.AnchorOf(now, c); e != nil {
				items = append(items, item{title: anchorLine(e), note: string(position), value: c.CursorID})
			}
		}
	}
	m.overlay = newPicker("Fork the session", items, func(m *model, it item) tea.Cmd {
		at, _ := it.value.(acpv2.CursorID)
		return m.fork(at)
	})
	return nil
}

// anchorLine says what a cursor is beside.
func anchorLine(e transcript.Entry) string {
	switch e := e.(type) {
	case *transcript.Message:
		who := map[transcript.Role]string{transcript.RoleUser: "You", transcript.RoleThought: "Thought"}[e.Role]
		if who == "" {
			who = "Agent"
		}
		return who + ": " + one(strings.TrimSpace(e.Text()))
	case *transcript.ToolCall:
		return "Tool: " + one(e.Title)
	}
	return one(e.EntryID())
}

// fork continues in a copy of the session, up to a cursor unless that is "".
func (m *model) fork(at acpv2.CursorID) tea.Cmd {
	if m.phase != ready || m.busy() {
		return m.remark("not while a turn is running: Ctrl+C cancels it")
	}
	m.leaveQueue()
	from, attempt, ctx := m.talk, m.attempt, m.ctx
	m.phase, m.began = opening, m.now()
	return func() tea.Msg {
		t, err := from.Fork(ctx, at)
		if err != nil {
			return openedMsg{attempt: attempt, err: fmt.Errorf("fork: %w", err)}
		}
		leave(ctx, from, t, nil)
		return openedMsg{attempt: attempt, talk: t, how: acp.RestoredResumed, forked: from.ID()}
	}
}
