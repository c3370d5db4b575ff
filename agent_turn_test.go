package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestVerbs: one Prompt hook, unchanged, for both versions.
func TestVerbs(t *testing.T) {
	agent := &Agent{
		Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			t.Think("hm")
			t.Say("one ")
			t.Say("two")
			call := t.ToolCall(ToolCall{Title: "Edit", Kind: ToolKindEdit})
			call.Change(FileChange{Path: "/f", Before: "a\n", After: "b\n"})
			t.Plan(PlanEntry{Content: "step", Priority: PlanEntryPriorityHigh, Status: PlanEntryStatusPending})
			t.SetTitle("Title")
			return StopEndTurn, call.Complete()
		},
	}
	want := map[int][]string{
		1: {
			"agent_thought_chunk hm", "agent_message_chunk one", "agent_message_chunk two",
			"tool_call call_1 Edit in_progress", "tool_call_update call_1", "plan", "session_info_update Title",
			"tool_call_update call_1 completed",
		},
		2: {
			"user_message go", "running",
			"agent_thought_chunk hm", "agent_message_chunk one", "agent_message_chunk two",
			"tool_call_update call_1 Edit in_progress", "tool_call_content_chunk call_1", "plan_update", "session_info_update Title",
			"tool_call_update call_1 completed", "idle end_turn",
		},
	}
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, agent, v)
		stop, err := r.turn(r.session(), "go")
		if err != nil || stop != "end_turn" {
			t.Fatalf("turn: %q, %v", stop, err)
		}
		if diff := cmp.Diff(want[v], r.updates()); diff != "" {
			t.Errorf("updates (-want +got):\n%s", diff)
		}
	})
}

