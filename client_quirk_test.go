package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestClientQuirks plays what real agents were seen to do (behaviour §1). The
// rest of that list: early updates are TestClientEarlyUpdates, permissions for
// unknown tool calls and options in any order TestClientPermission and
// TestPermissionChoice, files that are not offered TestClientHost, updates behind
// an answer TestReplyV1 and TestClientLoad, answers out of order
// TestReplyOutOfOrder, error code 400 TestReplyFails, usage null TestReplyV1,
// prompts that are never answered TestReplyLost, and agents that ignore the end
// of their input and talk on standard error TestClientStubbornAgent.
func TestClientQuirks(t *testing.T) {
	big := strings.Repeat("x", 560<<10)
	tests := []struct {
		name string
		play func(a *clientScript, version int)
		told string // the only update; "" for none
	}{
		{"a line of 560 kB", func(a *clientScript, _ int) { a.say(big) }, "say " + big},
		{"an update of an unknown tool call", func(a *clientScript, _ int) {
			a.update("tool_call_update", `"toolCallId":"t","title":"T","status":"completed"`)
		}, "tool t T"},
		{"a terminal nobody made", func(a *clientScript, _ int) {
			a.update("tool_call_update", `"toolCallId":"t","title":"T","content":[{"type":"terminal","terminalId":"none"}]`)
		}, "tool t T"},
		{"an unknown update", func(a *clientScript, _ int) { a.update("future", `"x":1`) }, "unknown future"}, // S79
		{"a malformed update", func(a *clientScript, _ int) { a.update("agent_message_chunk", "") }, ""},
		{"no session", func(a *clientScript, _ int) { a.notify("session/update", `{"nope":true}`) }, ""},
		{"a session nobody knows", func(a *clientScript, _ int) {
			a.updateOf("x", "agent_message_chunk", `"messageId":"m","content":{"type":"text","text":"x"}`)
		}, ""},
		{"extension methods without an underscore", func(a *clientScript, _ int) {
			a.request(1, "vendor/request", `{}`)
			want(a.t, "answer", a.response(), `-32601 {"method":"vendor/request"}`)
			a.notify("vendor/notification", `{}`)
			a.silent()
		}, ""},
		{"ids of any kind", func(a *clientScript, version int) {
			for _, id := range []string{"0", `"a6f0c5d2-0f43-4a34-a1a5-0e6d8c9b7a61"`, "-1", `""`} {
				a.send(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":%s}`, id, permissionParams(version, clientAllowOption))
				if f := a.next(""); string(f.ID) != id || f.Error != nil {
					a.t.Errorf("id %s was answered as %s", id, f.ID)
				}
			}
		}, ""},
		{"noise", func(a *clientScript, _ int) { a.send("[[1,2"); a.next("") }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var told clientTold
			both(t, Client{Update: told.hook}, func(t *testing.T, s *ClientSession, a *clientScript) {
				told.take()
				tt.play(a, s.conn.Version())
				a.say("alive")
				list := told.take()
				if len(list) == 0 || list[len(list)-1] != "say alive" {
					t.Fatal(list)
				}
				if got := strings.Join(list[:len(list)-1], ","); got != tt.told {
					t.Errorf("told %.100q, want %.100q", got, tt.told)
				}
			})
		})
	}
}

// TestClientStubbornAgent holds that an agent that talks a lot on standard error
// and ignores both the end of its input and SIGTERM is ended all the same.
func TestClientStubbornAgent(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	transport := Command(sh, "-c", `trap '' TERM
		i=0; while [ $i -lt 2000 ]; do echo "noise noise noise noise noise noise noise noise noise noise" >&2; i=$((i+1)); done
		echo "this is no JSON"
		read line
		printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"usage":null}}'
		while :; do sleep 1; done`)
	transport.CloseGrace, transport.TermGrace = 20*time.Millisecond, 20*time.Millisecond
	c := &Client{MaxVersion: 1}
	conn, err := c.Connect(t.Context(), transport)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), conn.Wait()); err != nil {
		t.Error(err)
	}
	clientNoLeaks(t)
}

// TestClientCommandDies holds that what a process said at its end is part of the
// error.
func TestClientCommandDies(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	_, err = new(Client).Connect(t.Context(), Command(sh, "-c", `echo "no config" >&2; exit 3`))
	if !errors.Is(err, jsonrpc.ErrClosed) || !strings.Contains(err.Error(), "no config") || !strings.Contains(err.Error(), "3") {
		t.Error(err)
	}
	clientNoLeaks(t)
}

