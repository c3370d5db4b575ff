package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/title"
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
	return title.Handover + "\n\n" + text + "\n\n" + handoverEnd + "\n\n"
}

// handoverEnd is the line that ends what handover returns.
const handoverEnd = "(That was the conversation so far.)"

// handOver puts a conversation into the input, as a placeholder that the user may remove, followed
// by a text.
func (m *model) handOver(said, text string) {
	m.input.clear()
	if said != "" {
		m.input.area.InsertString(m.input.markHandover(said) + " ")
	}
	m.input.area.InsertString(text)
	m.input.resize(m.w, m.inputLimit())
}

// markHandover returns a placeholder for a conversation.
func (in *input) markHandover(said string) string {
	lines := strings.Count(said, "\n") + 1
	return in.newMark("the conversation so far, "+counted(lines, "line", "lines"), func(name string) { in.pastes[name] = said })
}

// spelled returns the input with the texts that placeholders stand for, to be edited.
func (in *input) spelled() string {
	text := in.value()
	_, long := in.attached(text)
	for name, s := range long {
		text = strings.ReplaceAll(text, name, strings.TrimSpace(s))
	}
	return text
}

// folded puts placeholders into a text in place of what they stand for, and one in place of a
// conversation that was edited.
func (in *input) folded(text string) string {
	for _, name := range in.marks {
		if s := strings.TrimSpace(in.pastes[name]); s != "" {
			text = strings.Replace(text, s, name, 1)
		}
	}
	if said, rest, ok := strings.Cut(text, handoverEnd); ok && strings.HasPrefix(said, title.Handover) {
		text = in.markHandover(said+handoverEnd+"\n\n") + rest
	}
	return text
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
		m.say("the agent has not seen what was said so far: it is in your prompt below, and sent only if you leave it there; Ctrl+G edits it", false)
	}
	return cmd
}
