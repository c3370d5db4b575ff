package backend

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// TestTitle: a session is called after the first prompt that is no command, whatever the user calls
// it stands, and an agent that cannot rename sessions does not prevent it.
func TestTitle(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		kept := openStore(t, filepath.Join(t.TempDir(), "kept"))
		cfg := config(t, version, &acp.Agent{
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				if title, ok := strings.CutPrefix(turn.Text(), "title "); ok {
					return acp.StopEndTurn, turn.SetTitle(title)
				}
				return acp.StopEndTurn, turn.Say("yes")
			},
		})
		cfg.Store = kept
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		say := func(text, want string) {
			t.Helper()
			if _, err := s.Prompt(t.Context(), acp.Text(text)); err != nil {
				t.Fatal(err)
			}
			if got := s.Title(); got != want {
				t.Errorf("after %q it is called %q, want %q", text, got, want)
			}
		}
		say("/help", "/help")
		say("/usage", "/help")
		say("Fix the bug", "Fix the bug")
		say("And another", "Fix the bug")
		say("title Of the agent", "Of the agent")
		if err := s.SetTitle(t.Context(), "Mine"); err != nil {
			t.Fatal(err)
		}
		say("title Of the agent again", "Mine")
		if got := s.Snapshot().Session().Title; got != "Mine" {
			t.Errorf("the conversation is called %q", got)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := kept.List(t.Context(), store.Query{})
		if err != nil || len(list) != 1 || list[0].Title != "Mine" {
			t.Errorf("in the list: %+v, %v", list, err)
		}
	})
}
