package export

import (
	"testing"

	"github.com/goacp/acp/transcript"
)

// TestAbandoned holds that a tool call that was left open is not pending for ever. What is written down says so
// before the turn is known to be over, too: it would say something else after the session was continued.
func TestAbandoned(t *testing.T) {
	c := transcript.New(transcript.Config{})
	apply(t, c, `{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Edit x","kind":"edit","status":"pending"}`)
	for _, want := range []string{"edit, not finished", "edit, not finished"} {
		if got := items(c.Snapshot())[0].Status; got != want {
			t.Errorf("status %q, want %q", got, want)
		}
		apply(t, c, `{"sessionUpdate":"state_update","state":"idle"}`)
	}
}