// TestClientMiddleware holds that middleware sees the protocol's types, and that
// it may swallow updates and answer calls without harm to the order.
func TestClientMiddleware(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	var told clientTold
	c := Client{Update: told.hook, Engine: jsonrpc.Settings{
		Incoming: []jsonrpc.Middleware{func(next jsonrpc.Handler) jsonrpc.Handler {
			return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
				if n, ok := req.Params.(*acpv2.UpdateSessionNotification); ok {
					if u := (&Update{Update: n.Update}).short(); u == "say swallow" {
						return nil, nil
					}
				}
				return next(ctx, req)
			}
		}},
		Outgoing: []jsonrpc.Middleware{func(next jsonrpc.Handler) jsonrpc.Handler {
			return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
				mu.Lock()
				sent = append(sent, fmt.Sprintf("%T", req.Params))
				mu.Unlock()
				if req.Method == "session/set_config_option" {
					return &acpv2.SetSessionConfigOptionResponse{}, nil
				}
				res, err := next(ctx, req)
				if _, ok := req.Params.(*acpv2.PromptRequest); !ok && req.Method == "session/prompt" {
					return nil, errors.New("the params have changed")
				}
				return res, err
			}
		}},
	}}
	single(t, c, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		for range 3 {
			a.say("swallow")
		}
		r := s.Prompt(t.Context(), Text("hi"))
		f := a.next("session/prompt")
		a.say("swallow")
		a.say("x")
		a.answer(f, `{"messageId":"u"}`)
		a.state("running", "")
		a.say("swallow")
		a.state("idle", `"stopReason":"end_turn"`)
		got, err := r.collect()
		want(t, "updates", got, []string{"say x", "running", "idle end_turn"})
		if err != nil {
			t.Error(err)
		}
		a.update("config_option_update", `"configOptions":[{"configId":"web","name":"W","type":"boolean","currentValue":true}]`)
		synctest.Wait()
		if err := s.SetOption(t.Context(), "web", &SessionConfigOptionValueBoolean{}); err != nil || len(s.Options()) != 0 {
			t.Error(err, s.Options())
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(sent, "*acpv2.PromptRequest") || !slices.Contains(sent, "*acpv2.NewSessionRequest") {
			t.Error(sent)
		}
	})
}

// TestClientHooks holds that hooks may panic, end their goroutine and call back
// without harm to what comes behind.
func TestClientHooks(t *testing.T) {
	var told clientTold
	c := Client{Update: func(ctx context.Context, s *ClientSession, u *Update) {
		told.hook(ctx, s, u)
		switch u.short() {
		case "say panic":
			panic("boom")
		case "say mode":
			if err := s.SetOption(ctx, "web", &SessionConfigOptionValueBoolean{}); err != nil {
				panic(err)
			}
		case "made-up idle end_turn", "idle end_turn":
			if ClientConnFrom(ctx) != s.Conn() {
				told.hook(ctx, s, &Update{Update: &UnknownSessionUpdate{Type: "wrong context"}})
			}
			// Outside of a handler, perhaps, while more arrives.
			if err := s.SetOption(ctx, "web", &SessionConfigOptionValueBoolean{Value: true}); err != nil {
				panic(err)
			}
		}
	}}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		const options = `"configOptions":[{"id":"web","configId":"web","name":"W","type":"boolean","currentValue":true}]`
		a.update("config_option_update", options)
		told.take()
		a.say("panic")
		a.say("behind")
		want(t, "updates", told.take(), []string{"say panic", "say behind"})
		a.say("mode")
		f := a.next("session/set_config_option")
		a.say("meanwhile")
		a.answer(f, "{"+options+"}")
		want(t, "updates", told.take(), []string{"say mode", "say meanwhile"})

		r := s.Prompt(t.Context(), Text("hi"))
		f = a.next("session/prompt")
		told.take()
		a.answer(f, `{"messageId":"u","stopReason":"end_turn"}`)
		if s.conn.Version() == 2 {
			a.state("idle", `"stopReason":"end_turn"`)
		}
		f = a.next("session/set_config_option")
		for range 10 { // handed over, or waiting, while the hook waits
			a.say("x")
		}
		a.answer(f, "{"+options+"}")
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
		if list := told.take(); len(list) != 11 || !strings.Contains(list[0], "idle") || list[10] != "say x" {
			t.Error(list)
		}
	})
}

// TestClientExtensions holds that vendors' methods work in both directions, with
// the connection in the context.
func TestClientExtensions(t *testing.T) {
	echo := jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: "_x/echo"}
	c := Client{Extensions: func(mux *jsonrpc.Mux) {
		echo.Handle(mux, func(ctx context.Context, p *json.RawMessage) (*json.RawMessage, error) {
			if ClientConnFrom(ctx) == nil {
				return nil, errors.New("no connection")
			}
			return p, nil
		})
	}}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		a.request(1, "_x/echo", `{"a":[1,2.50]}`)
		want(t, "answer", a.response(), `{"a":[1,2.50]}`)
		get := later(func() (*json.RawMessage, error) {
			return echo.Call(t.Context(), s.Conn().Conn(), new(json.RawMessage(`{"b":1}`)))
		})
		f := a.next("_x/echo")
		a.answer(f, string(f.Params))
		if got, err := get(); err != nil || string(*got) != `{"b":1}` {
			t.Error(got, err)
		}
	})
}

