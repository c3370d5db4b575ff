package acp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// TestReplyFailed holds that a turn that failed looks the same in both versions:
// the error says what the agent said, and is the last thing a loop sees.
func TestReplyFailed(t *testing.T) {
	const failure = `{"code":-32050,"message":"slow down","data":{"reason":"rate_limit","retryAfter":2,"scope":"account"}}`
	tests := []struct {
		name, said string // "" is nothing
		want       error
	}{
		{"a failure", failure, &Failure{Code: -32050, Message: "slow down", Reason: "rate_limit", RetryAfter: 2 * time.Second, Scope: "account"}},
		{"nothing said", "", jsonrpc.ErrInternal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
				r := s.Prompt(t.Context(), Text("hi"))
				asked := a.next("session/prompt")
				switch {
				case s.conn.Version() == 1 && tt.said != "":
					a.send(`{"jsonrpc":"2.0","id":%s,"error":%s}`, asked.ID, tt.said)
				case s.conn.Version() == 1:
					a.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error"}}`, asked.ID)
				default:
					a.answer(asked, `{"messageId":"m"}`)
					a.state("running", "")
					fields := `"stopReason":"error","usage":{"totalTokens":3,"inputTokens":1,"outputTokens":2}`
					if tt.said != "" {
						fields += `,"error":` + tt.said
					}
					a.state("idle", fields)
				}
				_, last := r.collect()
				res, err := r.Wait()
				if last == nil || !errors.Is(err, last) {
					t.Errorf("the loop ends with %v, Wait returns %v", last, err)
				}
				if f, ok := tt.want.(*Failure); ok {
					got, _ := errors.AsType[*Failure](err)
					want(t, "failure", got, f)
				} else if !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if s.conn.Version() == 2 && (res == nil || res.StopReason != StopError || res.Usage == nil) {
					t.Errorf("result %+v", res)
				}
			})
		})
	}
}

// clientFirst returns a client whose hook does something when it is told of the
// user's message, which version 1 does not tell.
func clientFirst(do func()) Client {
	return Client{MaxVersion: 1, Update: func(_ context.Context, _ *ClientSession, u *Update) {
		if _, ok := u.Update.(*UserMessage); ok {
			do()
		}
	}}
}

// TestClientHookExits: a hook that ends its goroutine holds up neither the
// timeline nor the end of a prompt.
func TestClientHookExits(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, a := clientLink(t, clientFirst(runtime.Goexit), 1, clientAll(1))
			s := a.session(conn)
			r := s.Prompt(t.Context(), Text("hi"))
			a.answer(a.next("session/prompt"), `{"stopReason":"end_turn"}`)
			if res, err := r.Wait(); err != nil || res.StopReason != StopEndTurn {
				t.Error(res, err)
			}
		})
	})
	t.Run("the agent dies", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, a := clientLink(t, clientFirst(runtime.Goexit), 1, clientAll(1))
			s := a.session(conn)
			r := s.Prompt(t.Context(), Text("hi"))
			a.next("session/prompt")
			begin := time.Now()
			_ = a.stream.Close()
			if _, err := r.Wait(); !errors.Is(err, jsonrpc.ErrClosed) || time.Since(begin) > 0 {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
	})
	t.Run("middleware answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := clientFirst(runtime.Goexit)
			c.Engine.Outgoing = []jsonrpc.Middleware{func(next jsonrpc.Handler) jsonrpc.Handler {
				return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
					if req.Method == "session/prompt" {
						return nil, jsonrpc.ErrAuthRequired
					}
					return next(ctx, req)
				}
			}}
			conn, a := clientLink(t, c, 1, clientAll(1))
			if _, err := a.session(conn).Prompt(t.Context(), Text("hi")).Wait(); !errors.Is(err, jsonrpc.ErrAuthRequired) {
				t.Error(err)
			}
		})
	})
}

