package backend

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// TestUntaken: a prompt that is cancelled before the agent takes it is shown and kept, once, and said to be not taken. That is so
// whether the turn before it is cancelled or it alone; one that was taken is not said to be untaken.
func TestUntaken(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		for _, how := range []string{"cancel", "context"} {
			begun := make(chan struct{}, 2)
			cfg := config(t, version, &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return acp.StopCancelled, nil
			}})
			cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
			h := open(t, cfg)
			s, err := h.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { _, err := s.Prompt(ctx, acp.Text("first words")); first <- err }()
			<-begun
			later, withdraw := context.WithCancel(ctx)
			go func() { _, err := s.Prompt(later, acp.Text("second words")); second <- err }()
			s.awaitTurns(t, 2)
			if how == "context" {
				withdraw()
				<-second
			}
			if err := s.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			<-first
			if how == "cancel" {
				select {
				case <-second:
				case <-begun: // it was taken after all, as agents may
					cancel()
					<-second
				}
			}
			cancel()
			withdraw()
			stored, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), store.Bounds())
			if err != nil {
				t.Fatal(err)
			}
			for name, snap := range map[string]*transcript.Snapshot{"shown": s.Snapshot(), "stored": stored} {
				words := map[string]int{}
				for e := range snap.Entries() {
					switch e := e.(type) {
					case *transcript.Message:
						words[strings.TrimSpace(e.Text())]++
					case *transcript.Notice:
						if !history.IsUntaken(e) || e.Severity != acpv2.NoticeSeverityInfo {
							t.Errorf("%s: notice %+v", name, e)
						}
						words[e.Description]++
					}
				}
				if words["first words"] != 1 || words["second words"] != 1 {
					t.Errorf("%s, %s: %v", how, name, words)
				}
			}
		}
	})
}

// awaitTurns waits until as many turns run, and their prompts are sent.
func (s *Session) awaitTurns(t *testing.T, n int) {
	t.Helper()
	for {
		s.mu.Lock()
		running := s.turns
		s.mu.Unlock()
		if running == n {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the prompt was not sent")
		default:
			runtime.Gosched()
		}
	}
}
