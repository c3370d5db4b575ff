package acp

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/jsonrpc"
)

// clientGate is outgoing middleware that holds one message up: before it is sent,
// or after.
type clientGate struct {
	method string
	nth    int // of that method, from 1
	after  bool
	seen   atomic.Int32
	open   chan struct{}
}

func (g *clientGate) middleware(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.Method != g.method || int(g.seen.Add(1)) != g.nth {
			return next(ctx, r)
		}
		if !g.after {
			<-g.open
		}
		res, err := next(ctx, r)
		if g.after {
			<-g.open
		}
		return res, err
	}
}

// clientTurn plays the agent's part of a turn, step by step.
type clientTurn struct {
	a       *clientScript
	version int
	f       clientFrame // the prompt
}

func (a *clientScript) turn(version int) *clientTurn {
	a.t.Helper()
	return &clientTurn{a, version, a.next("session/prompt")}
}

// takeUp answers the prompt in version 2.
func (x *clientTurn) takeUp() *clientTurn {
	if x.version == 2 {
		x.a.answer(x.f, fmt.Sprintf(`{"messageId":"u%s"}`, x.f.ID))
		x.a.state("running", "")
	}
	synctest.Wait()
	return x
}

func (x *clientTurn) end(reason string) {
	if x.version == 1 {
		x.a.answer(x.f, fmt.Sprintf(`{"stopReason":%q}`, reason))
	} else {
		x.a.state("idle", fmt.Sprintf(`"stopReason":%q`, reason))
	}
	synctest.Wait()
}

// TestClientCancelOvertaken holds that a cancellation that is on its way when its
// turn ends does not reach the agent behind the next prompt.
func TestClientCancelOvertaken(t *testing.T) {
	tests := []struct {
		name   string
		cancel func(s *ClientSession, end func())
	}{
		{"by ctx", func(_ *ClientSession, end func()) { end() }},
		{"by Cancel", func(s *ClientSession, _ func()) {
			_ = s.Cancel(context.Background())
		}},
	}
	for _, tt := range tests {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s, v%d", tt.name, version), func(t *testing.T) {
				gate := &clientGate{method: "session/cancel", nth: 1}
				c := Client{Engine: jsonrpc.Settings{Outgoing: []jsonrpc.Middleware{gate.middleware}}}
				single(t, c, version, func(t *testing.T, s *ClientSession, a *clientScript) {
					gate.open = make(chan struct{})
					ctx, end := context.WithCancel(t.Context())
					defer end()
					first := s.Prompt(ctx, Text("first"))
					turn := a.turn(version).takeUp()
					cancelled := make(chan struct{})
					go func() {
						defer close(cancelled)
						tt.cancel(s, end)
					}()
					synctest.Wait() // it has been decided on, and is held up
					turn.end("end_turn")
					if res, _ := first.Wait(); res == nil || res.StopReason != StopEndTurn {
						t.Errorf("first: %+v", res)
					}
					second := s.Prompt(t.Context(), Text("second"))
					turn = a.turn(version).takeUp()
					close(gate.open)
					<-cancelled
					a.silent()
					turn.end("end_turn")
					if res, err := second.Wait(); err != nil || res.StopReason != StopEndTurn {
						t.Errorf("second: %+v, %v", res, err)
					}
				})
			})
		}
	}
}

// TestClientCancelTakenUp is the same for a prompt of version 2 that is cancelled
// because its receipt came after its ctx was done.
func TestClientCancelTakenUp(t *testing.T) {
	gate := &clientGate{method: "session/cancel", nth: 1}
	c := Client{Engine: jsonrpc.Settings{Outgoing: []jsonrpc.Middleware{gate.middleware}}}
	single(t, c, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		gate.open = make(chan struct{})
		ctx, end := context.WithCancel(t.Context())
		first := s.Prompt(ctx, Text("first"))
		turn := a.turn(2)
		end()
		a.next("$/cancel_request")
		turn.takeUp()
		turn.end("end_turn")
		if res, err := first.Wait(); !errors.Is(err, context.Canceled) || res == nil || res.StopReason != StopEndTurn {
			t.Errorf("first: %+v, %v", res, err)
		}
		second := s.Prompt(t.Context(), Text("second"))
		turn = a.turn(2).takeUp()
		close(gate.open)
		a.silent()
		turn.end("end_turn")
		if res, err := second.Wait(); err != nil || res.StopReason != StopEndTurn {
			t.Errorf("second: %+v, %v", res, err)
		}
	})
}

// TestClientCancelAbandoned holds that a prompt that was given up, and turns out
// to have been taken up, is cancelled only while it is the latest.
func TestClientCancelAbandoned(t *testing.T) {
	single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		ctx, end := context.WithCancel(t.Context())
		first := s.Prompt(ctx, Text("first"))
		turn := a.turn(2)
		end()
		a.next("$/cancel_request")
		if res, err := first.Wait(); !errors.Is(err, context.Canceled) || res != nil { // after CancelGrace
			t.Errorf("first: %+v, %v", res, err)
		}
		second := s.Prompt(t.Context(), Text("second"))
		next := a.turn(2)
		turn.takeUp()
		a.silent()
		turn.end("end_turn")
		next.takeUp()
		next.end("end_turn")
		if res, err := second.Wait(); err != nil || res.StopReason != StopEndTurn {
			t.Errorf("second: %+v, %v", res, err)
		}
	})
}

