package conformance

import (
	"testing"

	"github.com/goacp/acp/trace"
)

// TestRoundedID holds that an id which JavaScript has rounded is taken for what
// it was, and one that is only similar is not.
func TestRoundedID(t *testing.T) {
	for answer, known := range map[string]bool{
		"9223372036854775807": true, "9223372036854776000": true, "9223372036854775000": false, "-9223372036854776000": false, `"9223372036854776000"`: false, "7": false,
	} {
		m := NewMonitor(MonitorConfig{})
		m.Frame(0, trace.ToAgent, []byte(`{"jsonrpc":"2.0","id":9223372036854775807,"method":"_x"}`))
		found := m.Frame(0, trace.ToClient, []byte(`{"jsonrpc":"2.0","id":`+answer+`,"error":{"code":-32601,"message":"no"}}`))
		if unknown := len(found) == 1 && found[0].Rule.ID == "agent/envelope/response-known"; unknown == known {
			t.Errorf("%s: %v", answer, found)
		}
	}
}
