package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestCounts: lists count the clients and the questions of all nodes, as far as these answer.
func TestCounts(t *testing.T) {
	dir := t.TempDir()
	a, b := newMember(t, dir, "a", talking(nil)), newMember(t, dir, "b", talking(nil))
	c := newMember(t, dir, "c", talking(nil))
	asked := make(chan struct{})
	first := a.connect(1, func(c *acp.Client) {
		c.RequestPermission = func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			close(asked)
			<-ctx.Done()
			return acp.CancelPermission(), nil
		}
	})
	s := first.new(t)
	second := b.connect(2)
	second.load(t, s.ID())
	s.Prompt(t.Context(), acp.Text("ask"))
	<-asked
	// A node that is busy may not answer in time: the next time it does.
	for {
		got := c.g.counts(t.Context(), []string{string(s.ID()), "s_none"})
		if len(got) == 1 && got[string(s.ID())] == (count{Here: 2, Waiting: 1}) {
			break
		}
		t.Logf("%+v", got)
	}
	third := c.connect(1)
	for listed := false; !listed; {
		for info, err := range third.conn.ListSessions(t.Context(), acp.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			meta := string(info.Meta)
			listed = strings.Contains(meta, `"here":2`) && strings.Contains(meta, `"waiting":1`)
			t.Log(meta)
		}
	}
	close(c.without(a).give)
	c.cut()
	c.g.mu.Lock()
	l := c.g.links["a"]
	c.g.mu.Unlock()
	if l != nil {
		<-l.conn.Done()
	}
	if got := c.g.counts(t.Context(), []string{string(s.ID())}); got[string(s.ID())].Here > 1 {
		t.Errorf("without the owner: %+v", got)
	}
}
