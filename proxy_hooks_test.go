package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// hookedRig is a rig with one proxy of this process, initialized.
func hookedRig(t *testing.T, version int, p *Proxy, change ...func(*Conductor)) *proxyRig {
	t.Helper()
	agent, started := playedComponent(t, "agent")
	c := &Conductor{Agent: agent, Proxies: []Component{{Proxy: p}}, Logger: logtest.New(t)}
	if p.Logger == nil {
		p.Logger = c.Logger
	}
	for _, f := range change {
		f(c)
	}
	r := newProxyRig(t, c)
	hello, welcome := helloOf(version)
	id := r.client.call("initialize", hello)
	r.agent = started()
	r.agent.answer(r.agent.expect("initialize", ""), welcome)
	r.client.response(id, "")
	return r
}

// TestProxyHooksChange holds that hooks change what they mean to change, in both versions, and
// that the rest of a message keeps its spelling.
func TestProxyHooksChange(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			r := hookedRig(t, version, &Proxy{
				Name: "changer",
				Session: func(ctx context.Context, s *ProxySession, next func(context.Context) error) error {
					s.Opening().Cwd = "/changed"
					if s.ID() != "" {
						t.Error("a new session has an id")
					}
					if err := next(ctx); err != nil {
						return err
					}
					if s.ID() != "s" {
						t.Errorf("id %q", s.ID())
					}
					return s.Update(ctx, &AgentMessageChunk{MessageID: "m", Content: Text("early")})
				},
				Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
					if p.Session.Opening() == nil || p.Session.Opening().Cwd != "/changed" {
						t.Error("the session is not known")
					}
					p.Blocks = append(p.Blocks, Text("more"))
					return next(ctx)
				},
				Permission: func(ctx context.Context, q *ProxyPermission, next func(context.Context) error) error {
					if q.Request.Title == "forbidden" {
						q.Decision = q.Request.Reject()
						return nil
					}
					return next(ctx)
				},
			})
			id := r.client.call("session/new", `{"cwd":"/","mcpServers":[],"n":1e2}`)
			f := r.agent.expect("session/new", `{"cwd":"/changed","mcpServers":[],"n":1e2}`)
			r.agent.answer(f, `{"sessionId":"s","n":1e2}`)
			r.client.response(id, `{"sessionId":"s","n":1e2}`)
			early := r.client.expect("session/update", "")
			if !strings.Contains(string(early.Params), ProxyMetaKey) || !strings.Contains(string(early.Params), `"changer"`) {
				t.Errorf("an update of a proxy: %s", early.Params)
			}
			id = r.client.call("session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":"one"}],"n":1e2,"_meta":{"k":1.0}}`)
			f = r.agent.expect("session/prompt",
				`{"sessionId":"s","prompt":[{"type":"text","text":"one"},{"type":"text","text":"more"}],"n":1e2,"_meta":{"k":1.0}}`)
			answer := `{"stopReason":"end_turn","n":1e2}`
			if version == 2 {
				answer = `{"messageId":"m","n":1e2}`
			}
			r.agent.answer(f, answer)
			r.client.response(id, answer)
			for _, title := range []string{"forbidden", "allowed"} {
				question := `{"sessionId":"s","toolCall":{"toolCallId":"c","title":"` + title + `"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}]}`
				if version == 2 {
					question = strings.Replace(question, `"toolCall":{"toolCallId":"c","title":"`+title+`"}`, `"title":"`+title+`"`, 1)
				}
				id := r.agent.call("session/request_permission", question)
				if title == "allowed" {
					r.client.answer(r.client.expect("session/request_permission", question), `{"outcome":{"outcome":"selected","optionId":"y"},"n":1e2}`)
					r.agent.response(id, `{"outcome":{"outcome":"selected","optionId":"y"},"n":1e2}`)
					continue
				}
				r.agent.response(id, `{"outcome":{"outcome":"selected","optionId":"n"}}`)
			}
		})
	}
}

// TestProxyUpdates holds what becomes of what an Update hook returns.
func TestProxyUpdates(t *testing.T) {
	for version := 1; version <= 2; version++ {
		chunk := func(text string) string { // in the order in which it is encoded
			content, id := `"content":{"type":"text","text":"`+text+`"}`, `"messageId":"m"`
			if version == 2 {
				content, id = id, content
			}
			return `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk",` + content + `,` + id + `,"n":1e2},"o":1e2}`
		}
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			r := hookedRig(t, version, &Proxy{
				Update: func(_ context.Context, _ *ProxySession, u Update) ([]Update, error) {
					m := u.Update.(*AgentMessageChunk)
					text := m.Content.(*TextContent)
					switch text.Text {
					case "same":
						return []Update{u}, nil
					case "changed in place":
						text.Text = "was changed in place"
						return []Update{u}, nil
					case "twice":
						return []Update{u, u}, nil
					case "dropped":
						return nil, nil
					case "failed":
						return []Update{u}, errors.New("a secret")
					case "panics":
						panic("a secret")
					case "only in v2":
						return []Update{{Update: &RunningStateUpdate{}}, u}, nil
					}
					return nil, nil
				},
			})
			for _, text := range []string{"same", "changed in place", "dropped", "failed", "panics", "twice", "only in v2"} {
				r.agent.notify("session/update", chunk(text))
			}
			r.client.expect("session/update", chunk("same"))
			r.client.expect("session/update", chunk("was changed in place"))
			r.client.expect("session/update", chunk("twice"))
			r.client.expect("session/update", chunk("twice"))
			if version == 2 {
				if f := r.client.expect("session/update", ""); !strings.Contains(string(f.Params), "running") {
					t.Errorf("received %s", f.Params)
				}
			}
			r.client.expect("session/update", chunk("only in v2"))
			// What cannot be read may hold what the hook would have removed.
			r.agent.notify("session/update", `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk"}}`)
			r.agent.notify("session/update", chunk("same"))
			r.client.expect("session/update", chunk("same"))
		})
	}
}

