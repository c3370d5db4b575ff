package tui

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

type sessionsMsg struct {
	items []item
	err   error
}

// An earlier is a session in the list.
type earlier struct {
	id      acp.SessionID
	agent   string   // "" is the agent of the conversation
	command []string // how the agent was started
	kept    store.Session
}

// The headings of sessions that people have not held with the present agent.
const (
	groupOthers = "With other agents"
	groupRuns   = "Runs of acp exec"
)

// listSessions asks the store and the agent for the sessions of this directory. The agent's are
// added to those in the store; if the agent fails, the stored ones are listed without it.
func (m *model) listSessions() tea.Cmd {
	open, l, ctx, cwd, agent, now := m.opt.store, m.link, m.ctx, m.opt.cwd, m.opt.Agent, m.now()
	current := m.session
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		var items []item
		var failed error
		known := map[acp.SessionID]bool{}
		if open != nil {
			if s, err := open(ctx); err == nil && s != nil {
				found, err := s.List(ctx, store.Query{Cwd: cwd, Limit: maxListed})
				failed = err
				for _, f := range found {
					it := sessionItem(ctx, s, f, agent.Name, now)
					e, _ := it.value.(earlier)
					if e.agent == "" {
						if known[acp.SessionID(f.ID)] { // the agent has used the id twice
							e.id = acp.SessionID(f.Conversation)
						}
						known[acp.SessionID(f.ID)] = true
						it.value, it.current = e, e.id == current
					}
					items = append(items, it)
				}
			} else if err != nil {
				failed = err
			}
		}
		if l != nil {
			told, err := l.Sessions(ctx, cwd)
			if err != nil && failed == nil && len(items) == 0 {
				failed = err
			}
			for _, s := range told {
				if known[s.SessionID] {
					continue
				}
				note := "known to the agent"
				if t, err := time.Parse(time.RFC3339, s.UpdatedAt); err == nil {
					note = ago(now, t) + " · " + note
				}
				items = append(items, item{title: sessionTitle(s.Title, string(s.SessionID)), note: note, current: s.SessionID == current, value: earlier{id: s.SessionID}})
			}
		}
		rank := map[string]int{groupOthers: 1, groupRuns: 2}
		sort.SliceStable(items, func(i, j int) bool { return rank[items[i].group] < rank[items[j].group] })
		return sessionsMsg{items, failed}
	}
}

// sessionItem returns the item of a stored session, for a conversation with an agent.
func sessionItem(ctx context.Context, s *store.Store, f store.Match, agent string, now time.Time) item {
	note := ago(now, f.Updated)
	switch f.Turns {
	case 0:
	case 1:
		note += " · 1 turn"
	default:
		note += fmt.Sprintf(" · %d turns", f.Turns)
	}
	title := sessionTitle(f.Title, f.ID)
	if s.IsInterrupted(ctx, f.Session) {
		title = "(interrupted) " + title
	}
	it := item{title: title, note: note}
	e := earlier{id: acp.SessionID(f.ID), kept: f.Session}
	if f.Agent != agent {
		e.agent, e.command, e.id = f.Agent, f.Command, acp.SessionID(f.Conversation)
		it.group, it.note = groupOthers, safeLine(f.Agent, 30)+" · "+note
	}
	if f.By != "" {
		it.group = groupRuns
	}
	it.value = e
	return it
}

func sessionTitle(title, id string) string {
	if t := safeLine(title, 60); t != "" {
		return t
	}
	return "untitled " + safeLine(id, 20)
}

// ago returns how long ago t was, or its date if that is more than two days.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "?"
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return t.Local().Format(time.DateOnly)
}

func (m *model) showSessions(msg sessionsMsg) tea.Cmd {
	if msg.err != nil {
		m.say("listing sessions failed: "+msg.err.Error(), true)
	}
	p := newPicker("Sessions in "+tilde(safeLine(m.opt.cwd, 200)), msg.items, func(m *model, it item) tea.Cmd {
		e, _ := it.value.(earlier)
		switch {
		case it.current && m.phase == ready:
			return nil
		case e.agent != "":
			return m.resumeWith(e)
		}
		return m.resume(string(e.id))
	})
	p.empty = "no sessions yet"
	p.more = m.searchSessions(m.opt.cwd)
	m.overlay = p
	return nil
}

// resumeWith resumes a session with another agent than the present one.
func (m *model) resumeWith(e earlier) tea.Cmd {
	if m.opt.App == nil {
		return nil
	}
	if m.busy() {
		return m.remark("not while a turn is running: Esc cancels it")
	}
	a, err := m.opt.App.AgentOf(e.kept)
	if err != nil {
		m.say(err.Error(), true)
		return nil
	}
	m.opt.Agent = a
	m.notes, m.stderr = nil, nil
	m.talk = nil
	m.rebuildView()
	return m.restart(e.id)
}

// searchSessions returns what finds sessions by words in them, for the picker. Cwd may be "".
func (m *model) searchSessions(cwd string) func(m *model, words string) ([]item, error) {
	open, agent := m.opt.store, m.opt.Agent.Name
	if open == nil {
		return nil
	}
	return func(m *model, words string) ([]item, error) {
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		defer cancel()
		s, err := open(ctx)
		if err != nil || s == nil {
			return nil, err
		}
		found, err := s.List(ctx, store.Query{Cwd: cwd, Text: words, Limit: 50})
		var items []item
		for _, f := range found {
			it := sessionItem(ctx, s, f, agent, time.Now())
			it.group = "In what was said"
			if f.Snippet != "" {
				it.note = one(f.Snippet)
			}
			items = append(items, it)
		}
		return items, err
	}
}

