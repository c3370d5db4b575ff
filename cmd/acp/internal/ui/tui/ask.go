package tui

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
)

// calm is how long no key may have been pressed before a permission overlay accepts letters and
// digits as answers. A user who is typing when it appears must not approve anything by accident.
const calm = 400 * time.Millisecond

// An askOverlay asks for permission.
type askOverlay struct {
	ask     *ask
	choices []choice
	at      int // the selected choice; -1 means none
	top     int // the first visible line of the text
	page    int
	body    []string // the question
	drawn   []string // what of it is drawn
	width   int
	theme   *view.Theme
	since   time.Time
	full    bool // the question has the whole screen
	more    askMore
}

// An askMore is what the user writes before a question is answered.
type askMore interface {
	key(m *model, o *askOverlay, k tea.KeyPressMsg) tea.Cmd
	paste(text string)
	// draw returns what is drawn in place of the choices, and the position of the cursor there.
	draw(m *model, width, height int) ([]string, *tea.Position)
}

// A choice is one answer: an option of the agent, or one of acp's own, which also remembers the
// answer.
type choice struct {
	name   string
	letter string // y, a, n, N, r, e or ""
	id     acp.PermissionOptionID
	always acphost.Effect                    // for acp's own: the effect to remember; otherwise ""
	rule   string                            // the rule that is added; otherwise ""
	more   func(*model, *askOverlay) askMore // for what the user has to write first; nil for none
}

func newAskOverlay(m *model, a *ask) *askOverlay {
	o := &askOverlay{ask: a, since: m.now()}
	letters := map[acpv2.PermissionOptionKind]string{
		acpv2.PermissionOptionKindAllowOnce:    "y",
		acpv2.PermissionOptionKindAllowAlways:  "a",
		acpv2.PermissionOptionKindRejectOnce:   "n",
		acpv2.PermissionOptionKindRejectAlways: "N",
	}
	taken := map[string]bool{}
	kinds := map[acpv2.PermissionOptionKind]bool{}
	// A key beside “allow” must not permit everything of a kind: that is what modes are for.
	narrow := narrowChoice(m, a)
	if narrow != nil {
		taken["a"] = true
	}
	// “Allow once” comes before what lasts, whatever the order of the agent.
	options := slices.Clone(a.req.Options)
	sort.SliceStable(options, func(i, j int) bool { return lasting(options[i]) < lasting(options[j]) })
	for _, opt := range options {
		c := choice{name: seen(opt.Name), id: opt.OptionID}
		kinds[opt.Kind] = true
		if l := letters[opt.Kind]; l != "" && !taken[l] {
			c.letter, taken[l] = l, true
		}
		if c.name == "" {
			c.name = one(string(opt.OptionID))
		}
		o.choices = append(o.choices, c)
		if narrow != nil && opt.OptionID == narrow.id {
			o.choices = append(o.choices, *narrow)
		}
	}
	// If the agent offers no lasting answer, acp offers to remember one itself.
	if m.opt.policy != nil && a.req.Session != "" {
		if id := a.req.Allow(); id != "" && !kinds[acpv2.PermissionOptionKindAllowAlways] && narrow == nil {
			o.choices = append(o.choices, choice{name: "Allow " + similar(a.req), letter: "a", id: id, always: acphost.EffectAllow})
		}
		if id := a.req.Reject(); id != "" && !kinds[acpv2.PermissionOptionKindRejectAlways] {
			o.choices = append(o.choices, choice{name: "Reject " + similar(a.req), letter: "N", id: id, always: acphost.EffectDeny})
		}
	}
	o.choices = append(o.choices, writtenChoices(m, a)...)
	// The preselected choice, which Enter accepts, must not grant more than this one request.
	once := a.req.Allow()
	o.at = slices.IndexFunc(o.choices, func(c choice) bool { return once != "" && c.id == once && c.always == "" && c.rule == "" })
	return o
}

// lasting is 0 for an answer that permits one request, which comes first, and 1 for any other.
func lasting(o acp.PermissionOption) int {
	if o.Kind == acpv2.PermissionOptionKindAllowOnce {
		return 0
	}
	return 1
}

// armed reports whether letters and digits count as answers. See calm.
func (o *askOverlay) armed(m *model) bool {
	quiet := m.lastKey
	return quiet.Before(o.since.Add(-time.Second)) || m.now().Sub(quiet) >= calm && m.now().Sub(o.since) >= calm
}