// TestProxyAnswersItself holds that a hook which does not call next answers.
func TestProxyAnswersItself(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			agent := InProcess(echoing())
			conn, err := (&Client{MinVersion: version, MaxVersion: version}).Connect(t.Context(), Chain(agent, &Proxy{
				Prompt: func(ctx context.Context, p *ProxyPrompt, _ func(context.Context) error) error {
					p.StopReason = StopRefusal
					return p.Say(ctx, "No.")
				},
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			text, res, err := s.Prompt(t.Context(), Text("hello")).Text()
			if err != nil || text != "No." || res.StopReason != StopRefusal {
				t.Errorf("text %q, result %+v, error %v", text, res, err)
			}
		})
	}
}

// TestProxyOwnPrompt holds that a proxy may prompt the agent, and that this is marked.
func TestProxyOwnPrompt(t *testing.T) {
	r := hookedRig(t, 1, &Proxy{Name: "asker", Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
		if err := next(ctx); err != nil {
			return err
		}
		reason, err := p.Session.Prompt(ctx, Text("again"))
		if err == nil && reason != StopMaxTokens {
			t.Errorf("reason %q", reason)
		}
		return err
	}})
	id := r.client.call("session/prompt", `{"sessionId":"s","prompt":[]}`)
	r.agent.answer(r.agent.expect("session/prompt", ""), `{"stopReason":"end_turn"}`)
	f := r.agent.expect("session/prompt", "")
	if !strings.Contains(string(f.Params), `"_meta":{"`+ProxyMetaKey+`":{"proxy":"asker"}}`) {
		t.Errorf("the proxy's prompt is %s", f.Params)
	}
	r.agent.notify("session/update", `{"sessionId":"s","n":1}`)
	r.client.expect("session/update", `{"sessionId":"s","n":1}`)
	r.agent.answer(f, `{"stopReason":"max_tokens"}`)
	r.client.response(id, `{"stopReason":"end_turn"}`)
}

// TestProxyHookFails holds what the peer gets of an error and a panic of a hook: a reference,
// and no text.
func TestProxyHookFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("a secret") },
		"panic": func() error { panic("a secret") },
	} {
		t.Run(name, func(t *testing.T) {
			outer := 0
			r := hookedRig(t, 1, &Proxy{Request: func(_ context.Context, m *ProxyMessage, _ func(context.Context) error) error {
				if m.Direction == ToAgent && m.Method == "_vendor/method" {
					return fail()
				}
				return jsonrpc.Errorf(-7, "said")
			}}, func(c *Conductor) {
				c.Proxies = append([]Component{{Proxy: &Proxy{Request: func(ctx context.Context, m *ProxyMessage, next func(context.Context) error) error {
					outer++
					return next(ctx)
				}}}}, c.Proxies...)
			})
			e := r.client.failure(r.client.call("_vendor/method", `{}`))
			var data struct{ CorrelationID string }
			if err := json.Unmarshal(e.Data, &data); err != nil || data.CorrelationID == "" || e.Code != jsonrpc.CodeInternalError || strings.Contains(e.Error(), "secret") {
				t.Errorf("answered with %v", e)
			}
			if e := r.client.failure(r.client.call("_vendor/other", `{}`)); e.Code != -7 || e.Message != "said" {
				t.Errorf("answered with %v", e)
			}
			if outer != 2 {
				t.Errorf("the hook around it ran %d times", outer)
			}
		})
	}
}

