package conformance

import (
	"context"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// TestOwnProxy: our conductor and our proxy keep the rules on the connection between them.
func TestOwnProxy(t *testing.T) {
	for _, version := range []int{1, 2} {
		var mu sync.Mutex
		m := NewMonitor(MonitorConfig{})
		theirs, ours := acp.Pipe()
		served := make(chan error, 1)
		go func() { served <- new(acp.Proxy).Serve(t.Context(), theirs) }()
		watched := acp.WrapTransport(ours, func(s jsonrpc.Stream) jsonrpc.Stream {
			return jsonrpc.Tap(s, func(sent bool, frame []byte) {
				mu.Lock()
				defer mu.Unlock()
				dir := trace.ToClient
				if sent {
					dir = trace.ToAgent
				}
				for _, f := range m.Frame(0, dir, frame) {
					t.Errorf("version %d: %s: %s\n%s", version, f.Rule.ID, f.Why, frame)
				}
			})
		})
		agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, turn.Say("hello")
		}}
		clients, front := acp.Pipe()
		conducted := make(chan error, 1)
		conductor := &acp.Conductor{Proxies: []acp.Component{{Transport: watched}}, Agent: acp.Component{Transport: acp.InProcess(agent)}}
		go func() { conducted <- conductor.Serve(t.Context(), clients) }()
		c, err := (&acp.Client{MinVersion: version, MaxVersion: version}).Connect(t.Context(), front)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
		if err == nil {
			_, _, err = s.Prompt(t.Context(), acp.Text("hi")).Text()
		}
		if err != nil {
			t.Error(err)
		}
		_ = c.Close()
		<-conducted
		<-served
		for _, rule := range []string{"agent/proxy/forwards-first", "agent/proxy/version", "agent/proxy/cancel", "client/proxy/meta"} {
			if !m.Seen(builtin().byID[rule]) {
				t.Errorf("version %d: there was no case for %s", version, rule)
			}
		}
	}
}