// TestCancel: wherever a cancel meets a turn, there is exactly one end, and the
// next turn does not notice (S40, S42).
func TestCancel(t *testing.T) {
	wait := func(ctx context.Context, _ *Turn) { <-ctx.Done() }
	places := []struct {
		name string
		hook func(ctx context.Context, t *Turn)
	}{
		{"before the first byte", wait},
		{"after some text", func(ctx context.Context, t *Turn) { t.Say("text"); <-ctx.Done() }},
		{"in a tool call", func(ctx context.Context, t *Turn) { t.ToolCall(ToolCall{Title: "Tool"}); <-ctx.Done() }},
		{"in a permission", func(_ context.Context, t *Turn) {
			if d, err := t.Ask(Permission{Title: "May I?"}); !d.Cancelled || err != nil {
				panic("not cancelled")
			}
		}},
		{"in a command", func(_ context.Context, t *Turn) {
			term, err := t.Run(Exec{Command: "sleep", Args: []string{"1000"}})
			if err != nil {
				panic(err)
			}
			defer term.Release()
			if _, err := term.Wait(); err == nil {
				panic("not cancelled")
			}
		}},
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			versions(t, func(t *testing.T, v int) {
				started := make(chan struct{}, 1)
				agent := &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
					if t.Text() == "next" {
						t.Say("next")
						return StopEndTurn, ctx.Err()
					}
					started <- struct{}{}
					p.hook(ctx, t)
					if !errors.Is(context.Cause(ctx), ErrCancelled) {
						return "", errors.New("the cause is not ErrCancelled")
					}
					return StopEndTurn, nil // it has to be cancelled all the same
				}}
				r := dialVersion(t, agent, v)
				pending := make(chan error, 1)
				r.answer["session/request_permission"] = func(ctx context.Context, _ json.RawMessage) (any, error) {
					<-ctx.Done()
					pending <- nil
					return json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`), nil
				}
				s := r.session()
				type end struct {
					stop string
					err  error
				}
				ended := make(chan end, 1)
				go func() {
					stop, err := r.turn(s, "go")
					ended <- end{stop, err}
				}()
				<-started
				if p.name == "in a permission" {
					r.await(func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.asked) > 0 })
				}
				r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
				r.notify("session/cancel", `{"sessionId":"`+s+`"}`) // twice is once
				if e := <-ended; e.stop != "cancelled" || e.err != nil {
					t.Errorf("turn: %q, %v", e.stop, e.err)
				}
				if p.name == "in a permission" {
					<-pending // withdrawn
				}
				r.notify("session/cancel", `{"sessionId":"`+s+`"}`) // after the end
				if stop, err := r.turn(s, "next"); stop != "end_turn" || err != nil {
					t.Errorf("next turn: %q, %v", stop, err)
				}
				if v == 2 && r.idles() != 2 {
					t.Errorf("%d ends of two turns: %q", r.idles(), r.updates())
				}
			})
		})
	}
}

// TestCancelOpenCalls: what a cancelled turn left unfinished is told to be.
func TestCancelOpenCalls(t *testing.T) {
	want := map[int]string{1: "tool_call_update call_1 failed", 2: "tool_call_update call_1 cancelled"}
	versions(t, func(t *testing.T, v int) {
		started := make(chan struct{})
		r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			t.ToolCall(ToolCall{Title: "Open"})
			_ = t.ToolCall(ToolCall{Title: "Done"}).Complete()
			close(started)
			<-ctx.Done()
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		go func() { <-started; r.notify("session/cancel", `{"sessionId":"`+s+`"}`) }()
		if stop, err := r.turn(s, "go"); stop != "cancelled" || err != nil {
			t.Fatalf("turn: %q, %v", stop, err)
		}
		count := 0
		for _, u := range r.updates() {
			if u == want[v] {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%q does not hold %q once", r.updates(), want[v])
		}
	})
}

// TestPromptAndCancelInOneWrite: a cancel that was behind its prompt is never
// lost, one that was before it never counts.
func TestPromptAndCancelInOneWrite(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, _ *Turn) (StopReason, error) {
			<-ctx.Done()
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		for range 200 {
			r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
			idles := r.idles()
			type end struct {
				res json.RawMessage
				err error
			}
			ended := make(chan end, 1)
			sent := make(chan struct{})
			go func() {
				close(sent)
				res, err := r.call("session/prompt", promptParams(s, "go"))
				ended <- end{res, err}
			}()
			<-sent
			r.await(func() bool { // the one before it may not have left yet
				r.agent.mu.Lock()
				defer r.agent.mu.Unlock()
				return slices.ContainsFunc(r.agent.prompts[SessionID(s)], func(p *prompt) bool { return p.place < promptSettled })
			})
			r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
			e := <-ended
			switch {
			case v == 1 && (e.err != nil || !strings.Contains(string(e.res), "cancelled")):
				t.Fatalf("answer %s, %v", e.res, e.err)
			case v == 2 && e.err == nil:
				if stop := r.awaitIdle(idles); stop != "cancelled" {
					t.Fatalf("stop reason %q", stop)
				}
			case v == 2 && code(e.err) != jsonrpc.CodeRequestCancelled:
				t.Fatalf("error %v", e.err)
			}
		}
	})
}

// TestBusy: the three policies for a second prompt.
func TestBusy(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		start := func(t *testing.T, policy BusyPolicy, held int) (r *rawClient, s string, running chan string, release chan struct{}) {
			running, release = make(chan string, 10), make(chan struct{})
			var active atomic.Int32
			r = dialVersion(t, &Agent{Busy: policy, MaxHeld: held, Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
				if active.Add(1) > 1 {
					t.Error("two turns at once")
				}
				defer active.Add(-1)
				running <- turn.Text()
				if turn.Text() == "first" {
					for {
						select {
						case <-release:
							return StopEndTurn, nil
						case b := <-turn.Steering():
							turn.Say("steered " + blocksText(b))
							running <- "steered"
						}
					}
				}
				return StopEndTurn, nil
			}}, v)
			return r, r.session(), running, release
		}
		prompt := func(r *rawClient, s, text string) chan error {
			done := make(chan error, 1)
			n := make(chan struct{})
			r.agent.mu.Lock()
			before := len(r.agent.prompts[SessionID(s)])
			r.agent.mu.Unlock()
			go func() {
				close(n)
				_, err := r.call("session/prompt", promptParams(s, text))
				done <- err
			}()
			<-n
			r.await(func() bool {
				r.agent.mu.Lock()
				defer r.agent.mu.Unlock()
				return len(r.agent.prompts[SessionID(s)]) > before || len(done) > 0
			})
			return done
		}
		t.Run("queue", func(t *testing.T) {
			r, s, running, release := start(t, BusyQueue, 2)
			first := prompt(r, s, "first")
			<-running
			second := prompt(r, s, "second")
			third := prompt(r, s, "third")
			fourth := prompt(r, s, "fourth") // one too many
			f, ok := errors.AsType[*Failure](<-fourth)
			if !ok || f.Reason != "busy" {
				t.Errorf("fourth: %+v", f)
			}
			close(release)
			for _, c := range []chan error{first, second, third} {
				if err := <-c; err != nil {
					t.Error(err)
				}
			}
			if a, b := <-running, <-running; a != "second" || b != "third" {
				t.Errorf("order: %s, %s", a, b)
			}
		})
		t.Run("reject", func(t *testing.T) {
			r, s, running, release := start(t, BusyReject, 0)
			first := prompt(r, s, "first")
			<-running
			if f, ok := errors.AsType[*Failure](<-prompt(r, s, "second")); !ok || f.Reason != "busy" || f.Scope != "session" {
				t.Errorf("second: %+v", f)
			}
			close(release)
			if err := <-first; err != nil {
				t.Error(err)
			}
			if v == 2 {
				r.awaitIdle(0)
			}
			if stop, err := r.turn(s, "third"); err != nil || v == 1 && stop != "end_turn" {
				t.Errorf("third: %q, %v", stop, err)
			}
		})
		t.Run("steer", func(t *testing.T) {
			r, s, running, release := start(t, BusySteer, 0)
			first := prompt(r, s, "first")
			<-running
			second := make(chan error, 1)
			go func() {
				_, err := r.call("session/prompt", promptParams(s, "second"))
				second <- err
			}()
			if got := <-running; got != "steered" {
				t.Errorf("got %s", got)
			}
			close(release)
			for _, c := range []chan error{first, second} {
				if err := <-c; err != nil {
					t.Error(err)
				}
			}
			if len(running) > 0 {
				t.Errorf("a turn of its own: %s", <-running)
			}
		})
	})
}

// TestBusyRefused: a prompt that was refused does not stand in the way of the next
// one, however soon after the refusal that arrives.
func TestBusyRefused(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, &Agent{Busy: BusyReject, Prompt: func(context.Context, *Turn) (StopReason, error) {
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		picture := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"image","data":"","mimeType":"image/png"}]}`, s)
		for i := range 300 {
			if _, err := r.call("session/prompt", picture); code(err) != jsonrpc.CodeInvalidParams {
				t.Fatal(err)
			}
			if stop, err := r.turn(s, "next"); err != nil || v == 1 && stop != "end_turn" {
				t.Fatalf("round %d: %q, %v", i, stop, err)
			}
		}
	})
}