// TestClientAbandonsWhileHeldUp: the request of a prompt whose session is closed is
// withdrawn although a hook holds up who waits for its answer.
func TestClientAbandonsWhileHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		conn, a := clientLink(t, clientFirst(func() { <-release }), 1, `{}`)
		s := a.session(conn)
		r := s.Prompt(t.Context(), Text("hi"))
		a.next("session/prompt")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := r.Wait(); !errors.Is(err, ErrSessionClosed) {
			t.Error(err)
		}
		a.next("session/cancel")
		a.next("$/cancel_request")
		close(release)
	})
}

// TestClientCloseInDeliverer: Close returns inside a hook that runs outside of a
// handler, too.
func TestClientCloseInDeliverer(t *testing.T) {
	for _, state := range []SessionUpdate{new(RunningStateUpdate), new(IdleStateUpdate)} {
		t.Run(fmt.Sprintf("%T", state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closed := make(chan struct{})
				conn, a := clientLink(t, Client{MaxVersion: 1, Update: func(_ context.Context, s *ClientSession, u *Update) {
					if reflect.TypeOf(u.Update) == reflect.TypeOf(state) {
						_ = s.Conn().Close()
						if !isClosed(closed) {
							close(closed)
						}
					}
				}}, 1, clientAll(1))
				r := a.session(conn).Prompt(t.Context(), Text("hi"))
				if _, ok := state.(*IdleStateUpdate); ok {
					a.answer(a.next("session/prompt"), `{"stopReason":"end_turn"}`)
				}
				begin := time.Now()
				<-closed
				_, _ = r.Wait()
				_ = conn.Close() // waits for all
				if d := time.Since(begin); d > jsonrpc.DefaultGrace {
					t.Errorf("it took %v", d)
				}
			})
			clientNoLeaks(t)
		})
	}
}

// TestClientDeliverers: the goroutines that deliver are used again, a hook that ends
// one takes nothing with it, few stay, and none beyond the connection's end.
func TestClientDeliverers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exit := false
		conn, a := clientLink(t, clientFirst(func() {
			if exit {
				runtime.Goexit()
			}
		}), 1, clientAll(1))
		parked := func() int {
			synctest.Wait()
			conn.mu.Lock()
			defer conn.mu.Unlock()
			return conn.parked
		}
		s := a.session(conn)
		for range 5 {
			for _, exit = range []bool{false, true} {
				r := s.Prompt(t.Context(), Text("hi"))
				a.answer(a.next("session/prompt"), `{"stopReason":"end_turn"}`)
				if res, err := r.Wait(); err != nil || res.StopReason != StopEndTurn {
					t.Fatal(res, err)
				}
			}
		}
		var busy, began sync.WaitGroup
		release := make(chan struct{})
		for range 4 * keepDeliverers {
			busy.Add(1)
			began.Add(1)
			if !conn.spawn(func() { began.Done(); <-release; busy.Done() }) {
				t.Fatal("the connection has ended")
			}
		}
		began.Wait() // none waits for another
		close(release)
		busy.Wait()
		if n := parked(); n != keepDeliverers {
			t.Errorf("%d goroutines are kept", n)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if conn.spawn(func() { t.Error("it runs") }) {
			t.Error("something is done when the connection has ended")
		}
	})
	clientNoLeaks(t)
}

// TestClientCloseBesideDeliverer: Close waits for a hook that runs outside of a
// handler, unless it takes too long, and then for the process.
func TestClientCloseBesideDeliverer(t *testing.T) {
	for _, takes := range []time.Duration{jsonrpc.DefaultGrace / 2, 2 * jsonrpc.DefaultGrace} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, a := clientLink(t, clientFirst(func() { time.Sleep(takes) }), 1, clientAll(1))
				s := a.session(conn)
				begin := time.Now()
				r := s.Prompt(t.Context(), Text("hi"))
				synctest.Wait() // the hook runs
				_ = conn.Close()
				if d := time.Since(begin); d != min(takes, jsonrpc.DefaultGrace) {
					t.Errorf("Close returned after %v", d)
				}
				_, _ = r.Wait()
				_ = conn.Wait() // for the hook, too
				if d := time.Since(begin); d < takes {
					t.Errorf("Wait returned after %v", d)
				}
			})
			clientNoLeaks(t)
		})
	}
}
