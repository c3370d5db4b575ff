package acp

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// linked connects a client with an agent, in version v, and opens a session.
func linked(t *testing.T, a *Agent, v int) (*ClientSession, *AgentConn) {
	t.Helper()
	conn, agent := linkedOnly(t, a, v)
	s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return s, agent
}

// linkedOnly is linked without a session.
func linkedOnly(t *testing.T, a *Agent, v int) (*ClientConn, *AgentConn) {
	t.Helper()
	ours, theirs := Pipe()
	agent, err := logged(t, a).Connect(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&Client{MaxVersion: v}).Connect(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = agent.Wait()
	})
	return conn, agent
}

// ended is how a client has seen a turn end: what was said, the stop reason and
// the error.
func ended(r *Reply) string {
	said := ""
	for u, err := range r.Updates() {
		if err == nil {
			said += u.Text()
		}
	}
	res, err := r.Wait()
	switch f, ok := errors.AsType[*Failure](err); {
	case ok:
		return "refused: " + f.Reason
	case code(err) != 0:
		return fmt.Sprintf("%s %d", said, code(err))
	case err != nil:
		return fmt.Sprintf("%s: %v", said, err)
	}
	return fmt.Sprintf("%s %s", said, res.StopReason)
}

// closings are hooks whose turns run when the connection is closed, and what the
// client is to see of that.
var closings = []struct {
	name string
	hook func(ctx context.Context, t *Turn) (StopReason, error)
	want string
}{
	{"last words", func(ctx context.Context, t *Turn) (StopReason, error) {
		<-ctx.Done()
		time.Sleep(time.Second)
		return StopCancelled, t.Say("bye")
	}, "bye cancelled"},
	{"a reason of its own", func(ctx context.Context, t *Turn) (StopReason, error) {
		<-ctx.Done()
		return StopMaxTokens, t.Say("enough")
	}, "enough max_tokens"},
	{"the context's error", func(ctx context.Context, t *Turn) (StopReason, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, " cancelled"},
	{"the context's cause", func(ctx context.Context, t *Turn) (StopReason, error) {
		<-ctx.Done()
		return StopEndTurn, fmt.Errorf("asking the model: %w", context.Cause(ctx))
	}, " cancelled"},
	{"an error of its own", func(ctx context.Context, t *Turn) (StopReason, error) {
		<-ctx.Done()
		return "", errors.New("no model")
	}, " -32603"},
	{"a question", func(ctx context.Context, t *Turn) (StopReason, error) {
		d, err := t.Ask(Permission{Title: "May I?"})
		if !d.Cancelled {
			return "", fmt.Errorf("decided: %v, %w", d, err)
		}
		return StopEndTurn, t.Say("never mind")
	}, "never mind end_turn"},
	{"a panic", func(ctx context.Context, t *Turn) (StopReason, error) {
		<-ctx.Done()
		panic("oh")
	}, " -32603"},
}

// TestCloseEndsTurns: whoever closes an agent's connection cancels its turns,
// what they still say arrives, and they end as their hooks say, in both versions.
func TestCloseEndsTurns(t *testing.T) {
	for _, how := range []string{"Close", "Serve"} {
		for _, tt := range closings {
			t.Run(how+"/"+tt.name, func(t *testing.T) {
				versions(t, func(t *testing.T, v int) {
					synctest.Test(t, func(t *testing.T) {
						cause := make(chan error, 1)
						agent := &Agent{
							CancelGrace: 3 * time.Second,
							Logger:      logtest.New(t),
							Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
								context.AfterFunc(ctx, func() { cause <- context.Cause(ctx) })
								return tt.hook(ctx, turn)
							},
						}
						client := &Client{
							MaxVersion: v,
							RequestPermission: func(ctx context.Context, r *PermissionRequest) (PermissionDecision, error) {
								<-ctx.Done()
								return CancelPermission(), nil
							},
						}
						ours, theirs := Pipe()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						served := make(chan error, 1)
						end := cancel
						if how == "Serve" {
							go func() { served <- agent.Serve(ctx, ours) }()
						} else {
							c, err := agent.Connect(ctx, ours)
							if err != nil {
								t.Fatal(err)
							}
							end = func() { served <- c.Close() }
						}
						conn, err := client.Connect(t.Context(), theirs)
						if err != nil {
							t.Fatal(err)
						}
						defer conn.Close()
						s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
						if err != nil {
							t.Fatal(err)
						}
						reply := s.Prompt(t.Context(), Text("go"))
						synctest.Wait()
						began := time.Now()
						end()
						if got := ended(reply); got != tt.want {
							t.Errorf("the client saw %q, want %q", got, tt.want)
						}
						if err := <-served; how == "Serve" != errors.Is(err, context.Canceled) {
							t.Errorf("%s: %v", how, err)
						}
						if d := time.Since(began); d > 5*time.Second {
							t.Errorf("it took %v", d) // of the bubble
						}
						if err := <-cause; !errors.Is(err, jsonrpc.ErrClosed) {
							t.Errorf("cause %v", err)
						}
					})
				})
			})
		}
	}
}

