package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// key handles a key. The topmost part of the screen gets it first.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	s := k.String()
	if s == "alt+esc" { // Esc twice, if both arrive together
		esc := tea.KeyPressMsg{Code: tea.KeyEscape}
		return tea.Batch(m.key(esc), m.key(esc))
	}
	m.screen.marked = nil
	// These work everywhere.
	switch s {
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	}
	if o := m.top(); o != nil {
		return o.key(m, k)
	}
	if m.search != nil {
		return m.searchKey(k)
	}
	if m.popup != nil {
		if cmd, done := m.popupKey(k); done {
			return cmd
		}
	}
	if cmd, done := m.moveKey(s); done {
		return cmd
	}
	if m.browsing {
		return m.browseKey(k)
	}
	return m.inputKey(s, k)
}

// inputKey handles a key while the user types a prompt.
func (m *model) inputKey(s string, k tea.KeyPressMsg) tea.Cmd {
	empty := m.input.value() == ""
	if m.vim != nil && (!empty || m.phase != dead) && m.vim.key(m.input, k) {
		m.input.resize(m.w, m.inputLimit())
		m.complete()
		return nil
	}
	switch s {
	case "ctrl+c":
		return m.interrupt()
	case "ctrl+d":
		switch {
		case !empty:
			return m.typed(tea.KeyPressMsg{Code: tea.KeyDelete})
		case m.busy() && !m.opt.Agent.Gateway && !m.now().Before(m.quitSoon): // the agent of a gateway works on
			m.quitSoon = m.now().Add(2 * time.Second)
			return m.remark("a turn is running: Ctrl+D again ends it and leaves")
		}
		return m.leave()
	case "enter":
		return m.enter()
	case "esc":
		return m.escape(empty)
	case "up":
		if empty && len(m.queue) > 0 {
			last := len(m.queue) - 1
			m.input.set(m.queue[last])
			m.queue = m.queue[:last]
			return nil
		}
		if m.input.first() && m.input.back() {
			m.complete()
			return nil
		}
	case "down":
		if m.input.last() && m.input.forth() {
			return nil
		}
	case "ctrl+v":
		return pasteClipboard
	case "tab":
		if empty && len(m.aside) > 0 {
			m.takeUp()
			return nil
		}
		if empty {
			if !m.suggests(true) {
				m.browse()
			}
			return nil
		}
		return m.forceCompletion()
	case "r":
		if empty && m.phase == dead {
			return m.restart(m.session)
		}
	case "?":
		if empty {
			help := m.newHelp()
			help.lead = "?" // a prompt may begin with it, too
			m.overlay = help
			return nil
		}
	}
	if cmd, done := m.actionKey(s); done {
		return cmd
	}
	if cmd, done := m.offerKey(s); done {
		return cmd
	}
	return m.typed(k)
}

// again is the longest time between the two keys of Esc Esc. It allows for a slow line.
const again = time.Second

// escape handles Esc: it leaves what is shown, cancels a turn, and the second time, when nothing
// runs and nothing is typed, goes back to an earlier prompt. It never discards what was typed:
// Esc is pressed too easily for that.
func (m *model) escape(empty bool) tea.Cmd {
	twice := m.now().Sub(m.escaped) < again
	m.escaped = time.Time{}
	if m.suggests(false) {
		return nil
	}
	switch {
	case m.child != "":
		return m.watch("")
	case m.loggingIn && m.talk == nil: // to the ways to log in: the agent is started again, since it may wait for something
		if m.link != nil {
			m.link.Kill()
		}
		return m.restart(m.session)
	case m.running != "":
		m.endShell()
		return nil
	case m.busy():
		if m.cancelled {
			return nil // ending the agent takes Ctrl+C
		}
		return m.interrupt()
	case twice && empty:
		m.notes = nil
		return m.openRewind()
	}
	m.escaped = m.now()
	switch {
	case len(m.notes) > 0:
		m.notes = nil
	case empty:
		m.toEnds(true)
	}
	return nil
}

// moveKey handles keys that scroll.
func (m *model) moveKey(s string) (tea.Cmd, bool) {
	page := max(1, m.screen.rows-2)
	empty := m.input.value() == ""
	switch s {
	case "pgup":
		m.scroll(-page)
	case "pgdown":
		m.scroll(page)
	case "ctrl+up", "alt+up":
		m.scroll(-1)
	case "ctrl+down", "alt+down":
		m.scroll(1)
	case "ctrl+home":
		m.toEnds(false)
	case "ctrl+end":
		m.toEnds(true)
	case "home":
		if !empty {
			return nil, false
		}
		m.toEnds(false)
	case "end":
		if !empty {
			return nil, false
		}
		m.toEnds(true)
	default:
		return nil, false
	}
	return nil, true
}

