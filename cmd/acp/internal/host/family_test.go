//go:build unix

package host

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// TestFamily: what happens in the session of a subagent is known while it happens and after
// the conversation was restored in another process, and is no session of its own in lists.
func TestFamily(t *testing.T) {
	agent := func() *acp.Agent {
		return &acp.Agent{
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				s := turn.Session()
				_ = s.Send(&acp.SubagentUpdate{SessionID: "child", Title: acp.Set("Helper")})
				_ = s.Child("child").Say("from below")
				return acp.StopEndTurn, turn.Say("from above")
			},
			ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
		}
	}
	versions(t, func(t *testing.T, version int) {
		cfg := config(t, version, agent())
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		check := func(h *Host) {
			t.Helper()
			child, ok := h.Session("child")
			if !ok {
				t.Fatal("the child is not known")
			}
			if got := strings.Join(messages(child.Snapshot()), "|"); got != "agent: from below" {
				t.Errorf("the child has %q", got)
			}
		}
		// What is in the store under the same id is none of it.
		other := cfg.Store.Record(store.Session{Key: store.Key{Agent: cfg.Agent.Name, ID: "child"}, Title: "another"}, store.RecordOptions{})
		other.Append(store.Event{Kind: store.EventTurn})
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
			t.Fatal(err)
		}
		_ = h.Close()

		listed, err := cfg.Store.List(t.Context(), store.Query{})
		var ids []string
		for _, l := range listed {
			ids = append(ids, l.ID)
		}
		slices.Sort(ids)
		want := []string{"child", string(s.ID())}
		slices.Sort(want)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("listed %q, %v, want %q", ids, err, want)
		}
		cfg.BuiltIn = agent()
		h = open(t, cfg)
		if _, _, err := h.Restore(t.Context(), s.ID()); err != nil {
			t.Fatal(err)
		}
		check(h)
		_ = h.Close()
	})
}
