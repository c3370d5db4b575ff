package gateway

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestHeldGone: a gateway that can see that the agent of an earlier one is gone does not try to attach to it, and does
// not read the log for that. The next prompt starts one.
func TestHeldGone(t *testing.T) {
	agent := talking(nil)
	agent.ResumeSession = func(context.Context, *acp.AgentSession, bool) error { return nil }
	r, _ := heldRig(t, agent, 1, nil)
	s := r.connect(1).new(t)
	say(t, s, "one")
	old := r.g
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := old.cfg
	asked := ""
	cfg.Gone = func(socket string) bool {
		asked = socket
		return true
	}
	cfg.Rehold = func(context.Context, string, string, uint64) (Held, error) {
		t.Error("it attaches")
		return nil, errors.New("gone")
	}
	var err error
	if cfg.Lease, err = r.log.Lease(t.Context(), cfg.Lease.Node()); err != nil {
		t.Fatal(err)
	}
	r.lease = cfg.Lease
	r.g = New(cfg)
	c := r.connect(2)
	say(t, c.load(t, s.ID()), "two")
	if asked == "" {
		t.Error("it was not asked whether the agent is gone")
	}
	got := strings.Join(c.seen.take(), "|")
	if !strings.HasPrefix(got, "user: one|agent: one|") || !strings.HasSuffix(got, "user: two|agent: two|end: end_turn") {
		t.Errorf("%q", got)
	}
}

// ended waits until the agent of a session has ended.
func ended(r *rig, id acp.SessionID) {
	s := r.g.session(string(id))
	for {
		s.mu.Lock()
		b := s.agent
		s.mu.Unlock()
		if b == nil {
			return
		}
		runtime.Gosched()
	}
}
