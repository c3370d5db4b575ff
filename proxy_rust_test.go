package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// The tests of this file play components as the conductor of the Rust SDK and its proxies
// are documented to behave.

// wrappedParams returns the params of proxy/successor.
func wrappedParams(method, params string) string {
	return `{"method":"` + method + `","params":` + params + `}`
}

// wrappedHello answers proxy/initialize as a proxy does: it asks its successor first.
func wrappedHello(t *testing.T, p *proxyPeer, name, hello, successor string, next func()) {
	t.Helper()
	f := p.expect(name, hello)
	id := p.call(successor, wrappedParams("initialize", hello))
	next()
	answer := p.read()
	if string(answer.ID) != id || answer.Result == nil {
		t.Fatalf("%s: the successor answers %s", p.name, &answer)
	}
	p.answer(f, string(answer.Result))
}

// TestConductorRoles holds that the last component gets initialize and all before it
// proxy/initialize.
func TestConductorRoles(t *testing.T) {
	for n := range 3 {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%d proxies v%d", n, version), func(t *testing.T) {
				agent, startedAgent := playedComponent(t, "agent")
				c := &Conductor{Agent: agent}
				var started []func() *proxyPeer
				for i := range n {
					proxy, s := playedComponent(t, fmt.Sprintf("p%d", i))
					c.Proxies = append(c.Proxies, proxy)
					started = append(started, s)
				}
				r := newProxyRig(t, c)
				hello, welcome := helloOf(version)
				id := r.client.call("initialize", hello)
				var next func(i int)
				var peers []*proxyPeer
				for _, s := range started {
					peers = append(peers, s())
				}
				last := startedAgent()
				next = func(i int) {
					if i == n {
						last.answer(last.expect("initialize", hello), welcome)
						return
					}
					wrappedHello(t, peers[i], "proxy/initialize", hello, "proxy/successor", func() { next(i + 1) })
				}
				next(0)
				r.client.response(id, welcome)
				if err := r.end(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// playedChain is a conductor with one proxy that the test plays, initialized. old says that the
// proxy knows the earlier names only.
func playedChain(t *testing.T, c *Conductor, old bool) (r *proxyRig, proxy *proxyPeer) {
	t.Helper()
	agent, startedAgent := playedComponent(t, "agent")
	middle, startedProxy := playedComponent(t, "middle")
	c.Agent, c.Proxies = agent, append([]Component{middle}, c.Proxies...)
	r = newProxyRig(t, c)
	id := r.client.call("initialize", proxyHelloV1)
	proxy, r.agent = startedProxy(), startedAgent()
	name, successor := "proxy/initialize", "proxy/successor"
	if old {
		proxy.fail(proxy.expect(name, proxyHelloV1), `{"code":-32601,"message":"Method not found"}`)
		name, successor = "_proxy/initialize", "_proxy/successor"
	}
	wrappedHello(t, proxy, name, proxyHelloV1, successor, func() {
		r.agent.answer(r.agent.expect("initialize", ""), proxyWelcomeV1)
	})
	r.client.response(id, proxyWelcomeV1)
	return r, proxy
}

// TestConductorGenerations holds that a proxy of either generation is spoken to in its words.
func TestConductorGenerations(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("old=%v", old), func(t *testing.T) {
			r, proxy := playedChain(t, &Conductor{Proxies: []Component{{Proxy: new(Proxy)}}}, old)
			successor := "proxy/successor"
			if old {
				successor = "_proxy/successor"
			}
			id := r.client.call("session/prompt", `{"sessionId":"s","prompt":[]}`)
			f := proxy.expect("session/prompt", `{"sessionId":"s","prompt":[]}`)
			inner := proxy.call(successor, wrappedParams("session/prompt", `{"sessionId":"s","prompt":[1]}`))
			g := r.agent.expect("session/prompt", `{"sessionId":"s","prompt":[1]}`)
			r.agent.notify("session/update", `{"sessionId":"s","update":1.0}`)
			proxy.expect(successor, wrappedParams("session/update", `{"sessionId":"s","update":1.0}`))
			proxy.notify("session/update", `{"sessionId":"s","update":2.0}`)
			r.client.expect("session/update", `{"sessionId":"s","update":2.0}`)
			question := r.agent.call("session/request_permission", `{"sessionId":"s"}`)
			h := proxy.expect(successor, wrappedParams("session/request_permission", `{"sessionId":"s"}`))
			asked := proxy.call("session/request_permission", `{"sessionId":"s","n":1}`)
			r.client.answer(r.client.expect("session/request_permission", `{"sessionId":"s","n":1}`), `{"o":1e0}`)
			proxy.response(asked, `{"o":1e0}`)
			proxy.answer(h, `{"o":1.0}`)
			r.agent.response(question, `{"o":1.0}`)
			r.agent.answer(g, `{"stopReason":"end_turn"}`)
			proxy.response(inner, `{"stopReason":"end_turn"}`)
			proxy.answer(f, `{"stopReason":"max_tokens"}`)
			r.client.response(id, `{"stopReason":"max_tokens"}`)
			proxy.notify("_proxy/successor", wrappedParams("session/cancel", `{"sessionId":"s"}`))
			r.agent.expect("session/cancel", `{"sessionId":"s"}`)
			// The proxy sends what only a conductor sends.
			bad := proxy.call("proxy/successor", wrappedParams("proxy/initialize", proxyHelloV1))
			if e := proxy.failure(bad); e.Code != jsonrpc.CodeInvalidRequest {
				t.Errorf("forwarding proxy/initialize: %v", e)
			}
			bad = proxy.call("proxy/initialize", proxyHelloV1)
			if e := proxy.failure(bad); e.Code != jsonrpc.CodeInvalidRequest {
				t.Errorf("proxy/initialize: %v", e)
			}
			bad = r.agent.call("proxy/successor", wrappedParams("x", `{}`))
			if e := r.agent.failure(bad); e.Code != jsonrpc.CodeInvalidRequest {
				t.Errorf("proxy/successor of the agent: %v", e)
			}
		})
	}
}

// TestProxyServesBothGenerations holds that a proxy answers in the generation of its
// conductor.
func TestProxyServesBothGenerations(t *testing.T) {
	for _, prefix := range []string{"", "_"} {
		t.Run(prefix+"proxy", func(t *testing.T) {
			theirs, ours := jsonrpc.Pipe()
			done := make(chan error, 1)
			go func() { done <- new(Proxy).Serve(context.Background(), Over(theirs)) }()
			p := newProxyPeer(t, "conductor", ours)
			early := p.call("session/new", `{}`)
			if e := p.failure(early); e.Code != jsonrpc.CodeInvalidRequest {
				t.Errorf("before the handshake: %v", e)
			}
			id := p.call(prefix+"proxy/initialize", proxyHelloV2)
			p.answer(p.expect(prefix+"proxy/successor", wrappedParams("initialize", proxyHelloV2)), proxyWelcomeV2)
			p.response(id, proxyWelcomeV2)
			id = p.call("session/new", `{"cwd":"/"}`)
			p.answer(p.expect(prefix+"proxy/successor", wrappedParams("session/new", `{"cwd":"/"}`)), `{"sessionId":"s"}`)
			p.response(id, `{"sessionId":"s"}`)
			_ = ours.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProxyAlone holds that a client which starts a proxy as if it were an agent gets to know
// what to do.
func TestProxyAlone(t *testing.T) {
	theirs, ours := jsonrpc.Pipe()
	done := make(chan error, 1)
	go func() { done <- new(Proxy).Serve(context.Background(), Over(theirs)) }()
	p := newProxyPeer(t, "client", ours)
	e := p.failure(p.call("initialize", proxyHelloV1))
	if e.Code != jsonrpc.CodeInvalidRequest || !strings.Contains(e.Message, "conductor") {
		t.Errorf("answered with %v", e)
	}
	_ = ours.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestConductorCancels holds that $/cancel_request travels hop by hop, once on each, with the
// id of that hop.
func TestConductorCancels(t *testing.T) {
	cancelOf := func(id string) string { return `{"requestId":` + id + `}` }
	t.Run("to the agent", func(t *testing.T) {
		r, proxy := playedChain(t, &Conductor{}, false)
		id := r.client.call("_vendor/slow", `{"sessionId":"s"}`)
		f := proxy.expect("_vendor/slow", `{"sessionId":"s"}`)
		inner := proxy.call("proxy/successor", wrappedParams("_vendor/slow", `{"sessionId":"s"}`))
		g := r.agent.expect("_vendor/slow", `{"sessionId":"s"}`)
		r.client.notify("$/cancel_request", cancelOf(id))
		proxy.expect("$/cancel_request", cancelOf(string(f.ID)))
		proxy.notify("$/cancel_request", cancelOf(inner))
		r.agent.expect("$/cancel_request", cancelOf(string(g.ID)))
		// A round trip behind it: nothing else was sent.
		r.agent.notify("_vendor/barrier", `{"sessionId":"s"}`)
		proxy.expect("proxy/successor", wrappedParams("_vendor/barrier", `{"sessionId":"s"}`))
		r.agent.fail(g, `{"code":-32800,"message":"cancelled","data":1.0}`)
		proxy.errorText(inner, `{"code":-32800,"message":"cancelled","data":1.0}`)
		proxy.fail(f, `{"code":-32800,"message":"cancelled","data":2.0}`)
		r.client.errorText(id, `{"code":-32800,"message":"cancelled","data":2.0}`)
	})
	t.Run("to the client", func(t *testing.T) {
		r, proxy := playedChain(t, &Conductor{}, false)
		id := r.agent.call("session/request_permission", `{"sessionId":"s"}`)
		f := proxy.expect("proxy/successor", wrappedParams("session/request_permission", `{"sessionId":"s"}`))
		inner := proxy.call("session/request_permission", `{"sessionId":"s"}`)
		g := r.client.expect("session/request_permission", `{"sessionId":"s"}`)
		r.agent.notify("$/cancel_request", cancelOf(id))
		proxy.expect("$/cancel_request", cancelOf(string(f.ID)))
		proxy.notify("$/cancel_request", cancelOf(inner))
		r.client.expect("$/cancel_request", cancelOf(string(g.ID)))
		r.client.notify("_vendor/barrier", `{"sessionId":"s"}`)
		proxy.expect("_vendor/barrier", `{"sessionId":"s"}`)
		r.client.answer(g, `{"outcome":{"outcome":"cancelled"}}`)
		proxy.response(inner, `{"outcome":{"outcome":"cancelled"}}`)
		proxy.answer(f, `{"outcome":{"outcome":"cancelled"}}`)
		r.agent.response(id, `{"outcome":{"outcome":"cancelled"}}`)
	})
}

// TestProxyCancelCascade holds that the end of a turn reaches the agent in its place, and that a
// question which is open then ends cancelled.
func TestProxyCancelCascade(t *testing.T) {
	for _, way := range proxyWays[:2] {
		t.Run(way, func(t *testing.T) {
			r := relayedRig(t, 1, 2, way)
			id := r.client.call("session/prompt", `{"sessionId":"s"}`)
			f := r.agent.expect("session/prompt", "")
			asked := r.agent.call("session/request_permission", `{"sessionId":"s"}`)
			q := r.client.expect("session/request_permission", "")
			r.client.notify("session/cancel", `{"sessionId":"s"}`)
			r.client.answer(q, `{"outcome":{"outcome":"cancelled"}}`)
			r.agent.expect("session/cancel", `{"sessionId":"s"}`)
			r.agent.response(asked, `{"outcome":{"outcome":"cancelled"}}`)
			r.agent.notify("session/update", `{"sessionId":"s","n":1}`)
			r.agent.answer(f, `{"stopReason":"cancelled"}`)
			r.client.expect("session/update", `{"sessionId":"s","n":1}`)
			r.client.response(id, `{"stopReason":"cancelled"}`)
		})
	}
}

// TestProxyOrder holds that the messages of a session keep their order: requests,
// notifications and responses in each direction.
func TestProxyOrder(t *testing.T) {
	for _, way := range proxyWays[:2] {
		t.Run(way, func(t *testing.T) {
			r := relayedRig(t, 1, 2, way)
			for i := range 100 {
				mark := fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)
				first := r.client.call("session/prompt", mark)
				r.client.notify("session/cancel", mark)
				second := r.client.call("session/prompt", mark)
				f := r.agent.expect("session/prompt", mark)
				r.agent.expect("session/cancel", mark)
				g := r.agent.expect("session/prompt", mark)
				r.agent.notify("session/update", mark)
				r.agent.answer(f, `{"stopReason":"cancelled"}`)
				r.agent.notify("session/update", mark)
				asked := r.agent.call("session/request_permission", mark)
				r.agent.notify("_vendor/note", mark)
				r.agent.answer(g, `{"stopReason":"end_turn"}`)
				r.agent.notify("session/update", mark)
				r.client.expect("session/update", mark)
				r.client.response(first, "")
				r.client.expect("session/update", mark)
				q := r.client.expect("session/request_permission", mark)
				r.client.expect("_vendor/note", mark)
				r.client.response(second, "")
				r.client.expect("session/update", mark)
				r.client.answer(q, `{}`)
				r.agent.response(asked, `{}`)
				// A session that the client does not know yet.
				opened := r.client.call("session/new", `{"cwd":"/"}`)
				h := r.agent.expect("session/new", "")
				r.agent.answer(h, fmt.Sprintf(`{"sessionId":"s%d"}`, i))
				r.agent.notify("session/update", fmt.Sprintf(`{"sessionId":"s%d"}`, i))
				r.client.response(opened, "")
				r.client.expect("session/update", "")
			}
		})
	}
}

// prefixing is a proxy that puts a mark in front of what the agent says.
func prefixing() *Proxy {
	return &Proxy{Update: func(_ context.Context, _ *ProxySession, u Update) ([]Update, error) {
		if m, ok := u.Update.(*AgentMessageChunk); ok {
			if text, ok := m.Content.(*TextContent); ok {
				text.Text = ">" + text.Text
			}
		}
		return []Update{u}, nil
	}}
}

// TestConductorNested holds that a conductor serves as one proxy of another one.
func TestConductorNested(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			inner := &Conductor{Proxies: []Component{{Transport: servedOnDemand(prefixing())}, {Proxy: prefixing()}}}
			agent := InProcess(echoing())
			outer := &Conductor{
				Proxies: []Component{{Transport: openFunc(func(context.Context) (jsonrpc.Stream, error) {
					theirs, ours := jsonrpc.Pipe()
					go func() { _ = inner.Serve(context.Background(), Over(theirs)) }()
					return ours, nil
				})}, {Proxy: prefixing()}},
				Agent: Component{Transport: agent},
			}
			conn, err := (&Client{MinVersion: version, MaxVersion: version}).Connect(t.Context(), conducted(t, outer))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			text, _, err := s.Prompt(t.Context(), Text("hello")).Text()
			if err != nil || text != ">>>You said: hello" {
				t.Errorf("text %q, error %v", text, err)
			}
		})
	}
	t.Run("wrong hello", func(t *testing.T) {
		r := newProxyRig(t, &Conductor{})
		if e := r.client.failure(r.client.call("initialize", proxyHelloV1)); e.Code != jsonrpc.CodeInvalidRequest {
			t.Errorf("a conductor without an agent: %v", e)
		}
		agent, _ := playedComponent(t, "agent")
		r = newProxyRig(t, &Conductor{Agent: agent})
		if e := r.client.failure(r.client.call("proxy/initialize", proxyHelloV1)); e.Code != jsonrpc.CodeInvalidRequest {
			t.Errorf("a conductor with an agent: %v", e)
		}
		if e := r.client.failure(r.client.call("session/new", `{}`)); e.Code != jsonrpc.CodeInvalidRequest {
			t.Errorf("before the handshake: %v", e)
		}
	})
}

// servedOnDemand is a transport that has a proxy serve each time.
func servedOnDemand(p *Proxy) Transport {
	return openFunc(func(context.Context) (jsonrpc.Stream, error) {
		theirs, ours := jsonrpc.Pipe()
		go func() { _ = p.Serve(context.Background(), Over(theirs)) }()
		return ours, nil
	})
}

// reasonOf returns what a conductor says in data.
func reasonOf(e *jsonrpc.Error) (reason, component string) {
	var data struct{ Reason, Component string }
	_ = json.Unmarshal(e.Data, &data)
	return data.Reason, data.Component
}