// Choose lets the user choose one of all earlier sessions, on the terminal. It returns false if the
// user leaves without a choice.
func Choose(ctx context.Context, o Options) (chosen store.Session, ok bool, err error) {
	o.Agent = roster.Agent{}
	if err := o.setDefaults(); err != nil {
		return chosen, false, err
	}
	m := newModel(ctx, o)
	defer m.end()
	s, err := o.store(ctx)
	if err != nil || s == nil {
		return chosen, false, err
	}
	found, err := s.List(ctx, store.Query{Limit: maxListed})
	if err != nil {
		return chosen, false, err
	}
	p := newPicker("Resume", chooserItems(ctx, s, found, o.cwd, m.now()), func(_ *model, it item) tea.Cmd {
		e, _ := it.value.(earlier)
		chosen, ok = e.kept, true
		return tea.Quit
	})
	p.empty = "no sessions yet"
	p.more = m.searchSessions("")
	m.overlay = p
	prog := tea.NewProgram(&chooser{m}, tea.WithContext(ctx), tea.WithInput(&keyboard{File: o.In}), tea.WithOutput(&filled{File: o.Out}))
	if _, err := prog.Run(); err != nil {
		return store.Session{}, false, fmt.Errorf("drawing on the terminal: %w", err)
	}
	return chosen, ok, nil
}

// chooserItems returns the sessions of the working directory and then those of others, and in the
// end the runs of acp exec.
func chooserItems(ctx context.Context, s *store.Store, found []store.Match, cwd string, now time.Time) []item {
	var items []item
	for _, f := range found {
		it := sessionItem(ctx, s, f, "", now)
		if it.group == groupOthers {
			it.group = tilde(safeLine(f.Cwd, 200))
		}
		items = append(items, it)
	}
	here := tilde(safeLine(cwd, 200))
	last := map[string]int{}
	for i, it := range items {
		if _, ok := last[it.group]; !ok {
			last[it.group] = i
		}
	}
	last[here], last[groupRuns] = -1, len(items)
	sort.SliceStable(items, func(i, j int) bool { return last[items[i].group] < last[items[j].group] })
	return items
}

// A chooser is a screen with nothing but a picker. It implements [tea.Model].
type chooser struct{ *model }

// Init implements [tea.Model].
func (c *chooser) Init() tea.Cmd {
	if c.autoTheme() {
		return tea.RequestBackgroundColor
	}
	return nil
}

// Update implements [tea.Model].
func (c *chooser) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		c.w, c.h = msg.Width, msg.Height
	case tea.ColorProfileMsg, tea.BackgroundColorMsg, foundMsg, askFoundMsg:
		return c, guard(c.update(msg))
	case defect:
		panic(msg)
	case tea.KeyPressMsg, tea.PasteMsg, tea.MouseWheelMsg:
		if c.overlay == nil {
			return c, tea.Quit
		}
		cmd := c.update(msg)
		if c.overlay == nil && cmd == nil {
			return c, tea.Quit
		}
		return c, guard(cmd)
	}
	return c, nil
}

// View implements [tea.Model].
func (c *chooser) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if c.overlay == nil || c.w <= 0 || c.h <= 0 {
		return v
	}
	lines, cursor := c.overlay.draw(c.model, c.w, c.h)
	v.SetContent(strings.Join(lines, "\n"))
	if cursor != nil {
		v.Cursor = tea.NewCursor(cursor.X, cursor.Y)
	}
	return v
}

// The times of a search in what was said: it begins when nothing was typed for a moment.
const (
	searchAfter = 150 * time.Millisecond
	searchFrom  = 3 // characters
)

// askFoundMsg asks for a search, if the words are still the same.
type askFoundMsg struct {
	p     *picker
	words string
}

// foundMsg is what a search has found.
type foundMsg struct {
	askFoundMsg
	items []item
	err   error
}

// filtered is called when the filter of a picker has changed.
func (p *picker) filtered() tea.Cmd {
	p.items = p.items[:p.base]
	p.search()
	if p.more == nil || len([]rune(strings.TrimSpace(p.filter))) < searchFrom {
		return nil
	}
	msg := askFoundMsg{p, p.filter}
	return tea.Tick(searchAfter, func(time.Time) tea.Msg { return msg })
}

func (m *model) askFound(msg askFoundMsg) tea.Cmd {
	if m.overlay != msg.p || msg.p.filter != msg.words {
		return nil
	}
	more := msg.p.more
	return func() tea.Msg {
		items, err := more(m, msg.words)
		return foundMsg{msg, items, err}
	}
}

// foundMore adds what was found to a picker, but for what it shows already.
func (m *model) foundMore(msg foundMsg) {
	p := msg.p
	if m.overlay != p || p.filter != msg.words {
		return
	}
	if msg.err != nil {
		p.title += " (searching failed: " + one(msg.err.Error()) + ")"
		p.more = nil
		return
	}
	shows := map[string]bool{}
	for _, i := range p.found {
		if e, ok := p.items[i].value.(earlier); ok {
			shows[e.kept.Conversation] = true
		}
	}
	at, top := p.at, p.top
	p.items = p.items[:p.base]
	for _, it := range msg.items {
		if e, _ := it.value.(earlier); !shows[e.kept.Conversation] {
			p.items = append(p.items, it)
		}
	}
	p.search()
	p.at, p.top = at, top
}
