package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

// queueing returns an agent whose prompts the test takes from a channel.
func queueing() (*Agent, <-chan *QueuedPrompt) {
	prompts := make(chan *QueuedPrompt, 10)
	return &Agent{
		Queue: func(_ context.Context, q *QueuedPrompt) error {
			if text := blocksText(q.Blocks()); strings.HasPrefix(text, "refused") {
				return &Failure{Message: text, Reason: "no"}
			}
			prompts <- q
			return nil
		},
		CloseSession: func(context.Context, *AgentSession) error { return nil },
	}, prompts
}

// answered returns how a request is answered, in short, once it is.
func (r *rawClient) answered(wait func() (string, error)) func() string {
	done := make(chan string, 1)
	go func() {
		res, err := wait()
		if err != nil {
			res = fmt.Sprint("error ", code(err))
		}
		done <- res
	}()
	said := "waits"
	return func() string {
		synctest.Wait()
		select {
		case said = <-done:
		default:
		}
		return said
	}
}

// TestQueue: the turns of prompts begin and end where the agent says, in an order of its own, and the client is sent
// what the agent sends and nothing else.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for version := 1; version <= 2; version++ {
			a, prompts := queueing()
			called := 0
			a.Middleware = []Middleware{func(ctx context.Context, call *Call, next func(context.Context) error) error {
				if call.Queued != nil && call.Turn == nil && call.Method == "session/prompt" {
					called++
				}
				return next(ctx)
			}}
			r := dialVersion(t, a, version)
			s := r.session()
			var answers []func() string
			for _, text := range []string{"one", "two", "three", "refused", "four"} {
				answers = append(answers, r.answered(r.startPrompt(t.Context(), s, text)))
				synctest.Wait()
			}
			one, two, three, four := <-prompts, <-prompts, <-prompts, <-prompts
			as := one.Session()
			if diff := cmp.Diff([]string{"waits", "waits", "waits", "error -32001", "waits"}, calls(answers)); diff != "" {
				t.Error(diff)
			}
			if called != 5 {
				t.Errorf("%d calls", called)
			}

			three.Begin("log-3")
			_ = as.Send(&RunningStateUpdate{})
			_ = as.Say("hello")
			three.Begin("again")
			two.End(TurnEnd{Stop: StopCancelled}) // it never begins
			four.End(TurnEnd{Err: &Failure{Message: "no", Reason: "no"}})
			one.Begin("log-1") // out of turn
			three.End(TurnEnd{Stop: StopMaxTokens, Meta: []byte(`{"x":1}`)})
			three.End(TurnEnd{Stop: StopCancelled})
			_ = as.Send(&IdleStateUpdate{StopReason: StopMaxTokens})
			one.End(TurnEnd{Err: errors.New("broken")})
			_ = as.Send(&IdleStateUpdate{StopReason: StopError})
			want := []string{"error -32603", `{"stopReason":"cancelled"}`, `{"stopReason":"max_tokens","_meta":{"x":1}}`, "error -32001", "error -32001"}
			updates := []string{"agent_message_chunk hello"}
			if version == 2 {
				want = []string{`{"messageId":"log-1"}`, "error -32800", `{"messageId":"log-3"}`, "error -32001", "error -32001"}
				updates = []string{"running", "agent_message_chunk hello", "idle max_tokens", "idle error"}
			}
			if diff := cmp.Diff(want, calls(answers)); diff != "" {
				t.Errorf("version %d: %s", version, diff)
			}
			r.conn.Close()
			synctest.Wait()
			if diff := cmp.Diff(updates, r.updates()); diff != "" {
				t.Errorf("version %d: %s", version, diff)
			}
		}
	})
}

// calls returns what functions return.
func calls(all []func() string) (said []string) {
	for _, f := range all {
		said = append(said, f())
	}
	return said
}