// TestClientCancelQuestions holds that the questions of the next turn of version 1
// are not answered as cancelled by a cancellation of the turn before.
func TestClientCancelQuestions(t *testing.T) {
	c := Client{RequestPermission: func(_ context.Context, req *PermissionRequest) (PermissionDecision, error) {
		return req.Allow(), nil
	}}
	asks := func(t *testing.T, a *clientScript) {
		t.Helper()
		a.request(7, "session/request_permission", permissionParams(1, clientAllowOption))
		want(t, "the next turn's question", a.response(), `{"outcome":{"outcome":"selected","optionId":"o"}}`)
	}
	t.Run("asked before Cancel returns", func(t *testing.T) {
		release := make(chan struct{})
		gate := &clientGate{method: "session/cancel", nth: 1, after: true}
		c := Client{
			Engine: jsonrpc.Settings{Outgoing: []jsonrpc.Middleware{gate.middleware}},
			RequestPermission: func(ctx context.Context, req *PermissionRequest) (PermissionDecision, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return req.Allow(), ctx.Err()
			},
		}
		single(t, c, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
			release, gate.open = make(chan struct{}), make(chan struct{})
			first := s.Prompt(t.Context(), Text("first"))
			turn := a.turn(1)
			cancelled := laterErr(func() error { return s.Cancel(t.Context()) })
			a.next("session/cancel")
			turn.end("cancelled")
			_, _ = first.Wait()
			second := s.Prompt(t.Context(), Text("second"))
			turn = a.turn(1)
			a.request(7, "session/request_permission", permissionParams(1, clientAllowOption))
			synctest.Wait()
			close(gate.open)
			if err := cancelled(); err != nil {
				t.Error(err)
			}
			a.silent() // the user is still being asked
			close(release)
			want(t, "the next turn's question", a.response(), `{"outcome":{"outcome":"selected","optionId":"o"}}`)
			turn.end("end_turn")
			_, _ = second.Wait()
		})
	})
	t.Run("prompt on its way", func(t *testing.T) {
		gate := &clientGate{method: "session/prompt", nth: 2}
		c := c
		c.Engine.Outgoing = []jsonrpc.Middleware{gate.middleware}
		single(t, c, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
			gate.open = make(chan struct{})
			first := s.Prompt(t.Context(), Text("first"))
			turn := a.turn(1)
			second := later(func() (*Result, error) { return s.Prompt(t.Context(), Text("second")).Wait() })
			synctest.Wait()
			if err := s.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			a.next("session/cancel")
			turn.end("cancelled")
			_, _ = first.Wait()
			close(gate.open)
			turn = a.turn(1)
			asks(t, a)
			turn.end("end_turn")
			if res, err := second(); err != nil || res.StopReason != StopEndTurn {
				t.Errorf("second: %+v, %v", res, err)
			}
		})
	})
}

// TestClientCancelPipelined holds that the end of a ctx does not cancel the next
// prompt in flight once the answer to its own is there, delivered or not.
func TestClientCancelPipelined(t *testing.T) {
	hold := make(chan struct{})
	c := Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
		if m, ok := u.Update.(*AgentMessageChunk); ok && strings.Contains(fmt.Sprint(m.Content), "hold") {
			<-hold
		}
	}}
	single(t, c, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		hold = make(chan struct{})
		ctx, end := context.WithCancel(t.Context())
		first := s.Prompt(ctx, Text("first"))
		one := a.turn(1)
		second := s.Prompt(t.Context(), Text("second"))
		two := a.turn(1)
		a.say("hold")
		one.end("end_turn") // its delivery waits for the hook
		end()
		a.silent()
		close(hold)
		two.end("end_turn")
		_, _ = first.Wait()
		if res, err := second.Wait(); err != nil || res.StopReason != StopEndTurn {
			t.Errorf("second: %+v, %v", res, err)
		}
	})
}