// TestClientTrace holds that the trace of a context goes with its requests.
func TestClientTrace(t *testing.T) {
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		ctx := WithTrace(t.Context(), Trace{Parent: "00-1-2-01"})
		r := s.PromptRequest(ctx, &acpv2.PromptRequest{Prompt: []ContentBlock{Text("hi")}, Meta: json.RawMessage(`{"k":1}`)})
		f := a.next("session/prompt")
		var p struct {
			Meta map[string]any `json:"_meta"`
		}
		if err := json.Unmarshal(f.Params, &p); err != nil || p.Meta["traceparent"] != "00-1-2-01" || p.Meta["k"] != 1.0 {
			t.Errorf("%s", f.Params)
		}
		a.refuse(f, -32603, "null")
		_, _ = r.Wait()
	})
}

// TestClientClose holds that Close ends everything, may be called in a hook and
// twice, and that what is used afterwards fails.
func TestClientClose(t *testing.T) {
	closed := make(chan error, 2)
	c := Client{Update: func(_ context.Context, s *ClientSession, u *Update) {
		if u.short() == "say close" {
			closed <- s.Conn().Close()
		}
	}}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("hi"))
		f := a.next("session/prompt")
		if s.conn.Version() == 2 {
			a.answer(f, `{"messageId":"u"}`)
			synctest.Wait()
		}
		_ = a.stream.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"close"}}}}`))
		if err := <-closed; err != nil {
			t.Error(err)
		}
		<-s.conn.Done()
		if err := s.conn.Wait(); err != nil {
			t.Error(err)
		}
		if _, err := r.Wait(); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Error(err)
		}
		if _, err := s.Prompt(t.Context(), Text("hi")).Wait(); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Error(err)
		}
		if _, err := s.conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot}); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Error(err)
		}
		if len(s.conn.OpenSessions()) != 0 {
			t.Error("sessions are left")
		}
	})
}

// TestClientRequestOrder holds that a request of the agent finds handled what
// arrived before it, also right behind the answer to a prompt.
func TestClientRequestOrder(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := func(s string) {
		mu.Lock()
		order = append(order, s)
		mu.Unlock()
	}
	c := Client{
		Update: func(_ context.Context, _ *ClientSession, u *Update) { note(u.short()) },
		RequestPermission: func(_ context.Context, req *PermissionRequest) (PermissionDecision, error) {
			note("asked")
			return req.Allow(), nil
		},
	}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		for round := range 300 {
			r := s.Prompt(t.Context(), Text("hi"))
			f := a.next("session/prompt")
			mu.Lock()
			order = nil
			mu.Unlock()
			a.answer(f, fmt.Sprintf(`{"messageId":"u%d","stopReason":"end_turn"}`, round))
			a.say("1")
			a.say("2")
			a.request(round, "session/request_permission", permissionParams(s.conn.Version(), clientAllowOption))
			a.response()
			expect := []string{"say 1", "say 2", "asked"}
			if s.conn.Version() == 1 {
				expect = append([]string{"made-up idle end_turn"}, expect...)
			} else {
				a.state("idle", `"stopReason":"end_turn"`)
			}
			mu.Lock()
			got := slices.Clone(order)
			mu.Unlock()
			if _, err := r.Wait(); err != nil || !slices.Equal(got[:len(expect)], expect) {
				t.Fatal(round, got, err)
			}
			synctest.Wait()
		}
	})
}

// TestClientNoiseIsCounted holds that what an agent writes besides messages is counted,
// and that the first of it is kept in a form that can be shown.
func TestClientNoiseIsCounted(t *testing.T) {
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		c := s.Conn()
		if n, first := c.Noise(); n != 0 || first != "" {
			t.Errorf("before: %d, %q", n, first)
		}
		a.send(`{"level":"info","text":"%s"}`, strings.Repeat("\u202ex\u001b", 100))
		a.next("") // the error it is answered with
		a.send("[INFO] listening")
		a.next("")
		a.say("alive")
		n, first := c.Noise()
		want := `{"level":"info","text":"x`
		if n != 2 || !strings.HasPrefix(first, want) || len(first) > maxNoise || strings.ContainsAny(first, "\u202e\u001b") {
			t.Errorf("got %d, %q; want 2, %s…", n, first, want)
		}
	})
}
