package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
					open := c.Session() != nil && c.Session().ID() == c.SessionID
					seen = append(seen, fmt.Sprintf("%s v%d session %t turn %t %s %v", c.Method, c.Conn.Version(), open, c.Turn != nil, c.StopReason, err))
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

// TestMiddlewareRefuses: middleware that does not call next refuses, with its error or,
// if it has none, with an internal one; a panic refuses that call alone.
func TestMiddlewareRefuses(t *testing.T) {
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
