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

// TestSteeredShown: a prompt that was sent while a turn runs is on the screen until the agent takes it, or it has ended.
func TestSteeredShown(t *testing.T) {
	for _, taken := range []bool{true, false} {
		r := newRig(t, 80, 24, nil).start()
		r.run(r.keys("one", "enter"))
		r.run(r.keys("and also this", "ctrl+s"))
		r.wants("⋯ sent    and also this")
		if taken {
			r.said(&acpv2.UserMessage{MessageID: "2", Content: acpv2.Set([]acpv2.ContentBlock{acp.Text("and also this")})})
		} else {
			r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopCancelled}, text: "and also this"})
		}
		r.lacks("⋯ sent")
	}
}
