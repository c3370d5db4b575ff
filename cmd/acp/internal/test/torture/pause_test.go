//go:build unix

package torture

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/internal/long"
)

// TestPaused: a server that stands still in the middle of a turn, and goes on, has lost nothing: what the agent said
// meanwhile follows, and turns run to their end.
func TestPaused(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	defer r.clients(ctx, &watchers)()
	pauses := []time.Duration{200 * time.Millisecond, 10 * time.Second} // longer than the lease of the agent's holder
	if testing.Short() {
		pauses = pauses[:1]
	}
	s := &summary{Kind: "paused"}
	for _, pause := range pauses {
		r.progress(50)
		if err := r.server.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		if err := r.server.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		r.progress(50)
	}
	r.finish(cancel, &watchers, s)
	t.Logf("%d prompts ran, %d were cut, of %d nobody knows: %q", s.Prompts, s.Cut, s.Unknown, s.Errors)
	if s.Cut > 0 || s.Unknown > 0 {
		t.Errorf("%d prompts were cut, of %d nobody knows: %q", s.Cut, s.Unknown, s.Errors)
	}
}