// TestProxyPromptCancelled holds that the end of a turn reaches a Prompt hook that has not called
// next, and not one that has.
func TestProxyPromptCancelled(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			entered := make(chan struct{}, 1)
			r := hookedRig(t, version, &Proxy{Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
				entered <- struct{}{}
				if strings.Contains(string(p.Raw()), "wait") {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return next(ctx)
			}})
			id := r.client.call("session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":"wait"}]}`)
			<-entered
			r.client.notify("session/cancel", `{"sessionId":"s"}`)
			if version == 1 {
				f := r.client.read()
				if string(f.ID) != id || !strings.Contains(string(f.Result), `"stopReason":"cancelled"`) {
					t.Errorf("answered with %s", &f)
				}
			} else if e := r.client.failure(id); e.Code != jsonrpc.CodeRequestCancelled {
				t.Errorf("answered with %v", e)
			}
			r.agent.expect("session/cancel", "")
			id = r.client.call("session/prompt", `{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}`)
			<-entered
			f := r.agent.expect("session/prompt", "")
			r.client.notify("session/cancel", `{"sessionId":"s"}`)
			r.agent.expect("session/cancel", "") // and no $/cancel_request
			r.agent.answer(f, `{"stopReason":"cancelled","messageId":"m"}`)
			r.client.response(id, `{"stopReason":"cancelled","messageId":"m"}`)
		})
	}
}

// TestProxyBlocks holds that a hook which does not return holds its session, and no other.
func TestProxyBlocks(t *testing.T) {
	for _, served := range []bool{false, true} {
		t.Run(fmt.Sprintf("served=%v", served), func(t *testing.T) {
			release := make(chan struct{})
			p := &Proxy{
				Update: func(_ context.Context, s *ProxySession, u Update) ([]Update, error) {
					if s.ID() == "slow" {
						<-release
					}
					return []Update{u}, nil
				},
				Prompt: func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error {
					if p.Session.ID() == "slow" {
						<-release
					}
					return next(ctx)
				},
			}
			r := hookedRig(t, 1, new(Proxy), func(c *Conductor) {
				c.Proxies = []Component{{Proxy: p}}
				if served {
					c.Proxies = []Component{{Transport: servedOnDemand(p)}}
				}
			})
			update := func(session string, n int) string {
				return fmt.Sprintf(`{"sessionId":"%s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d"}}}`, session, n)
			}
			for i := range 20 {
				r.agent.notify("session/update", update("slow", i))
			}
			slow := r.client.call("session/prompt", `{"sessionId":"slow","prompt":[]}`)
			for i := range 20 {
				r.agent.notify("session/update", update("quick", i))
				r.client.expect("session/update", update("quick", i))
				id := r.client.call("session/prompt", `{"sessionId":"quick","prompt":[]}`)
				r.agent.answer(r.agent.expect("session/prompt", `{"sessionId":"quick","prompt":[]}`), `{"stopReason":"end_turn"}`)
				r.client.response(id, "")
			}
			close(release)
			for i := range 20 {
				r.client.expect("session/update", update("slow", i))
			}
			r.agent.answer(r.agent.expect("session/prompt", `{"sessionId":"slow","prompt":[]}`), `{"stopReason":"end_turn"}`)
			r.client.response(slow, "")
		})
	}
}

// TestProxyFlood holds that what a blocked hook keeps is bounded: in the end the agent waits.
func TestProxyFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		const bound = 1 << 20
		r := hookedRig(t, 1, &Proxy{Update: func(_ context.Context, _ *ProxySession, u Update) ([]Update, error) {
			<-release
			return []Update{u}, nil
		}}, func(c *Conductor) { c.Engine.MaxQueued, c.Engine.MaxQueuedHard = bound, bound })
		line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` +
			strings.Repeat("x", 10<<10) + `"}}}}`
		const all = 1000
		sent, over := 0, make(chan struct{})
		go func() {
			defer close(over)
			for range all {
				if r.agent.stream.WriteFrame([]byte(line)) != nil {
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		if n := sent * len(line); sent == 0 || n > 2*bound+100*len(line) {
			t.Errorf("%d bytes were accepted", n)
		}
		close(release)
		for range all {
			r.client.expect("session/update", "")
		}
		<-over
	})
}

