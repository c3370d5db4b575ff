package acp_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
)

// TestSteeredEnds: a turn that takes a prompt and ends at once ends that prompt, too: its client is sent the prompt
// before the end.
func TestSteeredEnds(t *testing.T) {
	for _, version := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			agent := &acp.Agent{Busy: acp.BusySteer, Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
				synctest.Wait() // the other prompt is there
				for {
					select {
					case <-t.Steering():
						continue
					default:
					}
					return acp.StopEndTurn, nil
				}
			}}
			conn, _ := acptest.Pair(t, agent, &acp.Client{MinVersion: version, MaxVersion: version})
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				first, second := s.Prompt(t.Context(), acp.Text("first")), s.Prompt(t.Context(), acp.Text("second"))
				if _, err := second.Wait(); err != nil {
					t.Fatalf("version %d: %v", version, err)
				}
				if _, err := first.Wait(); err != nil {
					t.Fatalf("version %d: %v", version, err)
				}
			}
		})
	}
}
