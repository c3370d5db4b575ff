package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

func permissionParams(version int, options string) string {
	if version == 1 {
		return fmt.Sprintf(`{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Run it?"},"options":[%s]}`, options)
	}
	return fmt.Sprintf(`{"sessionId":"s","title":"Run it?","subject":{"type":"tool_call","toolCall":{"toolCallId":"t"}},"options":[%s]}`, options)
}

const clientAllowOption = `{"optionId":"o","name":"O","kind":"allow_once"}`

// TestClientCancel holds what session/cancel does: the prompt ends as the agent
// ends it, and never another one; in version 1 questions to the user are
// answered, those that wait and those that come (S40), in version 2 they are the
// agent's to withdraw (S42).
func TestClientCancel(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		t.Run(fmt.Sprintf("hook heeds its ctx %v", heeds), func(t *testing.T) {
			release := make(chan struct{})
			ask := func(ctx context.Context) error {
				if heeds {
					<-ctx.Done()
					return ctx.Err()
				}
				<-release
				return nil
			}
			c := Client{
				RequestPermission: func(ctx context.Context, req *PermissionRequest) (PermissionDecision, error) {
					return req.Allow(), ask(ctx)
				},
				Elicit: func(ctx context.Context, _ *ElicitationRequest) (*ElicitationResponse, error) {
					return AcceptElicitation(nil), ask(ctx)
				},
			}
			both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
				release = make(chan struct{})
				version := s.conn.Version()
				r := s.Prompt(t.Context(), Text("hi"))
				// At once: the cancellation is behind the prompt.
				if err := s.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
				f := a.next("session/prompt")
				if got := string(a.next("session/cancel").Params); got != `{"sessionId":"s"}` {
					t.Error(got)
				}
				if version == 1 {
					a.request(1, "session/request_permission", permissionParams(1, clientAllowOption))
					want(t, "a permission behind the cancellation", a.response(), `{"outcome":{"outcome":"cancelled"}}`)
					a.answer(f, `{"stopReason":"cancelled"}`)
				} else {
					a.refuse(f, -32800, "null") // it was held
				}
				if res, err := r.Wait(); err != nil || res.StopReason != StopCancelled {
					t.Error(res, err)
				}

				// In a permission and in an elicitation.
				r = s.Prompt(t.Context(), Text("hi"))
				f = a.next("session/prompt")
				if version == 2 {
					a.answer(f, `{"messageId":"u"}`)
					a.state("running", "")
				}
				a.request(2, "session/request_permission", permissionParams(version, clientAllowOption))
				a.request(3, "elicitation/create", `{"sessionId":"s","mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}`)
				a.silent()
				if err := s.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
				a.next("session/cancel")
				if version == 2 {
					a.silent()
					a.notify("$/cancel_request", `{"requestId":2}`)
					a.notify("$/cancel_request", `{"requestId":3}`)
				}
				got := map[string]string{}
				for range 2 {
					x := a.next("")
					got[string(x.ID)] = string(x.Result)
				}
				want(t, "questions that waited", got, map[string]string{"2": `{"outcome":{"outcome":"cancelled"}}`, "3": `{"action":"cancel"}`})
				if err := s.Cancel(t.Context()); err != nil { // twice is as good as once
					t.Fatal(err)
				}
				a.next("session/cancel")
				a.say("late")
				if version == 1 {
					a.answer(f, `{"stopReason":"cancelled"}`)
				} else {
					a.state("idle", `"stopReason":"cancelled"`)
				}
				list, err := r.collect()
				if res, _ := r.Wait(); err != nil || res.StopReason != StopCancelled || !strings.Contains(strings.Join(list, ","), "say late") {
					t.Error(list, res, err)
				}

				// The next turn has nothing to do with it.
				close(release)
				r = s.Prompt(t.Context(), Text("hi"))
				f = a.next("session/prompt")
				if version == 2 {
					a.answer(f, `{"messageId":"v"}`)
					a.state("running", "")
				}
				a.request(4, "session/request_permission", permissionParams(version, clientAllowOption))
				if heeds {
					a.silent()
					a.notify("$/cancel_request", `{"requestId":4}`)
					want(t, "withdrawn", a.response(), `{"outcome":{"outcome":"cancelled"}}`)
				} else {
					want(t, "decided", a.response(), `{"outcome":{"outcome":"selected","optionId":"o"}}`)
				}
				if version == 1 {
					a.answer(f, `{"stopReason":"end_turn"}`)
				} else {
					a.state("idle", `"stopReason":"end_turn"`)
				}
				if res, err := r.Wait(); err != nil || res.StopReason != StopEndTurn {
					t.Error(res, err)
				}
				// After the end it concerns nobody.
				if err := s.Cancel(t.Context()); err != nil {
					t.Error(err)
				}
				a.next("session/cancel")
			})
		})
	}
}