// TestConductorVersions holds how the version of a chain comes about.
func TestConductorVersions(t *testing.T) {
	t.Run("a proxy of version 1 in this process", func(t *testing.T) {
		agent, started := playedComponent(t, "agent")
		r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{{Proxy: &Proxy{MaxVersion: 1}}}})
		id := r.client.call("initialize", proxyHelloV2)
		a := started()
		f := a.expect("initialize", "")
		if versionOf(f.Params) != 1 || !strings.Contains(string(f.Params), `"clientInfo"`) {
			t.Errorf("the agent is asked %s", f.Params)
		}
		a.answer(f, proxyWelcomeV1)
		r.client.response(id, proxyWelcomeV1)
	})
	t.Run("a proxy of version 1 that is a component", func(t *testing.T) {
		agent, started := playedComponent(t, "agent")
		opened := 0
		proxy := servedOnDemand(&Proxy{MaxVersion: 1})
		r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{{Transport: openFunc(func(ctx context.Context) (jsonrpc.Stream, error) {
			opened++
			return proxy.Open(ctx)
		})}}})
		id := r.client.call("initialize", proxyHelloV2)
		first := started()
		first.answer(first.expect("initialize", ""), proxyWelcomeV1)
		second := started()
		<-first.closed
		second.answer(second.expect("initialize", ""), proxyWelcomeV1)
		r.client.response(id, proxyWelcomeV1)
		if opened != 2 {
			t.Errorf("the proxy was started %d times", opened)
		}
		id = r.client.call("session/new", `{}`)
		second.answer(second.expect("session/new", `{}`), `{"sessionId":"s"}`)
		r.client.response(id, "")
	})
	t.Run("a proxy of version 2", func(t *testing.T) {
		agent, _ := playedComponent(t, "agent")
		r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{{Proxy: &Proxy{MinVersion: 2}}}})
		if e := r.client.failure(r.client.call("initialize", proxyHelloV1)); e.Code != jsonrpc.CodeUnsupportedVersion {
			t.Errorf("answered with %v", e)
		}
	})
	t.Run("an agent of version 1", func(t *testing.T) {
		agent, started := playedComponent(t, "agent")
		r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{{Proxy: new(Proxy)}, {Transport: servedOnDemand(new(Proxy))}}})
		id := r.client.call("initialize", proxyHelloV2)
		a := started()
		a.answer(a.expect("initialize", proxyHelloV2), proxyWelcomeV1)
		r.client.response(id, proxyWelcomeV1)
	})
	t.Run("a proxy that raises the version", func(t *testing.T) {
		agent, started := playedComponent(t, "agent")
		middle, startedMiddle := playedComponent(t, "liar")
		r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{middle}})
		id := r.client.call("initialize", proxyHelloV2)
		m, a := startedMiddle(), started()
		f := m.expect("proxy/initialize", proxyHelloV2)
		inner := m.call("proxy/successor", wrappedParams("initialize", proxyHelloV2))
		a.answer(a.expect("initialize", ""), proxyWelcomeV1)
		m.response(inner, proxyWelcomeV1)
		m.answer(f, proxyWelcomeV2)
		if reason, component := reasonOf(r.client.failure(id)); reason != "version_changed" || component != "liar" {
			t.Errorf("reason %q, component %q", reason, component)
		}
	})
	t.Run("no proxy", func(t *testing.T) {
		agent, _ := playedComponent(t, "agent")
		middle, started := playedComponent(t, "another agent")
		r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{middle}})
		id := r.client.call("initialize", proxyHelloV1)
		m := started()
		m.fail(m.expect("proxy/initialize", ""), `{"code":-32601,"message":"no"}`)
		m.fail(m.expect("_proxy/initialize", ""), `{"code":-32601,"message":"no"}`)
		if reason, component := reasonOf(r.client.failure(id)); reason != "not_a_proxy" || component != "another agent" {
			t.Errorf("reason %q, component %q", reason, component)
		}
		if reason, _ := reasonOf(r.client.failure(r.client.call("session/new", `{}`))); reason != "not_a_proxy" {
			t.Errorf("a later request: reason %q", reason)
		}
	})
	t.Run("no agent", func(t *testing.T) { // the proxy is not asked again, and not blamed
		agent, started := playedComponent(t, "agent")
		middle, startedMiddle := playedComponent(t, "middle")
		r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{middle}})
		id := r.client.call("initialize", proxyHelloV1)
		m, a := startedMiddle(), started()
		f := m.expect("proxy/initialize", "")
		inner := m.call("proxy/successor", wrappedParams("initialize", proxyHelloV1))
		a.fail(a.expect("initialize", ""), `{"code":-32601,"message":"what"}`)
		if e := m.failure(inner); e.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("the proxy is answered %v", e)
		}
		m.fail(f, `{"code":-32601,"message":"what"}`)
		if e := r.client.failure(id); e.Code != jsonrpc.CodeMethodNotFound || e.Message != "what" {
			t.Errorf("the client is answered %v", e)
		}
	})
}

