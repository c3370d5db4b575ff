package transcript

import (
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestAbandoned holds which tool calls will not end any more, as what happens in a session goes on.
func TestAbandoned(t *testing.T) {
	type step struct {
		update acpv2.SessionUpdate
		want   bool // the call is abandoned after it
	}
	status := func(s acpv2.ToolCallStatus) acpv2.SessionUpdate {
		return &acpv2.ToolCallUpdate{ToolCallID: "c", Status: acpv2.Set(s)}
	}
	said := func(id acpv2.MessageID) acpv2.SessionUpdate {
		return &acpv2.UserMessage{MessageID: id, Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("x")})}
	}
	running, idle := &acpv2.RunningStateUpdate{}, &acpv2.IdleStateUpdate{}
	background := &acpv2.IdleStateUpdate{Background: []acpv2.BackgroundWork{&acpv2.BackgroundToolCall{ToolCallID: "c"}}}
	inTerminal := &acpv2.IdleStateUpdate{Background: []acpv2.BackgroundWork{&acpv2.BackgroundTerminal{TerminalID: "t"}}}
	shows := &acpv2.ToolCallUpdate{ToolCallID: "c", Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Terminal{TerminalID: "t"}})}
	pending, inProgress := status(acpv2.ToolCallStatusPending), status(acpv2.ToolCallStatusInProgress)
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"refused", []step{{said("1"), false}, {running, false}, {pending, false}, {idle, true}, {said("2"), true}, {running, true}, {idle, true}}},
		{"another prompt meanwhile", []step{{running, false}, {inProgress, false}, {said("2"), false}}},
		{"goes on in the next turn", []step{{running, false}, {pending, false}, {idle, true}, {running, true}, {inProgress, false}, {idle, true}}},
		{"ended", []step{{running, false}, {status(acpv2.ToolCallStatusFailed), false}, {idle, false}}},
		{"in the background", []step{{running, false}, {inProgress, false}, {background, false}, {said("2"), false}, {idle, true}}},
		{"in a terminal in the background", []step{{running, false}, {shows, false}, {inTerminal, false}, {idle, true}}},
		{"history", []step{{said("1"), false}, {pending, false}, {said("2"), true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{})
			for i, s := range tt.steps {
				c.Apply(s.update)
				for name, snap := range map[string]*Snapshot{"snapshot": c.Snapshot(), "continued": c.Snapshot().Continue(Config{}).Snapshot()} {
					call := snap.ToolCall("c")
					if got := call != nil && snap.Abandoned(call); got != s.want {
						t.Errorf("step %d, %s: %v, want %v", i, name, got, s.want)
					}
				}
			}
		})
	}
	c := New(Config{})
	c.Apply(pending)
	before := c.Snapshot()
	c.Apply(idle)
	if before.Abandoned(before.ToolCall("c")) {
		t.Error("a snapshot has changed")
	}
}