// TestQueueCancel: a client that cancels is answered what the agent says became of its prompt, also if the agent
// learns of the prompt only then.
func TestQueueCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for version := 1; version <= 2; version++ {
			a, prompts := queueing()
			take, goOn := a.Queue, make(chan struct{})
			a.Queue = func(ctx context.Context, q *QueuedPrompt) error {
				if blocksText(q.Blocks()) == "holds up" {
					<-goOn
				}
				return take(ctx, q)
			}
			r := dialVersion(t, a, version)
			s := r.session()
			runs := r.answered(r.startPrompt(t.Context(), s, "runs"))
			one := <-prompts
			one.Begin("1")
			held := r.answered(r.startPrompt(t.Context(), s, "holds up"))
			later := r.answered(r.startPrompt(t.Context(), s, "later"))
			synctest.Wait()
			r.notify("session/cancel", fmt.Sprintf(`{"sessionId":%q}`, s))
			synctest.Wait()
			close(goOn)
			two, three := <-prompts, <-prompts
			for _, q := range []*QueuedPrompt{one, two, three} {
				if cause := context.Cause(q.Context()); !errors.Is(cause, ErrCancelled) {
					t.Errorf("version %d: %v", version, cause)
				}
			}
			if got := later(); got != "waits" {
				t.Errorf("version %d: it has the answer %s", version, got)
			}
			two.End(TurnEnd{Stop: StopCancelled})
			three.Begin("3") // it was sent before, and has run
			three.End(TurnEnd{Stop: StopEndTurn})
			one.End(TurnEnd{Stop: StopEndTurn}) // it was faster
			want := []string{`{"stopReason":"end_turn"}`, `{"stopReason":"cancelled"}`, `{"stopReason":"end_turn"}`}
			if version == 2 {
				want = []string{`{"messageId":"1"}`, "error -32800", `{"messageId":"3"}`}
			}
			if diff := cmp.Diff(want, calls([]func() string{runs, held, later})); diff != "" {
				t.Errorf("version %d: %s", version, diff)
			}
			r.conn.Close()
		}
	})
}

// TestQueueEnds: prompts end with their session and their connection, whatever the agent does.
func TestQueueEnds(t *testing.T) {
	for _, tt := range []struct {
		name         string
		end          func(r *rawClient, s string)
		first        [3]string // how the request of a turn that runs is answered, by versions
		second       [3]string // and that of one that has not begun
		idle         bool      // whether a client of version 2 is sent that the turn has ended
		cancelsFirst bool
	}{
		{
			name: "session/close", idle: true,
			end:    func(r *rawClient, s string) { r.must("session/close", fmt.Sprintf(`{"sessionId":%q}`, s)) },
			first:  [3]string{1: `{"stopReason":"cancelled"}`, 2: `{"messageId":"1"}`},
			second: [3]string{1: `{"stopReason":"cancelled"}`, 2: "error -32800"},
		},
		{
			name: "session/close after session/cancel", idle: true, cancelsFirst: true,
			end:    func(r *rawClient, s string) { r.must("session/close", fmt.Sprintf(`{"sessionId":%q}`, s)) },
			first:  [3]string{1: `{"stopReason":"cancelled"}`, 2: `{"messageId":"1"}`},
			second: [3]string{1: `{"stopReason":"cancelled"}`, 2: "error -32800"},
		},
		{
			name:   "the agent closes",
			end:    func(r *rawClient, _ string) { _ = r.agent.Close() },
			first:  [3]string{1: "error -32001", 2: `{"messageId":"1"}`},
			second: [3]string{1: "error -32001", 2: "error -32001"},
		},
		{
			name:   "the client leaves",
			end:    func(r *rawClient, _ string) { _ = r.conn.Close() },
			first:  [3]string{1: "error 0", 2: `{"messageId":"1"}`},
			second: [3]string{1: "error 0", 2: "error 0"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for version := 1; version <= 2; version++ {
					a, prompts := queueing()
					r := dialVersion(t, a, version)
					s := r.session()
					first := r.answered(r.startPrompt(t.Context(), s, "one"))
					one := <-prompts
					one.Begin("1")
					second := r.answered(r.startPrompt(t.Context(), s, "two"))
					two := <-prompts
					synctest.Wait()
					if tt.cancelsFirst {
						r.notify("session/cancel", fmt.Sprintf(`{"sessionId":%q}`, s))
						synctest.Wait()
					}
					tt.end(r, s)
					want := []string{tt.first[version], tt.second[version]}
					if diff := cmp.Diff(want, calls([]func() string{first, second})); diff != "" {
						t.Errorf("version %d: %s", version, diff)
					}
					var idle []string
					if tt.idle && version == 2 { // otherwise the turn may continue
						idle = []string{"idle cancelled"}
					}
					if diff := cmp.Diff(idle, r.updates()); diff != "" {
						t.Errorf("version %d: %s", version, diff)
					}
					two.Begin("2") // too late, and nothing waits
					two.End(TurnEnd{Stop: StopEndTurn})
					one.End(TurnEnd{Stop: StopEndTurn})
					r.conn.Close()
				}
			})
		})
	}
}

