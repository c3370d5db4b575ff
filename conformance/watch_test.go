package conformance

import (
	"testing"

	"github.com/goacp/acp/trace"
)

// TestRepeatedID: a peer that answers with an odd id is not to blame if the
// checker made it up.
func TestRepeatedID(t *testing.T) {
	const asked, answered = `{"jsonrpc":"2.0","id":{"a":1},"method":"_x","params":{}}`, `{"jsonrpc":"2.0","id":{"a":1},"error":{"code":-32600,"message":"x"}}`
	for _, sent := range []bool{true, false} {
		w := newWatch(Agent)
		see := w.connection(1)
		if sent {
			see(0, trace.ToAgent, true, []byte(asked))
		}
		see(0, trace.ToClient, false, []byte(answered))
		blamed := false
		for key := range w.broken {
			blamed = blamed || key.id == "agent/envelope/id-kind"
		}
		if blamed == sent {
			t.Errorf("sent: %t, blamed: %t", sent, blamed)
		}
	}
}
