package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/window"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// Fit implements [loop.Host]: a conversation that nearly fills the window is replaced by a
// short one.
func (m *modelTurn) Fit(ctx context.Context, messages []*model.Message, overflow bool) ([]*model.Message, []model.Usage, error) {
	prefix := m.prefix(ctx)
	m.s.mu.Lock()
	size := m.s.talk.meter.Estimate(prefix, messages)
	m.s.mu.Unlock()
	most := m.model.Info().Context
	if !overflow && (most == 0 || size < int(float64(most)*window.Full)) {
		return messages, nil, nil
	}
	return m.compact(ctx, messages, size, overflow)
}

// compact replaces a conversation of an estimated size by a short one. An error says that
// nothing was won, or that it was cancelled.
func (m *modelTurn) compact(ctx context.Context, messages []*model.Message, size int, overflow bool) ([]*model.Message, []model.Usage, error) {
	s, info, prefix := m.s, m.model.Info(), m.prefix(ctx)
	s.mu.Lock()
	meter := s.talk.meter
	notes := window.Notes{Plan: planLines(s.plan)}
	files := s.talk.changed[:len(s.talk.changed):len(s.talk.changed)]
	s.mu.Unlock()
	notes.Changed = changedLines(files)
	m.out.EndMessage()
	shown := m.out.Compact()
	long := messages
	if overflow {
		most := info.Context / 2
		if most == 0 || most > size/2 {
			most = size / 2
		}
		long = window.Trim(prefix, messages, &meter, most)
	}
	summary, usage, err := m.summarize(ctx, prefix, long)
	if ctx.Err() != nil {
		_ = shown.Cancel() // failures to send are kept by the turn
		return nil, usage, context.Cause(ctx)
	}
	if err != nil {
		// The conversation continues with what is known without the model.
		m.s.agent.log.Warn("agent: a conversation could not be summarized", "error", err)
	}
	notes.Summary = summary
	short := window.Compact(messages, notes, &meter, info.Context)
	meter.Forget()
	now := meter.Estimate(prefix, short)
	most := int(float64(info.Context) * window.Won)
	if info.Context == 0 {
		most = int(float64(size) * window.Won)
	}
	if now > most || now >= size && !overflow {
		err := &model.Error{
			Kind: model.KindOverflow, Provider: info.Provider, Model: info.ID,
			Message: fmt.Sprintf("the conversation has about %d tokens, and %d after it was summarized, which is too much to continue with", size, now),
		}
		_ = shown.Fail(err)
		return nil, usage, err
	}
	text := summary
	if text == "" {
		text = "The model has written no summary. Your messages, the plan, the files that were changed and the last steps are kept."
	}
	_ = shown.Complete(acp.Text(text))
	s.keepRecord("compacted", &compacted{short})
	_ = s.sync() // a failure is in lost
	s.mu.Lock()
	defer s.mu.Unlock()
	s.talk.messages, m.guided = short, nil
	s.talk.meter.Forget()
	s.talk.cache.short = true
	s.talk.window = now
	return short, usage, nil
}

// summarize asks the model for a summary, in a request that begins like the one before.
func (m *modelTurn) summarize(ctx context.Context, p *model.Prefix, messages []*model.Message) (string, []model.Usage, error) {
	r := &model.Request{
		Prefix: p, Messages: messages, Tail: []model.Part{&model.Text{Text: window.Ask}}, Effort: m.effort,
		CacheKey: string(m.s.acp.ID()),
	}
	var text strings.Builder
	var used []model.Usage
	var broken []*model.Spent
	bill := func(like model.Usage) {
		for _, e := range broken {
			u := m.Bill(e, like)
			m.Lost(u)
			used = append(used, u)
		}
	}
	for e, err := range m.model.Generate(ctx, r) {
		if err != nil {
			bill(model.Usage{})
			return "", used, err
		}
		switch e := e.(type) {
		case *model.TextDelta:
			text.WriteString(e.Text)
		case *model.Spent:
			broken = append(broken, e)
		case *model.Retrying:
			if m.isSpent(broken) { // leaving the loop is not asking again
				bill(model.Usage{})
				return "", used, e.Err
			}
			if e.Discarded {
				text.Reset()
			}
		case *model.Done:
			bill(e.Usage)
			m.bill(e.Usage, false)
			used = append(used, e.Usage)
		}
	}
	return strings.TrimSpace(text.String()), used, nil
}

// changedLines returns the files that tools have changed as text, with those that are not
// as a tool has left them.
func changedLines(files []changedFile) []string {
	var lines []string
	for _, f := range files {
		line := f.path
		now, err := hashOf(f.path)
		switch {
		case err != nil:
			line += " (it cannot be read now)"
		case now == f.hash && now == "":
			line += " (deleted)"
		case now == "":
			line += " (it is not there any more)"
		case now != f.hash:
			line += " (changed since, by the user or by a command: read it before you change it)"
		}
		lines = append(lines, line)
	}
	return lines
}

// planLines returns a plan as text.
func planLines(plan []acp.PlanEntry) string {
	var b strings.Builder
	for _, e := range plan {
		fmt.Fprintf(&b, "[%s] %s\n", e.Status, prose.OneLine(e.Content, 300))
	}
	return b.String()
}

// runCompact carries out /compact.
func runCompact(k *task) error {
	if strings.TrimSpace(k.rest) != "" {
		return misusef("nothing may follow")
	}
	k.s.mu.Lock()
	messages := k.s.talk.messages
	k.s.mu.Unlock()
	if k.s.current() == nil || len(messages) == 0 {
		k.say("There is no conversation with a model that could be compacted.")
		return nil
	}
	m := k.s.agent.newTurn(k.turn, k.scribe)
	if err := m.priced(); err != nil {
		return err
	}
	prefix := m.prefix(k.ctx)
	k.s.mu.Lock()
	size := k.s.talk.meter.Estimate(prefix, messages)
	k.s.mu.Unlock()
	_, _, err := m.compact(k.ctx, messages, size, false)
	return err
}
