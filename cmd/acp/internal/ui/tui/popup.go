package tui

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"

	"github.com/goacp/acp/cmd/acp/internal/mention"
)

// A popup offers completions below the input.
type popup struct {
	items []suggestion
	at    int
	top   int
	word  string // the word to complete
	hush  bool   // Esc was pressed: not shown again for this word
}

// A suggestion completes a word.
type suggestion struct {
	insert string // with the leading @ or /
	show   string
	note   string
	runs   bool // Enter also sends it
}

const maxSuggestions = 50

// complete opens, updates or closes the popup after a change of the input.
func (m *model) complete() {
	before, word := m.input.cursorWord()
	if m.popup != nil && m.popup.hush && m.popup.word == word {
		return
	}
	var items []suggestion
	switch {
	case strings.HasPrefix(word, "/") && before == "" && m.input.area.Line() == 0:
		items = m.suggestCommands(word)
	case strings.HasPrefix(word, "@"):
		items = m.suggestFiles(word)
	}
	if len(items) == 0 || len(items) == 1 && items[0].insert == word {
		m.popup = nil
		return
	}
	m.popup = &popup{items: items, word: word}
}

// forceCompletion completes at once, even after Esc has closed the popup. Tab calls it.
func (m *model) forceCompletion() tea.Cmd {
	m.popup = nil
	m.complete()
	return m.needFiles()
}

// suggestCommands returns the commands for a word: first those that begin with it, then fuzzy
// matches. Commands of the agent take precedence over acp's own of the same name.
func (m *model) suggestCommands(word string) []suggestion {
	var all []suggestion
	taken := map[string]bool{}
	if m.talk != nil {
		for _, c := range m.talk.Commands() {
			name, what, hint := commandOf(c)
			name = safeLine(name, 80)
			if name == "" || taken[name] {
				continue
			}
			taken[name] = true
			all = append(all, suggestion{"/" + name, strings.TrimSpace("/" + name + " " + safeLine(hint, 40)), one(what), hint == ""})
		}
	}
	for _, c := range commands() {
		name := "/" + c.name
		if taken[c.name] {
			if !strings.HasPrefix(word, "/a") {
				continue
			}
			name = ownPrefix + c.name
		}
		all = append(all, suggestion{name, strings.TrimSpace(name + " " + c.hint), c.what + " (acp)", c.hint == ""})
	}
	if word == "/" {
		return all
	}
	var hits, rest []suggestion
	for _, s := range all {
		switch {
		case s.insert == word: // Enter means the command that is typed
			hits = slices.Insert(hits, 0, s)
		case strings.HasPrefix(s.insert, word):
			hits = append(hits, s)
		}
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.insert
	}
	for _, f := range fuzzy.Find(word, names) {
		if !strings.HasPrefix(all[f.Index].insert, word) {
			rest = append(rest, all[f.Index])
		}
	}
	return append(hits, rest...)
}

// suggestFiles returns the files that match a word fuzzily, at most maxSuggestions of them.
func (m *model) suggestFiles(word string) []suggestion {
	query := strings.Trim(word[1:], `"`)
	var out []suggestion
	add := func(path string) {
		show := safeLine(path, 300)
		if show != path {
			return // the name contains characters that cannot be shown
		}
		insert := "@" + path
		if strings.ContainsAny(path, " \t") {
			insert = `@"` + path + `"`
		}
		note := ""
		switch {
		case strings.HasSuffix(path, "/"):
			note = "directory"
		case imageType(path) != "":
			note = "picture"
		}
		out = append(out, suggestion{insert: insert, show: show, note: note})
	}
	if isPath(query) {
		if m.dir.dir != typedDir(query) {
			return nil // it is being read
		}
		for _, f := range m.dir.entries {
			hidden := strings.HasPrefix(f[len(m.dir.dir):], ".") && len(query) <= len(m.dir.dir)
			if strings.HasPrefix(f, query) && !hidden {
				if add(f); len(out) == maxSuggestions {
					break
				}
			}
		}
		return out
	}
	mention.Find(query, m.files, maxSuggestions, func(path string) bool {
		n := len(out)
		add(path)
		return len(out) > n
	})
	return out
}

