package acp

import (
	"context"
	"fmt"
	"strings"
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

// TestProxyCallsBeforeNext holds that a hook may ask either side before it calls next, and gets the answer, which is in the
// lane that the hook holds; also if the answer depends on another question.
func TestProxyCallsBeforeNext(t *testing.T) {
	const (
		prompt   = `{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}`
		ended    = `{"stopReason":"end_turn","messageId":"m"}`
		options  = `"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]`
		decision = `{"outcome":{"outcome":"selected","optionId":"y"}}`
	)
	question := func(version int) string {
		if version == 2 {
			return `{"sessionId":"s","title":"t",` + options + `}`
		}
		return `{"sessionId":"s","toolCall":{"toolCallId":"c","title":"t"},` + options + `}`
	}
	for _, tc := range []struct {
		name  string
		proxy func() *Proxy
		play  func(r *proxyRig, version int)
	}{
		{"a Prompt hook asks the client", func() *Proxy {
			return &Proxy{Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
				if err := p.Session.Call(ctx, ToClient, "_ask", map[string]any{"sessionId": "s"}, nil); err != nil {
					return err
				}
				return next(ctx)
			}}
		}, func(r *proxyRig, _ int) {
			id := r.client.call("session/prompt", prompt)
			r.client.answer(r.client.expect("_ask", ""), `{}`)
			r.agent.answer(r.agent.expect("session/prompt", ""), ended)
			r.client.response(id, ended)
		}},
		{"a Prompt hook prompts, and the agent asks for a permission", func() *Proxy {
			return &Proxy{Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
				if _, err := p.Session.Prompt(ctx, Text("first")); err != nil {
					return err
				}
				return next(ctx)
			}}
		}, func(r *proxyRig, version int) {
			id := r.client.call("session/prompt", prompt)
			f := r.agent.expect("session/prompt", "")
			asked := r.agent.call("session/request_permission", question(version))
			r.client.answer(r.client.expect("session/request_permission", question(version)), decision)
			r.agent.response(asked, decision)
			r.agent.answer(f, ended)
			r.agent.answer(r.agent.expect("session/prompt", ""), ended)
			r.client.response(id, ended)
		}},
		{"a Permission hook asks the agent", func() *Proxy {
			return &Proxy{Permission: func(ctx context.Context, q *ProxyPermission, next func(context.Context) error) error {
				if err := q.Session.Call(ctx, ToAgent, "_ask", map[string]any{"sessionId": "s"}, nil); err != nil {
					return err
				}
				return next(ctx)
			}}
		}, func(r *proxyRig, version int) {
			asked := r.agent.call("session/request_permission", question(version))
			r.agent.answer(r.agent.expect("_ask", ""), `{}`)
			r.client.answer(r.client.expect("session/request_permission", question(version)), decision)
			r.agent.response(asked, decision)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, change ...func(*Conductor)) {
				for version := 1; version <= 2; version++ {
					t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
						tc.play(hookedRig(t, version, tc.proxy(), change...), version)
					})
				}
			})
		})
	}
}

// TestProxyCancelledEarly holds that the end of a turn reaches the Prompt hook of a prompt that had arrived, but waited for
// another one.
func TestProxyCancelledEarly(t *testing.T) {
	eachWay(t, func(t *testing.T, change ...func(*Conductor)) {
		for _, behind := range []int{0, 1} { // proxies that are components in front of it
			t.Run(fmt.Sprintf("behind %d", behind), func(t *testing.T) {
				entered := make(chan struct{}, 1)
				hooks := 0
				r := hookedRig(t, 1, &Proxy{Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
					if hooks++; hooks == 1 {
						entered <- struct{}{}
						<-ctx.Done() // the cancellation has arrived
					} else if hooks == 2 && ctx.Err() == nil {
						t.Error("the hook does not learn of the end of its turn")
					}
					return next(ctx)
				}}, append(change, func(c *Conductor) {
					for range behind {
						front := &Conductor{Proxies: []Component{{Proxy: new(Proxy)}}}
						asServed(front)
						c.Proxies = append(front.Proxies, c.Proxies...)
					}
				})...)
				const prompt = `{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}`
				const cancelled, ended = `"stopReason":"cancelled"`, `{"stopReason":"end_turn"}`
				ids := []string{r.client.call("session/prompt", prompt), r.client.call("session/prompt", prompt)}
				<-entered
				r.client.notify("session/cancel", `{"sessionId":"s"}`)
				for _, id := range ids {
					if f := r.client.read(); string(f.ID) != id || !strings.Contains(string(f.Result), cancelled) {
						t.Errorf("answered with %s", &f)
					}
				}
				r.agent.expect("session/cancel", "")
				id := r.client.call("session/prompt", prompt) // is another turn
				r.agent.answer(r.agent.expect("session/prompt", ""), ended)
				r.client.response(id, ended)
			})
		}
	})
}

