package view

import (
	"strings"
	"testing"
)

// TestAbandoned holds that a tool call that an earlier turn has left open is not shown as waiting again
// while a later turn runs.
func TestAbandoned(t *testing.T) {
	c := conversation(t, "")
	tr := New(plainTheme())
	tr.SetWidth(60)
	for _, s := range []struct{ update, want string }{
		{`{"sessionUpdate":"state_update","state":"running"}
{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Edit x","kind":"edit","status":"pending"}`, "waiting"},
		{`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`, "not finished"},
		{`{"sessionUpdate":"user_message","messageId":"2","content":[{"type":"text","text":"go on"}]}`, "not finished"},
		{`{"sessionUpdate":"state_update","state":"running"}`, "not finished"},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}`, "running"},
	} {
		changes := apply(t, c, s.update)
		tr.Set(c.Snapshot(), changes)
		tr.SetOver(false)
		if got := strings.Join(drawAll(tr), "\n"); !strings.Contains(got, "Edit x · "+s.want) {
			t.Errorf("after %s: want %s in\n%s", s.update, s.want, got)
		}
	}
}