func (o *askOverlay) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	s := k.String()
	if o.more != nil && s != "ctrl+c" {
		return o.more.key(m, o, k)
	}
	switch s {
	case "esc":
		if o.full {
			o.full = false
			return nil
		}
		if m.putAside(o) {
			return nil
		}
		return o.answer(m, choice{})
	case "ctrl+c":
		return tea.Batch(o.answer(m, choice{}), m.interrupt())
	case "pgup", "pgdown", "ctrl+up", "ctrl+down", "alt+up", "alt+down", "ctrl+home", "ctrl+end", "home", "end":
		o.move(m, s)
		return nil
	}
	if o.full {
		switch s {
		case "f", "q":
			o.full = false
		case "up", "k":
			o.top--
		case "down", "j", "enter":
			o.top++
		case "space":
			o.move(m, "pgdown")
		}
		return nil
	}
	if !o.armed(m) {
		if k.Text != "" {
			return m.typed(k)
		}
		return nil
	}
	switch s {
	case "up", "shift+tab":
		o.at = max(0, o.at-1)
	case "down", "tab":
		o.at = min(len(o.choices)-1, o.at+1)
	case "f":
		o.full = !o.whole() // there is nothing more to see otherwise
	case "enter":
		if o.at >= 0 && o.at < len(o.choices) {
			return o.answer(m, o.choices[o.at])
		}
	case "1", "2", "3", "4", "5", "6", "7", "8", "9":
		if n := int(s[0] - '1'); n < len(o.choices) {
			return o.answer(m, o.choices[n])
		}
	default:
		for _, c := range o.choices {
			if c.letter != "" && c.letter == s {
				return o.answer(m, c)
			}
		}
		if k.Text != "" { // it answers nothing: the user writes the next prompt
			return m.typed(k)
		}
	}
	return nil
}

func (o *askOverlay) paste(_ *model, text string) tea.Cmd {
	if o.more != nil {
		o.more.paste(text)
	}
	return nil
}
func (o *askOverlay) dismiss() { o.ask.reply("") }

// move handles the keys that scroll. They scroll the question or, if all of it is visible, the
// conversation, where the user may look for what has led to the question.
func (o *askOverlay) move(m *model, s string) {
	if o.whole() {
		if s == "home" || s == "end" {
			s = "ctrl+" + s
		}
		m.moveKey(s)
		return
	}
	switch s {
	case "pgup":
		o.top -= max(1, o.page-1)
	case "pgdown":
		o.top += max(1, o.page-1)
	case "ctrl+up", "alt+up":
		o.top--
	case "ctrl+down", "alt+down":
		o.top++
	case "home", "ctrl+home":
		o.top = 0
	case "end", "ctrl+end":
		o.top = len(o.drawn)
	}
}

// whole reports whether all of the question is visible.
func (o *askOverlay) whole() bool { return len(o.drawn) <= o.page }

func (o *askOverlay) wheel(m *model, n int) {
	if o.whole() {
		m.scroll(n)
		return
	}
	o.top += n
}

// answer closes the overlay and answers the request. A lasting answer is first added to the policy,
// so that the next request of the agent already meets it.
func (o *askOverlay) answer(m *model, c choice) tea.Cmd {
	if c.more != nil {
		o.more, o.full = c.more(m, o), false
		return nil
	}
	m.settled(o)
	a := o.ask
	if c.rule != "" {
		add := m.opt.addRule
		return func() tea.Msg {
			_, err := add(acphost.EffectAllow, c.rule, app.RuleNow)
			a.reply(c.id)
			if err != nil {
				return failedMsg{fmt.Errorf("the request is allowed, but not by a rule: %w", err)}
			}
			return saidMsg{"allowed until you leave: " + one(c.rule)}
		}
	}
	if c.always == "" {
		a.reply(c.id)
		return nil
	}
	policy := m.opt.policy
	return func() tea.Msg {
		p, err := policy()
		if err == nil && p != nil {
			p.Always(a.req, c.always)
		}
		a.reply(c.id)
		if err != nil {
			return failedMsg{fmt.Errorf("remembering the answer: %w", err)}
		}
		return nil
	}
}

// settled closes a question that is answered.
func (m *model) settled(o *askOverlay) {
	m.shut(o)
	if len(m.demands) > 0 {
		if next, ok := m.demands[0].(*askOverlay); ok {
			next.since = m.now() // a key that repeats must not answer the next one
		}
	}
}

