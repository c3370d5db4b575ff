package backend

import (
	"context"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// TestTwoHosts holds that two hosts in one process that share a policy ask each its own
// frontend, about its own session, share what is remembered, and change nothing of the
// policy.
func TestTwoHosts(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		dir := t.TempDir()
		policy := &acphost.Policy{Remember: acphost.RememberForever}
		type seen struct {
			session *Session
			request acphost.Request
		}
		var asked [2][]seen
		var sessions [2]*Session
		for i := range sessions {
			agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				title := turn.Text()
				_, err := turn.ToolCall(acp.ToolCall{Title: title, Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: "/x/" + title}}}).Ask(acp.Permission{})
				return acp.StopEndTurn, err
			}}
			cfg := config(t, version, agent)
			cfg.Policy, cfg.Cwd = policy, dir
			cfg.Front.Ask = func(_ context.Context, s *Session, req acphost.Request) (acp.PermissionOptionID, error) {
				asked[i] = append(asked[i], seen{s, req})
				if req.Title == "both" {
					policy.Always(req, acphost.EffectAllow)
				}
				return req.Allow(), nil
			}
			h := open(t, cfg)
			s, err := h.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sessions[i] = s
		}
		for _, prompt := range []string{"mine", "both"} {
			for _, s := range sessions {
				if _, err := s.Prompt(t.Context(), acp.Text(prompt)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(asked[0]) != 2 || len(asked[1]) != 1 { // the second was answered for both
			t.Fatalf("asked %d and %d times", len(asked[0]), len(asked[1]))
		}
		for i, list := range asked {
			for _, q := range list {
				if q.session != sessions[i] || q.request.Of == nil || q.request.Of.Title != q.request.Title || q.request.Of.V2 == nil {
					t.Errorf("host %d was asked %+v of %v", i, q.request, q.session)
				}
			}
		}
		if policy.Ask != nil {
			t.Error("the policy was changed")
		}
	})
}
