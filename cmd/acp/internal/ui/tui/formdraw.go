package tui

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
)

// maxField bounds the text of a field, in bytes.
const maxField = 64 << 10

// A formOverlay lets the user fill in a form, or asks the user to visit a URL.
type formOverlay struct {
	form *form
	at   int // index of the current field
	top  int
	sent bool // the URL was opened
}

func newFormOverlay(f *form) *formOverlay { return &formOverlay{form: f} }

func (o *formOverlay) reply(m *model, res *acp.ElicitationResponse) tea.Cmd {
	m.shut(o)
	o.form.reply(res)
	return nil
}

func (o *formOverlay) dismiss() { o.form.reply(acp.CancelElicitation()) }

func (o *formOverlay) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	s := k.String()
	switch s {
	case "esc":
		if m.putAside(o) {
			return nil
		}
		return o.reply(m, acp.CancelElicitation())
	case "ctrl+c":
		return tea.Batch(o.reply(m, acp.CancelElicitation()), m.interrupt())
	case "ctrl+x":
		return o.reply(m, acp.DeclineElicitation())
	}
	if o.form.req.Form == nil {
		return o.urlKey(m, s)
	}
	if s == "ctrl+s" || s == "enter" && (o.at == len(o.form.fields)-1 || len(o.form.fields) == 0) {
		v, bad, ok := o.form.values()
		if !ok {
			o.at = bad
			return nil
		}
		return o.reply(m, acp.AcceptElicitation(v))
	}
	if len(o.form.fields) == 0 {
		return nil
	}
	w := o.form.fields[o.at]
	switch s {
	case "tab", "enter":
		_, w.problem = w.value()
		o.at = min(o.at+1, len(o.form.fields)-1)
		return nil
	case "shift+tab":
		o.at = max(o.at-1, 0)
		return nil
	case "up":
		if w.at > 0 && len(w.options) > 0 {
			w.at--
		} else {
			o.at = max(o.at-1, 0)
		}
		return nil
	case "down":
		if w.at < len(w.options)-1 {
			w.at++
		} else {
			o.at = min(o.at+1, len(o.form.fields)-1)
		}
		return nil
	}
	w.problem = ""
	switch w.kind {
	case fieldBool:
		switch s {
		case "space", "left", "right":
			w.on = !w.on
		case "y", "t":
			w.on = true
		case "n", "f":
			w.on = false
		}
	case fieldOne:
		if s == "space" || s == "right" {
			was := w.chosen[w.at]
			clear(w.chosen)
			w.chosen[w.at] = !was || w.required
		}
	case fieldSome:
		if s == "space" || s == "right" {
			w.chosen[w.at] = !w.chosen[w.at]
		}
	case fieldText, fieldNumber, fieldInteger:
		switch s {
		case "backspace":
			if r := []rune(w.text); len(r) > 0 {
				w.text = string(r[:len(r)-1])
			}
		case "ctrl+u":
			w.text = ""
		case "ctrl+w":
			w.text = w.text[:strings.LastIndex(strings.TrimRight(w.text, " "), " ")+1]
		default:
			if len(w.text)+len(k.Text) <= maxField {
				w.text += k.Text
			}
		}
	}
	return nil
}

func (o *formOverlay) paste(_ *model, text string) tea.Cmd {
	if o.form.req.Form == nil || len(o.form.fields) == 0 {
		return nil
	}
	w := o.form.fields[o.at]
	switch w.kind {
	case fieldText, fieldNumber, fieldInteger:
		if text = strings.TrimRight(text, "\r\n"); len(w.text)+len(text) <= maxField {
			w.text += text
		}
	}
	return nil
}

func (o *formOverlay) urlKey(m *model, s string) tea.Cmd {
	link := o.form.req.URL
	switch s {
	case "o":
		if openable(link) == nil {
			o.sent = true
			return openURL(link)
		}
		return m.remark("acp opens only http and https addresses")
	case "y":
		return m.copyText("the address", link)
	case "enter", "d":
		return o.reply(m, acp.AcceptElicitation(nil))
	}
	return nil
}

func (o *formOverlay) draw(m *model, width, height int) ([]string, *tea.Position) {
	st := m.st
	if o.form.req.Form == nil {
		return o.drawURL(m, width, height), nil
	}
	f := o.form.req.Form
	title := one(f.Title)
	if title == "" {
		title = "The agent asks"
	}
	head := []string{heading(st, title, "", width)}
	for _, s := range []string{o.form.req.Message, f.Description} {
		if s != "" {
			head = append(head, wrap(safetext.VisibleCode(s), width)...)
		}
	}
	if shown.Async(o.form.req.Meta) {
		head = append(head, wrap(shown.WorksOn, width)...)
	}
	if most := max(2, height/3); len(head) > most {
		head = append(head[:most-1], st.dim.Render("…"))
	}
	var body []string
	var cursor *tea.Position
	from, to := 0, 0
	for i, w := range o.form.fields {
		lines, at := w.draw(st, width, i == o.at)
		if i == o.at {
			from, to = len(body), len(body)+len(lines)
			if at != nil {
				cursor = &tea.Position{X: at.X, Y: len(body) + at.Y}
			}
		}
		body = append(body, lines...)
	}
	room := max(1, height-len(head)-1)
	if to > o.top+room {
		o.top = to - room
	}
	if from < o.top {
		o.top = from
	}
	o.top = min(o.top, max(0, len(body)-room))
	shown := body[o.top:min(len(body), o.top+room)]
	if cursor != nil {
		cursor.Y += len(head) - o.top
	}
	lines := append(head, shown...)
	hint := "Ctrl+S sends · Tab next · Space chooses · Ctrl+X declines · Esc dismisses"
	more := ""
	switch below := len(body) - o.top - len(shown); {
	case below > 0:
		more = fmt.Sprintf("↓ %d more", below)
	case o.top > 0:
		more = fmt.Sprintf("↑ %d more", o.top)
	}
	if more != "" { // beside the last line of the fields
		last := len(lines) - 1
		lines[last] = fit(lines[last], max(0, width-ansi.StringWidth(more)-1)) + " " + st.accent.Render(more)
	}
	lines = append(lines, st.dim.Render(fitExit(hint, width)))
	return lines[:min(len(lines), height)], cursor
}

