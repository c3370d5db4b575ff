package backend

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestChoices: what was chosen is for new sessions, and for an earlier one when it is opened for the first time: when its agent
// is started again, what the user has changed meanwhile stays.
func TestChoices(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		mode := func(now acp.SessionConfigValueID) acp.SessionConfigOption {
			return acp.SessionConfigOption{ConfigID: "manner", Name: "Manner", Category: acp.SessionConfigOptionCategoryMode,
				Kind: &acp.SessionConfigSelect{CurrentValue: now, Options: acp.SessionConfigSelectOptionList{{Value: "ask", Name: "Ask"}, {Value: "code", Name: "Code"}}}}
		}
		var asked []acp.SessionID
		now := acp.SessionConfigValueID("ask")
		agent := &acp.Agent{
			Prompt:        func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
			NewSession:    func(_ context.Context, s *acp.AgentSession) error { return s.SetOptions(mode("ask")) },
			ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error { return s.SetOptions(mode(now)) },
			SessionOptions: func(_ context.Context, _ *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
				asked = append(asked, q.SessionID)
				return &acp.OptionsPreview{ConfigOptions: []acp.SessionConfigOption{mode("ask")}}, nil
			},
			SetOption: func(_ context.Context, _ *acp.AgentSession, _ acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
				now = v.(*acpv2.SessionConfigOptionValueID).Value
				return nil
			},
		}
		choices := &Choices{All: []Choice{{Flag: "--mode code", Category: acp.SessionConfigOptionCategoryMode, Value: "code"}, {Flag: "-o x=1", ID: "x", Value: "1"}}}
		begin := func() *Host {
			cfg := config(t, version, agent)
			cfg.Choices = choices
			return open(t, cfg)
		}
		restored := func() acp.SessionConfigValueID {
			s, _, err := begin().Restore(t.Context(), "s1")
			if err != nil {
				t.Fatal(err)
			}
			return s.Client().Mode()
		}
		s, err := begin().NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Client().Mode(); got != "code" {
			t.Errorf("a new session is in mode %q", got)
		}
		if unset := s.Unset(); len(unset) != 1 {
			t.Errorf("it says that these are not set: %v", unset)
		}
		now = "ask"
		if got := restored(); got != "code" {
			t.Errorf("an earlier session is in mode %q", got)
		}
		now = "ask" // by the user
		if got := restored(); got != "ask" {
			t.Errorf("after a restart it is in mode %q", got)
		}
		if diff := cmp.Diff([]acp.SessionID{"", "s1"}, asked); diff != "" {
			t.Error(diff)
		}
	})
}
