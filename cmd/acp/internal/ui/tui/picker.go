package tui

import (
	"cmp"
	"fmt"
	"sort"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"
)

// An item is a choice in a picker.
type item struct {
	group   string // its heading; items of a group are consecutive
	title   string
	note    string // shown dimmed after the title
	current bool   // it is the current value
	value   any
}

// A picker lets the user choose one of many items, and search them.
type picker struct {
	title string
	empty string // shown if there are no items
	items []item
	of    any  // identifies the request that the picker belongs to
	whole bool // the item at the cursor has all the lines that it needs, if there is room
	exact bool // matches contain what is typed, and keep their order
	base  int  // how many items there are without those of more
	// more, if not nil, finds further items for what is typed. It may take time.
	more func(m *model, filter string) ([]item, error)
	does string // what Enter does; "" stands for choosing
	// pick is called with the chosen item, after the picker was closed.
	pick func(m *model, it item) tea.Cmd
	// quit, if not nil, is called when the user leaves without a choice.
	quit func()

	filter string
	found  []int // indexes of the items that match the filter
	at     int   // index in found
	top    int
}

func newPicker(title string, items []item, pick func(m *model, it item) tea.Cmd) *picker {
	p := &picker{title: title, items: items, pick: pick, empty: "nothing to choose", base: len(items)}
	p.search()
	for i, n := range p.found {
		if p.items[n].current {
			p.at = i
			break
		}
	}
	return p
}

// search applies the filter.
func (p *picker) search() {
	p.found = p.found[:0]
	if p.filter == "" {
		for i := range p.items {
			p.found = append(p.found, i)
		}
	} else {
		texts := make([]string, p.base)
		for i, it := range p.items[:p.base] {
			texts[i] = it.group + " " + it.title + " " + it.note
		}
		switch {
		case p.exact:
			for i, text := range texts {
				if strings.Contains(strings.ToLower(text), strings.ToLower(p.filter)) {
					p.found = append(p.found, i)
				}
			}
		default:
			for _, f := range fuzzy.Find(p.filter, texts) {
				p.found = append(p.found, f.Index)
			}
			p.together()
		}
		for i := p.base; i < len(p.items); i++ {
			p.found = append(p.found, i)
		}
	}
	p.at, p.top = 0, 0
}

// together puts what was found of a group together, in the order of their best matches, so that
// the groups keep their headings.
func (p *picker) together() {
	rank := map[string]int{}
	for i, n := range p.found {
		if _, ok := rank[p.items[n].group]; !ok {
			rank[p.items[n].group] = i
		}
	}
	sort.SliceStable(p.found, func(i, j int) bool { return rank[p.items[p.found[i]].group] < rank[p.items[p.found[j]].group] })
}

func (p *picker) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch s := k.String(); s {
	case "esc", "ctrl+c":
		if s == "esc" && p.filter != "" {
			p.filter = ""
			return p.filtered()
		}
		m.shut(p)
		p.dismiss()
	case "enter":
		if p.at < len(p.found) {
			it := p.items[p.found[p.at]]
			m.shut(p)
			return p.pick(m, it)
		}
	case "up", "ctrl+p":
		p.move(-1)
	case "down", "ctrl+n", "tab":
		p.move(1)
	case "pgup":
		p.move(-8)
	case "pgdown":
		p.move(8)
	case "home":
		p.at = 0
	case "end":
		p.at = max(0, len(p.found)-1)
	case "backspace":
		if r := []rune(p.filter); len(r) > 0 {
			p.filter = string(r[:len(r)-1])
			return p.filtered()
		}
	case "ctrl+u":
		p.filter = ""
		return p.filtered()
	default:
		if k.Text != "" && len(p.filter) < 200 {
			p.filter += safeLine(k.Text, 20)
			if k.Text == " " {
				p.filter += " "
			}
			return p.filtered()
		}
	}
	return nil
}

func (p *picker) move(n int) {
	p.at = min(max(0, p.at+n), max(0, len(p.found)-1))
}

func (p *picker) wheel(_ *model, n int) { p.move(n / 3) }