// needFiles returns the command that lists the project's files, if completion needs them and the
// list is missing or older than ten seconds.
func (m *model) needFiles() tea.Cmd {
	_, word := m.input.cursorWord()
	if query := strings.Trim(strings.TrimPrefix(word, "@"), `"`); strings.HasPrefix(word, "@") && isPath(query) {
		dir, cwd := typedDir(query), m.opt.cwd
		if m.dir.dir == dir || m.reading == dir {
			return nil
		}
		m.reading = dir
		return func() tea.Msg { return readDir(cwd, dir) }
	}
	if !strings.HasPrefix(word, "@") || m.now().Sub(m.filesAt) < 10*time.Second {
		return nil
	}
	m.filesAt = m.now()
	ctx, cwd := m.ctx, m.opt.cwd
	return func() tea.Msg { return filesMsg{mention.List(ctx, cwd)} }
}

// popupKey handles keys while the popup is open. done is false for keys that the input should
// handle.
func (m *model) popupKey(k tea.KeyPressMsg) (cmd tea.Cmd, done bool) {
	p := m.popup
	if p.hush {
		return nil, false
	}
	switch k.String() {
	case "up", "ctrl+p":
		p.at = (p.at + len(p.items) - 1) % len(p.items)
	case "down", "ctrl+n":
		p.at = (p.at + 1) % len(p.items)
	case "esc":
		p.hush = true
	case "tab":
		return m.acceptSuggestion(p.items[p.at], false), true
	case "enter":
		return m.acceptSuggestion(p.items[p.at], true), true
	default:
		return nil, false
	}
	return nil, true
}

// acceptSuggestion inserts a suggestion. enter means that Enter was pressed, which also sends a
// complete command.
func (m *model) acceptSuggestion(s suggestion, enter bool) tea.Cmd {
	_, word := m.input.cursorWord()
	m.popup = nil
	if enter && s.insert == word {
		return m.enter()
	}
	if enter && s.runs {
		m.input.replaceWord(s.insert)
		return m.enter()
	}
	if strings.HasSuffix(s.insert, "/") { // what is in it comes next
		m.input.replaceWord(s.insert)
		m.complete()
		return m.needFiles()
	}
	m.input.replaceWord(s.insert + " ")
	m.popup = nil
	return nil
}

func (p *popup) draw(m *model, width, height int) []string {
	if p.hush || height <= 0 {
		return nil
	}
	if p.at < p.top {
		p.top = p.at
	}
	if p.at >= p.top+height {
		p.top = p.at - height + 1
	}
	shown := p.items[p.top:min(len(p.items), p.top+height)]
	col := 0
	for _, s := range p.items {
		col = max(col, ansi.StringWidth(s.show))
	}
	col = min(col, max(12, width/2))
	var lines []string
	for i, s := range shown {
		lead, style := "  ", m.st.text
		if p.top+i == p.at {
			lead, style = "▸ ", m.st.selected
		}
		text := s.show
		if strings.HasPrefix(s.insert, "@") {
			text = shortPath(text, col)
		}
		line := style.Render(lead + fit(text, col))
		if room := width - col - 4; room > 6 {
			line += "  " + m.st.dim.Render(cut(s.note, room))
		}
		lines = append(lines, line)
	}
	if n := len(shown); n > 0 && n < len(p.items) {
		mark := fmt.Sprintf(" ↓ %d more", len(p.items)-p.top-n)
		if p.top+n == len(p.items) {
			mark = fmt.Sprintf(" ↑ %d more", p.top)
		}
		if w := width - ansi.StringWidth(mark); w > 20 {
			lines[n-1] = fit(lines[n-1], w) + m.st.accent.Render(mark)
		}
	}
	return lines
}

// shortPath abbreviates the directory of a path, because the file name says more.
func shortPath(path string, width int) string {
	if ansi.StringWidth(path) <= width {
		return path
	}
	base := filepath.Base(path)
	if room := width - ansi.StringWidth(base) - 2; room > 0 {
		return cut(path[:len(path)-len(base)], room+1) + string(filepath.Separator) + base
	}
	return cut(base, width)
}