// TestCloseGivesUp: a hook that does not return keeps Close for CancelGrace and
// its turn ends as cancelled; a client that reads nothing keeps it no longer
// than the engine's bounds in addition.
func TestCloseGivesUp(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		t.Run("deaf", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				let := make(chan struct{})
				s, agent := linked(t, &Agent{Prompt: func(context.Context, *Turn) (StopReason, error) {
					<-let
					return StopEndTurn, nil
				}}, v)
				reply := s.Prompt(t.Context(), Text("go"))
				synctest.Wait()
				began := time.Now()
				go agent.Close()
				_ = agent.Close()
				if d := time.Since(began); d > defaultCancelGrace+jsonrpc.DefaultGrace {
					t.Errorf("it took %v", d)
				}
				if got := ended(reply); got != " cancelled" {
					t.Errorf("the client saw %q", got)
				}
				close(let)
			})
		})
		t.Run("nobody reads", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := jsonrpc.Pipe()
				agent, err := (&Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
					for t.Say("a long text that nobody reads ") == nil {
					}
					return StopEndTurn, nil
				}}).Connect(t.Context(), Over(ours))
				if err != nil {
					t.Fatal(err)
				}
				for i, frame := range []string{
					`"method":"initialize","params":` + map[int]string{1: helloV1, 2: helloV2}[v],
					`"method":"session/new","params":{"cwd":"/","mcpServers":[]}`,
				} {
					if err := theirs.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,%s}`, i, frame)); err != nil {
						t.Fatal(err)
					}
					if _, err := theirs.ReadFrame(); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				frame := `{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":` + promptParams(string(agent.OpenSessions()[0].ID()), "go") + `}`
				if err := theirs.WriteFrame([]byte(frame)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				began := time.Now()
				_ = agent.Close()
				bound := defaultCancelGrace + 5*jsonrpc.DefaultGrace + 2*5*time.Second
				if d := time.Since(began); d > bound {
					t.Errorf("it took %v", d)
				}
				_ = theirs.Close()
			})
		})
	})
}