// TestQueueStates: that a turn waits for an answer is said as long as the agent has said that one runs.
func TestQueueStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, prompts := queueing()
		a.SessionStatus = func(context.Context, *AgentConn, SessionID) (SessionStatus, error) { return SessionStatusSaved, nil }
		r := dialVersion(t, a, 2)
		r.answer["session/request_permission"] = func(context.Context, json.RawMessage) (any, error) {
			return json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`), nil
		}
		s := r.session()
		r.answered(r.startPrompt(t.Context(), s, "one"))
		q := <-prompts
		as := q.Session()
		ask := func() {
			if _, err := as.Ask(Permission{Title: "May I?", Options: []PermissionOption{{OptionID: "a", Name: "Yes", Kind: PermissionOptionKindAllowOnce}}}); err != nil {
				t.Error(err)
			}
		}
		status := func() string {
			var res struct{ State struct{ State string } }
			if err := json.Unmarshal(r.must("session/status", fmt.Sprintf(`{"sessionId":%q}`, s)), &res); err != nil {
				t.Fatal(err)
			}
			return res.State.State
		}
		ask() // nothing runs
		q.Begin("1")
		_ = as.Send(&RunningStateUpdate{})
		ask()
		if got := status(); got != "running" {
			t.Error(got)
		}
		q.End(TurnEnd{})
		_ = as.Send(&IdleStateUpdate{StopReason: StopEndTurn})
		if got := status(); got != "idle" {
			t.Error(got)
		}
		ask()
		synctest.Wait()
		if diff := cmp.Diff([]string{"running", "requires_action", "running", "idle end_turn"}, r.updates()); diff != "" {
			t.Error(diff)
		}
		r.conn.Close()
	})
}

// TestQueueAlone: the hook takes the place of others.
func TestQueueAlone(t *testing.T) {
	for name, change := range map[string]func(a *Agent){
		"Prompt":   func(a *Agent) { a.Prompt = func(context.Context, *Turn) (StopReason, error) { return "", nil } },
		"Accept":   func(a *Agent) { a.Accept = func(context.Context, *Turn) error { return nil } },
		"Received": func(a *Agent) { a.Received = func(context.Context, *Turn) error { return nil } },
		"Busy":     func(a *Agent) { a.Busy = BusySteer },
	} {
		a, _ := queueing()
		change(a)
		if _, err := a.ready(); err == nil {
			t.Errorf("%s may be set, too", name)
		}
	}
}

// TestQueueHeld: what the agent has is in the queue until it is over, although its request was withdrawn: it counts
// against MaxHeld, and ends with its session.
func TestQueueHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for version := 1; version <= 2; version++ {
			a, prompts := queueing()
			a.MaxHeld = 2
			r := dialVersion(t, a, version)
			s := r.session()
			for i := range 8 {
				ctx, cancel := context.WithCancel(t.Context())
				r.answered(r.startPrompt(ctx, s, fmt.Sprint(i)))
				synctest.Wait()
				cancel()
				synctest.Wait()
			}
			if len(prompts) != 3 {
				t.Errorf("version %d: the agent has %d prompts, one and two that are held", version, len(prompts))
			}
			for range 2 {
				q := <-prompts
				if cause := context.Cause(q.Context()); !errors.Is(cause, jsonrpc.ErrRequestCancelled) {
					t.Errorf("version %d: %v", version, cause)
				}
				q.End(TurnEnd{Stop: StopCancelled})
			}
			r.must("session/close", fmt.Sprintf(`{"sessionId":%q}`, s))
			q := <-prompts
			if at := q.settle(); at < promptSettled {
				t.Errorf("version %d: its session is closed, and it is at %d", version, at)
			}
			r.conn.Close()
		}
	})
}

// TestQueueWhileTaken: a prompt ends with its session, also if that ends while the hook runs and the client has
// cancelled before, and if the hook fails after it has said that the turn begins.
func TestQueueWhileTaken(t *testing.T) {
	for _, begins := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			for version := 1; version <= 2; version++ {
				a, _ := queueing()
				a.Logger = slog.New(slog.DiscardHandler)
				taken, goOn := make(chan struct{}), make(chan struct{})
				a.Queue = func(ctx context.Context, q *QueuedPrompt) error {
					if begins {
						go q.Begin("1")
					}
					close(taken)
					select {
					case <-ctx.Done():
					case <-goOn:
					}
					return errors.New("broken")
				}
				r := dialVersion(t, a, version)
				s := r.session()
				answer := r.answered(r.startPrompt(t.Context(), s, "one"))
				<-taken
				synctest.Wait()
				want := `{"stopReason":"cancelled"}`
				if version == 2 {
					want = "error -32800"
				}
				if begins {
					close(goOn)
					synctest.Wait()
					if version == 2 {
						want = `{"messageId":"1"}`
					}
				} else {
					r.notify("session/cancel", fmt.Sprintf(`{"sessionId":%q}`, s))
					synctest.Wait()
					want = "error -32603" // which the hook has returned
				}
				r.must("session/close", fmt.Sprintf(`{"sessionId":%q}`, s))
				if got := answer(); got != want {
					t.Errorf("version %d, begins %t: %s, want %s", version, begins, got, want)
				}
				r.conn.Close()
			}
		})
	}
}
