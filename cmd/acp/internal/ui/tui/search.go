package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
)

// A search is a search in the conversation.
type search struct {
	query   string
	matches []view.Match
	at      int
	going   bool // Enter was pressed: n and N find other matches
}

func (m *model) openSearch() {
	m.browsing = false
	m.search = &search{at: -1}
}

func (m *model) searchPaste(text string) tea.Cmd {
	m.search.query = safeLine(m.search.query+text, 200)
	m.find()
	return nil
}

// find searches again and goes to the last match that is not below the visible part.
func (m *model) find() {
	s := m.search
	s.matches, s.at = nil, -1
	if s.query != "" {
		s.matches = m.screen.tr.Search(s.query)
		bottom := m.screen.top + m.screen.rows
		for i, hit := range s.matches {
			if hit.Line < bottom || s.at < 0 {
				s.at = i
			}
		}
	}
	m.goTo()
}

// goTo scrolls to the current match.
func (m *model) goTo() {
	s := m.search
	// Highlight opens a folded entry, which moves the line.
	line := m.screen.tr.Highlight(s.query, s.at)
	m.stale = true
	if s.at >= 0 && s.at < len(s.matches) {
		m.reveal(line)
	}
}

func (m *model) searchKey(k tea.KeyPressMsg) tea.Cmd {
	s := m.search
	next := func(n int) {
		if len(s.matches) > 0 {
			// The order of the matches is fixed; only their lines may have moved.
			s.at = (s.at + n + len(s.matches)) % len(s.matches)
			m.goTo()
		}
	}
	if cmd, done := m.moveKey(k.String()); done {
		return cmd
	}
	switch key := k.String(); key {
	case "esc", "ctrl+c", "ctrl+f":
		m.search = nil
		m.screen.tr.Highlight("", -1)
		m.stale = true
	case "enter":
		if s.going {
			next(-1)
		}
		s.going = true
	case "up":
		next(-1)
	case "down":
		next(1)
	case "backspace":
		s.going = false
		if r := []rune(s.query); len(r) > 0 {
			s.query = string(r[:len(r)-1])
			m.find()
		}
	case "ctrl+u":
		s.going = false
		s.query = ""
		m.find()
	default:
		if s.going && key == "n" {
			next(-1) // towards the beginning: the latest match is found first
			return nil
		}
		if s.going && key == "N" {
			next(1)
			return nil
		}
		if k.Text != "" && len(s.query) < 200 {
			s.going = false
			s.query += k.Text
			m.find()
		}
	}
	return nil
}

func (s *search) draw(m *model) ([]string, *tea.Position) {
	st := m.st
	count := "nothing found"
	switch {
	case s.query == "":
		count = ""
	case len(s.matches) > 0:
		count = fmt.Sprintf("%d of %d", s.at+1, len(s.matches))
	}
	line := st.accent.Render("find ") + safeLine(s.query, 400)
	cursor := &tea.Position{X: min(m.w-1, ansi.StringWidth(line)), Y: 0}
	lines := []string{fit(ends(line, st.dim.Render(count), m.w), m.w)}
	if m.h >= rowsForQueue {
		hint := "↑ earlier · ↓ later · n and N too, after Enter · Esc leaves"
		lines = append(lines, st.dim.Render(fitExit(hint, m.w)))
	}
	return lines, cursor
}
