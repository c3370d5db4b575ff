package tui

import (
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TestCallOfSubagent: a tool call that a subagent does says so, and leads to what that does.
func TestCallOfSubagent(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.link.children["sub"] = &fakeTalk{id: "sub", conv: transcript.New(transcript.Config{}), results: make(chan turnEnd, 1)}
	r.said(&acp.SubagentUpdate{SessionID: "sub", Title: acp.Set("Searcher")})
	r.said(&acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Set("Delegate"), Status: acp.Set(acpv2.ToolCallStatusCompleted),
		Content: acp.Set([]acp.ToolCallContent{&acpv2.SessionReference{SessionID: "sub"}})})
	r.wants("Delegate", "subagent: Searcher · Enter shows it")
	r.keys("tab")
	r.run(r.keys("enter"))
	if r.m.child != "sub" {
		t.Errorf("what is shown is %q", r.m.child)
	}
}
