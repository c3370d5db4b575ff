package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/config"
)

// ownPrefix reaches a command of acp even if the agent has a command of the same name.
const ownPrefix = "/acp:"

// A command is one of acp's own. An agent's command of the same name takes precedence; acp's is
// then reached with [ownPrefix].
type command struct {
	name, hint, what string
	run              func(m *model, arg string) tea.Cmd
}

func commands() []command {
	return []command{
		{"help", "", "show keys and commands", func(m *model, _ string) tea.Cmd { m.overlay = m.newHelp(); return nil }},
		{"new", "", "start a new session", (*model).newSession},
		{"sessions", "", "list earlier sessions", func(m *model, _ string) tea.Cmd { return m.listSessions() }},
		{"resume", "ID", "resume a session", (*model).resume},
		{"options", "", "set the mode, the model and other options", func(m *model, _ string) tea.Cmd { return m.openOptions() }},
		{"agent", "[NAME]", "talk to another agent", (*model).switchAgent},
		{"agents", "", "show the conversations of subagents", func(m *model, _ string) tea.Cmd { return m.openAgents() }},
		{"changes", "", "show what this session has changed, and take changes back", func(m *model, _ string) tea.Cmd { return m.openChanges() }},
		{"jobs", "", "list and stop commands that run in the background", func(m *model, _ string) tea.Cmd { return m.openBackground() }},
		{"back", "", "go back to an earlier prompt", func(m *model, _ string) tea.Cmd { return m.openRewind() }},
		{"fork", "", "continue from here, or from an earlier message, in a copy of the session", func(m *model, _ string) tea.Cmd { return m.openFork() }},
		{"title", "TEXT", "rename the session", (*model).retitle},
		{"copy", "", "copy an answer or code", func(m *model, _ string) tea.Cmd { return m.openCopy() }},
		{"find", "TEXT", "search the conversation", func(m *model, arg string) tea.Cmd { m.openSearch(); return m.searchPaste(arg) }},
		{"export", "FILE", "write the conversation to a .md, .json or .html file", (*model).export},
		{"detach", "", "leave; the agent works on in the gateway", (*model).detach},
		{"stderr", "", "show the standard error of the agent", func(m *model, _ string) tea.Cmd { return m.openStderr() }},
		{"clear", "", "remove remarks from the screen", func(m *model, _ string) tea.Cmd { m.notes = nil; return nil }},
		{"restart", "", "restart the agent and resume this session", func(m *model, _ string) tea.Cmd { return m.restart(m.session) }},
		{"quit", "", "leave", func(m *model, _ string) tea.Cmd { return m.leave() }},
	}
}

// ownCommand runs a command of acp. ours is false if text is not one.
func (m *model) ownCommand(text string) (cmd tea.Cmd, ours bool) {
	if !strings.HasPrefix(text, "/") || strings.Contains(text, "\n") {
		return nil, false
	}
	name, arg, _ := strings.Cut(text, " ")
	short, explicit := strings.CutPrefix(name, ownPrefix)
	if !explicit {
		short = name[1:]
		if m.agentHas(short) {
			return nil, false
		}
	}
	for _, c := range commands() {
		if c.name == short || short == "exit" && c.name == "quit" {
			return c.run(m, strings.TrimSpace(arg)), true
		}
	}
	if explicit {
		return m.remark("no such command: " + name), true
	}
	return nil, false
}

// misspelt returns the name of a slash command that neither acp nor the agent has, as far as the agent
// has said which it has. What looks like a path is not one, and a ! at the end of a name is for the
// agent to understand.
func (m *model) misspelt(text string) (name string, ok bool) {
	name, _, _ = strings.Cut(text, " ")
	name, ok = strings.CutPrefix(name, "/")
	if !ok || name == "" || strings.ContainsAny(name, "/\n.") || m.talk == nil {
		return "", false
	}
	short := strings.TrimPrefix(name, ownPrefix[1:])
	known := m.agentHas(strings.TrimSuffix(name, "!")) || short == "exit" || slices.ContainsFunc(commands(), func(c command) bool { return c.name == short })
	return name, !known
}

// doubt says that there is no such command, and which one may be meant.
func (m *model) doubt(name string) string {
	text := "there is no command /" + safeLine(name, 30)
	names := []string{}
	for _, c := range commands() {
		names = append(names, c.name)
	}
	for _, c := range m.talk.Commands() {
		n, _, _ := commandOf(c)
		names = append(names, safeLine(n, 80))
	}
	if near := config.Near(name, names); near != "" {
		text += "; did you mean /" + near + "?"
	}
	return text + " · Enter again sends it"
}

