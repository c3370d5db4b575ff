package tui

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// A contact is an agent of the roster.
type contact struct {
	agent     roster.Agent
	installed bool
}

// known are the agents that most people have heard of, which are offered first.
var known = []string{"claude", "codex", "gemini", "opencode", "copilot", "cursor", "qwen", "goose", "kimi"}

// maxContacts bounds the agents of the first screen: one digit each.
const maxContacts = 9

type contactsMsg struct{ all []contact }

// findContacts looks for the agents that are installed.
func findContacts(a *app.App) tea.Cmd {
	return func() tea.Msg {
		r, err := a.Roster()
		if err != nil {
			return nil // reported by whatever needs the settings
		}
		return contactsMsg{contacts(r)}
	}
}

// contacts returns the agents of a roster but for the built-in one: those that are installed, and
// then those that are best known.
func contacts(r *roster.Roster) []contact {
	var all []contact
	for _, a := range r.All() {
		if !a.Builtin {
			_, ok := r.Installed(a)
			all = append(all, contact{a, ok})
		}
	}
	rank := func(c contact) int {
		n := slices.Index(known, c.agent.Name)
		if n < 0 {
			n = len(known)
		}
		if c.installed {
			n -= 100
		}
		return n
	}
	sort.SliceStable(all, func(i, j int) bool { return rank(all[i]) < rank(all[j]) })
	return all
}

// title returns the agent's name for people.
func (c contact) title() string {
	if t := one(c.agent.Title); t != "" {
		return t
	}
	return one(c.agent.Name)
}

// note says whether the agent is installed, or how to do that.
func (c contact) note() string {
	switch {
	case c.installed:
		return "installed"
	case installs(c.agent.Install):
		return one(c.agent.Install)
	}
	return "not installed"
}

// installs reports whether what the roster says of installing an agent is a command.
func installs(s string) bool {
	first, _, _ := strings.Cut(s, " ")
	return slices.Contains([]string{"npm", "pip", "pipx", "uv", "brew", "cargo", "go"}, first)
}

// offers returns the agents that the first screen offers with a digit each: if nothing was said
// yet, and the agent that is there has no language model.
func (m *model) offers() []contact {
	if m.phase != ready || !m.opt.Agent.Builtin || m.talk == nil || m.child != "" || m.screen.tr.Height() > 0 || m.flying > 0 {
		return nil
	}
	for _, o := range m.talk.Options() {
		if o.Category == acpv2.SessionConfigOptionCategoryModel {
			return nil
		}
	}
	return m.contacts[:min(len(m.contacts), maxContacts)]
}

// The number of lines of the first screen without the agents that it offers, and of a shorter form of
// it for small terminals.
const (
	welcomeRows      = 12
	shortWelcomeRows = 9
)

// offered returns the agents that a first screen with that many rows has room for, and whether it has
// the shorter form.
func (m *model) offered(rows int) (all []contact, short bool) {
	all = m.offers()
	n := rows - welcomeRows
	if short = n < min(4, len(all)); short {
		n = rows - shortWelcomeRows
	}
	if n < min(2, len(all)) {
		return nil, false
	}
	return all[:min(n, len(all))], short
}

