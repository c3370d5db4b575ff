package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shown"
)

// A part is a part of the status line. If there is not enough room, the parts with the least weight
// disappear first.
type part struct {
	text   string
	weight int
}

// statusLine draws the last line: the agent and its settings on the left, the
// session on the right.
func (m *model) statusLine() string {
	left := []part{{m.agentTitle(), 100}}
	var right []part
	if m.link != nil && m.w >= 60 {
		if v := m.link.Agent().Version; v != "" {
			left[0].text += " " + safeLine(shortVersion(v), 16)
		}
	}
	if m.vim != nil && m.vim.normal {
		left = append([]part{{"normal", 99}}, left...)
	}
	if here := m.here[m.session]; here != "" {
		left = append(left, part{"with " + cut(here, 40), 97})
	}
	if n := m.behind(); n > 0 && !m.busy() {
		left = append(left, part{fmt.Sprintf("%d in the background", n), 95})
	}
	if t := m.talk; t != nil {
		inForce, model := settingParts(t.Options())
		left = append(left, inForce...)
		s := t.Snapshot().Session()
		right = append(right, part{safeLine(t.Title(), 30), 20})
		if u := s.Usage; u != nil {
			if u.Size > 0 {
				right = append(right, part{fmt.Sprintf("%d%% of context", min(100, u.Used*100/u.Size)), 90})
			}
			if c := u.Cost; c != nil {
				right = append(right, part{money(*c), 60})
			}
			if name := shown.Model(u.Meta); model == "" && name != "" {
				left = append(left, part{name, 70})
			}
			if l := shown.LimitOf(u.Meta); l.Warns(m.now()) {
				right = append(right, part{l.String(), 96})
			}
		}
	}
	if m.opt.cwd != "" {
		right = append(right, part{safeLine(tilde(m.opt.cwd), 40), 30})
	}
	const sep = " · "
	for {
		l, r := joinParts(left, sep), joinParts(right, sep)
		w := ansi.StringWidth(l) + ansi.StringWidth(r)
		if r != "" {
			w += 2
		}
		if w <= m.w || len(left)+len(right) <= 1 {
			return m.st.dim.Render(fit(ends(l, r, m.w), m.w))
		}
		dropLightest(&left, &right)
	}
}

func joinParts(parts []part, sep string) string {
	var s []string
	for _, p := range parts {
		if p.text != "" {
			s = append(s, p.text)
		}
	}
	return strings.Join(s, sep)
}

func dropLightest(lists ...*[]part) {
	var from *[]part
	at, least := 0, 1<<30
	for _, l := range lists {
		for i, p := range *l {
			if p.weight < least {
				from, at, least = l, i, p.weight
			}
		}
	}
	if from != nil {
		*from = append((*from)[:at:at], (*from)[at+1:]...)
	}
}

// money returns a cost as text.
func money(c acp.Cost) string {
	if c.Currency == "USD" {
		return fmt.Sprintf("$%.2f", c.Amount)
	}
	return fmt.Sprintf("%.2f %s", c.Amount, safeLine(c.Currency, 8))
}

// settingParts returns what the status line says of the options of a session: mode, model, and beside that its speed, unless
// that is off; and the model, or "".
func settingParts(options []acp.SessionConfigOption) (parts []part, model string) {
	var speed []part
	for _, o := range options {
		switch o.Category {
		case acpv2.SessionConfigOptionCategoryMode:
			parts = append(parts, part{optionValue(o), 80})
		case acpv2.SessionConfigOptionCategoryModel:
			model = optionValue(o)
			parts = append(parts, part{model, 70})
		case acpv2.SessionConfigOptionCategorySpeed:
			switch k := o.Kind.(type) {
			case *acpv2.SessionConfigSelect:
				speed = append(speed, part{optionValue(o), 75})
			case *acpv2.SessionConfigBoolean:
				if k.CurrentValue {
					speed = append(speed, part{safeLine(o.Name, 20), 75})
				}
			}
		}
	}
	return append(parts, speed...), model
}
