package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/jsonrpc"
)

// middleSession is an agent's session, and its client, whose agent has middleware.
func middleSession(t *testing.T, v int, a Agent) (*ClientConn, *ClientSession) {
	t.Helper()
	agentSide, clientSide := Pipe()
	go func() { _ = a.Serve(t.Context(), agentSide) }()
	conn, err := (&Client{MaxVersion: v}).Connect(t.Context(), clientSide)
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return conn, s
}

// TestMiddleware: middleware sees the same calls in both versions, in order, with the
// session and the turn they are about and what became of them.
func TestMiddleware(t *testing.T) {
	type key struct{}
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []string
				failure := &Failure{Reason: "rate_limit", Message: "slow down"}
				log := func(ctx context.Context, c *Call, next func(context.Context) error) error {
					err := next(ctx)
					conn := AgentConnFrom(ctx)
					_, open := conn.Session(c.SessionID)
					seen = append(seen, fmt.Sprintf("%s v%d session %t turn %t %s %v", c.Method, conn.Version(), open, c.Turn != nil, c.StopReason, err))
					return err
				}
				value := func(ctx context.Context, _ *Call, next func(context.Context) error) error {
					return next(context.WithValue(ctx, key{}, "seen"))
				}
				conn, s := middleSession(t, v, Agent{
					Middleware: []Middleware{log, value},
					Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
						if turn.Text() == "fail" {
							return "", failure
						}
						return StopEndTurn, turn.Say(fmt.Sprint(ctx.Value(key{})))
					},
					CloseSession: func(context.Context, *AgentSession) error { return nil },
					NewSession: func(_ context.Context, s *AgentSession) error {
						return s.SetOptions(ChoiceOption("model", "Model", "model", "a", "a", "b"))
					},
				})
				said := ""
				for u, err := range s.Prompt(t.Context(), Text("hi")).Updates() {
					if err != nil {
						t.Fatal(err)
					}
					said += u.Text()
				}
				if said != "seen" {
					t.Errorf("the hook did not get the middleware's context: it said %q", said)
				}
				if _, err := s.Prompt(t.Context(), Text("fail")).Wait(); !errors.Is(err, failure.Unwrap()) {
					t.Error(err)
				}
				if err := s.SetOption(t.Context(), "model", &SessionConfigOptionValueID{Value: "b"}); err != nil {
					t.Error(err)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				_ = conn.Close()
				synctest.Wait()
				want := []string{
					fmt.Sprintf("initialize v%d session false turn false  <nil>", v),
					fmt.Sprintf("session/new v%d session true turn false  <nil>", v),
					fmt.Sprintf("session/prompt v%d session true turn true end_turn <nil>", v),
					fmt.Sprintf("session/prompt v%d session true turn true  slow down", v),
					fmt.Sprintf("session/set_config_option v%d session true turn false  <nil>", v),
					fmt.Sprintf("session/close v%d session false turn false  <nil>", v),
				}
				if !slices.Equal(seen, want) {
					t.Errorf("seen:\n%q\nwant:\n%q", seen, want)
				}
			})
		})
	}
}

// TestAgentMiddlewareRefuses: middleware that does not call next refuses, with its error or,
// if it has none, with an internal one; a panic refuses that call alone.
func TestAgentMiddlewareRefuses(t *testing.T) {
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refuse func() error
				conn, s := middleSession(t, v, Agent{
					Logger: slog.New(slog.DiscardHandler),
					Middleware: []Middleware{func(ctx context.Context, c *Call, next func(context.Context) error) error {
						if refuse != nil && c.Method != "initialize" {
							return refuse()
						}
						return next(ctx)
					}},
					Prompt: func(context.Context, *Turn) (StopReason, error) {
						if refuse != nil {
							t.Error("the hook is called")
						}
						return StopEndTurn, nil
					},
				})
				defer func() { _ = conn.Close() }()
				for _, x := range []struct {
					refuse func() error
					want   error
				}{
					{func() error { return jsonrpc.ErrAuthRequired }, jsonrpc.ErrAuthRequired},
					{func() error { return nil }, jsonrpc.ErrInternal},
					{func() error { panic("middleware") }, jsonrpc.ErrInternal},
				} {
					refuse = x.refuse
					if _, err := s.Prompt(t.Context(), Text("hi")).Wait(); !errors.Is(err, x.want) {
						t.Errorf("prompt: %v, want %v", err, x.want)
					}
					if _, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"}); !errors.Is(err, x.want) {
						t.Errorf("session: %v, want %v", err, x.want)
					}
				}
				refuse = nil
				if _, err := s.Prompt(t.Context(), Text("hi")).Wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestClientMiddlewareInVerbs: a client's middleware sees what its agent asks, by the same