// welcome draws an empty conversation.
func (m *model) welcome(rows int) []string {
	st := m.st
	var lines []string
	add := func(s string) { lines = append(lines, " "+cut(s, m.w-2)) }
	offered, short := m.offered(rows)
	add("")
	title := m.agentTitle()
	if m.link != nil {
		a := m.link.Agent()
		s := st.strong.Render(title)
		if a.Version != "" {
			s += " " + st.dim.Render(safeLine(shortVersion(a.Version), 24))
		}
		add(s)
		if !short {
			add(st.dim.Render(fmt.Sprintf("Agent Client Protocol version %d", m.link.Version())))
		}
	} else {
		add(st.strong.Render(title))
	}
	add(st.dim.Render(tilde(safeLine(m.opt.cwd, 300))))
	if m.phase == ready {
		for _, l := range m.offerLines(offered, short) {
			add(l)
		}
		add("")
		keys := [][2]string{
			{"/", "commands"}, {"@", "files and pictures"}, {"!", "a command of the shell"},
			{m.keyOf("options"), "mode, model and other options"}, {m.keyOf("sessions"), "earlier sessions"}, {"/agent", "talk to another agent"}, {"?", "all keys"},
		}
		if len(offered) > 0 {
			keys = [][2]string{{"/agent", "all agents"}, {"?", "all keys"}}
		}
		if m.opt.Agent.Builtin && m.agentHas("demo") {
			keys = slices.Insert(keys, len(keys)-1, [2]string{"/demo", "what this screen can show"})
		}
		for _, l := range keys {
			add(st.accent.Render(fit(l[0], 8)) + st.dim.Render(l[1]))
		}
	}
	switch over := len(lines) - max(rows, 0); {
	case over > 0 && m.top() != nil: // the keys are not needed now
		lines = lines[:len(lines)-over]
	case over > 0:
		lines = lines[over:]
	}
	return lines
}

// offerLines draws the agents of the first screen.
func (m *model) offerLines(all []contact, short bool) []string {
	if len(all) == 0 {
		return nil
	}
	lines := []string{"", m.st.dim.Render("It has no language model, so it only carries out commands."), "", m.st.strong.Render("Talk to")}
	if short {
		lines = []string{"", m.st.strong.Render("It has no language model. Talk to")}
	}
	wide := 0
	for _, c := range all {
		wide = max(wide, ansi.StringWidth(c.title()))
	}
	for i, c := range all {
		line := m.st.accent.Render(fmt.Sprintf("%d  ", i+1)) + fit(c.title(), min(wide, 24)) + "  "
		if c.installed {
			line += m.st.strong.Render(c.note())
		} else {
			line += m.st.dim.Render(c.note())
		}
		lines = append(lines, line)
	}
	return lines
}

// offerKey starts the agent of a digit, or offers to install it.
func (m *model) offerKey(s string) (tea.Cmd, bool) {
	if len(s) != 1 || s[0] < '1' || s[0] > '9' || m.input.value() != "" {
		return nil, false
	}
	_, rows := m.split()
	all, _ := m.offered(rows) // those that are shown
	n := int(s[0] - '1')
	if n >= len(all) {
		return nil, false
	}
	return m.contact(all[n]), true
}

// contact starts an agent, or offers to install it.
func (m *model) contact(c contact) tea.Cmd {
	switch {
	case c.installed:
		return m.change(c.agent)
	case !installs(c.agent.Install):
		m.say(strings.TrimRight(one(c.agent.Name)+" is not installed: "+one(c.agent.Install), ": "), false)
		return nil
	}
	install := one(c.agent.Install)
	m.overlay = newPicker("Install "+c.title()+"?", []item{
		{title: "Yes, run: " + install, value: true},
		{title: "No", value: false},
	}, func(m *model, it item) tea.Cmd {
		if yes, _ := it.value.(bool); !yes {
			return nil
		}
		return m.shell(c.agent.Install, func(m *model, res shellResult) tea.Cmd {
			if res.failed != "" {
				m.overlay = &pager{title: install, lines: strings.Split(res.shown(), "\n")}
				return nil
			}
			return m.change(c.agent)
		})
	})
	return nil
}

// openRoster lets the user choose an agent: those that are installed come first.
func (m *model) openRoster() tea.Cmd {
	r, err := m.opt.App.Roster()
	if err != nil {
		m.say(err.Error(), true)
		return nil
	}
	all := contacts(r)
	if a, err := r.Find("builtin"); err == nil {
		all = slices.Insert(all, 0, contact{a, true})
	}
	var items []item
	for _, c := range all {
		it := item{group: "Installed", title: c.title(), note: one(c.agent.Name), current: c.agent.Name == m.opt.Agent.Name, value: c}
		if !c.installed {
			it.group = "Not installed"
			it.note += " · " + c.note()
		}
		items = append(items, it)
	}
	m.overlay = newPicker("Talk to", items, func(m *model, it item) tea.Cmd {
		c, _ := it.value.(contact)
		return m.contact(c)
	})
	return nil
}
