package conformance_test

import (
	"fmt"

	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// A monitor checks the frames of a connection as they pass.
func ExampleMonitor() {
	m := conformance.NewMonitor(conformance.MonitorConfig{})
	for _, f := range []struct {
		to    trace.Direction
		frame string
	}{
		{trace.ToAgent, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`},
		{trace.ToClient, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}`},
		{trace.ToClient, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		for _, finding := range m.Frame(0, f.to, []byte(f.frame)) {
			fmt.Println(finding.Frame, finding.Rule.ID, finding.Why)
		}
	}
	// Output:
	// 1 client/handshake/info did not say which client it is
	// 2 agent/handshake/info did not say which agent it is
	// 3 agent/envelope/answered-once answered the request "1" again
}
