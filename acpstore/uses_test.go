package acpstore

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
)

// TestUses: the file of a session stays open until the last connection that uses the session ends it.
func TestUses(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say("x")
		}}
		store, err := Keep(agent, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		one, _ := acptest.Pair(t, agent, &acp.Client{})
		s, err := one.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
			t.Fatal(err)
		}
		has := func(want bool) {
			t.Helper()
			synctest.Wait()
			store.mu.Lock()
			defer store.mu.Unlock()
			if got := store.open[s.ID()] != nil; got != want || !want && len(store.uses) != 0 {
				t.Errorf("the file is open: %t, want %t; used: %v", got, want, store.uses)
			}
		}
		has(true)
		if _, err := one.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		has(true)
		two, _ := acptest.Pair(t, agent, &acp.Client{})
		if _, err := two.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		if err := two.Close(); err != nil {
			t.Error(err)
		}
		has(true)
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		has(false)
	})
}