// TestClientCancelCtx holds what happens when the ctx of a prompt is done.
func TestClientCancelCtx(t *testing.T) {
	type turn struct {
		t      *testing.T
		s      *ClientSession
		a      *clientScript
		r      *Reply
		f      clientFrame
		cancel func()
	}
	begin := func(t *testing.T, s *ClientSession, a *clientScript) *turn {
		ctx, cancel := context.WithCancel(t.Context())
		r := s.Prompt(ctx, Text("hi"))
		return &turn{t, s, a, r, a.next("session/prompt"), cancel}
	}
	ended := func(x *turn, reason StopReason) {
		x.t.Helper()
		res, err := x.r.Wait()
		if !errors.Is(err, context.Canceled) || (res != nil) != (reason != "") || res != nil && res.StopReason != reason {
			x.t.Error(res, err)
		}
		synctest.Wait()
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		if len(x.s.replies) > 0 {
			x.t.Error("the prompt is still in flight")
		}
	}
	tests := []struct {
		name    string
		version int
		play    func(x *turn)
	}{
		{"v1", 1, func(x *turn) {
			x.cancel()
			x.a.next("session/cancel")
			x.a.say("late")
			x.a.answer(x.f, `{"stopReason":"cancelled"}`)
			ended(x, StopCancelled)
		}},
		{"v1, too late", 1, func(x *turn) {
			x.cancel()
			x.a.next("session/cancel")
			x.a.answer(x.f, `{"stopReason":"end_turn"}`)
			ended(x, StopEndTurn)
		}},
		{"v1, answered with an error", 1, func(x *turn) {
			x.cancel()
			x.a.next("session/cancel")
			x.a.refuse(x.f, -32800, "null")
			ended(x, StopCancelled)
		}},
		{"v1, never answered", 1, func(x *turn) {
			x.cancel()
			x.a.next("session/cancel")
			time.Sleep(defaultClientCancelGrace)
			x.a.next("$/cancel_request")
			ended(x, "")
			x.a.answer(x.f, `{"stopReason":"cancelled"}`) // nobody waits any more
		}},
		{"v2, held", 2, func(x *turn) {
			x.cancel()
			x.a.next("$/cancel_request")
			x.a.refuse(x.f, -32800, "null")
			ended(x, "")
		}},
		{"v2, taken up meanwhile", 2, func(x *turn) {
			x.cancel()
			x.a.next("$/cancel_request")
			x.a.answer(x.f, `{"messageId":"u"}`)
			x.a.next("session/cancel")
			x.a.state("idle", `"stopReason":"cancelled"`)
			ended(x, StopCancelled)
		}},
		{"v2, running", 2, func(x *turn) {
			x.a.answer(x.f, `{"messageId":"u"}`)
			x.a.state("running", "")
			synctest.Wait()
			x.cancel()
			x.a.next("session/cancel")
			x.a.state("idle", `"stopReason":"cancelled"`)
			ended(x, StopCancelled)
		}},
		{"v2, never idle", 2, func(x *turn) {
			x.a.answer(x.f, `{"messageId":"u"}`)
			synctest.Wait()
			x.cancel()
			x.a.next("session/cancel")
			time.Sleep(defaultClientCancelGrace)
			ended(x, "")
		}},
		{"v2, never answered", 2, func(x *turn) {
			x.cancel()
			x.a.next("$/cancel_request")
			time.Sleep(defaultClientCancelGrace)
			ended(x, "")
			x.a.answer(x.f, `{"messageId":"u"}`)
			x.a.next("session/cancel") // it was taken up after all
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			single(t, Client{}, tt.version, func(t *testing.T, s *ClientSession, a *clientScript) {
				x := begin(t, s, a)
				tt.play(x)
				a.silent()
				// The session is as good as before.
				r := s.Prompt(t.Context(), Text("again"))
				f := a.next("session/prompt")
				if tt.version == 1 {
					a.answer(f, `{"stopReason":"end_turn"}`)
				} else {
					a.answer(f, `{"messageId":"v"}`)
					a.state("running", "")
					a.state("idle", `"stopReason":"end_turn"`)
				}
				if res, err := r.Wait(); err != nil || res.StopReason != StopEndTurn {
					t.Error(res, err)
				}
			})
		})
	}
}

// TestClientCancelUnsent holds that a prompt the agent does not even read is
// given up with its ctx, and what is not sent is not cancelled.
func TestClientCancelUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := jsonrpc.Pipe()
		get := later(func() (*ClientConn, error) { return (&Client{MaxVersion: 1}).Connect(t.Context(), Over(theirs)) })
		read := func() clientFrame {
			frame, err := ours.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			var f clientFrame
			if err := json.Unmarshal(frame.Data, &f); err != nil {
				t.Fatal(err)
			}
			return f
		}
		a := &clientScript{t: t, stream: ours}
		a.answer(read(), clientHelloResult(1, clientAllV1))
		conn, err := get()
		if err != nil {
			t.Fatal(err)
		}
		opened := later(func() (*ClientSession, error) { return conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot}) })
		a.answer(read(), `{"sessionId":"s"}`)
		s, err := opened()
		if err != nil {
			t.Fatal(err)
		}
		// Nobody reads: the pipe and the output buffer fill up.
		text := Text(strings.Repeat("x", 1<<10))
		ctx, cancel := context.WithCancel(t.Context())
		sent := 0
		for {
			ready := make(chan *Reply, 1)
			go func() { ready <- s.Prompt(ctx, text) }()
			synctest.Wait()
			select {
			case <-ready:
				sent++
				continue
			default:
			}
			cancel()
			r := <-ready
			if _, err := r.Wait(); !errors.Is(err, context.Canceled) || r.call.sent() {
				t.Error(err)
			}
			break
		}
		prompts := 0
		for range sent {
			if read().Method == "session/prompt" {
				prompts++
			}
		}
		if prompts != sent || sent < 64 {
			t.Errorf("%d prompts were sent, %d arrived", sent, prompts)
		}
		closed := laterErr(conn.Close)
		_ = ours.Close()
		_ = closed()
	})
}