// browseKey handles keys while entries are selected.
func (m *model) browseKey(k tea.KeyPressMsg) tea.Cmd {
	switch s := k.String(); s {
	case "esc", "q", "i":
		m.browsing = false
		m.toEnds(true)
	case "ctrl+c":
		m.browsing = false
		if m.busy() {
			return m.interrupt()
		}
	case "ctrl+d":
		return m.leave()
	case "up", "k":
		m.step(-1)
	case "down", "j":
		m.step(1)
	case "g":
		m.toEnds(false)
		m.browse()
	case "G":
		m.toEnds(true)
		m.browse()
	case "enter", "tab", "space", "right", "left":
		if s == "enter" {
			if id, ok := m.focusedChild(); ok {
				m.browsing = false
				return m.watch(id)
			}
		}
		m.toggle(m.focus)
	case "y":
		return m.copyText("the entry", m.screen.tr.PlainText(m.focus))
	case "c":
		return m.copyText("the code", strings.Join(m.screen.tr.CodeBlocks(m.focus), "\n\n"))
	case "/":
		m.openSearch()
	case "?":
		m.overlay = m.newHelp()
	default:
		cmd, _ := m.actionKey(s)
		return cmd
	}
	return nil
}

// typed passes a key to the input.
func (m *model) typed(k tea.KeyPressMsg) tea.Cmd {
	cmd := m.input.update(k)
	m.input.resize(m.w, m.inputLimit())
	m.complete()
	if need := m.needFiles(); need != nil {
		return tea.Batch(cmd, need)
	}
	return cmd
}

// enter sends the typed text, or, if there is none, the first prompt of a held queue.
func (m *model) enter() tea.Cmd {
	text := strings.TrimSpace(m.input.value())
	if m.vim != nil {
		m.vim.normal = false
	}
	if text == "" {
		if m.held && len(m.queue) > 0 && m.phase == ready && !m.busy() {
			next := m.queue[0]
			m.queue, m.held = m.queue[1:], false
			return m.prompt(next)
		}
		return nil
	}
	if cmd, done := m.checked(text); done {
		return cmd
	}
	remember := m.input.remember(m.input.value())
	m.input.clear()
	m.popup = nil
	if cmd, ours := m.ownCommand(text); ours {
		return tea.Batch(remember, cmd)
	}
	return tea.Batch(remember, m.submit(text))
}

// checked keeps from the agent what is not meant for it: it runs a command of the shell, and holds a
// slash command that nobody has until the user insists. A space before a ! is for the agent.
func (m *model) checked(text string) (tea.Cmd, bool) {
	if command, ok := strings.CutPrefix(m.input.value(), "!"); ok && strings.TrimSpace(command) != "" && !strings.Contains(text, "\n") {
		remember := m.input.remember(m.input.value())
		m.input.clear()
		return tea.Batch(remember, m.bang(strings.TrimSpace(command))), true
	}
	if name, ok := m.misspelt(text); ok && m.doubted != text {
		m.doubted = text
		m.popup = nil
		return m.remark(m.doubt(name)), true
	}
	if name := m.input.empty(text); name != "" && m.doubted != text {
		m.doubted = text
		m.popup = nil
		return m.remark(name + " stands for nothing any more: add it again, or send the words with Enter again"), true
	}
	m.doubted = ""
	return nil, false
}

// steer sends the typed text or the first queued prompt at once, even while a turn is running.
func (m *model) steer() tea.Cmd {
	typed := m.input.value()
	text := strings.TrimSpace(typed)
	if m.phase != ready {
		return nil
	}
	if text == "" {
		if len(m.queue) == 0 {
			return m.remark("Ctrl+S sends what you have typed at once, even while the agent is working")
		}
		text, m.queue = m.queue[0], m.queue[1:]
		typed = text
	} else {
		if cmd, done := m.checked(text); done {
			return cmd
		}
		m.input.clear()
		if cmd, ours := m.ownCommand(text); ours {
			return tea.Batch(m.input.remember(typed), cmd)
		}
	}
	m.popup = nil
	if !m.busy() {
		return tea.Batch(m.input.remember(typed), m.prompt(text))
	}
	return tea.Batch(m.input.remember(typed), m.steerTurn(text))
}

// paste handles text that the terminal pastes.
func (m *model) paste(text string) tea.Cmd {
	if o := m.top(); o != nil {
		return o.paste(m, text)
	}
	if m.search != nil {
		return m.searchPaste(text)
	}
	m.browsing = false
	if cmd := m.dropped(text); cmd != nil {
		return cmd
	}
	m.input.insert(text)
	m.input.resize(m.w, m.inputLimit())
	m.complete()
	return nil
}
