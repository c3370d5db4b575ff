package agent

import (
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/agent/loop"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// Fewer implements [loop.Host]: tools of MCP servers that a provider may have refused are found by words instead, where
// no provider reads their schemas.
func (m *modelTurn) Fewer(why *model.Error) *model.Prefix {
	words := strings.ToLower(why.Message)
	if !strings.Contains(words, "tool") && !strings.Contains(words, "schema") && !strings.Contains(words, "function") {
		return nil
	}
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	left, hidden := m.hide(m.s.talk.tools)
	if len(m.s.talk.prefixes) == 0 || len(hidden) == 0 {
		return nil
	}
	return &model.Prefix{System: m.s.talk.system, Tools: described(left, m.model.Info().Edit)}
}

// hide returns the tools that are left if those of MCP servers are found by words: the agent's own, and those that find
// others.
func (m *modelTurn) hide(tools []modelTool) (left, hidden []modelTool) {
	for _, t := range tools {
		switch {
		case t.mcp:
			hidden = append(hidden, t)
		case !t.finds:
			left = append(left, t)
		}
	}
	return append(left, m.found()...), hidden
}

// Mend implements [loop.Host].
func (m *modelTurn) Mend(r *loop.Mended) {
	s := m.s
	if r.Prefix != nil {
		s.mu.Lock()
		left, hidden := m.hide(s.talk.tools)
		s.talk.tools, s.talk.served.hidden = left, append(s.talk.served.hidden, hidden...)
		s.talk.prefixes = map[model.EditFormat]*model.Prefix{m.model.Info().Edit: r.Prefix}
		s.mu.Unlock()
	}
	if len(r.Messages) > 0 {
		now := &mended{r.From, r.Messages}
		s.keepRecord("mended", now)
		s.mu.Lock()
		s.talk.messages, m.guided = now.in(s.talk.messages), nil // guidance may be in what is replaced
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.talk.meter.Forget()
	s.talk.cache.short = true
	s.mu.Unlock()
	what := map[string]string{
		"images":  "An image was left out of the conversation",
		"results": "What the last calls have returned was left out of the conversation",
		"tools":   "The tools of MCP servers are not listed for the model any more, which finds them by words now",
	}[r.What]
	m.warn(what+", since the provider refused the request.", prose.Sentence(prose.OneLine(r.Why.Message, 300)))
}
