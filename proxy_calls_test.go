package acp

import (
	"context"
	"fmt"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// asServed has the proxy of a rig run as a component of its own, behind [Proxy.Serve].
func asServed(c *Conductor) {
	p := c.Proxies[0].Proxy
	c.Proxies[0] = Component{Transport: openFunc(func(context.Context) (jsonrpc.Stream, error) {
		theirs, ours := jsonrpc.Pipe()
		go func() { _ = p.Serve(context.Background(), Over(theirs)) }()
		return ours, nil
	})}
}

// eachWay runs a test with proxies in the process of the conductor, and with proxies that are served.
func eachWay(t *testing.T, f func(t *testing.T, change ...func(*Conductor))) {
	t.Helper()
	t.Run("in process", func(t *testing.T) { f(t) })
	t.Run("served", func(t *testing.T) { f(t, asServed) })
}

// TestProxySessionPrompts holds that a Session hook may prompt the agent in the session that was opened.
func TestProxySessionPrompts(t *testing.T) {
	eachWay(t, func(t *testing.T, change ...func(*Conductor)) {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
				r := hookedRig(t, version, &Proxy{
					Session: func(ctx context.Context, s *ProxySession, next func(context.Context) error) error {
						if err := next(ctx); err != nil {
							return err
						}
						_, err := s.Prompt(ctx, Text("hello"))
						return err
					},
				}, change...)
				id := r.client.call("session/new", `{"cwd":"/","mcpServers":[]}`)
				r.agent.answer(r.agent.expect("session/new", ""), `{"sessionId":"s"}`)
				f := r.agent.expect("session/prompt", "")
				r.agent.notify("session/update", `{"sessionId":"s","n":1}`)
				r.agent.answer(f, `{"stopReason":"end_turn","messageId":"m"}`)
				r.client.expect("session/update", `{"sessionId":"s","n":1}`)
				r.client.response(id, `{"sessionId":"s"}`)
			})
		}
	})
}
