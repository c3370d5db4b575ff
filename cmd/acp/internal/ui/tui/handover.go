package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// maxHandover bounds what an agent gets of a conversation that it has not had, in bytes. The
// latest part is kept.
const maxHandover = 256 << 10

// handover returns a conversation as text, for an agent that continues it: what was said before an
// entry, or all of it if that is nil. It is "" if nothing was said.
func handover(s *transcript.Snapshot, before transcript.Entry) string {
	var parts []string
	for e := range s.Entries() {
		if before != nil && e.Seq() >= before.Seq() {
			break
		}
		switch e := e.(type) {
		case *transcript.Message:
			text := strings.TrimSpace(safetext.Text(e.Text()))
			if text == "" || e.Role == transcript.RoleThought {
				continue
			}
			who := "Agent"
			if e.Role == transcript.RoleUser {
				who = "User"
			}
			parts = append(parts, who+":\n"+text)
		case *transcript.ToolCall:
			line := "(The agent used a tool: " + one(e.Title)
			if e.Status != "" {
				line += ", " + string(e.Status)
			}
			parts = append(parts, line+")")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "\n\n")
	if over := len(text) - maxHandover; over > 0 {
		text = "(The beginning is left out.)\n" + strings.ToValidUTF8(text[over:], "")
	}
	return backend.Handover + "\n\n" + text + "\n\n(That was the conversation so far.)\n\n"
}

// handOver puts a conversation into the input, as a placeholder that the user may remove, followed
// by a text.
func (m *model) handOver(said, text string) {
	m.input.clear()
	if said != "" {
		lines := strings.Count(said, "\n") + 1
		name := m.input.newMark("the conversation so far, "+counted(lines, "line", "lines"), func(name string) { m.input.pastes[name] = said })
		m.input.area.InsertString(name + " ")
	}
	m.input.area.InsertString(text)
	m.input.resize(m.w, m.inputLimit())
}

// openRewind lets the user go back to an earlier prompt: a new session begins with what was said
// before it, and the prompt is in the input to be changed. The protocol can only fork a session at
// its end, so the new session gets what came before as text.
func (m *model) openRewind() tea.Cmd {
	if m.talk == nil || m.child != "" {
		return nil
	}
	if m.busy() {
		return m.remark("a turn is running: Esc cancels it")
	}
	s := m.talk.Snapshot()
	var items []item
	for e := range s.Backward() {
		msg, ok := e.(*transcript.Message)
		if ok && msg.Role == transcript.RoleUser && strings.TrimSpace(msg.Text()) != "" {
			items = append(items, item{title: one(msg.Text()), value: msg})
		}
	}
	p := newPicker("Go back to before", items, func(m *model, it item) tea.Cmd {
		msg, _ := it.value.(*transcript.Message)
		if m.phase != ready && m.phase != dead {
			return m.remark("the agent is not ready yet")
		}
		cmd := m.newSession("")
		m.handOver(handover(s, msg), safetext.Text(msg.Text()))
		m.say("a new session begins; the one before is kept, and files are as they are now", false)
		return cmd
	})
	p.empty = "you have sent nothing yet"
	m.overlay = p
	return nil
}

// switchAgent carries out /agent: another agent continues the conversation, if the user sends what
// was said so far.
func (m *model) switchAgent(name string) tea.Cmd {
	if m.opt.App == nil {
		return nil
	}
	if m.busy() {
		return m.remark("a turn is running: Esc cancels it")
	}
	if name != "" {
		a, err := m.opt.App.Agent(name)
		if err != nil {
			m.say(err.Error(), true)
			return nil
		}
		return m.change(a)
	}
	return m.openRoster()
}

// change starts another agent in place of the one that there is.
func (m *model) change(a roster.Agent) tea.Cmd {
	said := ""
	if m.talk != nil {
		said = handover(m.talk.Snapshot(), nil)
	}
	draft := m.input.value()
	m.opt.Agent = a
	m.notes, m.stderr = nil, nil
	cmd := m.restart("")
	m.handOver(said, draft)
	if said != "" {
		m.say("the agent has not seen what was said so far: it is in your prompt below, and sent only if you leave it there", false)
	}
	return cmd
}
