package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/transcript"
)

// An action is something that a key does wherever the user types a prompt or selects entries.
type action struct {
	id        string // in the setting ui.keys
	key, also string // as Bubble Tea calls them; also may be empty
	name      string // of the key, for people
	what      string
	run       func(*model) tea.Cmd
}

// actions returns the actions in the order in which the palette shows them.
func actions() []action {
	return []action{
		{"palette", "ctrl+p", "", "Ctrl+P", "find a command or key", (*model).openPalette},
		{"options", "ctrl+o", "", "Ctrl+O", "mode, model and other options", (*model).openOptions},
		{"mode", "shift+tab", "", "Shift+Tab", "next mode", (*model).cycleMode},
		{"prompts", "ctrl+r", "", "Ctrl+R", "search earlier prompts", (*model).openPrompts},
		{"sessions", "alt+r", "", "Alt+R", "earlier sessions", (*model).listSessions},
		{"back", "", "", "Esc Esc", "go back to an earlier prompt", (*model).openRewind},
		{"find", "ctrl+f", "", "Ctrl+F", "search the conversation", func(m *model) tea.Cmd { m.openSearch(); return nil }},
		{"copy", "ctrl+y", "", "Ctrl+Y", "copy an answer or code", (*model).openCopy},
		{"fold", "ctrl+t", "", "Ctrl+T", "open or fold thoughts and tools", (*model).toggleAll},
		{"subagents", "ctrl+x", "", "Ctrl+X", "show subagents", (*model).openAgents},
		{"changes", "alt+c", "", "Alt+C", "show what this session has changed, and take changes back", (*model).openChanges},
		{"jobs", "alt+b", "", "Alt+B", "list and stop commands that run in the background", (*model).openBackground},
		{"stderr", "alt+e", "", "Alt+E", "show what the agent has written to its standard error", (*model).openStderr},
		{"editor", "ctrl+g", "", "Ctrl+G", "edit the prompt in $VISUAL or $EDITOR", (*model).editor},
		{"send-now", "ctrl+s", "", "Ctrl+S", "send at once, even while a turn is running", (*model).steer},
		{"help", "f1", "ctrl+_", "F1", "all keys and commands", func(m *model) tea.Cmd { m.overlay = m.newHelp(); return nil }},
	}
}

// keyOf returns the name of the key of an action.
func (m *model) keyOf(id string) string {
	for _, a := range m.actions {
		if a.id == id && a.name != "" {
			return a.name
		}
	}
	return "/" + id
}

// actionKey carries out the action of a key, if it has one.
func (m *model) actionKey(s string) (tea.Cmd, bool) {
	if s == "ctrl+/" {
		s = "ctrl+_"
	}
	for _, a := range m.actions {
		if s != "" && (a.key == s || a.also == s) {
			return a.run(m), true
		}
	}
	return nil, false
}

// toggleAll opens or folds all thoughts and tool calls.
func (m *model) toggleAll() tea.Cmd {
	m.screen.follow = m.screen.follow && m.busy()
	m.holdTop()
	m.screen.tr.ToggleAll(transcript.KindMessage)
	m.screen.tr.ToggleAll(transcript.KindToolCall)
	m.stale = true
	return nil
}

// openPalette shows everything that can be done, with its key, to be searched.
func (m *model) openPalette() tea.Cmd {
	var items []item
	for _, a := range m.actions[1:] {
		items = append(items, item{group: "Keys", title: a.what, note: a.name, value: a.run})
	}
	for _, c := range commands() {
		name := "/" + c.name
		if m.agentHas(c.name) {
			name = ownPrefix + c.name
		}
		items = append(items, item{group: "Commands of acp", title: c.what, note: strings.TrimSpace(name + " " + c.hint), value: typing(name, c.hint)})
	}
	if m.talk != nil {
		for _, c := range m.talk.Commands() {
			name, what, hint := commandOf(c)
			if name = safeLine(name, 80); name == "" {
				continue
			}
			title := one(what)
			if title == "" {
				title = "/" + name
			}
			items = append(items, item{group: "Commands of the agent", title: title, note: strings.TrimSpace("/" + name + " " + safeLine(hint, 40)), value: typing("/"+name, hint)})
		}
	}
	m.overlay = newPicker("Commands", items, func(m *model, it item) tea.Cmd {
		run, _ := it.value.(func(*model) tea.Cmd)
		return run(m)
	})
	return nil
}

// typing returns what carries out a slash command: one that wants something after its name is
// put into the input.
func typing(name, hint string) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if hint == "" {
			if cmd, ours := m.ownCommand(name); ours {
				return cmd
			}
			return m.submit(name)
		}
		m.input.set(name + " ")
		return nil
	}
}

// openPrompts lets the user search what they have typed in this project, the latest first.
func (m *model) openPrompts() tea.Cmd {
	var items []item
	seen := map[string]bool{}
	lines := m.input.history.lines
	for i := len(lines) - 1; i >= 0; i-- {
		title := one(lines[i])
		if title == "" || seen[lines[i]] {
			continue
		}
		seen[lines[i]] = true
		items = append(items, item{title: title, value: lines[i]})
	}
	p := newPicker("Earlier prompts", items, func(m *model, it item) tea.Cmd {
		text, _ := it.value.(string)
		m.input.set(text)
		m.input.resize(m.w, m.inputLimit())
		return nil
	})
	p.empty = "nothing was typed in this directory yet"
	p.exact = true
	if typed := m.input.value(); typed != "" && !strings.Contains(typed, "\n") {
		p.filter = safeLine(typed, 200)
		p.search()
	}
	m.overlay = p
	return nil
}