// TestCloseRefusesHeld: prompts that wait for their turn are refused when the
// connection is closed or shut down, and say why.
func TestCloseRefusesHeld(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		for _, busy := range []BusyPolicy{BusyQueue, BusySteer} {
			for _, how := range []string{"Close", "Shutdown"} {
				t.Run(fmt.Sprint(how, busy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, agent := linked(t, &Agent{Busy: busy, Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
							select {
							case <-ctx.Done():
							case <-time.After(time.Minute):
							}
							return StopEndTurn, t.Say(t.Text())
						}}, v)
						first := s.Prompt(t.Context(), Text("first"))
						synctest.Wait()
						held := s.Prompt(t.Context(), Text("held"))
						synctest.Wait()
						done := make(chan error, 1)
						go func() {
							if how == "Close" {
								done <- agent.Close()
							} else {
								done <- agent.Shutdown(t.Context())
							}
						}()
						synctest.Wait()
						late := s.Prompt(t.Context(), Text("late"))
						if got := ended(held); got != "refused: shutdown" {
							t.Errorf("held: %q", got)
						}
						if got := ended(first); got != "first end_turn" {
							t.Errorf("first: %q", got)
						}
						if got := ended(late); how == "Shutdown" && got != "refused: shutdown" {
							t.Errorf("late: %q", got)
						}
						if err := <-done; err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	})
}

// TestShutdown: turns end by themselves until the context is done, and then as
// with Close; calls that come together wait together.
func TestShutdown(t *testing.T) {
	hook := func(ctx context.Context, t *Turn) (StopReason, error) {
		t.Say("working")
		select {
		case <-ctx.Done():
			return StopCancelled, t.Say(", stopped")
		case <-time.After(10 * time.Second):
			return StopEndTurn, t.Say(", done")
		}
	}
	tests := []struct {
		name string
		turn bool
		do   func(ctx context.Context, a *AgentConn, c *ClientConn) error
		err  error
		want string
	}{
		{"in time", true, func(ctx context.Context, a *AgentConn, _ *ClientConn) error { return a.Shutdown(ctx) }, nil, "working, done end_turn"},
		{"too late", true, func(ctx context.Context, a *AgentConn, _ *ClientConn) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return a.Shutdown(ctx)
		}, context.DeadlineExceeded, "working, stopped cancelled"},
		{"a context that is done", true, func(ctx context.Context, a *AgentConn, _ *ClientConn) error {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errGaveUp)
			return a.Shutdown(ctx)
		}, errGaveUp, "working, stopped cancelled"},
		{"twice", true, func(ctx context.Context, a *AgentConn, _ *ClientConn) error {
			first := make(chan error, 1)
			go func() { first <- a.Shutdown(ctx) }()
			synctest.Wait()
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			second := a.Shutdown(short)
			if err := <-first; err != nil { // its turns have ended, whoever ended them
				return fmt.Errorf("the first: %w", err)
			}
			return second
		}, context.DeadlineExceeded, "working, stopped cancelled"},
		{"Close meanwhile", true, func(ctx context.Context, a *AgentConn, _ *ClientConn) error {
			first := make(chan error, 1)
			go func() { first <- a.Shutdown(ctx) }()
			synctest.Wait()
			return errors.Join(a.Close(), <-first)
		}, nil, "working, stopped cancelled"},
		{"the client leaves", true, func(ctx context.Context, a *AgentConn, c *ClientConn) error {
			go func() {
				time.Sleep(time.Second)
				_ = c.Close()
			}()
			return a.Shutdown(ctx)
		}, nil, ""},
		{"idle", false, func(ctx context.Context, a *AgentConn, _ *ClientConn) error { return a.Shutdown(ctx) }, nil, ""},
		{"again when all is over", false, func(ctx context.Context, a *AgentConn, _ *ClientConn) error {
			return errors.Join(a.Shutdown(ctx), a.Shutdown(ctx), a.Close(), a.Shutdown(ctx))
		}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			versions(t, func(t *testing.T, v int) {
				synctest.Test(t, func(t *testing.T) {
					s, agent := linked(t, &Agent{Prompt: hook}, v)
					var reply *Reply
					if tt.turn {
						reply = s.Prompt(t.Context(), Text("go"))
						synctest.Wait()
					}
					if err := tt.do(t.Context(), agent, s.Conn()); !errors.Is(err, tt.err) || tt.err == nil && err != nil {
						t.Errorf("Shutdown: %v, want %v", err, tt.err)
					}
					select {
					case <-agent.Done():
					default:
						t.Error("the connection is still there")
					}
					if tt.want != "" {
						if got := ended(reply); got != tt.want {
							t.Errorf("the client saw %q, want %q", got, tt.want)
						}
					}
				})
			})
		})
	}
}

// TestShutdownAnswers: while turns end, requests other than prompts are answered.
func TestShutdownAnswers(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		synctest.Test(t, func(t *testing.T) {
			s, agent := linked(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				if !t.Permit(Permission{Title: "May I?"}) {
					return StopRefusal, nil
				}
				return StopEndTurn, nil
			}}, v)
			asked, answer := make(chan struct{}), make(chan struct{})
			s.Conn().client.RequestPermission = func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) {
				close(asked)
				<-answer
				return r.Allow(), nil
			}
			reply := s.Prompt(t.Context(), Text("go"))
			<-asked
			done := make(chan error, 1)
			go func() { done <- agent.Shutdown(t.Context()) }()
			synctest.Wait()
			if _, err := s.Conn().NewSession(t.Context(), SessionConfig{Cwd: "/"}); err != nil {
				t.Error(err)
			}
			close(answer)
			if got := ended(reply); got != " end_turn" {
				t.Errorf("the client saw %q", got)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
}