func (p *picker) paste(_ *model, text string) tea.Cmd {
	p.filter = safeLine(p.filter+text, 200)
	return p.filtered()
}

func (p *picker) dismiss() {
	if p.quit != nil {
		p.quit()
	}
}

func (p *picker) draw(m *model, width, height int) ([]string, *tea.Position) {
	st := m.st
	lines := []string{heading(st, p.title, fmt.Sprintf("%d", len(p.found)), width)}
	lines = append(lines, fit(st.accent.Render("› ")+p.filter, width))
	cursor := &tea.Position{X: min(width-1, 2+ansi.StringWidth(p.filter)), Y: 1}
	if p.filter == "" {
		lines[1] = st.accent.Render("› ") + st.dim.Render(cut("type to search", width-2))
	}
	room := max(1, min(height-len(lines)-1, m.h*2/3))
	// Rows are headings and items. The visible ones must include the selected item.
	type row struct {
		text string
		n    int // index in found, or -1 for a heading
	}
	var rows []row
	group, chosen, end := "", 0, 0
	for i, f := range p.found {
		it := p.items[f]
		if it.group != group {
			group = it.group
			if group != "" {
				rows = append(rows, row{st.dim.Render(cut(group, width)), -1})
			}
		}
		if i == p.at {
			chosen = len(rows)
		}
		most := 1
		if i == p.at {
			most = min(4, max(1, room/2))
			if p.whole {
				most = room
			}
		}
		for _, l := range p.drawItem(st, it, i == p.at, width, most) {
			rows = append(rows, row{l, i})
		}
		if i == p.at {
			end = len(rows)
		}
	}
	if len(rows) == 0 {
		what := p.empty
		if p.filter != "" {
			what = "nothing found"
		}
		rows = append(rows, row{st.dim.Render("  " + cut(what, width-2)), -1})
	}
	if end > p.top+room {
		p.top = end - room
	}
	if chosen < p.top {
		p.top = chosen
	}
	if p.top == 1 && end <= room { // the first heading
		p.top = 0
	}
	p.top = min(p.top, max(0, len(rows)-room))
	for _, r := range rows[p.top:min(len(rows), p.top+room)] {
		lines = append(lines, r.text)
	}
	if len(lines) < height {
		lines = append(lines, st.dim.Render(fitExit(cmp.Or(p.does, "Enter chooses")+" · ↑↓ move · Esc leaves", width)))
	}
	return lines[:min(len(lines), height)], cursor
}

// drawItem draws an item on one line, of which the note has a third if there is not enough room. An
// item that is chosen has up to most lines, because all of it matters then.
func (p *picker) drawItem(st *styles, it item, chosen bool, width, most int) []string {
	lead, style := "  ", st.text
	if chosen {
		lead, style = "▸ ", st.selected
	}
	if it.current {
		lead += "● "
	} else {
		lead += "  "
	}
	title, note := it.title, it.note
	room := width - ansi.StringWidth(lead)
	if n := ansi.StringWidth(note); n > 0 {
		if ansi.StringWidth(title)+2+n > room && most > 1 {
			return p.drawLong(st, it, style.Render(lead), style, room, most)
		}
		note = cut(note, max(room-2-ansi.StringWidth(title), min(n, width/3)))
		title = cut(title, max(8, room-2-ansi.StringWidth(note)))
	} else if ansi.StringWidth(title) > room && most > 1 {
		return p.drawLong(st, it, style.Render(lead), style, room, most)
	}
	s := style.Render(cut(lead+title, width))
	if left := width - ansi.StringWidth(s) - 2; note != "" && left > 4 {
		s += "  " + st.dim.Render(cut(note, left))
	}
	return []string{s}
}

// drawLong draws an item on up to most lines.
func (p *picker) drawLong(st *styles, it item, lead string, style lipgloss.Style, room, most int) []string {
	var lines []string
	add := func(text string, style lipgloss.Style) {
		if text == "" {
			return
		}
		for _, l := range wrap(text, room) {
			lines = append(lines, lead+style.Render(l))
			lead = "    "
		}
	}
	add(it.title, style)
	if n := len(lines); n > 0 {
		last := ansi.StringWidth(lines[n-1]) - ansi.StringWidth(lead)
		if left := room - last - 2; it.note != "" && ansi.StringWidth(it.note) <= left {
			lines[n-1] += "  " + st.dim.Render(it.note)
			return some(lines, most)
		}
	}
	add(it.note, st.dim)
	return some(lines, most)
}

