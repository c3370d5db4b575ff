package backend

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// TestSteer: a message that the turn takes is in the conversation, once, where the agent has taken it, and is kept.
func TestSteer(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		begun := make(chan struct{}, 1)
		cfg := config(t, version, &acp.Agent{Busy: acp.BusySteer, Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
			_ = turn.Say("before")
			begun <- struct{}{}
			for {
				select {
				case blocks := <-turn.Steering():
					_ = turn.Say("after " + blocks[0].(*acpv2.TextContent).Text)
					turn.EndMessage()
					return acp.StopEndTurn, nil
				case <-ctx.Done():
					return acp.StopCancelled, nil
				}
			}
		}})
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		s, err := open(t, cfg).NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if outcome, err := s.Steer(t.Context(), acp.Text("early")); outcome != acp.SteerPromptRequired || err != nil {
			t.Errorf("%q, %v", outcome, err)
		}
		ended := make(chan error, 1)
		go func() { _, err := s.Prompt(t.Context(), acp.Text("go")); ended <- err }()
		<-begun
		if outcome, err := s.Steer(t.Context(), acp.Text("more")); outcome != acp.SteerInjected || err != nil {
			t.Errorf("%q, %v", outcome, err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		stored, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), store.Bounds())
		if err != nil {
			t.Fatal(err)
		}
		for name, snap := range map[string]*transcript.Snapshot{"shown": s.Snapshot(), "stored": stored} {
			words := map[string]int{}
			for e := range snap.Entries() {
				if m, ok := e.(*transcript.Message); ok {
					words[string(m.Role)+" "+m.Text()]++
				}
			}
			if words["user go"] != 1 || words["user more"] != 1 || words["user early"] != 0 || words["agent before"] > 1 {
				t.Errorf("%s: %v", name, words)
			}
		}
	})
}
