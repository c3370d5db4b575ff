package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// TestProxyInitialize: an Initialize hook sees the handshake and changes both sides of it, asks once, and may refuse; what it
// leaves alone keeps its spelling.
func TestProxyInitialize(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			agent, started := playedComponent(t, "agent")
			refuse := false
			r := newProxyRig(t, &Conductor{Agent: agent, Logger: logtest.New(t), Proxies: []Component{{Proxy: &Proxy{
				Initialize: func(ctx context.Context, in *ProxyInit) error {
					if refuse {
						return jsonrpc.Errorf(-7, "closed")
					}
					client, _ := in.Client()
					if none, _ := in.Agent(); client.Name != "c" || none.Name != "" || in.Version != version {
						t.Errorf("client %+v, agent %+v, version %d before next", client, none, in.Version)
					}
					if in.RequestV1 != nil {
						in.RequestV1.ClientCapabilities.FS.ReadTextFile = false
					} else {
						in.RequestV2.Info.Title = "changed"
					}
					if err := in.Next(ctx); err != nil {
						return err
					}
					if err := in.Next(ctx); err == nil {
						t.Error("the successor is asked twice")
					}
					if agent, _ := in.Agent(); agent.Name != "a" {
						t.Errorf("the agent is %+v", agent)
					}
					if in.ResultV1 != nil {
						in.ResultV1.AgentCapabilities.LoadSession = false
					} else {
						in.ResultV2.Info.Version = "2"
					}
					return nil
				},
			}}}})
			hello, welcome := helloOf(version)
			id := r.client.call("initialize", hello)
			a := started()
			f := a.expect("initialize", "")
			for _, want := range [][]string{{`"readTextFile"`, `"_x":1e2`}, {`"title":"changed"`, `"_x":1e2`}}[version-1] {
				if has := strings.Contains(string(f.Params), want); has == (want == `"readTextFile"`) {
					t.Errorf("the agent is asked %s", f.Params)
				}
			}
			a.answer(f, welcome)
			g := r.client.read()
			if string(g.ID) != id || strings.Contains(string(g.Result), `"loadSession":true`) || version == 2 && !strings.Contains(string(g.Result), `"version":"2"`) ||
				!strings.Contains(string(g.Result), `"_y":0.10`) {
				t.Errorf("the client is answered %s", &g)
			}
			refuse = true
			if e := r.client.failure(r.client.call("initialize", hello)); e.Code != -7 {
				t.Errorf("refused with %v", e)
			}
		})
	}
}

// TestProxyNotifyHook: a Notify hook gets notifications of both directions, changes them, leaves them out, and may fail without
// harm; a hook may send notifications and cancel a turn itself.
func TestProxyNotifyHook(t *testing.T) {
	eachWay(t, func(t *testing.T, change ...func(*Conductor)) {
		r := hookedRig(t, 1, &Proxy{Name: "noter", Notify: func(ctx context.Context, m *ProxyMessage, next func(context.Context) error) error {
			switch m.Method {
			case "_drop":
				return nil
			case "_fail":
				return jsonrpc.Errorf(-7, "no")
			case "_cancel":
				return m.Session.Cancel(ctx)
			case "_answer":
				return m.Session.Notify(ctx, ToClient, "_answered", map[string]string{"sessionId": string(m.Session.ID()), "was": m.Direction.String()})
			}
			if m.Method == "_change" {
				m.Params = []byte(`{"sessionId":"s","changed":true}`)
			}
			return next(ctx)
		}}, change...)
		for _, method := range []string{"_drop", "_fail", "_change", "_answer", "_cancel", "_last"} {
			r.client.notify(method, `{"sessionId":"s","n":1e2}`)
			r.agent.notify(method, `{"sessionId":"s","n":1e2}`)
		}
		for end, want := range map[*proxyPeer][]string{
			r.agent: {`_change {"sessionId":"s","changed":true}`, `_last {"sessionId":"s","n":1e2}`,
				`session/cancel {"_meta":{"github.com/goacp/acp/proxy":{"proxy":"noter"}},"sessionId":"s"}`,
				`session/cancel {"_meta":{"github.com/goacp/acp/proxy":{"proxy":"noter"}},"sessionId":"s"}`},
			r.client: {`_answered {"sessionId":"s","was":"to agent"}`, `_answered {"sessionId":"s","was":"to client"}`,
				`_change {"sessionId":"s","changed":true}`, `_last {"sessionId":"s","n":1e2}`},
		} {
			var got []string
			for range want { // the directions do not wait for each other
				f := end.read()
				got = append(got, f.Method+" "+string(f.Params))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s gets %q", end.name, got)
			}
		}
	})
}

