package tui

import (
	"fmt"
	"slices"
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
	slices.SortStableFunc(all, func(a, b contact) int { return rank(a) - rank(b) })
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

// offerLines draws the agents of the first screen in at most room lines.
func (m *model) offerLines(room int) []string {
	all := m.offers()
	if len(all) == 0 || room < 6 {
		return nil
	}
	lines := []string{"", m.st.dim.Render("It has no language model, so it only carries out commands."), "", m.st.strong.Render("Talk to")}
	wide := 0
	for _, c := range all {
		wide = max(wide, ansi.StringWidth(c.title()))
	}
	for i, c := range all[:min(len(all), room-len(lines))] {
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
	all := m.offers()
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