// names in both versions, with the session it is about and what became of it; it sees no
// update, and hooks get its context. The same function may stand around both sides.
func TestClientMiddlewareInVerbs(t *testing.T) {
	type key struct{}
	hello := jsonrpc.Method[struct{}, struct{}]{Name: "_hello"}
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []string
				both := func(ctx context.Context, c *Call, next func(context.Context) error) error {
					side, open := "agent", false
					if conn := ClientConnFrom(ctx); conn != nil {
						side = "client"
						_, open = conn.Session(c.SessionID)
					} else {
						_, open = AgentConnFrom(ctx).Session(c.SessionID)
					}
					err := next(context.WithValue(ctx, key{}, c.Method))
					seen = append(seen, fmt.Sprintf("%s %s session %t %v", side, c.Method, open, err))
					return err
				}
				agentSide, clientSide := Pipe()
				agent := Agent{
					Middleware: []Middleware{both},
					Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
						if allowed := turn.Permit(Permission{Title: "?"}); !allowed {
							t.Error("the hook was not asked")
						}
						if _, err := turn.Elicit(FormRequest{Message: "?"}); err == nil {
							t.Error("the hook's error did not arrive")
						}
						if _, err := hello.Call(ctx, turn.Session().Conn().Conn(), nil); err != nil {
							t.Error(err)
						}
						return StopEndTurn, turn.Say("done")
					},
				}
				go func() { _ = agent.Serve(t.Context(), agentSide) }()
				client := Client{
					MaxVersion: v,
					Middleware: []Middleware{both},
					RequestPermission: func(ctx context.Context, r *PermissionRequest) (PermissionDecision, error) {
						if ctx.Value(key{}) != "session/request_permission" {
							t.Error("the hook did not get the middleware's context")
						}
						return r.Allow(), nil
					},
					Elicit: func(context.Context, *ElicitationRequest) (*ElicitationResponse, error) {
						return nil, jsonrpc.Errorf(7, "busy")
					},
					Extensions: func(mux *jsonrpc.Mux) {
						hello.Handle(mux, func(context.Context, *struct{}) (*struct{}, error) { return new(struct{}), nil })
					},
				}
				conn, err := client.Connect(t.Context(), clientSide)
				if err != nil {
					t.Fatal(err)
				}
				s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
				if err != nil {
					t.Fatal(err)
				}
				if said, _, err := s.Prompt(t.Context(), Text("hi")).Text(); said != "done" || err != nil {
					t.Error(said, err)
				}
				_ = conn.Close()
				synctest.Wait()
				want := []string{
					"agent initialize session false <nil>",
					"agent session/new session false <nil>",
					"client session/request_permission session true <nil>",
					"client elicitation/create session true busy (7)",
					"client _hello session false <nil>",
					"agent session/prompt session true <nil>",
				}
				if !slices.Equal(seen, want) {
					t.Errorf("seen:\n%q\nwant:\n%q", seen, want)
				}
			})
		})
	}
}

// TestClientMiddlewareRefuses: middleware of a client that does not call next refuses, and
// a panic refuses that request alone.
func TestClientMiddlewareRefuses(t *testing.T) {
	const ask = `{"sessionId":"s","title":"t","toolCall":{"toolCallId":"c"},"options":[{"optionId":"o","name":"O","kind":"allow_once"}]}`
	var refuse func() error
	hooks := 0
	c := Client{
		Logger: slog.New(slog.DiscardHandler),
		Middleware: []Middleware{func(ctx context.Context, _ *Call, next func(context.Context) error) error {
			if refuse != nil {
				return refuse()
			}
			return next(ctx)
		}},
		RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) {
			hooks++
			return r.Allow(), nil
		},
	}
	both(t, c, func(t *testing.T, _ *ClientSession, a *clientScript) {
		hooks = 0
		for i, x := range []struct {
			refuse func() error
			want   string
		}{
			{func() error { return jsonrpc.Errorf(7, "no") }, `7 `},
			{func() error { return nil }, `-32603 {"correlationId"`},
			{func() error { panic("middleware") }, `-32603 {"correlationId"`},
			{nil, `{"outcome":{"outcome":"selected","optionId":"o"}}`},
		} {
			refuse = x.refuse
			a.request(i, "session/request_permission", ask)
			if got := a.response(); !strings.HasPrefix(got, x.want) {
				t.Errorf("%d: the answer is %s, want %s", i, got, x.want)
			}
		}
		if hooks != 1 {
			t.Errorf("the hook was called %d times", hooks)
		}
	})
}

// TestClientMiddlewareBeforeInitialize: there is nothing to ask a connection that is not
// initialized, and what an agent asks then is refused without middleware.
func TestClientMiddlewareBeforeInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := jsonrpc.Pipe()
		a := newClientScript(t, ours)
		c := Client{MaxVersion: 2, Middleware: []Middleware{func(ctx context.Context, _ *Call, next func(context.Context) error) error {
			t.Errorf("middleware was called, in version %d", ClientConnFrom(ctx).Version())
			return next(ctx)
		}}}
		connected := later(func() (*ClientConn, error) { return c.Connect(t.Context(), Over(theirs)) })
		hello := a.next("initialize")
		a.request(1, "session/request_permission", `{}`)
		if got := a.response(); !strings.HasPrefix(got, "-32600") {
			t.Errorf("the answer is %s", got)
		}
		a.answer(hello, clientHelloResult(2, clientAllV2))
		conn, err := connected()
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		_ = ours.Close()
	})
}