// TestProxySessionFails holds that nothing is left of a session that was not opened: its MCP servers end, and its updates
// are not sent.
func TestProxySessionFails(t *testing.T) {
	for name, after := range map[string]bool{"before next": false, "after next": true} {
		t.Run(name, func(t *testing.T) {
			bridged, stopped := 0, 0
			r := hookedRig(t, 1, &Proxy{
				MCP: []ProxyMCP{{Name: "tools"}},
				BridgeMCP: func(context.Context, *MCPBridgeRequest) (MCPServer, func(), error) {
					bridged++
					return &MCPServerStdio{Name: "tools", Command: "/tools"}, func() { stopped++ }, nil
				},
				Session: func(ctx context.Context, s *ProxySession, next func(context.Context) error) error {
					if err := s.Update(ctx, &AgentMessageChunk{MessageID: "m", Content: Text("early")}); err == nil {
						t.Error("an update of a session without an id")
					}
					if after {
						if err := next(ctx); err != nil {
							return err
						}
						if err := s.Update(ctx, &AgentMessageChunk{MessageID: "m", Content: Text("early")}); err != nil {
							t.Error(err)
						}
					}
					return jsonrpc.Errorf(-7, "no")
				},
			})
			id := r.client.call("session/new", `{"cwd":"/","mcpServers":[]}`)
			if after {
				r.agent.answer(r.agent.expect("session/new", ""), `{"sessionId":"s"}`)
			}
			if e := r.client.failure(id); e.Code != -7 {
				t.Errorf("answered with %v", e)
			}
			if after != (bridged == 1) || stopped != bridged {
				t.Errorf("%d bridges, of which %d were stopped", bridged, stopped)
			}
			r.agent.notify("_last", `{"sessionId":"s"}`)
			r.client.expect("_last", "")
		})
	}
}

// TestProxyUpdateMeansSeveral holds that the Update hook sees all that an update of version 1 means.
func TestProxyUpdateMeansSeveral(t *testing.T) {
	for _, drop := range []bool{false, true} {
		seen := make(chan string, 16)
		r := hookedRig(t, 1, &Proxy{Update: func(_ context.Context, _ *ProxySession, u Update) ([]Update, error) {
			seen <- u.Kind()
			if drop {
				return nil, nil
			}
			return []Update{u}, nil
		}})
		const update = `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t",` +
			`"_meta":{"terminal_info":{"terminal_id":"x","cwd":"/"}}}}`
		r.agent.notify("session/update", update)
		r.agent.notify("_last", `{"sessionId":"s"}`)
		if !drop {
			r.client.expect("session/update", update)
		}
		r.client.expect("_last", "")
		if len(seen) < 2 {
			t.Errorf("the hook has seen %d updates", len(seen))
		}
	}
}

// TestProxyUpdateHookPrompts: an Update hook may prompt the agent while another proxy says something, whose own hook then says
// something, too: what is said inside comes behind what is said outside.
func TestProxyUpdateHookPrompts(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			prompted := false
			curious := &Proxy{Name: "curious", Update: func(ctx context.Context, s *ProxySession, u Update) ([]Update, error) {
				if _, ok := u.Update.(*AgentMessageChunk); ok && !prompted {
					prompted = true
					if _, err := s.Prompt(ctx, Text("inner")); err != nil {
						return nil, err
					}
				}
				return []Update{u}, nil
			}}
			passing := func(_ context.Context, _ *ProxySession, u Update) ([]Update, error) { return []Update{u}, nil }
			talking := &Proxy{Name: "talking", Update: passing, Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
				if err := p.Say(ctx, string(p.Raw())); err != nil {
					return err
				}
				return next(ctx)
			}}
			r := hookedRig(t, version, curious, func(c *Conductor) { c.Proxies = append(c.Proxies, Component{Proxy: talking}) })
			id := r.client.call("session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":"outer"}]}`)
			for _, text := range []string{"inner", "outer"} {
				f := r.agent.expect("session/prompt", "")
				if !strings.Contains(string(f.Params), text) {
					t.Errorf("the agent is asked %s instead of %s", f.Params, text)
				}
				r.agent.answer(f, `{"stopReason":"end_turn","messageId":"m"}`)
				if text == "inner" {
					for _, said := range []string{"outer", "inner"} {
						if f := r.client.expect("session/update", ""); !strings.Contains(string(f.Params), said) {
							t.Errorf("the client reads %s instead of %s", f.Params, said)
						}
					}
				}
			}
			r.client.response(id, "")
			// An update of the agent, behind which the hook prompts.
			prompted = false
			content, message := `"content":{"type":"text","text":"from the agent"}`, `"messageId":"m"`
			if version == 2 {
				content, message = message, content
			}
			update := `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk",` + content + `,` + message + `}}`
			r.agent.notify("session/update", update)
			r.agent.answer(r.agent.expect("session/prompt", ""), `{"stopReason":"end_turn","messageId":"m"}`)
			r.client.expect("session/update", update)
			if f := r.client.expect("session/update", ""); !strings.Contains(string(f.Params), "inner") {
				t.Errorf("the client reads %s", f.Params)
			}
		})
	}
}