// TestSteeringLeft: what a turn did not take becomes the next turn.
func TestSteeringLeft(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		running, release := make(chan string, 2), make(chan struct{})
		r := dialVersion(t, &Agent{Busy: BusySteer, Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			running <- t.Text()
			if t.Text() == "first" {
				<-release
			}
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		done := make(chan error, 2)
		go func() { _, err := r.call("session/prompt", promptParams(s, "first")); done <- err }()
		<-running
		go func() { _, err := r.call("session/prompt", promptParams(s, "second")); done <- err }()
		r.await(func() bool {
			r.agent.mu.Lock()
			defer r.agent.mu.Unlock()
			return len(r.agent.prompts[SessionID(s)]) == 2
		})
		close(release)
		if got := <-running; got != "second" {
			t.Errorf("then %s", got)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestErrors: how a turn that fails is told.
func TestErrors(t *testing.T) {
	secret := errors.New("secret text")
	cases := []struct {
		name string
		err  error
		code int
	}{
		{"plain", secret, jsonrpc.CodeInternalError},
		{"wire", jsonrpc.Errorf(-32042, "custom"), -32042},
		{"failure", &Failure{Message: "slow down", Reason: "rate_limit", RetryAfter: time.Second}, -32001},
		{"panic", nil, jsonrpc.CodeInternalError},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			versions(t, func(t *testing.T, v int) {
				hook := func(_ context.Context, _ *Turn) error {
					if c.err == nil {
						panic("secret text")
					}
					return c.err
				}
				var log strings.Builder
				a := &Agent{
					Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Prompt: func(ctx context.Context, t *Turn) (StopReason, error) { return "", hook(ctx, t) },
				}
				r := dialVersion(t, a, v)
				stop, err := r.turn(r.session(), "go")
				if v == 1 {
					if code(err) != c.code || strings.Contains(err.Error(), "secret") {
						t.Errorf("error %v", err)
					}
				} else if want := "error " + itoa(c.code); stop != want || err != nil {
					t.Errorf("stop %q, %v; want %q", stop, err, want)
				}
				// Before it is part of the conversation it is refused in both.
				a.Accept = hook
				r = dialVersion(t, a, v)
				if _, err := r.turn(r.session(), "go"); code(err) != c.code {
					t.Errorf("refused with %v", err)
				}
				if got := r.updates(); len(got) > 0 {
					t.Errorf("a refused prompt sent %q", got)
				}
			})
		})
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// TestHeldPromptCancelled: a prompt that is held is withdrawn by either cancel.
func TestHeldPromptCancelled(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		holding := make(chan struct{}, 1)
		r := dialVersion(t, &Agent{
			Accept: func(ctx context.Context, _ *Turn) error { holding <- struct{}{}; <-ctx.Done(); return nil },
			Prompt: func(context.Context, *Turn) (StopReason, error) { t.Error("it ran"); return "", nil },
		}, v)
		s := r.session()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-holding; cancel() }()
		var res json.RawMessage
		err := r.conn.Call(ctx, "session/prompt", json.RawMessage(promptParams(s, "go")), &res, jsonrpc.AwaitAnswer())
		if code(err) != jsonrpc.CodeRequestCancelled {
			t.Errorf("after $/cancel_request: %s, %v", res, err)
		}
		go func() { <-holding; r.notify("session/cancel", `{"sessionId":"`+s+`"}`) }()
		res, err = r.call("session/prompt", promptParams(s, "go"))
		if v == 1 && (err != nil || !strings.Contains(string(res), `"cancelled"`)) || v == 2 && code(err) != jsonrpc.CodeRequestCancelled {
			t.Errorf("after session/cancel: %s, %v", res, err)
		}
	})
}

// TestCancelRequestOfTurn: $/cancel_request ends a version 1 turn with -32800;
// in version 2 the request has been answered by then.
func TestCancelRequestOfTurn(t *testing.T) {
	started := make(chan struct{}, 1)
	r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, _ *Turn) (StopReason, error) {
		started <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}}, 1)
	s := r.session()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	err := r.conn.Call(ctx, "session/prompt", json.RawMessage(promptParams(s, "go")), nil, jsonrpc.AwaitAnswer())
	if code(err) != jsonrpc.CodeRequestCancelled {
		t.Errorf("error %v", err)
	}
}

