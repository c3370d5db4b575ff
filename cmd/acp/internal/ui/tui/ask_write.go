package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
)

// similar returns what an answer for the whole session is about, as [acphost.Memory] compares it.
func similar(req acphost.Request) string {
	switch {
	case req.Command != "" && !req.CommandUnknown:
		return "this command whenever it is asked for in this session"
	case len(req.Paths) == 1 && req.Kind == string(acpv2.ToolKindEdit):
		return "changes to " + safeLine(filepath.Base(req.Paths[0]), 60) + " in this session"
	case len(req.Paths) > 1 && req.Kind == string(acpv2.ToolKindEdit):
		return "changes to these files in this session"
	}
	return "the same request whenever it comes again in this session"
}

// narrowChoice returns the choice that allows a command and its like until the user leaves, by a rule; nil if the
// request is not about a command that is certain.
func narrowChoice(m *model, a *ask) *choice {
	id := a.req.Allow()
	if id == "" || m.opt.addRule == nil || a.req.Command == "" || a.req.CommandUnknown {
		return nil
	}
	rule := config.NarrowRule(a.req)
	if rule == "" {
		return nil
	}
	return &choice{name: "Allow from now on, until you leave: " + seen(rule), letter: "a", id: id, rule: rule}
}

// writtenChoices returns the choices of acp's own for which the user writes something first: a rule
// that allows, or a reason why not.
func writtenChoices(m *model, a *ask) []choice {
	var all []choice
	if id := a.req.Allow(); id != "" && m.opt.addRule != nil {
		if rule := cmp.Or(config.NarrowRule(a.req), config.SuggestRule(a.req)); rule != "" {
			all = append(all, choice{name: "Allow by a rule: " + seen(rule), letter: "e", id: id, more: func(m *model, o *askOverlay) askMore {
				return newRuleWriter(m, o, id, rule)
			}})
		}
	}
	if id := a.req.Reject(); id != "" && a.req.Session != "" {
		all = append(all, choice{name: "Reject, and tell the agent what to do instead", letter: "r", id: id, more: func(m *model, _ *askOverlay) askMore {
			return newReasonWriter(m, id)
		}})
	}
	return all
}

// maxWritten bounds a line that the user writes in a dialog, in characters.
const maxWritten = 4000

// newLine returns a field for one line.
func newLine(m *model, text string) textinput.Model {
	f := textinput.New()
	f.CharLimit = maxWritten
	f.Prompt = "› "
	s := textinput.DefaultStyles(m.dark)
	s.Focused.Prompt, s.Focused.Text = m.st.accent, m.st.text
	f.SetStyles(s)
	f.SetVirtualCursor(false)
	f.SetValue(text)
	f.CursorEnd()
	f.Focus()
	return f
}

// A reasonWriter takes the reason of a rejection. The protocol has no place for one in the answer,
// so it follows as a prompt: at once if the agent takes prompts during a turn, and otherwise as the
// first one after it.
type reasonWriter struct {
	id   acp.PermissionOptionID
	line textinput.Model
}

func newReasonWriter(m *model, id acp.PermissionOptionID) *reasonWriter {
	return &reasonWriter{id, newLine(m, "")}
}

func (w *reasonWriter) key(m *model, o *askOverlay, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		o.more = nil
		return nil
	case "enter":
		reason := strings.TrimSpace(w.line.Value())
		o.more = nil
		cmd := o.answer(m, choice{id: w.id})
		if reason == "" {
			return cmd
		}
		return tea.Batch(cmd, m.input.remember(reason), m.follow(reason))
	}
	var cmd tea.Cmd
	w.line, cmd = w.line.Update(k)
	return cmd
}

func (w *reasonWriter) paste(text string) { w.line, _ = w.line.Update(tea.PasteMsg{Content: text}) }

func (w *reasonWriter) draw(m *model, width, height int) ([]string, *tea.Position) {
	const others = 5 // lines: the heading, the question, the title and the hint
	field, cursor := drawField(m.st, w.line, width, min(4, height-others))
	cursor.Y++
	lines := append([]string{m.st.strong.Render(cut("What should the agent do instead?", width))}, field...)
	return append(lines, m.st.dim.Render(fitExit("Enter rejects and sends · Esc goes back", width))), cursor
}

// drawField draws a field for one line with all of its text, for which it takes up to most lines, and
// returns where the cursor is.
func drawField(st *styles, f textinput.Model, width, most int) ([]string, *tea.Position) {
	room := max(1, width-3) // the cursor may follow the text
	broken := func(s string) []string { return strings.Split(ansi.Hardwrap(s, room, true), "\n") }
	text := []rune(f.Value())
	lines, before := broken(string(text)), broken(string(text[:f.Position()]))
	at := len(before) - 1
	cursor := &tea.Position{X: 2 + ansi.StringWidth(before[at]), Y: at}
	if most = max(1, most); len(lines) > most {
		top := min(max(0, at-most+1), len(lines)-most)
		lines, cursor.Y = lines[top:top+most], at-top
	}
	lead := st.accent.Render("› ")
	for i, l := range lines {
		lines[i] = lead + st.text.Render(l)
		lead = "  "
	}
	return lines, cursor
}

