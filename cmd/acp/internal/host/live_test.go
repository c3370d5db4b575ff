//go:build unix

package host

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestChildIsLive: what a restored subagent says after a prompt is shown, also if it said the same before.
func TestChildIsLive(t *testing.T) {
	agent := func() *acp.Agent {
		return &acp.Agent{
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				s := turn.Session()
				_ = s.Send(&acp.SubagentUpdate{SessionID: "child", Title: acp.Set("Helper")})
				_ = s.Child("child").Say("All tests pass.")
				return acp.StopEndTurn, turn.Say("from above")
			},
			ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
		}
	}
	versions(t, func(t *testing.T, version int) {
		cfg := config(t, version, agent())
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
			t.Fatal(err)
		}
		_ = h.Close()
		cfg.BuiltIn = agent()
		h = open(t, cfg)
		if s, _, err = h.Restore(t.Context(), s.ID()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("again")); err != nil {
			t.Fatal(err)
		}
		c, _ := h.Session("child")
		c.journal.sync()
		if got := strings.Count(strings.Join(messages(c.Snapshot()), "|"), "All tests pass."); got != 2 {
			t.Errorf("the child's words are there %d times, want 2", got)
		}
		_ = h.Close()
	})
}