// TestBetweenTurns: updates outside a turn go through the session, in both
// versions, and a turn that has ended can send nothing more.
func TestBetweenTurns(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var session *AgentSession
		var turn *Turn
		r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			session, turn = t.Session(), t
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		if _, err := r.turn(s, "go"); err != nil {
			t.Fatal(err)
		}
		before := len(r.updates())
		if err := turn.Say("late"); !errors.Is(err, ErrTurnEnded) {
			t.Errorf("a turn that has ended sends: %v", err)
		}
		for _, err := range []error{
			session.Say("by myself"), session.SetTitle("New"), session.Usage(1, 2, &Cost{Amount: 1, Currency: "EUR"}),
			session.ToolCall(ToolCall{ID: "bg", Title: "Background"}).Complete(),
			session.SetBackground(&acpv2.BackgroundToolCall{ToolCallID: "bg"}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		_, _ = r.call("_test/barrier", "{}")
		want := []string{"agent_message_chunk by myself", "session_info_update New", "usage_update"}
		if v == 1 {
			want = append(want, "tool_call bg Background in_progress", "tool_call_update bg completed")
		} else {
			want = append(want, "tool_call_update bg Background in_progress", "tool_call_update bg completed", "idle")
		}
		if diff := cmp.Diff(want, r.updates()[before:]); diff != "" {
			t.Errorf("updates (-want +got):\n%s", diff)
		}
	})
}