// follow sends a prompt during the running turn, if the agent takes that for sure, and otherwise
// before all others that wait.
func (m *model) follow(text string) tea.Cmd {
	if m.link != nil && m.link.Version() >= 2 && m.phase == ready {
		return m.prompt(text)
	}
	if !m.busy() {
		return m.submit(text)
	}
	m.queue, m.urgent = append([]string{text}, m.queue...), true
	return m.remark("the agent gets it when the turn ends")
}

// A ruleWriter takes a rule that allows a request, and where it holds.
type ruleWriter struct {
	id    acp.PermissionOptionID
	req   acphost.Request
	line  textinput.Model
	scope app.RuleScope
	files [3]string // where a rule of a scope is written
	why   string    // why the rule cannot be added
}

func newRuleWriter(m *model, o *askOverlay, id acp.PermissionOptionID, rule string) *ruleWriter {
	w := &ruleWriter{id: id, req: o.ask.req, line: newLine(m, rule)}
	if m.opt.ruleFile != nil {
		for i := range w.files {
			w.files[i], _ = m.opt.ruleFile(app.RuleScope(i)) // a scope without a file is not offered
		}
	}
	return w
}

// scopes returns the scopes that there are.
func (w *ruleWriter) scopes() []app.RuleScope {
	all := []app.RuleScope{app.RuleNow}
	for _, s := range []app.RuleScope{app.RuleProject, app.RuleUser} {
		if w.files[s] != "" {
			all = append(all, s)
		}
	}
	return all
}

func (w *ruleWriter) key(m *model, o *askOverlay, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		o.more = nil
		return nil
	case "up", "shift+tab":
		w.scope = max(w.scope-1, 0)
	case "down", "tab":
		w.scope = min(w.scope+1, app.RuleScope(len(w.scopes())-1))
	case "enter":
		rule := strings.TrimSpace(w.line.Value())
		if w.why = w.problem(rule); w.why != "" {
			return nil
		}
		scope, add, a := w.scopes()[w.scope], m.opt.addRule, o.ask
		o.more = nil
		m.settled(o)
		return func() tea.Msg {
			said, err := add(acphost.EffectAllow, rule, scope)
			a.reply(w.id)
			switch {
			case err != nil:
				return failedMsg{fmt.Errorf("the request is allowed, but not by a rule: %w", err)}
			case said != "":
				return wroteMsg{said}
			}
			return saidMsg{"allowed from now on: " + one(rule)}
		}
	default:
		var cmd tea.Cmd
		w.line, cmd = w.line.Update(k)
		w.why = ""
		return cmd
	}
	return nil
}

// problem returns why a rule cannot be used, or "".
func (w *ruleWriter) problem(rule string) string {
	if _, err := config.ParseRule(rule); err != nil {
		return err.Error()
	}
	if !config.RuleAllows(rule, w.req) {
		return "this rule does not allow the request"
	}
	return ""
}

func (w *ruleWriter) paste(text string) { w.line, _ = w.line.Update(tea.PasteMsg{Content: text}) }

func (w *ruleWriter) draw(m *model, width, height int) ([]string, *tea.Position) {
	const others = 6 // lines: the heading, the question, the title, the problem and the hint
	field, cursor := drawField(m.st, w.line, width, min(4, height-others-len(w.scopes())))
	cursor.Y++
	lines := append([]string{m.st.strong.Render(cut("Allow without asking, by this rule:", width))}, field...)
	why, style := w.why, m.st.warn
	if why == "" && w.problem(strings.TrimSpace(w.line.Value())) != "" {
		why, style = "does not match this request yet", m.st.dim
	}
	lines = append(lines, style.Render(cut(one(why), width)))
	names := map[app.RuleScope]string{app.RuleNow: "until you leave", app.RuleProject: "in this project", app.RuleUser: "everywhere"}
	for i, s := range w.scopes() {
		lead, style := "  ", m.st.text
		if app.RuleScope(i) == w.scope {
			lead, style = "▸ ", m.st.selected
		}
		text := names[s]
		if f := w.files[s]; f != "" {
			text += ": " + tilde(safeLine(f, 300))
		}
		lines = append(lines, style.Render(cut(lead+text, width)))
	}
	return append(lines, m.st.dim.Render(fitExit("Enter allows · ↑↓ where · Esc goes back", width))), cursor
}
