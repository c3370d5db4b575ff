package tui

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/transcript"
)

// lookBehind finds out which commands run, and marks what shows those that began or ended.
func (m *model) lookBehind() {
	t := m.shown()
	if t == nil {
		return
	}
	now := map[acp.TerminalID]bool{}
	for _, term := range m.runs(t) {
		now[term.ID] = true
	}
	if maps.Equal(now, m.background) {
		return
	}
	was := m.background
	m.background = now
	for _, set := range []map[acp.TerminalID]bool{was, now} {
		for id := range set {
			if was[id] != now[id] {
				m.screen.tr.InvalidateTerminal(id)
				m.stale = true
			}
		}
	}
}

// runs returns the terminals of a session whose commands run. Commands end with the agent, which may
// not have had the time to say so.
func (m *model) runs(t talk) []*transcript.Terminal {
	if m.phase == dead {
		return nil
	}
	return t.Running()
}

// behind returns how much runs in the background: commands, and what else the agent reports.
func (m *model) behind() int {
	n := len(m.background)
	if t := m.shown(); t != nil && m.phase != dead {
		n += len(shown.Tasks(t.Snapshot().Session()))
	}
	return n
}

// openBackground lists the commands that run, of which the user may stop one.
func (m *model) openBackground() tea.Cmd {
	t := m.shown()
	if t == nil || m.behind() == 0 {
		return m.remark("no command is running")
	}
	var items []item
	for _, what := range shown.Tasks(t.Snapshot().Session()) {
		items = append(items, item{title: what, note: "only the agent can stop it"})
	}
	for _, term := range m.runs(t) {
		title := one(term.Command)
		if title == "" {
			title = "a command"
		}
		items = append(items, item{title: "$ " + title, note: lastLine(term), value: term.ID})
	}
	p := newPicker("Running commands", items, func(m *model, it item) tea.Cmd {
		id, ok := it.value.(acp.TerminalID)
		if !ok {
			return m.remark("only the agent can stop this: ask it to")
		}
		ctx := m.ctx
		return func() tea.Msg {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			if err := t.StopTerminal(ctx, id); err != nil {
				return failedMsg{fmt.Errorf("stopping the command: %w", err)}
			}
			return saidMsg{"stopped: " + it.title}
		}
	})
	p.does = "Enter stops it"
	m.overlay = p
	return nil
}

// lastLine returns the last line that a command has printed.
func lastLine(t *transcript.Terminal) string {
	text := strings.TrimRight(t.Plain(), " \n\t")
	return one(text[strings.LastIndexByte(text, '\n')+1:])
}