// TestStickyErrors: after the first failure the turn's context is done and
// everything later fails with it.
func TestStickyErrors(t *testing.T) {
	result := make(chan []error, 1)
	r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
		first := t.Send(&UnknownSessionUpdate{Type: "_x", Raw: json.RawMessage(`not JSON`)})
		<-ctx.Done()
		result <- []error{first, t.Say("more"), t.Err(), context.Cause(ctx)}
		return StopEndTurn, nil
	}}, 2)
	stop, err := r.turn(r.session(), "go")
	if err != nil || !strings.HasPrefix(stop, "error") {
		t.Errorf("stop %q, %v", stop, err)
	}
	errs := <-result
	for i, err := range errs {
		if err == nil || err.Error() != errs[0].Error() {
			t.Errorf("error %d: %v", i, err)
		}
	}
}

// TestPeerLeaves: when the client goes away, turns are cancelled and nothing is
// left.
func TestPeerLeaves(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		started, cause := make(chan struct{}), make(chan error, 1)
		r := dialVersion(t, &Agent{
			Engine: jsonrpc.Settings{Grace: time.Millisecond},
			Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
				close(started)
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return "", ctx.Err()
			},
		}, v)
		s := r.session()
		go func() { _, _ = r.call("session/prompt", promptParams(s, "go")) }()
		<-started
		_ = r.conn.Close()
		if err := <-cause; !errors.Is(err, jsonrpc.ErrClosed) && !errors.Is(err, io.EOF) {
			t.Errorf("cause %v", err)
		}
		if err := r.agent.Wait(); err != nil {
			t.Error(err)
		}
		if n := len(r.agent.OpenSessions()); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// TestBusyEnd: a prompt that has waited is answered behind the end of the turn before it, however long that takes to
// send. A client of version 2 would take that end for the end of the prompt's own turn.
func TestBusyEnd(t *testing.T) {
	for _, policy := range []BusyPolicy{BusyQueue, BusySteer} {
		synctest.Test(t, func(t *testing.T) {
			gate := &clientGate{method: "session/update", nth: 3, open: make(chan struct{})} // behind the message and its state
			release := make(chan struct{})
			s, _ := linked(t, &Agent{
				Busy: policy, MaxHeld: 1, Engine: jsonrpc.Settings{Outgoing: []jsonrpc.Middleware{gate.middleware}},
				Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
					if turn.Text() == "first" {
						<-release
						return StopEndTurn, nil
					}
					return StopMaxTokens, nil
				},
			}, 2)
			first, second := s.Prompt(t.Context(), Text("first")), s.Prompt(t.Context(), Text("second"))
			synctest.Wait()
			close(release)
			synctest.Wait()
			close(gate.open)
			for i, r := range []*Reply{first, second} {
				if res, err := r.Wait(); err != nil || res.StopReason != []StopReason{StopEndTurn, StopMaxTokens}[i] {
					t.Errorf("policy %d, prompt %d: %+v, %v", policy, i, res, err)
				}
			}
		})
	}
}