// TestConductorTraces holds what Trace is told of a chain.
func TestConductorTraces(t *testing.T) {
	var hops []string
	r := hookedRig(t, 1, &Proxy{Name: "p"}, func(c *Conductor) {
		c.Trace = func(h ChainMessage) {
			hops = append(hops, fmt.Sprintf("%s %s>%s %d>%d #%d %s %s %s%s", h.Kind, h.From, h.To, h.FromAt, h.ToAt, h.ID, h.Method, h.Session, h.Params, h.Result))
		}
	})
	hops = nil
	id := r.client.call("session/prompt", `{"sessionId":"s"}`)
	f := r.agent.expect("session/prompt", "")
	r.agent.notify("session/update", `{"sessionId":"s"}`)
	r.client.expect("session/update", "")
	r.agent.answer(f, `{"stopReason":"end_turn"}`)
	r.client.response(id, "")
	if err := r.end(); err != nil {
		t.Error(err)
	}
	want := []string{
		`request client>p 0>1 #3 session/prompt s {"sessionId":"s"}`,
		`request p>agent 1>2 #4 session/prompt s {"sessionId":"s"}`,
		`notification agent>p 2>1 #0 session/update s {"sessionId":"s"}`,
		`notification p>client 1>0 #0 session/update s {"sessionId":"s"}`,
		`response agent>p 2>1 #4 session/prompt s {"stopReason":"end_turn"}`,
		`response p>client 1>0 #3 session/prompt s {"stopReason":"end_turn"}`,
	}
	if strings.Join(hops, "\n") != strings.Join(want, "\n") {
		t.Errorf("hops\n%s\nwant\n%s", strings.Join(hops, "\n"), strings.Join(want, "\n"))
	}
}

// TestProxyPermissionRecalls holds that whoever decides knows what the agent has said of the tool
// call before it asked.
func TestProxyPermissionRecalls(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			var input, title string
			earlier := 0
			r := hookedRig(t, version, &Proxy{Permission: func(_ context.Context, q *ProxyPermission, _ func(context.Context) error) error {
				call := q.Request.ToolCall
				input, title, earlier = string(call.RawInput), call.Title.Or(""), len(q.Request.Earlier)
				q.Decision = q.Request.Allow()
				return nil
			}})
			announced := `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run it","rawInput":{"command":"rm -rf /"}}}`
			asked := `{"sessionId":"s","toolCall":{"toolCallId":"c","rawInput":{}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}`
			if version == 2 {
				announced = strings.Replace(announced, `"tool_call"`, `"tool_call_update"`, 1)
				asked = strings.Replace(asked, `"toolCall":{"toolCallId":"c","rawInput":{}}`,
					`"title":"?","subject":{"type":"tool_call","toolCall":{"toolCallId":"c","rawInput":{}}}`, 1)
			}
			r.agent.notify("session/update", announced)
			id := r.agent.call("session/request_permission", asked)
			r.client.expect("session/update", announced)
			r.agent.response(id, `{"outcome":{"outcome":"selected","optionId":"y"}}`)
			if title != "Run it" || !strings.Contains(input, "rm -rf") && earlier == 0 {
				t.Errorf("title %q, input %q, %d earlier", title, input, earlier)
			}
		})
	}
}
