package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/transcript"
)

// A setting is the value of an option that an item of the options picker would set.
type setting struct {
	id    acp.SessionConfigID
	value acp.SessionConfigOptionValue
	what  string
}

// optionValue returns the name of an option's current value.
func optionValue(o acp.SessionConfigOption) string {
	switch k := o.Kind.(type) {
	case *acpv2.SessionConfigSelect:
		for _, v := range choicesOf(k) {
			if v.Value == k.CurrentValue {
				if n := safeLine(v.Name, 24); n != "" {
					return n
				}
			}
		}
		return safeLine(string(k.CurrentValue), 24)
	case *acpv2.SessionConfigBoolean:
		if k.CurrentValue {
			return "on"
		}
		return "off"
	}
	return ""
}

// choicesOf returns the values of an option without their groups.
func choicesOf(k *acpv2.SessionConfigSelect) []acpv2.SessionConfigSelectOption {
	switch o := k.Options.(type) {
	case acpv2.SessionConfigSelectOptionList:
		return o
	case acpv2.SessionConfigSelectGroupList:
		var all []acpv2.SessionConfigSelectOption
		for _, g := range o {
			all = append(all, g.Options...)
		}
		return all
	}
	return nil
}

// openOptions shows all options of the session in one picker.
func (m *model) openOptions() tea.Cmd {
	if m.talk == nil {
		return m.remark("the session is not open yet")
	}
	var items []item
	for _, o := range m.talk.Options() {
		name := one(o.Name)
		if name == "" {
			name = one(string(o.ConfigID))
		}
		group := name
		if d := one(o.Description); d != "" {
			group += " · " + d
		}
		switch k := o.Kind.(type) {
		case *acpv2.SessionConfigSelect:
			for _, v := range choicesOf(k) {
				title := one(v.Name)
				if title == "" {
					title = one(string(v.Value))
				}
				items = append(items, item{
					group: group, title: title, note: one(v.Description), current: v.Value == k.CurrentValue,
					value: setting{o.ConfigID, &acpv2.SessionConfigOptionValueID{Value: v.Value}, name + ": " + title},
				})
			}
		case *acpv2.SessionConfigBoolean:
			for _, on := range []bool{true, false} {
				title := "off"
				if on {
					title = "on"
				}
				items = append(items, item{
					group: group, title: title, current: k.CurrentValue == on,
					value: setting{o.ConfigID, &acpv2.SessionConfigOptionValueBoolean{Value: on}, name + ": " + title},
				})
			}
		}
	}
	p := newPicker("Options", items, func(m *model, it item) tea.Cmd {
		s, _ := it.value.(setting)
		return m.setOption(s)
	})
	p.empty = "the agent has no options"
	p.at = 0
	m.overlay = p
	return nil
}

func (m *model) setOption(s setting) tea.Cmd {
	t, ctx := m.talk, m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := t.SetOption(ctx, s.id, s.value); err != nil {
			return failedMsg{fmt.Errorf("setting %s: %w", s.what, err)}
		}
		return saidMsg{s.what}
	}
}

// cycleMode switches to the next mode of the session. Keys may come faster than answers: the mode that
// is wanted last counts, and only one request is under way.
func (m *model) cycleMode() tea.Cmd {
	if m.talk == nil {
		return nil
	}
	for _, o := range m.talk.Options() {
		k, ok := o.Kind.(*acpv2.SessionConfigSelect)
		values := []acpv2.SessionConfigSelectOption(nil)
		if ok {
			values = choicesOf(k)
		}
		if o.Category != acpv2.SessionConfigOptionCategoryMode || len(values) == 0 {
			continue
		}
		current := k.CurrentValue
		if m.mode != nil {
			current = m.mode.wanted
		}
		at := slices.IndexFunc(values, func(v acpv2.SessionConfigSelectOption) bool { return v.Value == current })
		next := values[(at+1)%len(values)]
		if m.mode != nil {
			m.mode.wanted, m.mode.what = next.Value, one(o.Name)+": "+one(next.Name)
			return nil
		}
		m.mode = &modeChange{id: o.ConfigID, wanted: next.Value, what: one(o.Name) + ": " + one(next.Name)}
		return m.setMode()
	}
	return m.remark("the agent has no modes")
}

// A modeChange is a change of mode that is under way.
type modeChange struct {
	id     acp.SessionConfigID
	wanted acp.SessionConfigValueID
	what   string
}

// modeMsg is the answer to a change of mode.
type modeMsg struct {
	sent acp.SessionConfigValueID
	then tea.Msg
}

// setMode asks for the mode that is wanted.
func (m *model) setMode() tea.Cmd {
	c := *m.mode
	set := m.setOption(setting{c.id, &acpv2.SessionConfigOptionValueID{Value: c.wanted}, c.what})
	return func() tea.Msg { return modeMsg{c.wanted, set()} }
}

// modeSet handles the answer to a change of mode.
func (m *model) modeSet(msg modeMsg) tea.Cmd {
	if _, failed := msg.then.(failedMsg); !failed && m.mode != nil && m.mode.wanted != msg.sent {
		return m.setMode()
	}
	m.mode = nil
	return m.update(msg.then)
}

// openAgents shows the subagents of the session.
func (m *model) openAgents() tea.Cmd {
	if m.talk == nil {
		return nil
	}
	items := []item{{title: "the conversation itself", current: m.child == "", value: acp.SessionID("")}}
	for e := range m.talk.Snapshot().Entries() {
		s, ok := e.(*transcript.Subagent)
		if !ok {
			continue
		}
		title := one(s.Title)
		if title == "" {
			title = one(string(s.ID))
		}
		note := "working"
		if s.State != nil && s.State.Idle() {
			note = "idle"
		}
		if d := one(s.Description); d != "" {
			note += " · " + d
		}
		items = append(items, item{title: title, note: note, current: s.ID == m.child, value: s.ID})
	}
	if len(items) == 1 {
		return m.remark("there are no subagents")
	}
	m.overlay = newPicker("Subagents", items, func(m *model, it item) tea.Cmd {
		id, _ := it.value.(acp.SessionID)
		return m.watch(id)
	})
	return nil
}

// focusedChild returns the subagent of the selected entry, which may be a tool call that it does.
func (m *model) focusedChild() (acp.SessionID, bool) {
	if m.talk == nil || m.child != "" {
		return "", false
	}
	switch e := m.talk.Snapshot().Entry(m.focus).(type) {
	case *transcript.Subagent:
		return e.ID, true
	case *transcript.ToolCall:
		for _, c := range e.Content {
			if child, ok := c.(*acpv2.SessionReference); ok {
				return child.SessionID, true
			}
		}
	}
	return "", false
}

// watch shows the conversation of a subagent, or, for "", that of the session itself.
func (m *model) watch(id acp.SessionID) tea.Cmd {
	if id != "" {
		if _, ok := m.link.Session(id); !ok {
			return m.remark("the subagent has not done anything yet")
		}
	}
	m.child, m.browsing = id, false
	m.screen.follow = true
	m.rebuildView()
	return nil
}

// leftOutMsg reports what of a project's files has no effect, because they are not trusted or a variable is not set.
type leftOutMsg struct{ what []string }

func leftOut(a *app.App) tea.Cmd {
	return func() tea.Msg {
		if _, err := a.Config(); err != nil {
			return failedMsg{err}
		}
		what := a.LeftOut()
		if len(what) == 0 {
			return nil
		}
		const most = 3
		if len(what) > most {
			what = append(what[:most:most], fmt.Sprintf("and %d more", len(what)-most))
		}
		return leftOutMsg{[]string{strings.Join(what, ", ")}}
	}
}