// TestProxyOpens: a Session hook sees what a session is opened with in the words of version 2, also without what a client should
// have sent, and changes it in those of the chain.
func TestProxyOpens(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for _, method := range []string{"session/new", "session/resume", "session/fork"} {
			t.Run(fmt.Sprintf("v%d %s", version, method), func(t *testing.T) {
				r := hookedRig(t, version, &Proxy{Session: func(ctx context.Context, s *ProxySession, next func(context.Context) error) error {
					o := s.Opening()
					if o.Method != method || !strings.Contains(string(o.Raw()), `"n":1e2`) || (method == "session/fork") != (o.From == "old") {
						t.Errorf("opened with %+v", o)
					}
					o.SystemPrompt = &SystemPrompt{Mode: acpv2.SystemPromptModeAppend, Content: []ContentBlock{Text("be brief")}}
					o.AdditionalDirectories = append(o.AdditionalDirectories, "/more")
					o.MCPServers = append(o.MCPServers, &MCPServerStdio{Name: "m", Command: "/bin/m"})
					o.Meta = []byte(`{"k":1}`)
					s.SetValue(42)
					if err := next(ctx); err != nil {
						return err
					}
					if s.Value() != 42 || s.Version() != version {
						t.Errorf("value %v, version %d", s.Value(), s.Version())
					}
					return nil
				}})
				old := ""
				if method != "session/new" {
					old = `"sessionId":"old",`
				}
				id := r.client.call(method, `{`+old+`"cwd":"/","n":1e2}`)
				f := r.agent.expect(method, "")
				for _, want := range []string{`"n":1e2`, `be brief`, `"/more"`, `/bin/m`, `"_meta":{"k":1}`} {
					if !strings.Contains(string(f.Params), want) {
						t.Errorf("the agent gets %s", f.Params)
					}
				}
				r.agent.answer(f, `{"sessionId":"s"}`)
				r.client.response(id, "")
			})
		}
	}
}

// TestProxyEarlyUpdates: what a Session hook sends before the client knows the session is bounded, and none of it comes if the
// hook fails.
func TestProxyEarlyUpdates(t *testing.T) {
	r := hookedRig(t, 1, &Proxy{Session: func(ctx context.Context, s *ProxySession, next func(context.Context) error) error {
		if err := s.Update(ctx, &AgentMessageChunk{MessageID: "m", Content: Text("x")}); err == nil {
			t.Error("an update for a session without an id is accepted")
		}
		if err := next(ctx); err != nil {
			return err
		}
		for i := range maxEarlyUpdates + 1 {
			if err := s.Update(ctx, &AgentMessageChunk{MessageID: "m", Content: Text("x")}); (err != nil) != (i == maxEarlyUpdates) {
				t.Fatalf("update %d: %v", i, err)
			}
		}
		if strings.Contains(string(s.Opening().Raw()), "fail") {
			return jsonrpc.Errorf(-7, "no")
		}
		return nil
	}})
	id := r.client.call("session/new", `{"cwd":"/fail","mcpServers":[]}`)
	r.agent.answer(r.agent.expect("session/new", ""), `{"sessionId":"s1"}`)
	if e := r.client.failure(id); e.Code != -7 {
		t.Errorf("answered with %v", e)
	}
	id = r.client.call("session/new", `{"cwd":"/","mcpServers":[]}`)
	r.agent.answer(r.agent.expect("session/new", ""), `{"sessionId":"s2"}`)
	r.client.response(id, "")
	for range maxEarlyUpdates {
		if f := r.client.expect("session/update", ""); !strings.Contains(string(f.Params), `"s2"`) {
			t.Fatalf("the client gets %s", f.Params)
		}
	}
}

