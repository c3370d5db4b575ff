package backend

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestSkills: what the user has typed invokes a skill, and the conversation has it as it was typed, also if the agent repeats it.
func TestSkills(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		var got []string
		agent := &acp.Agent{
			Content: acp.PromptContent{Skill: true},
			NewSession: func(_ context.Context, s *acp.AgentSession) error {
				return s.SetSkills(acpv2.Skill{Name: "review", Description: "reviews", Path: "/s/SKILL.md"})
			},
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				for _, b := range turn.Blocks() {
					switch b := b.(type) {
					case *acpv2.SkillReference:
						got = append(got, "skill "+b.Name)
					case *acp.TextContent:
						got = append(got, "text "+b.Text)
					}
				}
				return acp.StopEndTurn, turn.Say("reviewed")
			},
		}
		s, err := open(t, config(t, version, agent)).NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("/review this")); err != nil {
			t.Fatal(err)
		}
		want := []string{"skill review", "text this"}
		if version == 1 {
			want = []string{"text /review this"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"/review this", "reviewed"}, texts(s.Snapshot())); diff != "" {
			t.Error(diff)
		}
	})
}
