//go:build unix

package backend

import (
	"context"
	"errors"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TestRunning: a command that outlives its turn is listed until it has ended, and the user can stop
// it: one in a terminal that is lent in version 1, and one of the agent's own in version 2.
func TestRunning(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		ended := make(chan error, 1)
		cfg := config(t, version, &acp.Agent{
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				s := turn.Session()
				term, err := s.Run(acp.Exec{Command: "sleep", Args: []string{"600"}})
				if err != nil {
					return acp.StopEndTurn, err
				}
				go func() {
					_, err := term.Wait()
					ended <- err
				}()
				return acp.StopEndTurn, s.SetBackground(&acpv2.BackgroundTerminal{TerminalID: term.ID()})
			},
		})
		cfg.Policy = &acphost.Policy{Default: acphost.EffectAllow}
		changed := make(chan struct{}, 1)
		cfg.Front.Changed = func(*Session, []transcript.Change) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Running()) != 0 {
			t.Error("something runs before the first prompt")
		}
		if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
			t.Fatal(err)
		}
		until := func(is func() bool) {
			for !is() { // what a lent terminal does is shown by a goroutine of its own
				<-changed
			}
		}
		until(func() bool { return len(s.Running()) > 0 })
		runs := s.Running()
		if len(runs) != 1 || runs[0].Command != "sleep 600" {
			t.Fatalf("running: %v", runs)
		}
		if err := s.StopTerminal(t.Context(), "other"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("stopping one that there is not: %v", err)
		}
		if err := s.StopTerminal(t.Context(), runs[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		until(func() bool { return s.Snapshot().Terminal(runs[0].ID).ExitStatus != nil })
		if runs := s.Running(); len(runs) != 0 {
			t.Errorf("still running: %v", runs)
		}
	})
}
