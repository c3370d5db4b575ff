package tui

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
)

// The minimum heights of the terminal for each part of the screen. On a small one, parts disappear
// in this order: the rules around the input, the plan, the queue except for its length, the remarks
// except for the last, the line of progress, and the status line. The input and one line of the
// conversation always remain.
const (
	rowsForRules  = 16
	rowsForPlan   = 13
	rowsForQueue  = 12
	rowsForNotes  = 10
	rowsForWork   = 7
	rowsForStatus = 5
)

// narrow is the width below which the transcript has no margin.
const narrow = 30

func (m *model) transcriptWidth() int {
	if m.w < narrow {
		return m.w
	}
	return m.w - 2
}

// inputLimit returns the maximum number of lines of the input.
func (m *model) inputLimit() int { return max(1, min(inputLines, m.h/3)) }

// split returns the lines below the transcript, and the number of lines that are left for the
// transcript.
func (m *model) split() (below []string, rows int) {
	below, _ = m.below()
	return below, max(0, m.h-len(below))
}

// below draws everything below the transcript.
func (m *model) below() (lines []string, cursor *tea.Position) {
	if m.h <= 0 {
		return nil, nil
	}
	room := m.h - 1 // one line of the transcript remains
	var foot []string
	if m.h >= rowsForStatus {
		foot = []string{m.statusLine()}
	}
	if o := m.top(); o != nil {
		body, at := o.draw(m, m.w, max(1, room-len(foot)))
		if at != nil {
			cursor = &tea.Position{X: at.X, Y: at.Y}
		}
		return append(body, foot...), cursor
	}
	lines = m.status()
	if m.search != nil {
		body, at := m.search.draw(m)
		cursor = &tea.Position{X: at.X, Y: len(lines) + at.Y}
		lines = append(lines, body...)
		return append(lines, foot...), cursor
	}
	rule := m.st.rule.Render(strings.Repeat("─", m.w))
	if m.h >= rowsForRules {
		lines = append(lines, rule)
	}
	area := strings.Split(m.input.area.View(), "\n")
	if m.input.value() == "" {
		area = []string{m.st.accent.Render("› ") + m.st.dim.Render(m.inEmpty())}
	}
	if c := m.input.area.Cursor(); c != nil && !m.browsing {
		cursor = &tea.Position{X: min(c.X, m.w-1), Y: len(lines) + c.Y}
	}
	lines = append(lines, area...)
	if m.h >= rowsForRules {
		lines = append(lines, rule)
	}
	if m.popup != nil {
		lines = append(lines, m.popup.draw(m, m.w, max(0, min(8, room-len(lines)-len(foot))))...)
	}
	lines = append(lines, foot...)
	if over := len(lines) - m.h; over > 0 {
		lines = lines[over:]
		if cursor != nil {
			cursor.Y -= over
		}
	}
	return lines, cursor
}

// hint returns what the empty input shows: the keys that are useful at the moment.
func (m *model) hint() string {
	switch {
	case m.browsing:
		return "↑↓ select · Enter opens · Esc returns · y copies"
	case m.child != "":
		return "subagent's conversation · Esc returns"
	case m.phase == dead && m.opt.Agent.Gateway:
		return "r tries again · Ctrl+D leaves"
	case m.phase == dead && m.talk != nil:
		return "r restarts the agent · Ctrl+D leaves"
	case m.phase == dead:
		return "r tries again · Ctrl+D leaves"
	case m.held && len(m.queue) > 0:
		return "Enter sends the waiting prompt · ↑ takes it back"
	case m.watches():
		return "you only watch · / commands · ? keys"
	case m.busy():
		return "type to queue · Esc cancels · ? keys"
	}
	return "type a prompt · / commands · @ files · ? keys"
}

// fitHint removes the last parts of a hint until it fits.
func fitHint(s string, width int) string {
	for ansi.StringWidth(s) > width {
		i := strings.LastIndex(s, " · ")
		if i < 0 {
			return cut(s, width)
		}
		s = s[:i]
	}
	return s
}

// fitExit removes parts of a hint until it fits, those before the last part first: that one leads out.
func fitExit(s string, width int) string {
	for ansi.StringWidth(s) > width {
		end := strings.LastIndex(s, " · ")
		if end < 0 {
			return cut(s, width)
		}
		i := strings.LastIndex(s[:end], " · ")
		if i < 0 {
			return fitHint(s, width)
		}
		s = s[:i] + s[end:]
	}
	return s
}

