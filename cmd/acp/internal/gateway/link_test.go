package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// Nodes of which one is away: who dials it waits until give is closed, and fails.
type away struct {
	Nodes
	info  json.RawMessage
	dials atomic.Int64
	begun chan struct{} // gets a value with each dial
	give  chan struct{}
}

func (a *away) Dial(ctx context.Context, info json.RawMessage) (jsonrpc.Stream, error) {
	if !bytes.Equal(info, a.info) {
		return a.Nodes.Dial(ctx, info)
	}
	a.dials.Add(1)
	a.begun <- struct{}{}
	select {
	case <-a.give:
		return nil, errors.New("no route to host")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// without makes another node one that a node cannot reach.
func (m *member) without(other *member) *away {
	a := &away{Nodes: m.g.cfg.Nodes, info: other.net.Info(), begun: make(chan struct{}, 100), give: make(chan struct{})}
	m.g.cfg.Nodes = a
	return a
}

// TestLinkThere: what goes over a link that is there, or to another node, does not wait for a node that is being dialled.
func TestLinkThere(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil))
	c := newMember(t, dir, "c", talking(nil))
	s := a.connect(1).new(t)
	if _, err := b.g.link(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	gone := a.without(c)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := a.g.link(ctx, "c")
		failed <- err
	}()
	<-gone.begun
	if _, err := a.g.link(t.Context(), "b"); err != nil { // which was not there
		t.Error(err)
	}
	if _, err := b.g.visit(t.Context(), "a", string(s.ID()), false); err != nil {
		t.Error(err)
	}
	select {
	case err := <-failed: // after three seconds
		t.Log("a slow machine:", err)
	default:
	}
}

// TestLinkFails: a node that could not be reached is not dialled by everybody who has waited for that, and is after a
// while.
func TestLinkFails(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	c := newMember(t, dir, "c", talking(nil))
	gone := a.without(c)
	close(gone.give)
	dial := func(want int64) {
		t.Helper()
		if _, err := a.g.link(t.Context(), "c"); !errors.Is(err, errUnreached) {
			t.Error(err)
		}
		if n := gone.dials.Load(); n != want {
			t.Errorf("%d dials, want %d", n, want)
		}
	}
	at := func(when time.Time) {
		a.g.mu.Lock()
		defer a.g.mu.Unlock()
		d := a.g.dials["c"]
		if d == nil { // a second has passed
			d = &dialing{one: make(chan struct{}, 1), err: errUnreached}
			a.g.dials["c"] = d
		}
		d.at = when
	}
	dial(1)
	at(time.Now().Add(time.Hour))
	dial(1)
	dial(1)
	at(time.Now().Add(-dialAgain))
	dial(2)
	at(time.Now().Add(-dialAgain))
	if _, err := a.g.link(t.Context(), "nobody"); !errors.Is(err, errNoNode) {
		t.Error(err)
	}
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	if n := len(a.g.dials); n != 0 {
		t.Errorf("%d are kept", n)
	}
}
