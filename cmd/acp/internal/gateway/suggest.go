package gateway

import (
	"context"
	"encoding/json"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// unsuggest withdraws the prompts that an agent has suggested which has ended.
func (s *session) unsuggest(ctx context.Context) error {
	s.mu.Lock()
	n := len(s.known.suggested)
	s.mu.Unlock()
	if n == 0 {
		return nil
	}
	none := &acpv2.PromptSuggestionsUpdate{Suggestions: []acpv2.PromptSuggestion{}}
	raw, err := json.Marshal(none)
	if err != nil {
		return err
	}
	if _, err := s.log.commit(ctx, kindUpdate, (&records.Update{Update: raw}).Encode()); err != nil {
		return err
	}
	return s.keep(ctx, func(a *attributes) { a.note(none, raw) })
}
