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
	own, listed := split(m.s.talk.tools)
	if len(m.s.talk.prefixes) == 0 || len(listed) == 0 {
		return nil
	}
	return &model.Prefix{System: m.s.talk.system, Tools: described(append(own, m.found()...), m.model.Info().Edit)}
}

// split returns the tools that are the agent's own, and those of MCP servers that are listed. Those by which others
// are found are neither.
func split(tools []modelTool) (own, listed []modelTool) {
	for _, t := range tools {
		switch {
		case t.mcp:
			listed = append(listed, t)
		case !t.finds:
			own = append(own, t)
		}
	}
	return own, listed
}

// Mend implements [loop.Host].
func (m *modelTurn) Mend(r *loop.Mended) {
	s := m.s
	if r.Prefix != nil {
		s.mu.Lock()
		own, listed := split(s.talk.tools)
		s.talk.served.hidden = append(s.talk.served.hidden, listed...)
		s.talk.tools = append(own, m.found()...)
		s.talk.prefixes = map[model.EditFormat]*model.Prefix{m.model.Info().Edit: r.Prefix}
		s.mu.Unlock()
	}
	if len(r.Messages) > 0 {
		now := &mended{r.From, r.Messages}
		s.keepRecord("mended", now)
		s.mu.Lock()
		s.talk.messages = now.in(s.talk.messages)
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