func (o *askOverlay) draw(m *model, width, height int) ([]string, *tea.Position) {
	st := m.st
	if o.width != width || o.theme != m.theme {
		o.width, o.theme = width, m.theme
		o.body = o.text(m, width)
	}
	title := "Permission"
	right := ""
	if n := len(m.demands); n > 1 {
		right = fmt.Sprintf("1 of %d", n)
	}
	lines := []string{heading(st, title, right, width)}
	// The user must be able to read what a choice allows and for how long, so the choices wrap.
	// They are cut to one line each only if the question would have no room.
	var cursor *tea.Position
	var foot []string
	switch {
	case o.full:
	case o.more != nil:
		foot, cursor = o.more.draw(m, width, height)
	default:
		foot = o.foot(st, width, 3)
	}
	if o.more == nil && !o.full && height-len(lines)-len(foot)-1 < min(len(o.body), 4) {
		foot = o.foot(st, width, 1)
	}
	last := 1 // line for the hint, which what is written has itself
	if o.more != nil {
		last = 0
	}
	room := height - len(lines) - len(foot) - last
	if room < 2 { // the choices must be visible in any case
		foot = foot[:max(0, min(len(foot), height-len(lines)-last-1))]
		room = max(0, height-len(lines)-len(foot)-last)
	}
	if o.drawn = o.body; len(o.body) > room && !o.full { // no room for empty lines
		o.drawn = slices.DeleteFunc(slices.Clone(o.body), func(l string) bool { return l == "" })
	}
	spare := room - len(o.drawn)
	if len(o.drawn)+2 < room { // no more lines than the question has
		room = len(o.drawn) + 2
	}
	o.page = room
	n := min(room, len(o.drawn))
	o.top = min(max(0, o.top), max(0, len(o.drawn)-n))
	lines = append(lines, o.drawn[o.top:o.top+n]...)
	if spare > 0 {
		lines = append(lines, "")
	}
	hint := "Enter chooses"
	if o.at < 0 {
		hint = "↑ ↓ or a key to choose"
	}
	if m.shares() {
		hint += " · Esc leaves it to others"
	} else {
		hint += " · Esc dismisses"
	}
	if !o.armed(m) {
		hint = "keys answer once you stop typing"
	}
	at := fmt.Sprintf("%d–%d of %d", o.top+1, o.top+n, len(o.drawn))
	switch {
	case o.full:
		if hint = "Esc shows the choices"; len(o.drawn) > n {
			hint += " · " + at + " · ↑↓ scroll"
		}
	case len(o.drawn) > n:
		hint = at + " · f full screen · PgUp PgDn · " + hint
	}
	if cursor != nil {
		cursor.Y += len(lines)
	}
	lines = append(lines, foot...)
	if o.more == nil {
		lines = append(lines, st.dim.Render(fitHint(hint, width)))
	}
	return lines[:min(len(lines), height)], cursor
}

// foot draws the choices, each on at most most lines.
func (o *askOverlay) foot(st *styles, width, most int) []string {
	const indent = 7
	var foot []string
	for i, c := range o.choices {
		key := fmt.Sprintf("%d", i+1)
		if c.letter != "" {
			key += " " + c.letter
		}
		lead, style := "  ", st.text
		if i == o.at {
			lead, style = "▸ ", st.selected
		}
		names := wrap(c.name, width-indent)
		if len(names) > most {
			names = append(names[:most-1:most-1], cut(strings.Join(names[most-1:], " "), width-indent))
		}
		lead = st.accent.Render(fit(lead+key, indent))
		for _, name := range names {
			foot = append(foot, lead+style.Render(name))
			lead = strings.Repeat(" ", indent)
		}
	}
	return foot
}

// text returns the lines of the question.
func (o *askOverlay) text(m *model, width int) []string {
	if o.ask.req.Of != nil {
		return view.Permission(o.ask.req.Of, o.ask.shown, width, m.theme)
	}
	// The request is acp's own, for example because the agent writes a file through acp.
	q := shown.Ask(o.ask.req)
	lines := wrap(q.Title, width)
	if q.Command == "" && !q.Certain {
		q.Command = "It is not known what would run."
	}
	for _, s := range append([]string{q.Description, q.Command}, q.Paths...) {
		if s != "" {
			lines = append(lines, wrap(s, width)...)
		}
	}
	for _, v := range q.Input {
		for _, l := range v.Lines() {
			lines = append(lines, wrap("  "+l, width)...)
		}
	}
	return lines
}
