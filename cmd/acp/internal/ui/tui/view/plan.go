package view

import (
	"fmt"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// plan adds a plan.
func (b *builder) plan(p *transcript.Plan) {
	th := b.t.th
	head := line{}.put("Plan", look{attr: bold})
	switch c := p.Content.(type) {
	case *acpv2.PlanItems:
		done, _ := progress(c.Entries)
		head = head.put(fmt.Sprintf(" %d/%d", done, len(c.Entries)), th.dim)
	case *acpv2.PlanFile:
		head = head.put(" "+safetext.Line(c.URI, maxTitle), th.dim)
	case *acpv2.UnknownPlanUpdateContent:
		head = head.put(" of an unknown kind: "+safetext.Line(c.Type, 80), th.dim)
	}
	if p.Removed {
		head = head.put(" · withdrawn", th.dim)
		b.line(mark("◇", th.dim), head)
		return
	}
	b.line(mark("◆", th.accent), head)
	switch c := p.Content.(type) {
	case *acpv2.PlanItems:
		for i := range c.Entries {
			sign, k, tk := stepLooks(th, &c.Entries[i])
			l := line{}.put(safetext.Line(c.Entries[i].Content, maxTitle), tk)
			if c.Entries[i].Priority == acpv2.PlanEntryPriorityHigh && c.Entries[i].Status != acpv2.PlanEntryStatusCompleted {
				l = l.put(" !", th.warn)
			}
			b.line(prefix{line{{"  " + sign + " ", k}}, line{{"    ", look{}}}}, l)
		}
	case *acpv2.PlanMarkdown:
		b.pieces(indent(2), c.Content, splitMarkdown(c.Content, nil), false)
	case *acpv2.UnknownPlanUpdateContent:
		if b.t.expanded(b.it) {
			b.json("", c.Raw)
		}
	}
}

// stepLooks returns the sign of a step, its look and that of its text.
func stepLooks(th *Theme, e *acpv2.PlanEntry) (sign string, k, text look) {
	switch e.Status {
	case acpv2.PlanEntryStatusCompleted:
		return "☑", th.good, th.dim
	case acpv2.PlanEntryStatusInProgress:
		return "▶", th.accent, look{attr: bold}
	case acpv2.PlanEntryStatusCancelled:
		return "☒", th.dim, th.dim.with(strike)
	}
	return "☐", th.dim, look{}
}

// progress returns the number of completed steps, and the index of the current or next one, or -1.
func progress(steps []acpv2.PlanEntry) (done, current int) {
	current, next := -1, -1
	for i := range steps {
		switch steps[i].Status {
		case acpv2.PlanEntryStatusCompleted, acpv2.PlanEntryStatusCancelled:
			done++
		case acpv2.PlanEntryStatusInProgress:
			if current < 0 {
				current = i
			}
		default:
			if next < 0 {
				next = i
			}
		}
	}
	if current < 0 {
		current = next
	}
	return done, current
}

// Plan draws the progress of the latest plan on one line for a status area: "3/7 · the current
// step". It returns nil if there is no plan of steps, or all are completed.
func Plan(snap *transcript.Snapshot, width int, th *Theme) []string {
	if snap == nil || width <= 0 {
		return nil
	}
	for e := range snap.Backward() {
		p, ok := e.(*transcript.Plan)
		if !ok || p.Removed {
			continue
		}
		items, ok := p.Content.(*acpv2.PlanItems)
		if !ok || len(items.Entries) == 0 {
			return nil
		}
		done, current := progress(items.Entries)
		if current < 0 {
			return nil
		}
		l := line{}.put("▶ ", th.accent).put(fmt.Sprintf("%d/%d", done, len(items.Entries)), look{attr: bold}).put(" · ", th.dim)
		return []string{th.render(cut(l.put(safetext.Line(items.Entries[current].Content, width), look{}), width))}
	}
	return nil
}