// some returns the first lines, at most most of them, and marks that there are more.
func some(lines []string, most int) []string {
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] += "…"
	}
	return lines
}

// heading draws the first line of an overlay.
func heading(st *styles, title, right string, width int) string {
	title = " " + title + " "
	if right != "" {
		right = " " + right + " "
	}
	n := width - ansi.StringWidth(title) - ansi.StringWidth(right) - 4
	if n < 0 && right != "" { // the title says more
		return heading(st, strings.TrimSpace(title), "", width)
	}
	if n < 0 {
		return st.strong.Render(cut(strings.TrimSpace(title), width))
	}
	return st.rule.Render("──") + st.strong.Render(title) + st.rule.Render(strings.Repeat("─", n)) + st.dim.Render(right) + st.rule.Render("──")
}

// A pager shows lines.
type pager struct {
	title string
	lead  string // what was typed to open it: a letter closes it and is typed after this
	lines []string
	top   int
	page  int

	shown []string // the lines, wrapped to width
	width int
}

// keyWidth is the width of the first column of the help.
const keyWidth = 15

// wrapped returns the lines wrapped to a width. Continuation lines are indented to the second
// column.
func (p *pager) wrapped(width int) []string {
	var out []string
	for _, l := range p.lines {
		key, text := "", l
		if r := []rune(l); len(r) > keyWidth && r[keyWidth-1] == ' ' {
			key, text = string(r[:keyWidth]), string(r[keyWidth:])
		}
		indent := min(len([]rune(key)), max(0, width-10))
		for i, part := range wrap(text, width-indent) {
			if i > 0 {
				key = strings.Repeat(" ", indent)
			}
			out = append(out, cut(key, indent)+part)
		}
	}
	return out
}

func (m *model) newHelp() *pager { return &pager{title: "Keys and commands", lines: m.helpLines()} }

func (p *pager) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if p.lead != "" && k.Text != "" && k.Text != "q" && k.Text != p.lead && k.Text != " " {
		m.shut(p)
		m.input.insert(p.lead)
		return m.typed(k)
	}
	// What is typed goes to the prompt, but for the keys that scroll where there is something to scroll.
	if letter := k.Text; letter != "" && letter != "q" && letter != " " && letter != p.lead && (len(p.shown) <= p.page || !strings.Contains("kjbgG", letter)) {
		m.shut(p)
		return m.typed(k)
	}
	switch k.String() {
	case "up", "k":
		p.top--
	case "down", "j":
		p.top++
	case "pgup", "b":
		p.top -= max(1, p.page-1)
	case "pgdown", "space":
		p.top += max(1, p.page-1)
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.top = len(p.shown)
	default:
		m.shut(p)
	}
	return nil
}

func (p *pager) wheel(_ *model, n int)        { p.top += n }
func (p *pager) paste(*model, string) tea.Cmd { return nil }
func (p *pager) dismiss()                     {}
func (p *pager) draw(m *model, width, height int) ([]string, *tea.Position) {
	if p.shown == nil || p.width != width {
		p.shown, p.width = p.wrapped(width), width
	}
	body := max(1, min(len(p.shown), height-2))
	p.page = body
	p.top = min(max(0, p.top), max(0, len(p.shown)-body))
	lines := []string{heading(m.st, p.title, "", width)}
	for _, l := range p.shown[p.top:min(len(p.shown), p.top+body)] {
		lines = append(lines, cut(l, width))
	}
	hint := "Esc closes"
	if len(p.shown) > body {
		hint = fmt.Sprintf("↑↓ scroll · %d–%d of %d · Esc closes", p.top+1, p.top+body, len(p.shown))
	}
	lines = append(lines, m.st.dim.Render(fitExit(hint, width)))
	return lines[:min(len(lines), height)], nil
}