// agentHas reports whether the agent has a command of that name.
func (m *model) agentHas(name string) bool {
	if m.talk == nil {
		return false
	}
	for _, c := range m.talk.Commands() {
		if n, _, _ := commandOf(c); n == name {
			return true
		}
	}
	return false
}

// commandOf returns the name, description and hint of an agent's command.
func commandOf(c acp.AvailableCommand) (name, what, hint string) {
	switch c := c.(type) {
	case *acpv2.Command:
		name, what = c.Name, c.Description
		if in, ok := c.Input.(*acpv2.TextCommandInput); ok && in != nil {
			if hint = in.Hint; hint == "" {
				hint = "…"
			}
		}
	case *acpv2.Skill:
		name, what, hint = c.Name, "skill: "+c.Description, "…"
	case *acpv2.UnknownAvailableCommand:
		name, what = c.Name, c.Description
	}
	return name, what, hint
}

func (m *model) newSession(string) tea.Cmd {
	if m.phase == dead {
		return m.restart("")
	}
	if m.phase != ready {
		return m.remark("the agent is not ready yet")
	}
	if m.busy() {
		return m.remark("a turn is running: Ctrl+C cancels it")
	}
	m.leaveQueue()
	return m.openSession("")
}

// leaveQueue forgets the prompts that wait: they were meant for the session that is left.
func (m *model) leaveQueue() {
	if n := len(m.queue); n > 0 {
		m.queue, m.held = nil, false
		m.say(counted(n, "waiting prompt was", "waiting prompts were")+" for the session before, and not sent; ↑ finds them", false)
	}
}

func (m *model) resume(id string) tea.Cmd {
	if id == "" {
		return m.listSessions()
	}
	if m.phase == dead {
		return m.restart(acp.SessionID(id))
	}
	if m.phase != ready || m.busy() {
		return m.remark("not while a turn is running: Ctrl+C cancels it")
	}
	m.leaveQueue()
	return m.openSession(acp.SessionID(id))
}

func (m *model) retitle(title string) tea.Cmd {
	if title == "" || m.talk == nil {
		return m.remark("type the title after /title")
	}
	t, ctx := m.talk, m.ctx
	return func() tea.Msg {
		if err := t.SetTitle(ctx, title); err != nil {
			return failedMsg{fmt.Errorf("renaming the session: %w", err)}
		}
		return saidMsg{"renamed"}
	}
}

// helpLines returns the text of the help. Keys are in the first 15 cells of a line.
func (m *model) helpLines() []string {
	again := "end the agent"
	if m.opt.Agent.Gateway {
		again = "leave, and the agent works on"
	}
	lines := []string{
		"Enter          send; while a turn is running: queue",
		"Shift+Enter    new line (also Alt+Enter, Ctrl+J)",
		"↑ ↓            earlier input; ↑ also takes back a queued prompt",
		"/  @  !        complete commands and files; run a command of the shell",
		"Ctrl+V         paste text or a picture from the clipboard",
		"Esc            cancel the turn; twice, when nothing runs: go back to an earlier prompt",
		"Ctrl+C         cancel the turn; again: " + again + ". Idle: clear the input; again: leave",
		"Ctrl+D         leave, if nothing is typed",
		"Ctrl+Z         suspend",
		"Ctrl+L         redraw the screen",
		"PgUp PgDn      scroll (also Ctrl+↑ ↓, Home, End, the wheel)",
		"Mouse          drag to copy clean text; Shift leaves the selection to the terminal; click opens",
		"Tab            select entries: ↑↓ move, Enter opens, y copies, c copies code",
		"",
	}
	for _, a := range m.actions {
		if a.name != "" {
			lines = append(lines, fmt.Sprintf("%-14s %s", a.name, a.what))
		}
	}
	lines = append(lines, "", "In an empty field with a prompt in grey, which the agent suggests, Tab takes it and Esc hides it.",
		"", "Commands of acp (if the agent has one of the same name: /acp:NAME)")
	for _, c := range commands() {
		lines = append(lines, fmt.Sprintf("/%-13s %s", strings.TrimSpace(c.name+" "+c.hint), c.what))
	}
	return lines
}
