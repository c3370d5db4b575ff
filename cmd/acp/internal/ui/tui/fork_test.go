package tui

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
)

// TestFork: /fork offers the end of the session, and the messages where the agent says that it can be forked, and continues in
// the copy. If that fails, the session stays.
func TestFork(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.said(&acpv2.UserMessage{MessageID: "m1", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("first prompt")})})
	r.said(&acpv2.AgentMessage{MessageID: "m2", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("first answer\x1b[31m")})})
	type_ := func(text string) { // as a command
		t.Helper()
		r.m.input.set(text)
		r.run(r.keys("enter"))
	}
	type_("/fork")
	r.wants("the agent cannot fork sessions")
	r.link.forks = true
	can := acpv2.Set(acpv2.CursorCapabilities{Fork: new(acpv2.CursorForkCapabilities)})
	r.talk.cursors = []acpv2.CursorUpdate{
		{CursorID: "c1", Capabilities: can, Anchor: &acpv2.CursorUserMessageAnchor{MessageID: "m1", Position: acpv2.CursorAnchorPositionBefore}},
		{CursorID: "gone", Capabilities: can, Anchor: &acpv2.CursorAgentMessageAnchor{MessageID: "m2", Position: acpv2.CursorAnchorPositionAfter}},
		{CursorID: "cannot", Anchor: &acpv2.CursorAgentMessageAnchor{MessageID: "m2", Position: acpv2.CursorAnchorPositionBefore}},
		{CursorID: "elsewhere", Capabilities: can, Anchor: &acpv2.CursorUserMessageAnchor{MessageID: "m9"}},
	}
	type_("/fork")
	r.wants("the whole conversation", "Agent: first answer", "You: first prompt")
	r.run(r.keys("down", "enter"))
	r.wants("the session cannot be opened: fork: no such cursor")
	if r.m.talk.ID() != "s-1" {
		t.Errorf("the session is %s", r.m.talk.ID())
	}
	type_("/fork")
	r.run(r.keys("down", "down", "enter"))
	r.wants("a copy of the session begins here; /resume s-1 leads back")
	if r.talk.left != 1 {
		t.Errorf("the session was left %d times", r.talk.left)
	}
	if diff := cmp.Diff([]acpv2.CursorID{"c1"}, r.talk.forks); diff != "" || r.m.talk.ID() != "fork" {
		t.Errorf("%s, and the session is %s", diff, r.m.talk.ID())
	}
}