// TestProxyNestedBound: what Update hooks send while an update is handled is bounded.
func TestProxyNestedBound(t *testing.T) {
	var outer *ProxySession
	many := 0
	first := &Proxy{Update: func(ctx context.Context, _ *ProxySession, u Update) ([]Update, error) {
		for i := range maxNestedUpdates + 1 {
			if many > 0 {
				break
			}
			if err := outer.Update(ctx, &AgentMessageChunk{MessageID: "m", Content: Text("nested")}); (err != nil) != (i == maxNestedUpdates) {
				t.Errorf("update %d: %v", i, err)
			}
		}
		many++
		return []Update{u}, nil
	}}
	second := &Proxy{Update: func(_ context.Context, s *ProxySession, u Update) ([]Update, error) {
		outer = s
		return []Update{u}, nil
	}}
	r := hookedRig(t, 1, first, func(c *Conductor) { c.Proxies = append(c.Proxies, Component{Proxy: second}) })
	r.agent.notify("session/update", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"outer"}}}`)
	r.client.expect("session/update", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"outer"}}}`)
	for range maxNestedUpdates {
		if f := r.client.expect("session/update", ""); !strings.Contains(string(f.Params), "nested") {
			t.Fatalf("the client gets %s", f.Params)
		}
	}
}

// TestProxyNestedOrder: what an Update hook sends for a proxy that is nearer to the agent, while it handles an update which that one
// has passed on, comes behind that update, in whichever way it was passed on. The hook is not called inside of itself, and a hook
// that answers each update with one more ends.
func TestProxyNestedOrder(t *testing.T) {
	const tool = `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","_meta":{"terminal_info":{"terminal_id":"t"}}}}`
	const text = `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`
	unchanged := func(_ context.Context, _ *ProxySession, u Update) ([]Update, error) { return []Update{u}, nil }
	for _, x := range []struct {
		name   string
		update string
		second Proxy
	}{
		{"changed by nobody", text, Proxy{Update: unchanged}},
		{"of several parts", tool, Proxy{Update: unchanged}},
		{"through Notify", text, Proxy{Notify: func(ctx context.Context, _ *ProxyMessage, next func(context.Context) error) error { return next(ctx) }}},
		{"past Permission", text, Proxy{Permission: func(ctx context.Context, _ *ProxyPermission, next func(context.Context) error) error {
			return next(ctx)
		}}},
		{"past all hooks", text, Proxy{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var outer *ProxySession
			x.second.Session = func(ctx context.Context, s *ProxySession, next func(context.Context) error) error {
				outer = s
				return next(ctx)
			}
			var depth, calls int
			x.second.Logger = logtest.New(t)
			first := &Proxy{Logger: x.second.Logger, Update: func(ctx context.Context, _ *ProxySession, u Update) ([]Update, error) {
				depth++
				defer func() { depth-- }()
				if depth > 1 {
					return nil, errors.New("the hook is called inside of itself")
				}
				if calls++; calls > 4*maxNestedUpdates {
					return nil, errors.New("the hook is called without end")
				}
				_ = outer.Update(ctx, &AgentMessageChunk{MessageID: "m", Content: Text("nested")})
				return []Update{u}, nil
			}}
			r := hookedRig(t, 1, first, func(c *Conductor) { c.Proxies = append(c.Proxies, Component{Proxy: &x.second}) })
			id := r.client.call("session/new", `{"cwd":"/","mcpServers":[]}`)
			r.agent.answer(r.agent.expect("session/new", ""), `{"sessionId":"s"}`)
			r.client.response(id, "")
			r.agent.notify("session/update", x.update)
			r.client.expect("session/update", x.update)
			nested := func() {
				for range maxNestedUpdates {
					if f := r.client.expect("session/update", ""); !strings.Contains(string(f.Params), "nested") {
						t.Fatalf("the client gets %s", f.Params)
					}
				}
			}
			nested()
			r.agent.notify("session/update", text) // behind all of that
			r.client.expect("session/update", text)
			nested()
		})
	}
}

// TestConductorNestedAsks: a question of the agent, and its answer, cross a conductor that is a proxy.
func TestConductorNestedAsks(t *testing.T) {
	inner := &Conductor{Proxies: []Component{{Proxy: new(Proxy)}, {Transport: servedOnDemand(new(Proxy))}}}
	agent, started := playedComponent(t, "agent")
	r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{{Transport: servedConductor(inner)}}})
	id := r.client.call("initialize", proxyHelloV1)
	r.agent = started()
	r.agent.answer(r.agent.expect("initialize", proxyHelloV1), proxyWelcomeV1)
	r.client.response(id, proxyWelcomeV1)
	asked := r.agent.call("session/request_permission", `{"sessionId":"s","n":1e2}`)
	r.agent.notify("_note", `{"sessionId":"s"}`)
	r.client.answer(r.client.expect("session/request_permission", `{"sessionId":"s","n":1e2}`), `{"o":1.0}`)
	r.client.expect("_note", `{"sessionId":"s"}`)
	r.agent.response(asked, `{"o":1.0}`)
}