// pseudoVersion matches the pseudo-versions of Go, which programs have that are built between
// releases.
var pseudoVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?\d+\.\d+\.\d+-(?:[0-9A-Za-z.]+\.)?\d{14}-([0-9a-f]{7})[0-9a-f]{5}(?:\+[a-z]+)?$`)
})

// shortVersion abbreviates a pseudo-version to its commit.
func shortVersion(v string) string {
	if p := pseudoVersion().FindStringSubmatch(v); p != nil {
		return "dev " + p[1]
	}
	return v
}

// status draws the lines between the conversation and the input: plan, remarks, progress and queue.
func (m *model) status() []string {
	var lines []string
	st := m.st
	t := m.shown()
	if t != nil && m.h >= rowsForPlan && m.busy() {
		lines = append(lines, view.Plan(t.Snapshot(), m.w, m.theme)...)
	}
	notes := m.notes
	if m.unsaved != "" { // remains until the conversation can be written again
		notes = append(notes[:len(notes):len(notes)], note{m.unsaved, true})
	}
	if m.h < rowsForNotes && len(notes) > 1 {
		notes = notes[len(notes)-1:]
	}
	for _, n := range notes {
		style, mark := st.dim, "· "
		if n.bad {
			style, mark = st.warn, "! "
		}
		for i, l := range wrap(n.text, m.w-2) {
			if i > 0 {
				mark = "  "
			}
			if i == 4 {
				break
			}
			lines = append(lines, style.Render(mark+l))
		}
	}
	if text := m.asideLine(); text != "" {
		lines = append(lines, st.warn.Render(cut("? "+text, m.w)))
	}
	if m.phase == dead {
		lines = append(lines, m.deathLines()...)
	}
	if m.h >= rowsForWork {
		lines = append(lines, m.work()...)
	}
	if awaited := m.awaited(); len(awaited) > 0 && m.h >= rowsForQueue {
		for _, s := range awaited[:min(len(awaited), 3)] {
			what := "sent    "
			if s.queued {
				what = "queued  "
			}
			lines = append(lines, st.dim.Render(cut("⋯ "+what+one(s.text), m.w)))
		}
	}
	switch {
	case len(m.queue) == 0:
	case m.h < rowsForQueue:
		lines = append(lines, st.dim.Render(cut(fmt.Sprintf("%d queued", len(m.queue)), m.w)))
	default:
		const most = 3
		for i, q := range m.queue {
			if i == most {
				lines = append(lines, st.dim.Render(fmt.Sprintf("  and %d more", len(m.queue)-most)))
				break
			}
			what := "queued  "
			if m.held {
				what = "waiting "
			}
			lines = append(lines, st.dim.Render(cut("⋯ "+what+one(q), m.w)))
		}
	}
	return lines
}

// deathLines returns the lines that say why there is no agent.
func (m *model) deathLines() []string {
	var lines []string
	title := "The agent has exited"
	if m.talk == nil {
		title = "The agent cannot be used"
	}
	if m.opt.Agent.Gateway {
		title = "There is no connection to the gateway"
	}
	lines = append(lines, m.st.bad.Render(cut("✗ "+title, m.w)))
	if m.why != nil {
		room := max(1, min(8, m.h/3))
		for i, l := range wrap(explain(m.why), m.w-2) {
			if i == room {
				lines = append(lines, m.st.dim.Render("  …"))
				break
			}
			lines = append(lines, "  "+l)
		}
	}
	if len(m.stderr) > 1 { // the last one is in the reason
		lines = append(lines, m.st.dim.Render(cut("  "+m.keyOf("stderr")+" shows all that it has written to its standard error", m.w)))
	}
	if m.input.value() != "" {
		again := "restarts the agent"
		if m.opt.Agent.Gateway {
			again = "tries again"
		}
		lines = append(lines, m.st.dim.Render(cut("  Ctrl+C clears the input; r then "+again, m.w)))
	}
	// Doctor does not help if the user has made a mistake. Some errors name it already.
	if m.talk == nil && !m.opt.Agent.Gateway && exitcode.Of(m.why) != exitcode.Usage && (m.why == nil || !strings.Contains(m.why.Error(), "acp agents doctor")) {
		for _, l := range wrap("acp agents doctor "+one(roster.Quote(m.opt.Agent.Reference()))+" looks for the cause", m.w-2) {
			lines = append(lines, m.st.dim.Render("  "+l))
		}
	}
	return lines
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// work draws the line of progress, if something is running, and a short remark.
func (m *model) work() []string {
	st := m.st
	turn := string(spinner[m.spin%len(spinner)])
	line := func(what string, since time.Time, tail string) []string {
		s := st.accent.Render(turn) + " " + what
		if d := m.now().Sub(since); d >= time.Second {
			s += st.dim.Render(" " + elapsed(d))
		}
		var below []string
		if m.flash != "" && ansi.StringWidth(s)+2+ansi.StringWidth(m.flash) > m.w {
			below = m.remarkLines()
		} else if m.flash != "" {
			tail = m.flash
		}
		return append([]string{fit(ends(s, st.dim.Render(tail), m.w), m.w)}, below...)
	}
	switch {
	case m.running != "":
		const tail = "Esc ends it"
		return line("! "+cut(one(m.running), m.w-lenElapsed-len(tail)), m.shellBegan, tail)
	case m.phase == starting:
		what := "starting " + one(m.agentTitle())
		if m.opt.Agent.Gateway {
			what = "connecting to " + one(m.agentTitle())
		}
		if m.slow != "" {
			what += st.dim.Render(" · " + m.slow)
		}
		return line(what, m.began, "Ctrl+C leaves")
	case m.phase == opening:
		what := "opening a session"
		if m.session != "" {
			what = "resuming the session"
		}
		if m.slow != "" {
			what += st.dim.Render(" · " + m.slow)
		}
		tail := ""
		if m.loggingIn && m.talk == nil {
			tail = "Esc goes back"
		}
		return line(what, m.began, tail)
	case m.isCut():
		return line(m.outageText(), m.cutAt, "Ctrl+D leaves")
	case m.cancelled && m.busy():
		tail := "Ctrl+C again ends the agent"
		if m.opt.Agent.Gateway {
			tail = "Ctrl+C again leaves"
		}
		return line(st.warn.Render("cancelling"), m.turnBegan, tail)
	case m.busy():
		what := "working"
		if t := m.shown(); t != nil {
			what = working(t.Snapshot())
		}
		tail := "Esc cancels"
		if m.watches() {
			tail = ""
		}
		return line(cut(what, m.w-lenElapsed), m.turnBegan, tail)
	case m.flash != "":
		return m.remarkLines()
	}
	return nil
}

// remarkLines draws a short remark on lines of its own: on one if there is little room.
func (m *model) remarkLines() []string {
	lines := wrap(m.flash, m.w-2)
	if m.h < rowsForNotes {
		lines = []string{cut(m.flash, m.w-2)}
	}
	mark := "· "
	for i, l := range lines {
		lines[i] = fit(m.st.dim.Render(mark+l), m.w)
		mark = "  "
	}
	return some(lines, 3)
}

// lenElapsed is the room for the spinner and the elapsed time.
const lenElapsed = 12

// elapsed returns a duration in a short readable form.
func elapsed(d time.Duration) string {
	s := int(d.Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// agentTitle returns the agent's own title or name, or, before it has reported one, that of the
// settings.
func (m *model) agentTitle() string {
	if m.link != nil {
		a := m.link.Agent()
		if a.Title != "" {
			return one(a.Title)
		}
		if a.Name != "" {
			return one(a.Name)
		}
	}
	if m.opt.Agent.Title != "" {
		return one(m.opt.Agent.Title)
	}
	return one(m.opt.Agent.Name)
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	v.ReportFocus = true
	if m.opt.ui.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	v.WindowTitle = m.windowTitle()
	v.ProgressBar = m.progress()
	if m.w <= 0 || m.h <= 0 {
		return v
	}
	lines, cursor := m.draw()
	v.SetContent(strings.Join(lines, "\n"))
	if cursor != nil {
		c := tea.NewCursor(cursor.X, cursor.Y)
		if c.Shape = tea.CursorBar; m.vim != nil && m.vim.normal && m.top() == nil {
			c.Shape = tea.CursorBlock
		}
		v.Cursor = c
	}
	return v
}

// draw returns all lines of the screen, and the position of the cursor or nil.
func (m *model) draw() ([]string, *tea.Position) {
	below, cursor := m.below()
	rows := max(0, m.h-len(below))
	above := m.transcript(rows)
	lines := append(above, below...)
	if len(lines) > m.h {
		lines = lines[:m.h]
	}
	if cursor != nil {
		if cursor.Y += rows; cursor.X < 0 || cursor.X >= m.w || cursor.Y < 0 || cursor.Y >= len(lines) {
			cursor = nil
		}
	}
	for i, l := range lines {
		if ansi.StringWidth(l) > m.w {
			lines[i] = cut(l, m.w)
		}
	}
	return lines, cursor
}

// transcript draws the visible part of the conversation, exactly rows lines.
func (m *model) transcript(rows int) []string {
	s := &m.screen
	lines := make([]string, 0, m.h)
	if m.shown() == nil || s.tr.Height() == 0 {
		lines = append(lines, m.welcome(rows)...)
	} else {
		margin := m.w >= narrow
		for i, l := range s.tr.Lines(s.top, rows) {
			l = s.marked.on(l, s.top+i, s.width)
			if margin {
				mark := " "
				if m.browsing {
					if seq, _, ok := s.tr.At(s.top + i); ok && seq == m.focus {
						mark = m.st.accent.Render("▌")
					}
				}
				l = mark + l
			}
			lines = append(lines, l)
		}
	}
	if len(lines) > rows {
		lines = lines[:rows]
	}
	for len(lines) < rows {
		lines = append(lines, "")
	}
	if n := s.tr.Height() - s.top - rows; n > 0 && rows > 1 {
		what := fmt.Sprintf(" ↓ %d more ", n)
		if s.unseen {
			what = fmt.Sprintf(" ↓ new · %d more ", n)
		}
		mark := m.st.accent.Render(what)
		last := lines[rows-1]
		w := m.w - ansi.StringWidth(mark)
		lines[rows-1] = fit(last, w) + mark
	}
	return lines
}

// windowTitle returns the title of the terminal's window. A leading ? means that the agent asks
// something, a leading · that it is working.
func (m *model) windowTitle() string {
	title := "acp"
	if m.talk != nil {
		if t := m.talk.Title(); t != "" {
			title = safeLine(t, 60) + " – acp"
		} else {
			title = "acp – " + m.agentTitle()
		}
	}
	if len(m.demands) > 0 {
		title = "? " + title
	} else if m.busy() {
		title = "· " + title
	}
	return title
}
