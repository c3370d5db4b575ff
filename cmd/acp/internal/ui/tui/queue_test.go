package tui

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestQueueOrder holds that a prompt that was queued when a turn was cancelled goes out before one that is
// typed later.
func TestQueueOrder(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.run(r.keys("queued", "enter"))
	r.keys("ctrl+c")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopCancelled}})
	r.run(r.keys("later", "enter"))
	r.run(r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}}))
	var got []string
	for _, p := range r.talk.sent() {
		got = append(got, p[0].(*acpv2.TextContent).Text)
	}
	if diff := cmp.Diff([]string{"one", "queued", "later"}, got); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}