// draw draws a field.
func (w *field) draw(st *styles, width int, here bool) ([]string, *tea.Position) {
	lead, style := "  ", st.strong
	if here {
		lead, style = "▸ ", st.selected
	}
	label := w.title
	if w.required {
		label += " *"
	}
	line := style.Render(cut(lead+label, width))
	tail := w.what
	if w.problem != "" {
		tail = ""
	}
	if room := width - ansi.StringWidth(line) - 2; tail != "" && room > 8 {
		line += "  " + st.dim.Render(cut(tail, room))
	}
	if w.problem != "" {
		line += "  " + st.bad.Render(cut("✗ "+w.problem, max(0, width-ansi.StringWidth(line)-2)))
	}
	lines := []string{line}
	var cursor *tea.Position
	switch w.kind {
	case fieldBool:
		box := "[ ] no"
		if w.on {
			box = "[x] yes"
		}
		lines = append(lines, "    "+box)
	case fieldOne, fieldSome:
		for i := range w.options {
			box := "( ) "
			if w.kind == fieldSome {
				box = "[ ] "
			}
			if w.chosen[i] {
				box = "(•) "
				if w.kind == fieldSome {
					box = "[x] "
				}
			}
			s := cut("    "+box+w.label(i), width)
			if here && i == w.at {
				s = st.selected.Render(s)
			}
			if d := one(w.options[i].Description); d != "" {
				if room := width - ansi.StringWidth(s) - 2; room > 8 {
					s += "  " + st.dim.Render(cut(d, room))
				}
			}
			lines = append(lines, s)
		}
	case fieldUnknown:
		lines = append(lines, st.dim.Render(cut("    a kind of field that this program does not know", width)))
	default:
		text := safeLine(strings.ReplaceAll(w.text, "\n", "⏎"), 1<<20)
		if w.format == formatSecret {
			text = strings.Repeat("•", utf8.RuneCountInString(w.text))
		}
		room := max(4, width-7)
		if n := ansi.StringWidth(text); n > room {
			text = "…" + ansi.TruncateLeft(text, n-room+1, "")
		}
		lines = append(lines, "    "+st.accent.Render("› ")+text)
		if here {
			cursor = &tea.Position{X: 6 + ansi.StringWidth(text), Y: 1}
		}
	}
	return lines, cursor
}

func (o *formOverlay) drawURL(m *model, width, height int) []string {
	st := m.st
	lines := []string{heading(st, "The agent asks you to visit a page", "", width)}
	lines = append(lines, wrap(safetext.VisibleCode(o.form.req.Message), width)...)
	lines = append(lines, "")
	link := o.form.req.URL
	if u, err := url.Parse(link); err == nil && u.Host != "" {
		lines = append(lines, fit(st.dim.Render("  host     ")+st.strong.Render(one(u.Host)), width))
		if u.User != nil {
			lines = append(lines, st.warn.Render(cut("  ! the address contains a user name, which can make it look like another host", width)))
		}
		if strings.Contains(u.Host, "xn--") || !ascii(u.Host) {
			lines = append(lines, st.warn.Render(cut("  ! the host name contains letters of other alphabets", width)))
		}
	}
	for i, l := range strings.Split(ansi.Hardwrap(safetext.VisibleLine(link, 1<<16), max(8, width-11), true), "\n") {
		label := "           "
		if i == 0 {
			label = "  address  "
		}
		lines = append(lines, st.dim.Render(label)+l)
	}
	hint := "o opens it · y copies it · Enter when you are done · Ctrl+X declines · Esc dismisses"
	if err := openable(link); err != nil {
		hint = fmt.Sprintf("%v · y copies it · Ctrl+X declines · Esc dismisses", err)
	}
	if len(lines) > height-1 {
		lines = lines[:max(1, height-1)]
	}
	return append(lines, st.dim.Render(fitExit(hint, width)))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// newLoginPicker returns a picker for the login method.
func newLoginPicker(l *login) *picker {
	var items []item
	for _, method := range l.methods {
		var it item
		switch a := method.(type) {
		case *acpv2.AuthMethodAgent:
			it = item{title: one(a.Name), note: one(a.Description), value: a.MethodID}
			if run := backend.Describe(a).Command(); run != "" {
				it.note = "runs " + run
			}
		case *acpv2.AuthMethodTerminal:
			it = item{title: one(a.Name), note: "in the terminal · " + one(a.Description), value: a.MethodID}
		case *acpv2.UnknownAuthMethod:
			it = item{title: one(a.Name), value: a.MethodID}
		default:
			continue
		}
		items = append(items, it)
	}
	name := one(l.agent.Title)
	if name == "" {
		name = one(l.agent.Name)
	}
	p := newPicker("Log in to "+name, items, func(_ *model, it item) tea.Cmd {
		id, _ := it.value.(acp.AuthMethodID)
		l.reply(id)
		return nil
	})
	p.of, p.quit, p.whole = l, func() { l.reply("") }, true
	return p
}