// TestClientCancelBlocked holds that a cancellation that waits until the agent
// reads keeps nothing from being delivered, and is not sent when its turn has
// ended by then.
func TestClientCancelBlocked(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := jsonrpc.Pipe()
				slow := &clientStalled{Stream: ours, stall: make(chan struct{})}
				close(slow.stall)
				a := newClientScript(t, slow)
				get := later(func() (*ClientConn, error) { return (&Client{MaxVersion: version}).Connect(t.Context(), Over(theirs)) })
				a.answer(a.next("initialize"), clientHelloResult(version, clientAll(version)))
				conn, err := get()
				if err != nil {
					t.Fatal(err)
				}
				s := a.session(conn)
				ctx, end := context.WithCancel(t.Context())
				first := s.Prompt(ctx, Text("first"))
				turn := a.turn(version).takeUp()

				// Nobody reads any more; the output fills up.
				slow.set(make(chan struct{}))
				full, stop := context.WithCancel(t.Context())
				for range 200 {
					go func() { _ = conn.Conn().Notify(full, "_x/y", strings.Repeat("x", 1<<10)) }()
				}
				synctest.Wait()
				end()
				cancelled := laterErr(func() error { return s.Cancel(t.Context()) })
				synctest.Wait()
				turn.end("end_turn")
				if res, err := first.Wait(); !errors.Is(err, context.Canceled) || res == nil || res.StopReason != StopEndTurn {
					t.Errorf("first: %+v, %v", res, err)
				}
				second := later(func() (*Result, error) { return s.Prompt(t.Context(), Text("second")).Wait() })
				synctest.Wait()
				stop() // those that have not been sent
				close(slow.stall)
				synctest.Wait()
				if err := cancelled(); err != nil {
					t.Error(err)
				}
				a.mu.Lock()
				var order []string
				for _, f := range a.got {
					if f.Method != "_x/y" {
						order = append(order, f.Method)
						turn.f = f
					}
				}
				a.got = nil
				a.mu.Unlock()
				want(t, "what the agent was sent", strings.Join(order, " "), "session/prompt")
				turn.takeUp().end("end_turn")
				if res, err := second(); err != nil || res.StopReason != StopEndTurn {
					t.Errorf("second: %+v, %v", res, err)
				}
				_ = conn.Close()
				_ = ours.Close()
			})
		})
	}
}

// clientStalled is a stream that does not read until stall is closed.
type clientStalled struct {
	jsonrpc.Stream
	stall chan struct{}
	now   atomic.Pointer[chan struct{}]
}

func (s *clientStalled) set(stall chan struct{}) {
	s.stall = stall
	s.now.Store(&stall)
}

func (s *clientStalled) ReadFrame() (jsonrpc.Frame, error) {
	if stall := s.now.Load(); stall != nil {
		<-*stall
	}
	return s.Stream.ReadFrame()
}

var cancelPairs = flag.Int("cancelpairs", 0, "pairs of prompts in TestClientCancelPairs; 0 is 300, or 3000 with ACP_TESTS=all")

// TestClientCancelPairs sends pairs of prompts of which the first is cancelled as
// it ends, and holds that no cancellation ever reaches the agent behind the
// second. -count 20, and -cancelpairs 3000 under
// -race, is the long form.
func TestClientCancelPairs(t *testing.T) {
	pairs := *cancelPairs
	if pairs == 0 {
		pairs = 3000
		if !long.All() {
			pairs = 300
		}
	}
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			x, y := benchPipes(t)
			wire := &cancelOrder{Stream: y}
			agent := &Agent{Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
				if strings.HasPrefix(turn.Text(), "first") {
					spin(rand.N(100 * time.Microsecond))
					return StopEndTurn, nil
				}
				select { // long enough for a cancellation that is late
				case <-ctx.Done():
					return StopCancelled, nil
				case <-time.After(rand.N(200 * time.Microsecond)):
					return StopEndTurn, nil
				}
			}}
			served := laterErr(func() error { return agent.Serve(context.Background(), Over(wire)) })
			conn, err := (&Client{MaxVersion: version, Info: Implementation{Name: "t", Version: "1"}}).Connect(t.Context(), Over(x))
			if err != nil {
				t.Fatal(err)
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			hit := 0
			for range pairs {
				ctx, cancel := context.WithCancel(t.Context())
				first := s.Prompt(ctx, Text("first"))
				go func() {
					if version == 2 {
						<-first.takenUp() // or it would be withdrawn by its id
					}
					spin(rand.N(200 * time.Microsecond))
					cancel()
				}()
				_, _ = first.Wait()
				if res, err := s.Prompt(t.Context(), Text("second")).Wait(); err != nil || res.StopReason != StopEndTurn {
					hit++
				}
				cancel()
			}
			if n := wire.overtaken.Load(); hit > 0 || n > 0 {
				t.Errorf("of %d pairs %d second prompts were cancelled, %d cancellations came behind one", pairs, hit, n)
			}
			t.Logf("%d pairs, %d cancellations sent in time", pairs, wire.inTime.Load())
			_ = conn.Close()
			_ = served()
		})
	}
}

// spin waits for so short a time that sleeping would take longer.
func spin(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
		time.Sleep(0)
	}
}

// cancelOrder sees what the agent is sent, in order.
type cancelOrder struct {
	jsonrpc.Stream
	second            bool // the prompt read last was a second one
	overtaken, inTime atomic.Int32
}

func (s *cancelOrder) ReadFrame() (jsonrpc.Frame, error) {
	f, err := s.Stream.ReadFrame()
	switch text := string(f.Data); {
	case strings.Contains(text, `"session/prompt"`):
		s.second = strings.Contains(text, `"second"`)
	case !strings.Contains(text, `"session/cancel"`):
	case s.second:
		s.overtaken.Add(1)
	default:
		s.inTime.Add(1)
	}
	return f, err
}
