package tui

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
)

// marked is what the user marks with the mouse.
type marked struct {
	from, to view.Position
	moved    bool // the mouse has left the first cell
}

// under returns the place in the conversation that is under the mouse.
func (m *model) under(e tea.Mouse) view.Position {
	x := e.X
	if m.w >= narrow {
		x-- // the margin
	}
	y := min(max(e.Y, 0), max(0, m.screen.rows-1))
	return view.Position{Line: m.screen.top + y, Cell: min(max(x, 0), m.screen.width)}
}

// drag extends what is marked, and scrolls at the edges.
func (m *model) drag(e tea.Mouse) tea.Cmd {
	k := m.screen.marked
	if k == nil || e.Button != tea.MouseLeft {
		return nil
	}
	switch {
	case e.Y <= 0 && k.moved:
		m.scroll(-1)
	case e.Y >= m.screen.rows-1 && k.moved:
		m.scroll(1)
	}
	k.to = m.under(e)
	k.moved = k.moved || k.to != k.from
	return nil
}

// release copies what is marked. Without a move it was a click.
func (m *model) release(e tea.Mouse) tea.Cmd {
	k := m.screen.marked
	if k == nil {
		return nil
	}
	if k.moved {
		k.to = m.under(e)
		text := m.screen.tr.Selected(k.from, k.to)
		if strings.TrimSpace(text) == "" {
			m.screen.marked = nil
			return nil
		}
		return m.copyText("what you have marked", text)
	}
	m.screen.marked = nil
	if seq, _, ok := m.screen.tr.At(k.from.Line); ok {
		if first, ok := m.screen.tr.Top(seq); ok && k.from.Line-first <= 1 { // the first line of an entry may be blank
			m.toggle(seq)
		}
	}
	return nil
}

// on draws a line of the conversation with what is marked of it.
func (k *marked) on(l string, line, width int) string {
	if k == nil || !k.moved {
		return l
	}
	from, to := view.Ordered(k.from, k.to)
	if line < from.Line || line > to.Line {
		return l
	}
	a, b := 0, max(ansi.StringWidth(l), 1)
	if line == from.Line {
		a = from.Cell
	}
	if line == to.Line {
		b = min(b, to.Cell+1)
	}
	if a >= b {
		return l
	}
	l = fit(l, min(max(ansi.StringWidth(l), b), width))
	return ansi.Cut(l, 0, a) + "\x1b[7m" + ansi.Strip(ansi.Cut(l, a, b)) + "\x1b[m" + ansi.TruncateLeft(l, b, "")
}

// fileLink returns the address that opens a file of the project in the way of the setting ui.links. Others
// get none: the agent names the files, and a click must not open anything outside.
func (m *model) fileLink(path string, line int) string {
	how := m.opt.ui.Links
	if how == "" || how == "off" || !filepath.IsAbs(path) {
		return ""
	}
	rel, err := filepath.Rel(m.opt.cwd, path)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") { // of Windows
		u.Path = "/" + u.Path
	}
	switch how {
	case "file":
		if os.Getenv("SSH_CONNECTION") != "" { // the terminal must not look for it on its own machine
			u.Host, _ = os.Hostname()
		}
		return u.String()
	case "zed", "vscode", "vscodium", "cursor", "windsurf":
		u.Scheme, u.Host = how, "file"
		if line > 0 {
			u.Path += ":" + strconv.Itoa(line)
		}
		return u.String()
	case "idea":
		q := url.Values{"file": {path}}
		if line > 0 {
			q.Set("line", strconv.Itoa(line))
		}
		return "idea://open?" + q.Encode()
	}
	return ""
}
